//! How a program walks through a tree: in which order of entries, and when it enters directories.

/// The key by which entries are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// As `readdir(3)` returns them.
    Readdir,
    Name,
    Inode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// An order of a directory's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) sort: Sort,
    pub(super) direction: Direction,
}

const fn up(sort: Sort) -> Order {
    Order { sort, direction: Direction::Up }
}

const fn down(sort: Sort) -> Order {
    Order { sort, direction: Direction::Down }
}

/// When a walker enters the directories of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// When it reaches them (`grep -r`, `tar`, `cp -r`).
    Mixed,
    /// After all files (`os.walk`, `rsync`).
    FilesFirst,
    /// Before all files (`os.walk` bottom up).
    DirectoriesFirst,
    /// Never.
    FilesOnly,
}

/// One way through a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traversal {
    pub(super) files: Order,
    pub(super) directories: Order,
    pub(super) layout: Layout,
}

/// The entries that a walker takes in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Both,
    Files,
    Directories,
}

impl Traversal {
    /// The first row of a directory (0), the second (1), or none.
    pub(super) fn row(&self, number: u8) -> Option<(Row, Order)> {
        let (files, directories) = ((Row::Files, self.files), (Row::Directories, self.directories));
        match (self.layout, number) {
            (Layout::Mixed, 0) => Some((Row::Both, self.files)),
            (Layout::FilesFirst | Layout::FilesOnly, 0) | (Layout::DirectoriesFirst, 1) => {
                Some(files)
            }
            (Layout::FilesFirst, 1) | (Layout::DirectoriesFirst, 0) => Some(directories),
            _ => None,
        }
    }

    /// The number of the row in which files, or directories, are.
    pub(super) fn row_of(&self, is_directory: bool) -> u8 {
        match self.layout {
            Layout::Mixed => 0,
            Layout::FilesFirst | Layout::FilesOnly => u8::from(is_directory),
            Layout::DirectoriesFirst => u8::from(!is_directory),
        }
    }
}

const fn with(layout: Layout, order: Order) -> Traversal {
    Traversal { files: order, directories: order, layout }
}

/// All traversals, the most frequent first: of two that explain the same steps, the first wins.
pub(super) const TRAVERSALS: [Traversal; 19] = [
    with(Layout::Mixed, up(Sort::Readdir)),
    with(Layout::Mixed, up(Sort::Name)),
    with(Layout::Mixed, up(Sort::Inode)),
    with(Layout::FilesFirst, up(Sort::Readdir)),
    with(Layout::FilesFirst, up(Sort::Name)),
    with(Layout::FilesFirst, up(Sort::Inode)),
    // rsync reads files as readdir gives them, and sorts directories.
    Traversal { files: up(Sort::Readdir), directories: up(Sort::Name), layout: Layout::FilesFirst },
    with(Layout::DirectoriesFirst, up(Sort::Readdir)),
    with(Layout::DirectoriesFirst, up(Sort::Name)),
    with(Layout::DirectoriesFirst, up(Sort::Inode)),
    with(Layout::Mixed, down(Sort::Readdir)),
    with(Layout::Mixed, down(Sort::Name)),
    with(Layout::Mixed, down(Sort::Inode)),
    with(Layout::FilesFirst, down(Sort::Readdir)),
    with(Layout::FilesFirst, down(Sort::Name)),
    with(Layout::FilesFirst, down(Sort::Inode)),
    with(Layout::DirectoriesFirst, down(Sort::Readdir)),
    with(Layout::DirectoriesFirst, down(Sort::Name)),
    with(Layout::DirectoriesFirst, down(Sort::Inode)),
];

/// For a directory that is read in random order: inode numbers are close to positions on the disk.
pub(super) const BY_INODE: Traversal = with(Layout::FilesOnly, up(Sort::Inode));

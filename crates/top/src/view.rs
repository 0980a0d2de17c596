//! What the user wants to see.

/// What to add up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One row for each process.
    #[default]
    Process,
    /// One row for what each process reads of each file.
    Stream,
    /// One row for each file.
    File,
    /// One row for each file system and its device.
    Device,
    /// One row for each cgroup.
    Cgroup,
}

impl By {
    /// In the order of the keys.
    pub const ALL: [By; 5] = [By::Process, By::Stream, By::File, By::Device, By::Cgroup];

    /// The name of one.
    pub fn name(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Stream => "stream",
            By::File => "file",
            By::Device => "device",
            By::Cgroup => "cgroup",
        }
    }
}

/// The figure to sort by, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Time spent waiting for pages.
    #[default]
    Wait,
    /// Reads and faults.
    Reads,
    /// Bytes asked for.
    Bytes,
    /// Pages that were missing.
    Missing,
    /// How often threads waited.
    Stalls,
    /// Pages that bowwave brought.
    Bowwave,
}

impl Sort {
    /// In the order of the key.
    pub const ALL: [Sort; 6] =
        [Sort::Wait, Sort::Reads, Sort::Bytes, Sort::Missing, Sort::Stalls, Sort::Bowwave];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Wait => "wait",
            Sort::Reads => "reads",
            Sort::Bytes => "bytes",
            Sort::Missing => "missing",
            Sort::Stalls => "stalls",
            Sort::Bowwave => "bowwave",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

/// What the user has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What to add up by.
    pub by: By,
    /// What to sort by.
    pub sort: Sort,
    /// Show only rows whose name contains this.
    pub filter: String,
    /// Whether the picture stands still.
    pub is_paused: bool,
    /// Whether the user types the filter.
    pub is_typing: bool,
    /// Whether to end.
    pub has_ended: bool,
}

const ESCAPE: char = '\u{1b}';
const DELETE: char = '\u{7f}';
const BACKSPACE: char = '\u{8}';

impl View {
    /// Takes what the user has typed. Ignores the sequences that a terminal sends for arrows and function keys.
    pub fn typed(&mut self, text: &str) {
        let mut keys = text.chars().peekable();
        while let Some(key) = keys.next() {
            match (key, keys.peek()) {
                // ESC [, parameters, and a letter or one of @[\]^_`{|}~.
                (ESCAPE, Some('[')) => drop(keys.by_ref().skip(1).find(|c| matches!(c, '@'..='~'))),
                // ESC O and one character.
                (ESCAPE, Some('O')) => drop(keys.nth(1)),
                _ => self.press(key),
            }
        }
    }

    fn press(&mut self, key: char) {
        if self.is_typing {
            return self.type_filter(key);
        }
        match key {
            'p' => self.by = By::Process,
            't' => self.by = By::Stream,
            'f' => self.by = By::File,
            'd' => self.by = By::Device,
            'c' => self.by = By::Cgroup,
            's' => self.sort = self.sort.next(),
            ' ' => self.is_paused = !self.is_paused,
            '/' => {
                self.filter.clear();
                self.is_typing = true;
            }
            ESCAPE => self.filter.clear(),
            'q' => self.has_ended = true,
            _ => {}
        }
    }

    fn type_filter(&mut self, key: char) {
        match key {
            '\r' | '\n' => self.is_typing = false,
            ESCAPE => {
                self.filter.clear();
                self.is_typing = false;
            }
            DELETE | BACKSPACE => drop(self.filter.pop()),
            key if key.is_control() => {}
            key => self.filter.push(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(keys: &str) -> View {
        let mut view = View::default();
        view.typed(keys);
        view
    }

    #[test]
    fn keys_choose_what_is_shown() {
        assert_eq!(pressed("f").by, By::File);
        assert_eq!(pressed("t").by, By::Stream);
        assert_eq!(pressed("fdc").by, By::Cgroup);
        assert_eq!(pressed("s").sort, Sort::Reads);
        assert_eq!(pressed("ssssss"), View::default(), "all the way round");
        assert!(pressed(" ").is_paused && !pressed("  ").is_paused);
        assert!(pressed("q").has_ended);
    }

    #[test]
    fn a_filter_is_typed_until_enter_and_its_letters_are_no_keys() {
        let view = pressed("/quf\u{7f}\r");
        assert_eq!((view.filter.as_str(), view.is_typing, view.has_ended), ("qu", false, false));
        assert_eq!(pressed("/tar\rq").filter, "tar");
        assert_eq!(pressed("/tar\u{1b}"), View::default());
        assert_eq!(pressed("/tar\r\u{1b}"), View::default());
        assert_eq!(pressed("/a\t\u{3}b\r").filter, "ab", "control characters are ignored");
    }

    #[test]
    fn arrows_and_function_keys_are_ignored() {
        let filtered = pressed("/tar\r");
        for ignored in ["\u{1b}[A", "\u{1b}OB", "\u{1b}[15~", "\u{1b}[1;5Dp"] {
            assert_eq!(pressed(&format!("/tar\r{ignored}")), filtered, "{ignored:?}");
            assert!(pressed(&format!("/t{ignored}")).is_typing, "{ignored:?}");
        }
        assert!(pressed("\u{1b}[Aq").has_ended);
    }
}

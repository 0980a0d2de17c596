//! The parameters of the 2006 proposal.

/// The parameters. Their defaults are those of the last version posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V16Parameters {
    /// Percentage of the thrash threshold that a stream may use (`vm.readahead_ratio`). With 0,
    /// exactly the requests are read.
    pub readahead_ratio: u32,
    /// Pages worth reading ahead for each page used (`vm.readahead_hit_rate`): 0 for obvious
    /// sequences only, 1 for pages next to a cached one, more for sparse reading.
    pub readahead_hit_rate: u32,
    /// Most pages of a chunk (the device's `ra_pages`).
    pub max_pages: u32,
    /// Least pages read at the start of a file (the device's `ra_pages0`).
    pub initial_pages: u32,
    /// The reader is an NFS server, whose threads reorder the client's requests: decide about a
    /// read only after its pages were requested. Each remote call should use an open file of its
    /// own.
    pub nfsd: bool,
    /// The file backs a loop device, whose readers already read ahead: set no marks.
    pub loop_device: bool,
    /// The disk is spun down: postpone reads at a mark as long as the chunk lasts.
    pub laptop: bool,
}

impl Default for V16Parameters {
    fn default() -> Self {
        V16Parameters {
            // The estimate is wrong by less than a factor of two.
            readahead_ratio: 50,
            // A wrong guess costs more than a missed one.
            readahead_hit_rate: 0,
            // 1 MiB: a seek costs no more than the transfer that follows it.
            max_pages: 256,
            // 64 KiB: most small files in one go.
            initial_pages: 16,
            nfsd: false,
            loop_device: false,
            laptop: false,
        }
    }
}

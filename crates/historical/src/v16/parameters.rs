//! The tunables of the 2006 proposal.

/// Tunables, with the values of the last version posted as default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V16Parameters {
    /// Percent of the thrash threshold that a stream may use (`vm.readahead_ratio`); 0 reads
    /// requests as they are.
    pub readahead_ratio: u32,
    /// Pages it is worth reading ahead for each page used (`vm.readahead_hit_rate`): 0 for obvious
    /// sequences only, 1 for pages next to a cached one, more for sparse reading.
    pub readahead_hit_rate: u32,
    /// Most pages of a chunk (`ra_pages` of the device).
    pub max_pages: u32,
    /// Fewest pages read at the start of a file (`ra_pages0` of the device).
    pub initial_pages: u32,
    /// The reader is an NFS server, whose threads reorder the client's requests: judge a read only
    /// after its pages were asked for. Each remote call should come as an open file of its own.
    pub nfsd: bool,
    /// The file backs a loop device, whose own readers look ahead already: set no marks.
    pub loop_device: bool,
    /// The disk is spun down: put off reading at a mark for as long as the chunk lasts.
    pub laptop: bool,
}

impl Default for V16Parameters {
    fn default() -> Self {
        V16Parameters {
            // The estimate errs by less than two.
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

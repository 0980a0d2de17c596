//! placeholder while the real one is being written
pub struct Features {
    pub sync_ra: bool,
    pub async_ra: bool,
    pub get_pages: bool,
    pub fault: bool,
    pub map_pages: bool,
    pub block_io: bool,
}
impl Features {
    pub fn detect() -> Self {
        Features {
            sync_ra: true,
            async_ra: true,
            get_pages: true,
            fault: true,
            map_pages: true,
            block_io: true,
        }
    }
}

//! How far the kernel itself reads ahead.

/// The window with which the kernel begins to read a file, in pages (`get_init_ra_size` in mm/readahead.c).
pub(crate) fn first_window(request_pages: u64, window_pages: u64) -> u64 {
    let size = request_pages.next_power_of_two();
    match () {
        () if size <= window_pages / 32 => size * 4,
        () if size <= window_pages / 4 => size * 2,
        () => window_pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_begins_with_two_to_four_times_the_request_and_no_more_than_its_window() {
        let pages = [0, 1, 2, 3, 4, 8, 9, 24, 32, 100].map(|request| first_window(request, 32));
        assert_eq!(pages, [4, 4, 4, 8, 8, 16, 32, 32, 32, 32]);
    }
}

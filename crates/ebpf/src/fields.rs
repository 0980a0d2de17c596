//! Fields of what the eBPF programs tell: numbers in the machine's byte order, and texts that end with a zero.

/// The number of 32 bits at this byte; `None` beyond the end.
pub(crate) fn half_word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().expect("4 bytes")))
}

/// The text, without what is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

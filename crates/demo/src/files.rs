//! The files that patterns read, written once per device.
//!
//! They are written past the page cache: filling and emptying it would take longer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::error::DemoError;
use crate::stop::Stop;
use patterns::Files;
use patterns::order::next_random;

/// Bytes written at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Direct I/O needs buffers and lengths aligned to the logical block; a page is enough for every disk.
const ALIGNMENT: usize = 4096;

/// Writes those that are missing.
pub(crate) fn prepare(folder: &Path, files: &[Files], stop: &Stop) -> Result<(), DemoError> {
    for files in files {
        for name in files.names() {
            let path = folder.join(&name);
            if path.exists() {
                continue;
            }
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(DemoError::file(parent))?;
            let file = create(&path, files.bytes).map_err(DemoError::file(&path))?;
            let mut content = Content::of(content_of(files, &name));
            for start in (0..files.bytes).step_by(BLOCK_BYTES) {
                stop.check()?;
                let bytes = BLOCK_BYTES.min((files.bytes - start) as usize);
                (&file).write_all(content.next(bytes)).map_err(DemoError::file(&path))?;
            }
            // Sync now, not while a pattern runs.
            file.sync_all().map_err(DemoError::file(&path))?;
        }
    }
    Ok(())
}

/// Creates a contiguous file for direct I/O, if the file system can do that.
fn create(path: &Path, bytes: u64) -> io::Result<File> {
    let open = |flags| File::options().create(true).write(true).custom_flags(flags).open(path);
    let file = open(libc::O_DIRECT).or_else(|_| open(0))?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(file),
        Err(error) => Err(error.into()),
    }
}

/// The seed of a file's content: in trees, the file's own name, so that two trees are equal.
fn content_of<'a>(files: &Files, name: &'a str) -> &'a str {
    let own = name.rsplit('/').next().unwrap_or(name);
    if files.per_folder > 0 { own } else { name }
}

/// The content of a file: noise, or lines of 64 letters for a text.
struct Content {
    state: u64,
    is_text: bool,
    buffer: Vec<u8>,
}

impl Content {
    fn of(name: &str) -> Self {
        let state = name
            .bytes()
            .fold(1, |state: u64, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Content {
            state,
            is_text: name.starts_with("text"),
            buffer: vec![0; BLOCK_BYTES + ALIGNMENT],
        }
    }

    /// The next at most [`BLOCK_BYTES`] bytes, aligned for direct I/O.
    fn next(&mut self, bytes: usize) -> &[u8] {
        let start = self.buffer.as_ptr().align_offset(ALIGNMENT);
        let block = &mut self.buffer[start..start + bytes];
        for word in block.chunks_exact_mut(4) {
            word.copy_from_slice(&(next_random(&mut self.state) as u32).to_le_bytes());
        }
        if self.is_text {
            for line in block.chunks_exact_mut(64) {
                line.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
                line[63] = b'\n';
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_differ_from_one_another_and_from_block_to_block() {
        let (mut one, mut other) = (Content::of("cat0"), Content::of("cat1"));
        let first = one.next(BLOCK_BYTES).to_vec();
        assert_ne!(first, other.next(BLOCK_BYTES));
        assert_ne!(first, one.next(BLOCK_BYTES));
        assert_eq!(first, Content::of("cat0").next(BLOCK_BYTES));
    }

    #[test]
    fn a_text_has_lines() {
        let mut text = Content::of("text");
        let block = text.next(128);
        assert!(block[63] == b'\n' && block[127] == b'\n');
        assert!(block[..63].iter().all(u8::is_ascii_lowercase));
    }

    #[test]
    fn files_have_their_size_and_are_written_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stop = Stop::on_signals().expect("pipes");
        let files = [Files { name: "tree/file", count: 2, bytes: 3 << 19, per_folder: 0 }];
        prepare(folder.path(), &files, &stop).expect("room for 3 MB");
        let one = folder.path().join("tree/file1");
        let written = fs::metadata(&one).and_then(|about| about.modified()).expect("it is there");
        prepare(folder.path(), &files, &stop).expect("nothing to do");
        let about = fs::metadata(&one).expect("it is there");
        assert_eq!(about.len(), 3 << 19);
        assert_eq!(about.modified().ok(), Some(written));
    }
}

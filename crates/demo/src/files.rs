//! The files that patterns read: written once per device, cold before every run.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::DemoError;
use crate::pattern::{DataFile, next_random};

/// Bytes written at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes the files that are missing.
pub(crate) fn prepare(folder: &Path, files: &[DataFile]) -> Result<(), DemoError> {
    for file in files {
        let path = folder.join(file.name);
        if path.exists() {
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(DemoError::file(parent))?;
        write(&path, file).map_err(DemoError::file(path))?;
    }
    Ok(())
}

fn write(path: &Path, file: &DataFile) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(BLOCK_BYTES, File::create(path)?);
    let mut state = file.name.bytes().fold(1, |state, byte| state * 31 + u64::from(byte));
    let is_text = file.name.starts_with("text");
    let mut block = vec![0u8; BLOCK_BYTES];
    for _ in 0..file.bytes / BLOCK_BYTES as u64 {
        fill(&mut block, &mut state, is_text);
        out.write_all(&block)?;
    }
    out.into_inner()?.sync_all()
}

/// Words that no compression or zero detection shortens; lines of 64 bytes for a text.
fn fill(block: &mut [u8], state: &mut u64, is_text: bool) {
    for line in block.chunks_exact_mut(64) {
        for word in line.chunks_exact_mut(4) {
            let random = (next_random(state) as u32).to_le_bytes();
            word.copy_from_slice(&random);
        }
        if is_text {
            line.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            line[63] = b'\n';
        }
    }
}

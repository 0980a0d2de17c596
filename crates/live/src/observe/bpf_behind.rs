//! Drop-behind's tables in the kernel.

use libbpf_rs::{MapCore, MapFlags};
use readahead::behind::Block;

use super::behind::{BehindSource, StreamKey};
use super::bpf::BpfObserver;
use super::{FileKey, ObserveError, layout};

impl BehindSource for BpfObserver {
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError> {
        if on {
            self.look_for_marks()?;
        }
        self.looks_behind = on;
        self.epoch += u32::from(on);
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            shared.looks_behind = if on { self.epoch } else { 0 };
            if !on {
                // The next page that enters one of these files is told again.
                shared.watched_inodes.fill(0);
            }
        }
        Ok(())
    }

    fn block(&self, file: FileKey, block: u64) -> Option<Block> {
        let key = layout::encode_block_key(file, block);
        let value = self.skeleton.maps.blocks.lookup(&key, MapFlags::ANY).ok()??;
        layout::decode_block(&value, self.epoch)
    }

    fn forget_block(&mut self, file: FileKey, block: u64) {
        // One that the table forgot by itself is gone as well.
        let _ = self.skeleton.maps.blocks.delete(&layout::encode_block_key(file, block));
    }

    fn touched(&self, stream: StreamKey) -> Option<(u64, u64)> {
        let key = layout::encode_stream_key(stream);
        let value = self.skeleton.maps.streams.lookup(&key, MapFlags::ANY).ok()??;
        layout::decode_touched(&value)
    }

    fn forget_stream(&mut self, stream: StreamKey, is_last: bool) {
        let _ = self.skeleton.maps.streams.delete(&layout::encode_stream_key(stream));
        if is_last && let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            shared.watched_inodes[layout::watched_slot(stream.file.ino)] = 0;
        }
    }

    fn write_failed(&self, file: FileKey) -> bool {
        let shared = self.skeleton.maps.bss_data.as_deref();
        shared.is_none_or(|bss| bss.failed_inodes[layout::watched_slot(file.ino)] != 0)
    }
}

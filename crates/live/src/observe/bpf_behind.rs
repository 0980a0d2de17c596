//! Drop-behind's tables in the kernel.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use readahead::behind::Block;

use super::behind::{BehindSource, StreamKey, WriteErrors};
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
            // In this order: what enters the cache in between belongs to the epoch before.
            shared.watched_inodes.fill(0);
            shared.looks_behind = if on { self.epoch } else { 0 };
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

    fn forget_stream(&mut self, stream: StreamKey) {
        let _ = self.skeleton.maps.streams.delete(&layout::encode_stream_key(stream));
    }

    fn write_errors(&self) -> Result<WriteErrors, ObserveError> {
        let refused = |error| ObserveError::Refused(format!("{error:#}"));
        let table = MapHandle::try_from(&self.skeleton.maps.failed_inodes).map_err(refused)?;
        Ok(Box::new(move |file| {
            let slot = layout::watched_slot(file.ino) as u32;
            let value = table.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            // Where nothing can be learnt, nothing is dropped.
            !matches!(value, Ok(Some(bytes)) if bytes == [0; 4])
        }))
    }
}

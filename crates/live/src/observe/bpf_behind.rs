//! Drop-behind's tables in the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use readahead::behind::Block;

use super::behind::{BehindSource, PageTables, StreamKey};
use super::bpf::BpfObserver;
use super::{FileKey, ObserveError, layout};

impl BehindSource for BpfObserver {
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError> {
        if on {
            self.look_for_marks()?;
        }
        self.looks_behind = on;
        // First of all, so that of the epoch that is over nothing is known while uses are not seen.
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            // In this order: what enters the cache in between belongs to the epoch before.
            shared.watched_inodes.fill(0);
            shared.looks_behind = if on { epoch } else { 0 };
        }
        Ok(())
    }

    fn touched(&self, stream: StreamKey) -> Option<(u64, u64)> {
        let key = layout::encode_stream_key(stream);
        let value = self.skeleton.maps.streams.lookup(&key, MapFlags::ANY).ok()??;
        layout::decode_touched(&value)
    }

    fn forget_stream(&mut self, stream: StreamKey) {
        let _ = self.skeleton.maps.streams.delete(&layout::encode_stream_key(stream));
    }

    fn page_tables(&self) -> Result<Arc<dyn PageTables>, ObserveError> {
        let refused = |error| ObserveError::Refused(format!("{error:#}"));
        Ok(Arc::new(Tables {
            blocks: MapHandle::try_from(&self.skeleton.maps.blocks).map_err(refused)?,
            failed_inodes: MapHandle::try_from(&self.skeleton.maps.failed_inodes)
                .map_err(refused)?,
            epoch: self.epoch.clone(),
        }))
    }
}

struct Tables {
    blocks: MapHandle,
    failed_inodes: MapHandle,
    epoch: Arc<AtomicU32>,
}

impl PageTables for Tables {
    fn block(&self, file: FileKey, block: u64) -> Option<Block> {
        let key = layout::encode_block_key(file, block);
        let value = self.blocks.lookup(&key, MapFlags::ANY).ok()??;
        layout::decode_block(&value, self.epoch.load(Ordering::SeqCst))
    }

    fn forget(&self, file: FileKey, block: u64) {
        // One that the table forgot by itself is gone as well.
        let _ = self.blocks.delete(&layout::encode_block_key(file, block));
    }

    fn write_failed(&self, file: FileKey) -> bool {
        let slot = layout::failed_slot(file.ino) as u32;
        let value = self.failed_inodes.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
        // Where nothing can be learnt, nothing is dropped.
        !matches!(value, Ok(Some(bytes)) if bytes == [0; 4])
    }
}

//! The deciding thread's side of a recording. It encodes and never waits.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blocks::{CreateError, Place};
use controller::{Command, Input, Nanos};
use serde::Serialize;

use crate::KIND;
use crate::header::Header;
use crate::record::{Borrowed, Record, encode};
use crate::writer::Writer;

/// Writes a recording.
///
/// Call [`finish`](Self::finish) to complete it. If it is dropped instead, everything recorded so
/// far is written.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    writer: Writer,
    /// The last record's bytes. Kept for its memory.
    encoded: Vec<u8>,
    last_at: Nanos,
    /// Inputs lost since the last record that found room.
    lost_here: u64,
    totals: Totals,
}

/// Totals of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Recorded inputs, without lost ones.
    pub inputs: u64,
    /// Their commands.
    pub commands: u64,
    /// Inputs dropped because the queue was full.
    pub lost_inputs: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Totals {
    /// What to tell the user if inputs are missing.
    pub fn warning(&self) -> Option<String> {
        let words = |lost: u64| {
            format!(
                "the recording is incomplete ({lost} inputs missing), as the disk was too slow; \
                 `bowwave replay --verify` checks it up to the first gap"
            )
        };
        Some(self.lost_inputs).filter(|lost| *lost > 0).map(words)
    }
}

/// The disk accepts no more, or does not answer. What was written before can be read.
#[derive(Debug, thiserror::Error)]
#[error("the recording {} ends early: {cause}", path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: io::Error,
}

impl Recorder {
    /// Creates the file and writes its header.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn create(path: &Path, header: &Header) -> Result<Self, CreateError> {
        Self::start(Place::take(path, &KIND)?, header)
    }

    /// Writes the header to a file that was created before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn start(place: Place, header: &Header) -> Result<Self, CreateError> {
        let Place { path, file } = place;
        Self::begin(&path, file, header).map_err(|cause| CreateError::Io {
            kind: KIND.name,
            path,
            cause,
        })
    }

    fn begin(path: &Path, to: impl Write + Send + 'static, header: &Header) -> io::Result<Self> {
        Ok(Recorder {
            path: path.into(),
            writer: Writer::start(to, header)?,
            encoded: Vec::new(),
            last_at: 0,
            lost_here: 0,
            totals: Totals::default(),
        })
    }

    /// Records that the controller was created, and its first commands.
    pub fn begun(&mut self, now: Nanos, commands: &[Command]) {
        let since = self.since(now);
        self.append(now, &Record::Begun { since, commands });
    }

    /// Records an input and its commands. Takes less than a microsecond and never waits.
    pub fn note(&mut self, now: Nanos, input: &Input, commands: &[Command]) {
        let since = self.since(now);
        if self.append(now, &Record::Input { since, input, commands }) {
            self.totals.inputs += 1;
            self.totals.commands += commands.len() as u64;
        }
    }

    /// Records a call of [`controller::Controller::finish`].
    pub fn finishing(&mut self, now: Nanos) {
        let since = self.since(now);
        self.append(now, &Record::Finishing { since });
    }

    /// Number of inputs lost so far.
    pub fn lost(&self) -> u64 {
        self.totals.lost_inputs
    }

    /// Writes the rest and the end mark. Waits a few seconds for the disk at most.
    ///
    /// # Errors
    /// If the disk accepts no more, now or earlier, or does not answer.
    pub fn finish(mut self) -> Result<Totals, WriteError> {
        self.encode(&Record::End);
        let path = std::mem::take(&mut self.path);
        let last = std::mem::take(&mut self.encoded);
        let bytes = self.writer.finish(last).map_err(|cause| WriteError { path, cause })?;
        Ok(Totals { bytes, ..self.totals })
    }

    fn since(&self, now: Nanos) -> i64 {
        now.wrapping_sub(self.last_at) as i64
    }

    /// Returns whether there was room.
    fn append(&mut self, now: Nanos, record: &Borrowed<'_>) -> bool {
        self.encode(record);
        let has_room = self.writer.take(&self.encoded);
        if has_room {
            self.last_at = now;
            self.lost_here = 0;
        } else {
            self.lost_here += 1;
            self.totals.lost_inputs += 1;
        }
        has_room
    }

    /// Encodes a record, after the number of those lost before it.
    fn encode(&mut self, record: &Borrowed<'_>) {
        self.encoded.clear();
        if self.lost_here > 0 {
            encode(&Record::Lost(self.lost_here), &mut self.encoded);
        }
        encode(record, &mut self.encoded);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use controller::Options;

    use super::*;
    use readahead::adaptive::Limits;

    use crate::writer::QUEUE_BYTES;
    use crate::{End, Item, Recording};

    /// A disk that accepts one write per permission and has a limited size.
    struct Disk {
        may_write: Receiver<()>,
        holds: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a sender, everything is permitted.
            let _ = self.may_write.recv();
            let mut holds = self.holds.lock().expect("nobody panics");
            let room = bytes.len().min(self.room - holds.len());
            holds.extend_from_slice(&bytes[..room]);
            if room > 0 { Ok(room) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A recorder with a disk that has accepted the header and accepts nothing more until the
    /// sender is dropped.
    fn recorder(room: usize) -> (Recorder, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (permit, may_write) = channel();
        // Magic, format, head of the block, header.
        (0..4).for_each(|_| permit.send(()).expect("the disk is there"));
        let holds = Arc::new(Mutex::new(Vec::new()));
        let disk = Disk { may_write, holds: Arc::clone(&holds), room };
        let limits = Limits { files: 16, ..Limits::default() };
        let header = Header::new("6.18".into(), "2026-11-22".into(), Options::default(), limits);
        let recorder = Recorder::begin(Path::new("disk"), disk, &header).expect("there is room");
        (recorder, permit, holds)
    }

    fn read(bytes: &[u8]) -> (Vec<Item>, Option<End>) {
        let mut recording = Recording::read(bytes).expect("its header is whole");
        let items = recording.by_ref().map(|item| item.expect("memory can be read")).collect();
        (items, recording.end())
    }

    fn missing(item: &Item) -> u64 {
        if let Item::Lost(inputs) = item { *inputs } else { 0 }
    }

    #[test]
    fn a_stalled_disk_delays_nobody_and_lost_inputs_are_counted() {
        let (mut recorder, permit, holds) = recorder(usize::MAX);
        let watch = vec![Command::LookBehind(true); 1000];
        let mut now = 0;
        while recorder.lost() < 10 {
            recorder.note(now, &Input::Tick, &watch);
            now += 1;
        }
        let lost = recorder.lost();
        drop(permit);
        // There is room again as soon as the disk continues.
        while recorder.lost_here > 0 {
            recorder.note(now, &Input::Tick, &[]);
            now += 1;
        }
        let totals = recorder.finish().expect("there is room");
        assert!(totals.lost_inputs >= lost);
        assert_eq!(totals.inputs + totals.lost_inputs, now);
        let (items, end) = read(&holds.lock().expect("nobody panics"));
        assert_eq!(end, Some(End::Clean));
        let gaps: Vec<u64> = items.iter().map(missing).filter(|inputs| *inputs > 0).collect();
        assert_eq!(gaps, [totals.lost_inputs]);
        let mut next = 0;
        for item in &items {
            match item {
                Item::Entry(entry) => assert_eq!(entry.at, next, "each is at its time"),
                Item::Lost(inputs) => next += inputs - 1,
            }
            next += 1;
        }
        assert_eq!(next, now, "nothing is missing that was not counted");
    }

    #[test]
    fn nobody_waits_for_a_disk_that_does_not_answer_and_missing_bytes_are_reported() {
        let (mut recorder, permit, _) = recorder(usize::MAX);
        recorder.note(1, &Input::Tick, &vec![Command::LookBehind(true); 1000]);
        recorder.writer.wait_at_most(std::time::Duration::from_millis(20));
        let error = recorder.finish().expect_err("it stands still").to_string();
        assert!(error.contains("has not taken the last 2"), "{error}");
        drop(permit);
    }

    #[test]
    fn a_full_disk_is_reported_and_complete_blocks_stay() {
        let (mut recorder, permit, holds) = recorder(200);
        drop(permit);
        while !recorder.writer.has_failed() {
            recorder.note(7, &Input::Tick, &[]);
        }
        recorder.note(8, &Input::Tick, &[]);
        assert!(recorder.lost() > 0);
        let error = recorder.finish().expect_err("there is no room").to_string();
        assert!(error.starts_with("the recording disk ends early: "), "{error}");
        let (items, end) = read(&holds.lock().expect("nobody panics"));
        assert!(matches!(end, Some(End::Cut { at_byte }) if at_byte < 200), "{end:?}");
        assert!(items.iter().all(|item| matches!(item, Item::Entry(entry) if entry.at == 7)));
    }

    #[test]
    fn a_full_queue_and_the_end_mark_are_written() {
        let (mut recorder, permit, holds) = recorder(usize::MAX);
        // Of these, the smallest there are, at most three bytes of the queue stay empty.
        while recorder.lost() == 0 {
            recorder.note(0, &Input::Tick, &[]);
        }
        drop(permit);
        let totals = recorder.finish().expect("there is room");
        let (items, end) = read(&holds.lock().expect("nobody panics"));
        assert_eq!(items.len() as u64, totals.inputs + 1);
        assert_eq!((items.last(), end), (Some(&Item::Lost(1)), Some(End::Clean)));
    }

    #[test]
    fn inputs_lost_at_the_end_are_counted_too() {
        let (mut recorder, permit, holds) = recorder(usize::MAX);
        recorder.note(1, &Input::Tick, &vec![Command::LookBehind(true); QUEUE_BYTES]);
        drop(permit);
        let totals = recorder.finish().expect("there is room");
        assert_eq!((totals.inputs, totals.lost_inputs), (0, 1));
        assert!(totals.warning().is_some_and(|warning| warning.contains("1 inputs missing")));
        assert_eq!(Totals::default().warning(), None);
        let (items, end) = read(&holds.lock().expect("nobody panics"));
        assert_eq!((items, end), (vec![Item::Lost(1)], Some(End::Clean)));
    }
}

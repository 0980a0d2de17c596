//! Writes events into a trace: numbers become names, pages become bytes, and what is known of open files becomes
//! advice.

use std::collections::HashMap;
use std::io::{self, Write};

use linux::mounts::Disk;
use readahead::{DeviceNumber, Hint, Nanos, PAGE_BYTES};
use trace::recorded::{Header, Recorder, Run, Totals};
use trace::{Record, Request, TraceOp, Window};

use super::{Event, Lost, Op, Opened, Paths, TracedFile};

/// Writes a trace.
#[derive(Debug)]
pub struct Scribe<W: Write> {
    to: Recorder<W>,
    paths: Paths,
    /// When recording began.
    began: Nanos,
    /// The trace's number of each thread, by the eBPF programs' number; `None` if the trace has no room for it.
    threads: HashMap<u32, Option<u32>>,
    /// The same of each file.
    files: HashMap<u32, Option<File>>,
    devices: HashMap<DeviceNumber, Option<u32>>,
    /// What each process has advised for each file, since it has opened it.
    advised: HashMap<(u32, u32), Hint>,
}

#[derive(Clone, Copy, Debug)]
struct File {
    number: u32,
    bytes: u64,
}

impl<W: Write> Scribe<W> {
    /// Begins a trace whose times count from `began` (CLOCK_MONOTONIC).
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin(to: W, header: &Header, paths: Paths, began: Nanos) -> io::Result<Self> {
        let to = Recorder::begin(to, header)?;
        let (threads, files, devices, advised) = Default::default();
        Ok(Scribe { to, paths, began, threads, files, devices, advised })
    }

    /// Adds an event.
    ///
    /// # Errors
    /// Those of the file.
    pub fn note(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Thread { thread, process, name } => {
                let name = name.replace(char::is_control, "\u{fffd}");
                let name = if thread == process {
                    format!("{name} {process}")
                } else {
                    format!("{name} {process}/{thread}")
                };
                let number = self.to.process(&name);
                self.threads.insert(*thread, number);
                Ok(())
            }
            Event::File(file) => {
                self.add_file(file);
                Ok(())
            }
            Event::Run(run) if run.op == Op::Fault => {
                faults(run).try_for_each(|run| self.note_run(&run))
            }
            Event::Run(run) => self.note_run(run),
            Event::Window(window) => self.note_window(window),
            Event::Request(request) => self.note_request(request),
        }
    }

    /// Notes what was lost.
    ///
    /// # Errors
    /// Those of the file.
    pub fn lose(&mut self, lost: Lost) -> io::Result<()> {
        if lost.calls > 0 {
            self.to.lose(lost.calls)?;
        }
        if lost.pages > 0 {
            self.to.lose_pages(lost.pages)?;
        }
        if lost.requests > 0 {
            self.to.lose_requests(lost.requests)?;
        }
        Ok(())
    }

    /// Writes what was added so far.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Completes the trace.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(self) -> io::Result<Totals> {
        self.to.finish()
    }

    fn add_file(&mut self, file: &TracedFile) {
        let name = self.paths.name(file);
        let number = self.to.file(&name, file.bytes);
        let known = number.map(|number| File { number, bytes: file.bytes });
        self.files.insert(file.file, known);
    }

    fn note_run(&mut self, run: &super::Run) -> io::Result<()> {
        let process = self.threads.get(&run.thread).copied().flatten();
        let file = self.files.get(&run.file).copied().flatten();
        let (Some(process), Some(file), true) = (process, file, self.to.has_room()) else {
            return self.to.lose(run.calls.into());
        };
        let offset = run.first.saturating_mul(PAGE_BYTES);
        let end = run.end.saturating_mul(PAGE_BYTES).max(offset);
        // The last page of a file is seldom full. A file that grows has more bytes than are known.
        let end = if end > file.bytes && end - file.bytes < PAGE_BYTES { file.bytes } else { end };
        let op = match run.op {
            Op::Read => TraceOp::Read,
            Op::Fault => TraceOp::Mmap,
            Op::Write => TraceOp::Write,
        };
        let at = run.at.saturating_sub(self.began);
        let bytes = end.saturating_sub(offset);
        let record = Record { at, took: run.took, process, file: file.number, op, offset, bytes };
        if let Some(opened) = run.opened {
            self.note_opened(&record, opened)?;
        }
        self.advised.entry((process, file.number)).or_insert(Hint::Normal);
        let lasted = if run.calls > 1 { run.lasted } else { 0 };
        self.to.run(&Run { record, calls: run.calls, lasted })
    }

    fn note_window(&mut self, window: &super::Window) -> io::Result<()> {
        let super::Window { thread, file, reason, at, ref pages, ref asked } = *window;
        let process = self.threads.get(&thread).copied().flatten();
        let file = self.files.get(&file).copied().flatten();
        let (Some(process), Some(file)) = (process, file) else {
            return self.to.lose_pages(pages.end.saturating_sub(pages.start));
        };
        let at = at.saturating_sub(self.began);
        let (pages, asked, file) = (pages.clone(), asked.clone(), file.number);
        self.to.window(&Window { at, process: Some(process), file, pages, asked, reason })
    }

    fn note_request(&mut self, request: &super::Request) -> io::Result<()> {
        let super::Request { dev, op, bytes, at, took } = *request;
        let number = self.devices.entry(dev).or_insert_with(|| self.to.device(&name_of(dev)));
        let Some(device) = *number else { return self.to.lose_requests(1) };
        let at = at.saturating_sub(self.began);
        self.to.request(&Request { at, took, device, op, bytes })
    }

    /// Writes that a file was closed, if it is read through another open file than before, and what its program
    /// advised, if that has changed.
    fn note_opened(&mut self, first: &Record, opened: Opened) -> io::Result<()> {
        let key = (first.process, first.file);
        let mut tell = |op| {
            let record = Record { took: 0, op, offset: 0, bytes: 0, ..*first };
            self.to.run(&Run { record, calls: 1, lasted: 0 })
        };
        if opened.is_new && self.advised.remove(&key).is_some() {
            tell(TraceOp::Close)?;
        }
        let before = self.advised.insert(key, opened.advice).unwrap_or(Hint::Normal);
        if before != opened.advice {
            tell(TraceOp::Advise(opened.advice))?;
        }
        Ok(())
    }
}

/// The disk's name; its number if it is gone, or hidden behind another one.
fn name_of(dev: DeviceNumber) -> String {
    Disk::of(dev).map_or_else(|| dev.to_string(), |disk| disk.name)
}

/// Each fault as a run of its own.
fn faults(all: &super::Run) -> impl Iterator<Item = super::Run> {
    let all = *all;
    (0..all.calls).map(move |number| {
        let first = all.first.wrapping_add_signed(all.step.wrapping_mul(number.into()));
        let after = u128::from(all.lasted) * u128::from(number) / u128::from(all.calls);
        let at = all.at.saturating_add(after as u64);
        let opened = all.opened.filter(|_| number == 0);
        super::Run {
            calls: 1,
            at,
            lasted: 0,
            first,
            end: first.saturating_add(1),
            step: 0,
            opened,
            ..all
        }
    })
}

#[cfg(test)]
mod tests {
    use linux::mount_points::MountPoints;
    use readahead::DeviceNumber;
    use trace::Trace;

    use super::super::{Request as Served, Run as Seen, Window};
    use super::*;

    fn thread(thread: u32, process: u32) -> Event {
        Event::Thread { thread, process, name: "tar".into() }
    }

    fn file(number: u32, bytes: u64) -> Event {
        let dev = DeviceNumber { major: 999, minor: 1 };
        let components = vec![format!("f{number}")];
        Event::File(TracedFile { file: number, bytes, ino: 1, dev, components, is_whole: true })
    }

    fn seen() -> Seen {
        Seen {
            thread: 7,
            file: 0,
            calls: 1,
            at: 1_000_000,
            took: 0,
            lasted: 99,
            first: 0,
            end: 1,
            step: 0,
            op: Op::Read,
            opened: None,
        }
    }

    /// The trace of these events, as text without its sizes.
    fn traced(events: &[Event]) -> (Trace, Vec<String>) {
        let mut bytes = Vec::new();
        let [bowwave, kernel, date] = Default::default();
        let header = Header { bowwave, kernel, date };
        let mut scribe = Scribe::begin(
            &mut bytes,
            &header,
            Paths::new(MountPoints::default(), false),
            1_000_000,
        )
        .expect("room");
        events.iter().for_each(|event| scribe.note(event).expect("room"));
        scribe.finish().expect("room");
        let trace = trace::read(&bytes[..]).expect("a trace");
        let text = trace.to_string();
        let lines = text.lines().skip_while(|line| !line.starts_with("time_us")).skip(1);
        let lines = lines.map(|line| line.replace("volume 999:1", "")).collect();
        (trace, lines)
    }

    #[test]
    fn threads_are_processes_and_pages_are_bytes_up_to_the_end_of_the_file() {
        let (trace, lines) = traced(&[
            thread(7, 7),
            file(0, 10_000),
            Event::Run(Seen { first: 1, end: 3, ..seen() }),
            thread(8, 7),
            Event::Run(Seen { thread: 8, at: 1_005_000, took: 3_000, op: Op::Fault, ..seen() }),
            // The file has grown.
            Event::Run(Seen { at: 1_009_000, first: 3, end: 5, op: Op::Write, ..seen() }),
        ]);
        assert_eq!(
            lines,
            [
                "0,tar 7,/f0,read,4096,5904,0",
                "5,tar 7/8,/f0,mmap,0,4096,3",
                "9,tar 7,/f0,write,12288,8192,0",
            ]
        );
        assert_eq!(trace.files()[0].bytes, 20480);
    }

    #[test]
    fn a_window_that_was_brought_in_in_two_parts_is_one() {
        let pages = |pages, asked| Window {
            thread: 7,
            file: 0,
            reason: trace::Reason::Read,
            at: 1_005_000,
            pages,
            asked,
        };
        let (trace, lines) = traced(&[
            thread(7, 7),
            file(0, 1 << 20),
            Event::Window(pages(3..16, 3..7)),
            Event::Window(pages(16..40, 16..16)),
            Event::Run(seen()),
            // Of a file that is not known.
            Event::Window(Window { file: 1, ..pages(0..23, 0..0) }),
        ]);
        let window = trace::Window {
            at: 5_000,
            process: Some(0),
            file: 0,
            pages: 3..40,
            asked: 3..7,
            reason: trace::Reason::Read,
        };
        assert_eq!((trace.windows(), lines.len()), (&[window][..], 1));
        assert_eq!(trace.origin().map(|origin| origin.lost_pages), Some(23));
    }

    #[test]
    fn requests_belong_to_their_devices_and_those_that_are_gone_have_a_number() {
        let dev = |minor| DeviceNumber { major: 999, minor };
        let served = |minor, at| {
            let op = trace::RequestOp::Write;
            Event::Request(Served { dev: dev(minor), op, bytes: 4096, at, took: 23 })
        };
        let (trace, _) = traced(&[
            served(1, 1_007_000),
            served(2, 1_005_000),
            thread(7, 7),
            file(0, 10_000),
            Event::Run(seen()),
            served(1, 1_009_000),
        ]);
        assert_eq!(trace.devices(), ["999:1", "999:2"]);
        let told = trace.requests().iter().map(|request| (request.at, request.device));
        assert_eq!(told.collect::<Vec<_>>(), [(5_000, 1), (7_000, 0), (9_000, 0)]);
        assert!(trace.requests().iter().all(|request| (request.took, request.bytes) == (23, 4096)));
    }

    #[test]
    fn a_file_that_is_opened_again_is_closed_and_advice_is_told_once() {
        let opened = |advice, is_new| Some(Opened { advice, is_new });
        let (_, lines) = traced(&[
            thread(7, 7),
            file(0, 10_000),
            Event::Run(Seen { opened: opened(Hint::Random, true), ..seen() }),
            Event::Run(Seen { opened: opened(Hint::Random, false), ..seen() }),
            Event::Run(seen()),
            Event::Run(Seen { opened: opened(Hint::Normal, true), ..seen() }),
            Event::Run(Seen { opened: opened(Hint::Sequential, false), ..seen() }),
        ]);
        let ops: Vec<&str> = lines.iter().filter_map(|line| line.split(',').nth(3)).collect();
        let expected =
            ["advise random", "read", "read", "read", "close", "read", "advise sequential", "read"];
        assert_eq!(ops, expected);
    }

    #[test]
    fn faults_at_equal_distances_are_told_one_by_one() {
        let all = Seen {
            calls: 3,
            lasted: 3_000,
            first: 40,
            end: 41,
            step: -16,
            op: Op::Fault,
            ..seen()
        };
        let (_, lines) = traced(&[thread(7, 7), file(0, 1 << 20), Event::Run(all)]);
        let expected = [
            "0,tar 7,/f0,mmap,163840,4096,0",
            "1,tar 7,/f0,mmap,98304,4096,0",
            "2,tar 7,/f0,mmap,32768,4096,0",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_thread_that_becomes_another_program_is_another_process() {
        let other = Event::Thread { thread: 7, process: 7, name: "cat".into() };
        let (trace, _) =
            traced(&[thread(7, 7), file(0, 1), Event::Run(seen()), other, Event::Run(seen())]);
        assert_eq!(trace.processes(), ["tar 7", "cat 7"]);
    }

    #[test]
    fn runs_of_what_is_not_known_are_lost_and_counted() {
        let calls = 23;
        let (trace, lines) = traced(&[
            thread(7, 7),
            file(0, 1),
            Event::Run(seen()),
            Event::Run(Seen { file: 1, calls, ..seen() }),
            Event::Run(Seen { thread: 8, ..seen() }),
        ]);
        assert_eq!((lines.len(), trace.origin().map(|origin| origin.lost)), (1, Some(24)));
    }
}

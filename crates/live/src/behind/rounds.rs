//! What has to be done from time to time: trying again, and the ends of streams.

use std::cell::RefCell;
use std::collections::HashMap;

use readahead::PAGE_BYTES;
use readahead::behind::{Span, Unused};

use super::left_overs::{FIRST_DELAY_NS, Waiting};
use super::stream::{Stream, passing};
use super::{Behind, IDLE_NS, MOST_SWEPT_PAGES, MountOf};
use crate::observe::{FileKey, Observer, StreamKey};

/// How far ahead of a reader that has ended pages are looked for that it has left unread: 64 MiB.
const MOST_AHEAD_PAGES: u64 = 16_384;

impl Behind {
    /// Streams whose process has ended, or that have paused, and are no longer followed closely.
    pub(super) fn look_through(
        &mut self,
        now: u64,
        mount_of: MountOf<'_>,
        observer: &mut dyn Observer,
    ) {
        self.see_who_is_slow(now, observer);
        let living = Living::default();
        let idle = |stream: &Stream| now.saturating_sub(stream.event.now);
        let is_active = |key: &StreamKey, stream: &Stream| {
            idle(stream) < stream.pause() && living.has(key.tgid)
        };
        let mut active: HashMap<FileKey, Vec<&Stream>> = HashMap::new();
        for (key, stream) in self.streams.iter().filter(|(key, stream)| is_active(key, stream)) {
            active.entry(key.file).or_default().push(stream);
        }
        let is_followed = |key: &StreamKey, stream: &Stream| {
            let followers = active.get(&key.file);
            followers.is_some_and(|all| all.iter().any(|follower| follower.follows(stream)))
        };
        let streams = self.streams.iter();
        let quiet = streams.filter(|(key, it)| !is_active(key, it) && !is_followed(key, it));
        let quiet: Vec<(StreamKey, bool, bool)> = quiet
            .map(|(key, stream)| {
                let is_old = idle(stream) > IDLE_NS || stream.is_small();
                (key, stream, !living.has(key.tgid), is_old)
            })
            .filter(|(_, stream, has_ended, is_old)| !stream.is_settled || *has_ended || *is_old)
            .map(|(key, _, has_ended, is_old)| (*key, has_ended, is_old))
            .collect();
        self.unsettled.clear();
        for (key, has_ended, is_old) in quiet {
            if !self.hands.has_room(key.file.dev) {
                self.unsettled.insert(key.file.dev);
                continue;
            }
            // What was read ahead may be for another reader of the file.
            let is_alone = !self.streams.keys().any(|o| o.file == key.file && *o != key);
            let unused = if has_ended && is_alone { Unused::Go } else { Unused::Stay };
            self.settle(key, unused, mount_of, observer);
            if has_ended || is_old {
                let gone = self.streams.remove(&key);
                self.totals.left_pages += gone.map_or(0, |stream| stream.left_pages);
                observer.forget_stream(key);
            }
        }
    }

    /// A stream is heard of every 4 MiB only: one that has come further has not paused.
    fn see_who_is_slow(&mut self, now: u64, observer: &dyn Observer) {
        for (key, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.is_settled) {
            let is_quiet = now.saturating_sub(stream.event.now) >= stream.pause();
            let touched = observer.touched(*key).filter(|_| is_quiet);
            if let Some(touched) = touched.filter(|touched| *touched != stream.touched) {
                stream.touched = touched;
                stream.event.now = now;
            }
        }
    }

    /// The rest goes: nobody follows.
    fn settle(
        &mut self,
        key: StreamKey,
        unused: Unused,
        mount_of: MountOf<'_>,
        observer: &mut dyn Observer,
    ) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let is_news = !std::mem::replace(&mut stream.is_settled, true) || unused == Unused::Go;
        let Some(terms) = stream.terms.filter(|_| is_news) else { return };
        let (touched, mount) = (observer.touched(key), mount_of(key.file.dev));
        let (Some((low, high)), Some(mount)) = (touched, mount) else { return };
        let event = stream.event;
        let file_pages = event.file_bytes.div_ceil(PAGE_BYTES);
        let answer = stream.passage.finish(high, file_pages, passing(key.written), terms);
        let run = stream.passage.run();
        if !stream.passage.is_engaged() {
            return;
        }
        // All of it is tried again.
        stream.left_pages = 0;
        if let Some(span) = answer.write_out {
            self.hands.write_out(&event, span, mount);
        }
        // Only what was passed in one run was streamed through; where everything goes, all it touched.
        let passed = match terms.engage_pages {
            0 => Span { start: low, end: high },
            _ => run,
        };
        let start = passed.start.max(passed.end.saturating_sub(MOST_SWEPT_PAGES));
        // Beyond lies what was read ahead for nobody.
        let ahead = if unused == Unused::Go { MOST_AHEAD_PAGES } else { 0 };
        let all = Span { start, end: (passed.end + ahead).min(file_pages).max(passed.end) };
        let is_within = |span: Span| all.start <= span.start && span.end <= all.end;
        let is_asked_for = |waiting: &Waiting| waiting.stream == key && is_within(waiting.span);
        self.waiting.retain(|waiting| !is_asked_for(waiting) || waiting.counted.pages() > 0);
        // What was passed before has been counted.
        let rest = answer.release.unwrap_or(Span { start: all.end, end: all.end });
        let rest = Span { end: all.end, ..rest };
        let how = (unused, FIRST_DELAY_NS, 0);
        self.release((key, &event), all, rest, rest.pages(), how, mount);
    }
}

/// Which processes are there, asked once each.
#[derive(Default)]
struct Living(RefCell<HashMap<u32, bool>>);

impl Living {
    fn has(&self, tgid: u32) -> bool {
        let stat = || files::table::read(format!("/proc/{tgid}/stat"));
        let look = || stat().is_ok_and(|stat| !has_ended(&stat));
        *self.0.borrow_mut().entry(tgid).or_insert_with(look)
    }
}

/// A zombie waits for its parent only, unless other threads go on without the first one; its name may
/// hold anything.
pub(super) fn has_ended(stat: &str) -> bool {
    let Some((_, behind_name)) = stat.rsplit_once(") ") else { return true };
    let mut fields = behind_name.split_ascii_whitespace();
    let state = fields.next();
    // The 20th field of all.
    let threads = fields.nth(16).and_then(|number| number.parse().ok()).unwrap_or(1);
    matches!((state, threads), (None | Some("X"), _) | (Some("Z"), ..=1))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_zombie_has_ended_whatever_its_name() {
        assert!(has_ended("7 (x) R) Z 1 7"));
        assert!(has_ended("7 (x) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99"));
        assert!(!has_ended("7 (x Z) S 1 7"));
        assert!(has_ended(""));
    }

    #[test]
    fn a_process_lives_whatever_it_calls_itself() {
        let script = "printf 'n\\377me' > /proc/self/comm; echo ready; read line";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        shell.stdout.take().expect("piped").read_exact(&mut [0; 6]).expect("it is ready");
        let name = fs::read(format!("/proc/{}/comm", shell.id())).expect("it is there");
        let is_there = Living::default().has(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("it ended");
        assert_eq!(name, b"n\xffme\n");
        assert!(is_there);
        assert!(!Living::default().has(shell.id()));
    }

    #[test]
    fn threads_that_go_on_without_the_first_one_are_a_process() {
        assert!(!has_ended("7 (x) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 99"));
        // The first thread ends, and another sleeps on.
        let script = "import ctypes,threading,time
threading.Thread(target=lambda: (print('there',flush=True),time.sleep(1000))).start()
ctypes.CDLL(None).pthread_exit(None)";
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdout(Stdio::piped());
        let Ok(mut process) = command.spawn() else {
            eprintln!("skipped: python3 is not installed");
            return;
        };
        let stat = || {
            fs::read_to_string(format!("/proc/{}/stat", process.id())).expect("a child is there")
        };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !stat().contains(") Z ") && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let (text, is_there) = (stat(), Living::default().has(process.id()));
        process.kill().expect("it sleeps");
        process.wait().expect("it ended");
        assert!(text.contains(") Z ") && is_there, "{text}");
    }
}

//! Runs the engine in a thread, so that the command does not wait for it.
//!
//! ```text
//!   main     start ... the command starts ........... it ends ........ end --> exit
//!                \                                      \             /
//!   engine        load eBPF, find the command's processes, manage reads, restore windows
//! ```
//!
//! If the command ends while eBPF is being loaded, bowwave exits at once. The kernel then frees
//! what was loaded; nothing else has been changed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use controller::metrics::Metrics;
use live::engine::{Engine, EngineError, Prepared};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{getpid, set_child_subreaper};
use status::Role;

use super::remember::Start;
use crate::print;

/// What to manage, and how.
pub(super) struct Job {
    pub(super) prepared: Prepared,
    /// Report when bowwave begins to manage reads.
    pub(super) is_verbose: bool,
    /// Return a failure to the caller instead of reporting it.
    pub(super) is_strict: bool,
    /// The state folder, where `bowwave status` finds this process.
    pub(super) state: PathBuf,
    /// What is remembered of the command, if it shall be.
    pub(super) start: Option<Start>,
    /// How this process describes itself there.
    pub(super) role: Role,
}

/// When to stop managing the command's reads.
pub(super) struct Ending {
    /// Readable once the command has ended.
    pub(super) ended: OwnedFd,
    /// How long to drop pages behind its streams afterwards.
    pub(super) drop_timeout: Duration,
    /// Set this to end that earlier.
    pub(super) is_interrupted: Arc<AtomicBool>,
}

/// Result of a run.
pub(super) enum Outcome {
    /// Reads were managed.
    Managed(Box<Metrics>),
    /// Reads could not be managed, for this reason.
    Refused(String),
    /// The command ended before eBPF was loaded.
    TooShort,
}

/// The main thread's handle of the engine's thread.
pub(super) struct Beside {
    endings: Sender<Ending>,
    loaded: Receiver<Result<(), String>>,
    outcome: Receiver<Outcome>,
    /// Decides a race: set by whichever comes first, the end of loading or of the command.
    is_decided: Arc<AtomicBool>,
}

impl Beside {
    /// Starts the thread, which loads the engine.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(job: Job) -> io::Result<Beside> {
        // While eBPF is loaded, adopt the command's orphans, so that the engine finds them.
        let _ = set_child_subreaper(Some(getpid()));
        let (endings, for_engine) = mpsc::channel();
        let (tell_loaded, loaded) = mpsc::channel();
        let (tell_outcome, outcome) = mpsc::channel();
        let is_decided = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&is_decided);
        let work = move || {
            // The main thread may not wait for these.
            let tell_loaded = |result| drop(tell_loaded.send(result));
            if let Some(outcome) = run_engine(job, &is_over, tell_loaded, &for_engine) {
                let _ = tell_outcome.send(outcome);
            }
        };
        thread::Builder::new().name("bowwave-engine".into()).spawn(work)?;
        Ok(Beside { endings, loaded, outcome, is_decided })
    }

    /// A handle without an engine.
    pub(super) fn refused(reason: String) -> Beside {
        let (tell_outcome, outcome) = mpsc::channel();
        let _ = tell_outcome.send(Outcome::Refused(reason));
        let (endings, loaded) = (mpsc::channel().0, mpsc::channel().1);
        Beside { endings, loaded, outcome, is_decided: Arc::default() }
    }

    /// Waits until reads can be managed.
    ///
    /// # Errors
    /// The reason if they cannot be.
    pub(super) fn wait_until_loaded(&self) -> Result<(), String> {
        self.loaded.recv().unwrap_or_else(|_| Err(GONE.into()))
    }

    /// Manages the command's reads from the moment when the engine is loaded.
    pub(super) fn manage_until(&self, ending: Ending) {
        // If loading failed, nobody receives this.
        let _ = self.endings.send(ending);
    }

    /// There is no command. Waits for a loaded engine to clean up.
    pub(super) fn abandon(self) {
        let Beside { endings, outcome, is_decided, .. } = self;
        drop(endings);
        if is_decided.swap(true, Ordering::SeqCst) {
            let _ = outcome.recv();
        }
    }

    /// The command has ended. Waits for the engine to finish, but not for it to load.
    pub(super) fn end(&self) -> Outcome {
        if let Ok(outcome) = self.outcome.try_recv() {
            return outcome;
        }
        if !self.is_decided.swap(true, Ordering::SeqCst) {
            return Outcome::TooShort;
        }
        self.outcome.recv().unwrap_or_else(|_| {
            print::note(format_args!("{GONE}; the command went on without bowwave"));
            Outcome::Refused(GONE.into())
        })
    }
}

const GONE: &str = "bowwave's own thread has failed";

/// What the thread does; `None` if the command ended first, and the process is about to exit.
fn run_engine(
    job: Job,
    is_over: &AtomicBool,
    tell_loaded: impl Fn(Result<(), String>),
    endings: &Receiver<Ending>,
) -> Option<Outcome> {
    let Job { prepared, is_verbose, is_strict, state, role, mut start } = job;
    let started = Instant::now();
    let loaded = load(prepared, is_strict).map_err(|error| error.to_string());
    let _ = set_child_subreaper(None);
    if is_over.swap(true, Ordering::SeqCst) {
        // Skip the cleanup.
        std::mem::forget(loaded);
        return None;
    }
    let mut engine = match loaded {
        Ok(engine) => engine,
        Err(reason) => {
            if !is_strict {
                note_refusal(&reason);
            }
            tell_loaded(Err(reason.clone()));
            return Some(Outcome::Refused(reason));
        }
    };
    if let Some(of_command) = &start
        && let Err(late) = engine.remember(of_command.list())
    {
        print::note(format_args!("{late}; nothing is remembered"));
        start = None;
    }
    engine.answer_in(&state, role);
    if is_verbose {
        let ms = started.elapsed().as_millis();
        print::note(format_args!("eBPF loaded after {ms} ms; reads are managed from now on"));
    }
    tell_loaded(Ok(()));
    Some(match endings.recv() {
        Ok(ending) => manage(engine, &ending, start),
        // The command could not be started.
        Err(_) => Outcome::Managed(Box::new(engine.leave())),
    })
}

fn load(prepared: Prepared, is_strict: bool) -> Result<Engine, EngineError> {
    let mut engine = prepared.load()?;
    if is_strict {
        // There is no command yet, so a signal simply ends bowwave: pass a descriptor that is never readable.
        let never = eventfd(0, EventfdFlags::CLOEXEC)?;
        engine.measure_devices(never.as_fd())?;
    }
    Ok(engine)
}

/// Reports in one sentence why reads are not managed.
pub(super) fn note_refusal(reason: &str) {
    print::note(format_args!("{reason}; the command runs without help"));
}

fn manage(mut engine: Engine, ending: &Ending, start: Option<Start>) -> Outcome {
    let is_interrupted = || ending.is_interrupted.load(Ordering::Relaxed);
    if let Err(error) = engine.serve_for(Duration::MAX, ending.ended.as_fd()) {
        print::note(format_args!("{error}; the command continues without read-ahead"));
    } else if let Err(error) = engine.finish(ending.drop_timeout, is_interrupted) {
        print::note(format_args!("{error}; pages not dropped yet stay cached"));
    }
    let noted = engine.noted();
    let summary = engine.leave();
    if let Some(start) = start {
        start.keep(noted);
    }
    Outcome::Managed(Box::new(summary))
}

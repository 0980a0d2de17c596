//! The engine, in a thread beside the command, which does not wait for it.
//!
//! ```text
//!   main     start ... the command starts ........... it ends ........ end --> exit
//!                \                                      \             /
//!   engine        load eBPF, find the command's processes, manage reads, give back
//! ```
//!
//! If the command ends while eBPF is being loaded, bowwave exits at once: the kernel frees what was
//! loaded, and nothing else has been changed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use controller::metrics::Metrics;
use live::engine::{Engine, EngineError, MOST_MEASURING, Prepared};
use live::status::{Role, Socket};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper};

use crate::print;

/// What to manage, and how.
pub(super) struct Job {
    pub(super) prepared: Prepared,
    pub(super) drops_behind: bool,
    /// Say when reads begin to be managed.
    pub(super) is_verbose: bool,
    /// A refusal is an error for the caller to report, and not a note.
    pub(super) is_strict: bool,
    /// The state folder, where `bowwave status` looks for it.
    pub(super) state: PathBuf,
    /// What it tells of itself there.
    pub(super) role: Role,
}

/// Until when the command's reads are managed.
pub(super) struct Ending {
    /// Readable once the command has ended.
    pub(super) ended: OwnedFd,
    /// How long pages are then waited for that have still to be dropped.
    pub(super) most: Duration,
    /// Set to wait no longer.
    pub(super) is_interrupted: Arc<AtomicBool>,
}

/// What has become of it.
pub(super) enum Outcome {
    /// Reads were managed.
    Led(Metrics),
    /// They could not be, for this reason.
    Refused(String),
    /// The command ended before eBPF was loaded.
    TooShort,
}

/// The engine's thread, seen from the main one.
pub(super) struct Beside {
    endings: Sender<Ending>,
    loaded: Receiver<Result<(), String>>,
    outcome: Receiver<Outcome>,
    /// Whoever sets it has come first: the engine, which has loaded, or the end of the command.
    is_decided: Arc<AtomicBool>,
}

impl Beside {
    /// Begins to load.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(job: Job) -> io::Result<Beside> {
        // A process whose parent exits meanwhile becomes a child of ours and is found as such.
        let _ = set_child_subreaper(Some(getpid()));
        let (endings, to_lead) = mpsc::channel();
        let (tell_loaded, loaded) = mpsc::channel();
        let (tell_outcome, outcome) = mpsc::channel();
        let is_decided = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&is_decided);
        let started = Instant::now();
        let work = move || {
            let (is_verbose, state, role) = (job.is_verbose, job.state.clone(), job.role.clone());
            let mut engine = load(job);
            let _ = set_child_subreaper(None);
            if engine.is_ok() && is_over.swap(true, Ordering::SeqCst) {
                // The process is about to exit.
                std::mem::forget(engine);
                return;
            }
            if let Ok(engine) = &mut engine {
                answer_status(engine, &state, role);
            }
            if engine.is_ok() && is_verbose {
                let ms = started.elapsed().as_millis();
                print::note(format_args!(
                    "eBPF is loaded after {ms} ms; reads are led from now on"
                ));
            }
            // The main thread may not listen.
            let _ = tell_loaded.send(engine.as_ref().map(|_| ()).map_err(String::clone));
            let outcome = match engine {
                Err(reason) => Outcome::Refused(reason),
                Ok(engine) => match to_lead.recv() {
                    Ok(ending) => lead(engine, &ending),
                    // The command could not be started.
                    Err(_) => Outcome::Led(engine.leave()),
                },
            };
            let _ = tell_outcome.send(outcome);
        };
        thread::Builder::new().name("bowwave-engine".into()).spawn(work)?;
        Ok(Beside { endings, loaded, outcome, is_decided })
    }

    /// Manages nothing.
    pub(super) fn refused(reason: String) -> Beside {
        let (tell_outcome, outcome) = mpsc::channel();
        let _ = tell_outcome.send(Outcome::Refused(reason));
        let (endings, loaded) = (mpsc::channel().0, mpsc::channel().1);
        Beside { endings, loaded, outcome, is_decided: Arc::default() }
    }

    /// Waits until reads can be managed.
    ///
    /// # Errors
    /// Why they cannot be.
    pub(super) fn wait_until_loaded(&self) -> Result<(), String> {
        self.loaded.recv().unwrap_or_else(|_| Err(GONE.into()))
    }

    /// Manages the command's reads as soon as that is possible.
    pub(super) fn lead_until(&self, ending: Ending) {
        // Where loading was refused nobody listens.
        let _ = self.endings.send(ending);
    }

    /// There is no command. Waits until the engine has left, so that nothing of it stays.
    pub(super) fn abandon(self) {
        let Beside { endings, outcome, is_decided, .. } = self;
        drop(endings);
        if is_decided.swap(true, Ordering::SeqCst) {
            let _ = outcome.recv();
        }
    }

    /// The command has ended. Waits for what the engine has still to do, but not for it to load.
    pub(super) fn end(&self) -> Outcome {
        if let Ok(outcome) = self.outcome.try_recv() {
            return outcome;
        }
        if !self.is_decided.swap(true, Ordering::SeqCst) {
            return Outcome::TooShort;
        }
        self.outcome.recv().unwrap_or_else(|_| Outcome::Refused(GONE.into()))
    }
}

const GONE: &str = "bowwave's own thread has failed";

fn load(job: Job) -> Result<Engine, String> {
    let daemon = linux::daemons::running().find(|daemon| daemon.leads_all);
    if let Some(daemon) = daemon.filter(|_| !job.drops_behind) {
        print::note(format_args!(
            "a daemon (process {}) helps every program already; bowwave run beside it gains nothing \
             and takes CPU time",
            daemon.pid
        ));
    }
    let loaded = job.prepared.load().and_then(|mut engine| {
        if job.is_strict {
            // Until the command is there, signals end bowwave themselves.
            let (never, _nobody) = io::pipe().map_err(|error| {
                EngineError::Wait(Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
            })?;
            engine.get_to_know_devices(MOST_MEASURING, never.as_fd())?;
        }
        Ok(engine)
    });
    loaded.map_err(|error| {
        let reason = error.to_string();
        if !job.is_strict {
            note_refusal(&reason);
        }
        reason
    })
}

/// One sentence on why reads are not managed.
pub(super) fn note_refusal(reason: &str) {
    print::note(format_args!("{reason}; the command runs without help"));
}

/// Has `bowwave status` show this process, or says why it will not.
fn answer_status(engine: &mut Engine, state: &Path, role: Role) {
    match Socket::bind(state, role) {
        Ok(socket) => engine.answer_on(socket),
        Err(error) => print::note(error),
    }
}

fn lead(mut engine: Engine, ending: &Ending) -> Outcome {
    let is_interrupted = || ending.is_interrupted.load(Ordering::Relaxed);
    if let Err(error) = engine.serve_until(ending.ended.as_fd()) {
        print::note(format_args!("{error}; the command goes on without read-ahead"));
    } else if let Err(error) = engine.finish(ending.most, is_interrupted) {
        print::note(format_args!("{error}; what is not dropped by now stays cached"));
    }
    Outcome::Led(engine.leave())
}

//! Starts of commands that a daemon remembers: which process belongs to which, and their lists.
//!
//! ```text
//!   event of a process with such a name, or below one --> Starts::join --> Input::Joined --> controller
//!                                                                                               |
//!       Completed::Recalled <-- a thread: reads the list <------------------ Recall <-----------+
//!       the new list on the disk <-- a thread: looks at its files <--------- KeepStart <--------'
//! ```
//!
//! Each user has lists of its own: no program of another user is taken for the command, and nobody reads ahead what
//! another user's program has read. Processes in containers start nothing.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::{Duration, Instant};

use controller::ids::{StartId, Tgid};
use controller::{Completed, Input, Nanos, RememberedFile};
use ebpf::observe::{CommandName, OfCommand, REMEMBERED_COMMANDS};
use linux::mounts::Mount;
use linux::program;
use linux::stderr::note;
use remembered::{Late, List, Lists, Name, NameError, Noted};

use crate::execute::Answers;
use crate::pool::{ONE, Pool, Worker};

/// Most commands.
pub(crate) const MOST_COMMANDS: usize = REMEMBERED_COMMANDS;

/// Most starts of one user at once, so that others find room.
const MOST_OF_USER: usize = 4;

/// A start that no process has joined for so long has found no room. Others end after 40 s or sooner.
const LONGEST_NS: Nanos = 60_000_000_000;

/// After a file system has not answered, nothing is read or written for so long: each question takes a second and a
/// thread.
const PAUSE: Duration = Duration::from_secs(60);

/// At the end, wait this long until lists are written. The disk may not answer.
const WRITING_TIMEOUT: Duration = Duration::from_millis(300);

/// Which commands' starts to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    /// Their names.
    pub commands: Vec<Command>,
    /// Where their lists are.
    pub lists: Lists,
}

impl Remember {
    /// Nothing.
    pub fn nothing() -> Self {
        Remember {
            commands: Vec::new(),
            lists: Lists::in_folder(linux::state::REMEMBERED.as_ref()),
        }
    }

    /// The names, as the kernel keeps them.
    pub(crate) fn names(&self) -> Vec<CommandName> {
        self.commands.iter().map(|command| program::kept(command.0.as_bytes())).collect()
    }
}

/// The name of a command whose starts are remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

/// Why a text cannot be a command to remember.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} cannot be remembered; name a command by 1 to 15 letters, digits, dots, underscores or hyphens, not beginning \
     with a dot"
)]
pub struct CommandError(String);

impl FromStr for Command {
    type Err = CommandError;

    /// A name that is part of a file's name, and that the kernel does not cut.
    fn from_str(name: &str) -> Result<Self, CommandError> {
        match name.parse::<Name>() {
            Ok(_) if name.len() < program::NAME_BYTES => Ok(Command(name.into())),
            _ => Err(CommandError(name.into())),
        }
    }
}

impl Command {
    /// The name of a user's list.
    fn list_of(&self, uid: u32) -> Result<Name, NameError> {
        format!("{}.{uid}", self.0).parse()
    }
}

/// One command of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    command: usize,
    uid: u32,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    id: StartId,
    /// When a process has joined it last.
    joined_at: Nanos,
    /// Whether one of its processes was left to the kernel, of those that were looked up while they ran.
    is_left_to_kernel: Option<bool>,
}

/// See the [module](self).
pub(crate) struct Starts {
    remember: Remember,
    running: HashMap<Key, Running>,
    joined: HashMap<Tgid, StartId>,
    begun: u32,
    worker: Pool<Keeper>,
}

impl Starts {
    pub(crate) fn new(remember: Remember, answers: Answers) -> Self {
        let worker = Pool::new("bowwave-starts", ONE, answers, Keeper::default);
        let (running, joined) = (HashMap::new(), HashMap::new());
        Starts { remember, running, joined, begun: 0, worker }
    }

    /// A process with the name of that command, or below one with it, has caused an event. Returns the input that tells
    /// so, if it is news. A start begins only with a process that has just begun; all processes of one user and command
    /// that come until it ends belong to it.
    pub(crate) fn join(
        &mut self,
        now: Nanos,
        OfCommand { command, is_fresh }: OfCommand,
        uid: u32,
        tgid: Tgid,
    ) -> Option<Input> {
        let key = Key { command, uid };
        let of_user = self.running.keys().filter(|other| other.uid == uid).count();
        if !self.running.contains_key(&key) && (of_user >= MOST_OF_USER || !is_fresh) {
            return None;
        }
        let begun = &mut self.begun;
        let new = || {
            *begun = begun.wrapping_add(1).max(1);
            Running { id: StartId(*begun), joined_at: now, is_left_to_kernel: None }
        };
        let running = self.running.entry(key).or_insert_with(new);
        let id = running.id;
        let is_news = self.joined.insert(tgid, id) != Some(id);
        if is_news {
            running.joined_at = now;
        }
        is_news.then_some(Input::Joined(id, tgid))
    }

    /// Whether a reader is left to the kernel. What was looked up is `None` if it has ended by then: it counts like the
    /// others of its start. Many programs of a start only run for a millisecond.
    pub(crate) fn is_left_to_kernel(&mut self, tgid: Tgid, looked_up: Option<bool>) -> bool {
        let id = self.joined.get(&tgid);
        let of_start = id.and_then(|id| self.running.values_mut().find(|it| it.id == *id));
        let Some(start) = of_start else { return looked_up.unwrap_or(true) };
        if let Some(is_left) = looked_up {
            start.is_left_to_kernel = Some(is_left || start.is_left_to_kernel == Some(true));
        }
        looked_up.or(start.is_left_to_kernel).unwrap_or(true)
    }

    /// Has the list of a start read.
    pub(crate) fn recall(&self, start: StartId, mounts: Vec<Mount>) {
        if let Some(name) = self.list_of(start) {
            let lists = self.remember.lists.clone();
            self.worker.submit(Job { lists, name, mounts, what: What::Recall(start) });
        }
    }

    /// A start has ended. Has its next list written, if anything was noted.
    pub(crate) fn keep(&mut self, start: StartId, files: &[RememberedFile], mounts: Vec<Mount>) {
        if let Some(name) = self.list_of(start).filter(|_| !files.is_empty()) {
            let lists = self.remember.lists.clone();
            let what = What::Keep(files.to_vec());
            self.worker.submit(Job { lists, name, mounts, what });
        }
        self.running.retain(|_, running| running.id != start);
        self.joined.retain(|_, of| *of != start);
    }

    fn list_of(&self, start: StartId) -> Option<Name> {
        let (key, _) = self.running.iter().find(|(_, running)| running.id == start)?;
        self.remember.commands.get(key.command)?.list_of(key.uid).ok()
    }

    /// Forgets starts that the controller had no room for.
    pub(crate) fn tidy(&mut self, now: Nanos) {
        self.running.retain(|_, running| now.saturating_sub(running.joined_at) < LONGEST_NS);
        let running = &self.running;
        self.joined.retain(|_, id| running.values().any(|running| running.id == *id));
    }

    /// Waits until all lists are written, but not for ever.
    pub(crate) fn wait(&self) {
        self.worker.wait(WRITING_TIMEOUT);
    }
}

/// Something to do with a list.
struct Job {
    lists: Lists,
    name: Name,
    mounts: Vec<Mount>,
    what: What,
}

enum What {
    Recall(StartId),
    Keep(Vec<RememberedFile>),
}

/// The thread that reads and writes lists.
#[derive(Default)]
struct Keeper {
    /// When a file system did not answer.
    late_at: Option<Instant>,
}

impl Keeper {
    /// Whether file systems may be asked now.
    fn may_ask(&self) -> bool {
        self.late_at.is_none_or(|late_at| late_at.elapsed() >= PAUSE)
    }
}

impl Worker for Keeper {
    type Job = Job;

    /// A start whose list does not come notes nothing, so the old list stays.
    fn refused(_: &Job) -> Option<Completed> {
        None
    }

    fn run(&mut self, Job { lists, name, mounts, what }: Job) -> Option<Completed> {
        if !self.may_ask() {
            return None;
        }
        // Without the list, the command starts as the stock kernel starts it, and its list is made anew.
        let before = lists.read(&name).unwrap_or_else(|error| {
            note(format_args!("{error}; its command is remembered anew"));
            None
        });
        let before = before.unwrap_or_default();
        match what {
            What::Recall(start) => match before.on(mounts) {
                Ok(list) => Some(Completed::Recalled { start, list }),
                Err(Late) => {
                    self.late_at = Some(Instant::now());
                    None
                }
            },
            What::Keep(files) => {
                if keep(&lists, &name, before, Noted { files, mounts }).is_err() {
                    self.late_at = Some(Instant::now());
                }
                None
            }
        }
    }
}

/// # Errors
/// If a file system does not answer; then the old list stays.
fn keep(lists: &Lists, name: &Name, before: List, noted: Noted) -> Result<(), Late> {
    let list = noted.after(before.clone())?;
    if list != before
        && let Err(error) = lists.write(name, &list)
    {
        note(format_args!("{error}; the start of {name} is not remembered"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(folder: &std::path::Path, commands: &[&str]) -> (Starts, Answers) {
        let answers = Answers::new().expect("an eventfd");
        let commands = commands.iter().map(|name| name.parse().expect("a name")).collect();
        let remember = Remember { commands, lists: Lists::in_folder(folder) };
        (Starts::new(remember, answers.clone()), answers)
    }

    fn fresh(command: usize) -> OfCommand {
        OfCommand { command, is_fresh: true }
    }

    fn old(command: usize) -> OfCommand {
        OfCommand { command, is_fresh: false }
    }

    #[test]
    fn each_user_has_starts_of_its_own_and_not_too_many() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut starts, _) = starts(folder.path(), &["a", "b", "c", "d", "e"]);
        assert_eq!(starts.join(0, fresh(0), 1000, 7), Some(Input::Joined(StartId(1), 7)));
        assert_eq!(starts.join(1, fresh(0), 1000, 7), None, "known");
        assert_eq!(
            starts.join(2, fresh(0), 1000, 8),
            Some(Input::Joined(StartId(1), 8)),
            "the same start"
        );
        assert_eq!(
            starts.join(3, fresh(0), 1001, 9),
            Some(Input::Joined(StartId(2), 9)),
            "another user"
        );
        assert_eq!(starts.list_of(StartId(2)).expect("one").to_string(), "a.1001");
        for command in 1..4 {
            assert!(starts.join(4, fresh(command), 1000, 10 + command as u32).is_some());
        }
        assert_eq!(starts.join(5, fresh(4), 1000, 20), None, "four of one user");
        assert!(starts.join(6, fresh(4), 1001, 21).is_some(), "others find room");
        starts.keep(StartId(1), &[], Vec::new());
        assert_eq!(starts.join(7, old(0), 1000, 7), None, "it has ended, and the process goes on");
        assert_eq!(starts.join(7, fresh(0), 1000, 8), Some(Input::Joined(StartId(7), 8)), "again");
        assert_eq!(starts.join(8, old(0), 1000, 7), Some(Input::Joined(StartId(7), 7)), "with it");
        starts.tidy(LONGEST_NS + 8);
        assert!(
            starts.running.is_empty() && starts.joined.is_empty(),
            "no room was found for them"
        );
    }

    #[test]
    fn a_process_that_ended_is_left_to_the_kernel_unless_the_others_of_its_start_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut starts, _) = starts(folder.path(), &["a"]);
        assert!(starts.is_left_to_kernel(7, None), "nothing is known of it");
        for tgid in [7, 8, 9] {
            starts.join(0, fresh(0), 1000, tgid);
        }
        assert!(starts.is_left_to_kernel(7, None), "nor of any other of its start");
        assert!(!starts.is_left_to_kernel(8, Some(false)));
        assert!(!starts.is_left_to_kernel(7, None));
        assert!(starts.is_left_to_kernel(9, Some(true)));
        assert!(!starts.is_left_to_kernel(8, Some(false)));
        assert!(starts.is_left_to_kernel(7, None), "it may have been one like 9");
    }

    #[test]
    fn a_start_without_a_list_is_told_so_and_an_empty_one_leaves_the_old_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut starts, answers) = starts(folder.path(), &["a"]);
        starts.join(0, fresh(0), 1000, 7);
        starts.recall(StartId(1), Vec::new());
        starts.wait();
        let told: Vec<Input> = answers.take().into_iter().map(|(_, input)| input).collect();
        let recalled = Completed::Recalled { start: StartId(1), list: Vec::new() };
        assert_eq!(told, [Input::Completed(recalled)]);
        starts.keep(StartId(1), &[], Vec::new());
        starts.wait();
        assert_eq!(Lists::in_folder(folder.path()).names().expect("a folder"), []);
    }

    #[test]
    fn a_command_is_named_as_a_file_can_be() {
        for name in ["firefox", "python3.11", "a-b_c", "0123456789abcde"] {
            assert_eq!(name.parse(), Ok(Command(name.into())));
        }
        for odd in ["", "a b", "a/b", ".a", "0123456789abcdef"] {
            assert_eq!(odd.parse::<Command>(), Err(CommandError(odd.into())));
        }
    }
}

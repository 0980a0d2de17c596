//! What can be done for a load.

use controller::behind::{Mode, Rule, Rules};
use sim::replay::Setup;

/// Something to do for a load, the simplest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Nothing.
    Leave,
    /// Another window of the kernel's for the device.
    Window {
        /// `read_ahead_kb`.
        kib: u64,
    },
    /// Bowwave as it is without options: with drop-behind in its mode `auto`.
    Bowwave,
    /// Bowwave, with drop-behind in the mode `always` for some of the processes.
    DropBehind {
        /// Their names in the trace.
        processes: Vec<String>,
    },
    /// Bowwave, which has remembered the last start of the program.
    Remember,
}

impl Remedy {
    /// The simulator's policy.
    pub(crate) fn policy(&self) -> &'static str {
        match self {
            Remedy::Leave | Remedy::Window { .. } => "linux-6",
            Remedy::Bowwave | Remedy::DropBehind { .. } | Remedy::Remember => "adaptive",
        }
    }

    /// A replay with this remedy.
    pub(crate) fn applied_to(&self, mut setup: Setup) -> Setup {
        match self {
            Remedy::Leave => {}
            Remedy::Window { kib } => setup.readahead_kb = Some(*kib),
            Remedy::Bowwave => setup.behind = Some(Rules::default()),
            Remedy::Remember => {
                setup.behind = Some(Rules::default());
                setup.remembers = true;
            }
            Remedy::DropBehind { processes } => {
                let rule = |name: &String| Rule {
                    path: None,
                    cgroup: None,
                    command: Some(name.clone()),
                    mode: Mode::Always,
                };
                let rules = processes.iter().map(rule).collect();
                setup.behind = Some(Rules { mode: Mode::Auto, rules });
            }
        }
        setup
    }
}

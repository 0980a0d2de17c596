//! The contract between a policy and its body.

use crate::Account;
use crate::access::{Access, GroupId, Nanos, VolumeId};
use crate::adaptive::History;
use crate::cache::CacheView;
use crate::plan::Plan;
use crate::tally::Tally;

/// Decides what to read ahead, and when to be asked again.
pub trait Policy: Send {
    /// The policy's name as users type it, for example `linux-6`.
    fn name(&self) -> &'static str;

    /// Answers one access by appending to `plan` (which the caller has cleared).
    ///
    /// An empty plan means "nothing beyond what the program itself asked for".
    fn on_access(&mut self, access: &Access, cache: &dyn CacheView, plan: &mut Plan);

    /// Most pages of the kernel's own windows for readers of this group, if the policy
    /// [bounds](crate::Action::KernelWindow) them. Without a bound, the body restores windows that it has bounded.
    fn window_bound(&self, _group: GroupId) -> Option<u32> {
        None
    }

    /// What became of the requested pages, if the policy counts them.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// What reading ahead has saved and cost on a volume, if the policy counts that and knows the volume.
    fn account(&self, _volume: VolumeId) -> Option<Account> {
        None
    }

    /// The sum of the accounts that the policy has forgotten because it had no room for more groups of readers.
    fn settled(&self) -> Account {
        Account::default()
    }

    /// How a volume's files were read of late, if the policy remembers that.
    fn history(&self, _volume: VolumeId) -> Option<&History> {
        None
    }

    /// The volume's files were read like this before; from now on, nothing else is remembered of it.
    fn recall(&mut self, _now: Nanos, _volume: VolumeId, _history: &History) {}

    /// The volume is gone. Another may come with its number, with a history and credit of its own.
    fn forget_volume(&mut self, _volume: VolumeId) {}

    /// Forgets every file and stream idle since before `now - idle`.
    fn forget_idle(&mut self, now: Nanos, idle: Nanos);
}

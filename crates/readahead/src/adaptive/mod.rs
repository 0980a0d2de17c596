//! Bowwave's own policy: one inequality instead of tunables.
//!
//! *Read a page ahead if and only if the probability that it is used, times the stall this saves,
//! exceeds what reading it costs.* The stall and the cost come from the device: one more access
//! costs `L` seconds, a page `1/B`, and `Q` accesses overlap ([`DeviceCost`]). The probability
//! comes from what this stream and this file have done so far. `docs/adaptive.md` derives the
//! rules; here is how they fit together:
//!
//! ```text
//!   access (a page was absent, or a mark was touched)
//!      |
//!      +-- belongs to a known stream? --- yes --> stream advances; window and mark   (stream)
//!      |                                            |<- read ->|<------ asked ------>|
//!      no (an unmatched miss)                  ----origin------reader----mark-----frontier--->
//!      |
//!      +-- at the file's start, or next to a recent unmatched miss, ahead of it or behind
//!      |       --> a new forward or backward stream                                  (file)
//!      +-- third or fourth at the same distance  --> a strided stream, or, where
//!      |       reading the gaps costs less than more accesses, a plain one          (file)
//!      +-- fourth in a row in one direction, where accesses overlap
//!      |       --> a plain stream across the gaps                                   (file)
//!      +-- its region has cost as much in misses as reading it would
//!              --> read the rest of the region, slice by slice                       (region)
//! ```
//!
//! All three kinds of stream are one structure, a row of units at a signed step; only the plan
//! they yield differs. What the kernel does well by itself is left to it: a forward stream whose
//! kernel window is as large as the rule asks, and strides that a disk passes at media rate.

mod access_context;
mod allowance;
mod completion_rate;
mod decision;
mod density;
mod device;
mod file;
mod kernel_window;
mod number;
mod outlook;
mod pace;
mod pressure;
mod read_around;
mod region;
mod rules;
mod run;
mod samples;
mod settle;
mod starts;
mod stream;
mod streams;
mod survival;
mod tail_exponent;
mod unmatched_misses;
mod volume;
mod waits;
mod window;

use serde::{Deserialize, Serialize};

use access_context::AccessContext;
use allowance::{Allowance, MIN_READ_AHEAD_PAGES};
use decision::Decision;
use device::Device;
use file::{FileState, Found};
use kernel_window::KERNEL_WINDOW_PAGES;
use pressure::{Pressure, Pressures};
use region::Regions;

use crate::Account;
use crate::access::{Access, FileId, GroupId, Hint, Nanos, PAGE_BYTES, Trigger, VolumeId};
use crate::cache::{CacheView, Past};
use crate::cost::DeviceCost;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::table::Table;
use crate::tally::Tally;

pub use rules::{Rule, Rules};
pub use run::{Ahead, Run};
pub use survival::Curve;
pub use volume::History;
pub use window::UnitCost;

/// How much the policy remembers and may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Files followed at once; about 14 KiB each.
    pub files: usize,
    /// Largest window planned for one access, in bytes.
    pub plan_bytes: u64,
    /// Largest region filled, in bytes.
    pub region_bytes: u64,
    /// The budget for what is read ahead and not used yet, in bytes. A reader that is alone may have
    /// twice as much, and all together two and a half times.
    pub ahead_bytes: u64,
}

impl Default for Limits {
    /// A thousand busy files; windows and regions of 256 MiB; a GiB ahead, an eighth of a small server.
    fn default() -> Self {
        Limits { files: 1024, plan_bytes: 256 << 20, region_bytes: 256 << 20, ahead_bytes: 1 << 30 }
    }
}

/// Whole pages, one at least.
fn pages(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).max(1)
}

/// The least time between two looks through the streams of all files. If all files are full of streams, a look takes
/// about 100 us: 1 % of this time.
const SWEEP_NS: Nanos = 10_000_000;

/// Volumes that are remembered, 1.2 KiB each: more than most machines read from.
const VOLUMES: usize = 256;

/// Accounts that are kept: of some groups of readers on each volume.
const ACCOUNTS: usize = 256;

/// The policy. See the [module](self) for how it decides.
#[derive(Debug)]
pub struct Adaptive {
    limits: Limits,
    rules: Rules,
    files: Table<FileId, FileState>,
    volumes: Table<VolumeId, History>,
    /// One user's losses cost no other user anything.
    accounts: Table<(VolumeId, GroupId), Account>,
    /// The sum of the accounts that had no room any more.
    settled: Account,
    regions: Regions,
    pressures: Pressures,
    /// The device of the last access.
    device: Device,
    /// When the streams of all files were last searched for readers that have stopped.
    swept_at: Nanos,
    tally: Tally,
}

impl Adaptive {
    /// A policy that has seen nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self::with_rules(limits, Rules::default())
    }

    /// The same with other rules, to be compared.
    pub fn with_rules(limits: Limits, rules: Rules) -> Self {
        Adaptive {
            limits,
            rules,
            files: Table::new(limits.files),
            volumes: Table::new(VOLUMES),
            accounts: Table::new(ACCOUNTS),
            settled: Account::default(),
            regions: Regions::new(limits.files, pages(limits.region_bytes)),
            pressures: Pressures::new(),
            device: Device::new(DeviceCost::FLASH),
            swept_at: 0,
            tally: Tally::default(),
        }
    }

    /// The pressure that a reader of `group` is under, after what this access tells. A reader that was idle for so long
    /// that its file was forgotten is slow: if it finds the next page evicted, that page was read ahead for it.
    fn feel_pressure(
        &mut self,
        group: GroupId,
        access: &Access,
        cache: &dyn CacheView,
    ) -> Pressure {
        let window = access.kernel_window;
        let pressure = self.pressures.of_mut(group, access.now);
        pressure.ease(access.now, window.max(KERNEL_WINDOW_PAGES));
        let past = cache.past();
        if access.trigger != Trigger::Absent || past == Past::Unknown {
            return *pressure;
        }
        let is_slow = self.files.get_mut(&access.file, access.now).is_none();
        let is_lost = past == Past::EvictedUnused || (is_slow && past == Past::EvictedNext);
        if is_lost && self.rules.have(Rule::Pressure) {
            pressure.thrashed(window, is_slow, access.now);
        }
        *pressure
    }

    /// Pages that may be ahead of all readers. If half of them are out, or the body has no room, streams whose readers
    /// have stopped give up theirs: those of this file at once, those of all files at most every `SWEEP_NS`.
    fn most_ahead(&mut self, pressure: Pressure, access: &Access, cache: &dyn CacheView) -> u64 {
        let budget = Allowance::budget_within(cache.ahead_pages());
        let budget = budget.min(self.limits.ahead_bytes / PAGE_BYTES);
        let (now, tally, pressures) = (access.now, &mut self.tally, &self.pressures);
        let (ahead, has_no_room) = (tally.ahead_pages(), cache.room_pages() < MIN_READ_AHEAD_PAGES);
        let is_short = |most_ahead: u64| ahead > most_ahead / 2 || has_no_room;
        let most_ahead = pressure.budget(budget);
        if is_short(most_ahead) && self.rules.have(Rule::Stopped) {
            if now.saturating_sub(self.swept_at) >= SWEEP_NS {
                self.swept_at = now;
                for file in self.files.values_mut() {
                    let most_ahead = pressures.of(file.group()).budget(budget);
                    if is_short(most_ahead) {
                        file.give_up_stopped(now, most_ahead, tally);
                    }
                }
            } else if let Some(file) = self.files.get_mut(&access.file, now) {
                file.give_up_stopped(now, most_ahead, tally);
            }
        }
        most_ahead
    }

    /// Files remembered at the moment.
    pub fn files(&self) -> usize {
        self.files.len()
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn CacheView, plan: &mut Plan) {
        if access.hint == Hint::Random || access.page >= access.file_pages {
            return;
        }
        let group = cache.group();
        let pressure = self.feel_pressure(group, access, cache);
        let most_ahead = self.most_ahead(pressure, access, cache);
        self.device.renew(cache.cost());
        let (now, rules, device, tally) = (access.now, &self.rules, &self.device, &mut self.tally);
        let history =
            self.volumes.get_or_insert_for(group, access.volume, now, History::default, drop);
        let key = (access.volume, group);
        let settled = &mut self.settled;
        let settle = |forgotten| *settled = settled.beside(forgotten);
        let account = self.accounts.get_or_insert_for(group, key, now, Account::default, settle);
        account.pass_time(now);
        let allowance = Allowance {
            budget: most_ahead,
            window: cache.room_pages().min(pages(self.limits.plan_bytes)),
            stream_credit: account.stream_pages(&device.cost),
            credit: account.region_pages(&device.cost),
            ..Allowance::on(device, access.via, rules)
        };
        let context = &AccessContext::new(access, cache, rules, device, allowance);
        let (new, give_up) = (|| FileState::on(access.volume), |it: FileState| it.give_up(tally));
        let file = self.files.get_or_insert_for(group, access.file, now, new, give_up);
        file.read_in(group);

        let (regions, pressures) = (&mut self.regions, &mut self.pressures);
        let mut decision =
            Decision { context, group, pressure, pressures, account, regions, tally, plan };
        if decision.is_of_a_region_only(file) {
            return;
        }
        let is_unmatched = match file.place(context, history, decision.tally) {
            Found::Stream(stream, outlook) => {
                decision.go_on(stream, outlook);
                if stream.has_ended_a_file(access) {
                    history.completion_rate.end();
                }
                false
            }
            Found::UnmatchedMiss => {
                decision.count_in_regions();
                true
            }
            Found::SameRequest(pages) => {
                decision.read_whole(pages);
                false
            }
        };
        decision.bound_kernel_window(file.judge_read_around(is_unmatched, context));
    }

    fn window_bound(&self, group: GroupId) -> Option<u32> {
        self.pressures.of(group).kernel_window(u32::MAX)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn account(&self, volume: VolumeId) -> Option<Account> {
        let accounts = self.accounts.iter().filter(|((of, _), _)| *of == volume);
        accounts.map(|(_, account)| *account).reduce(Account::beside)
    }

    fn settled(&self) -> Account {
        self.settled
    }

    fn history(&self, volume: VolumeId) -> Option<&History> {
        self.volumes.get(&volume)
    }

    fn recall(&mut self, now: Nanos, volume: VolumeId, history: &History) {
        if let Some(known) = self.volumes.get_mut(&volume, now) {
            *known = History::default();
        }
        if history.is_possible() && *history != History::default() {
            *self.volumes.get_or_insert_with(volume, now, History::default, drop) =
                history.rested();
        }
    }

    fn forget_volume(&mut self, volume: VolumeId) {
        self.volumes.forget_if(|of| *of == volume);
        self.accounts.forget_if(|(of, _)| *of == volume);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        let moment = now.saturating_sub(idle);
        let tally = &mut self.tally;
        for file in self.files.values_mut() {
            if let Some(history) = self.volumes.peek_mut(&file.volume()) {
                file.end_runs(now, &mut history.curve);
            }
            file.forget_before(moment, tally);
        }
        self.files.forget_before(moment, |forgotten| forgotten.give_up(tally));
        self.regions.forget_before(moment);
        self.volumes.change_idle(moment, |history| *history = history.rested());
    }
}

//! One decision in the making: the access, what is known around it, and what it may change.

use super::access_context::AccessContext;
use super::file::FileState;
use super::outlook::Outlook;
use super::pressure::{Pressure, Pressures};
use super::region::Regions;
use super::rules::Rule;
use super::settle::Before;
use super::stream::Stream;
use crate::Account;
use crate::access::{GroupId, Trigger};
use crate::cache::Past;
use crate::plan::{Action, Plan};
use crate::tally::Tally;

pub(super) struct Decision<'a> {
    pub(super) context: &'a AccessContext<'a>,
    /// Whose reader it is.
    pub(super) group: GroupId,
    /// The pressure on this group.
    pub(super) pressure: Pressure,
    pub(super) pressures: &'a mut Pressures,
    /// The account of this group on this volume.
    pub(super) account: &'a mut Account,
    pub(super) regions: &'a mut Regions,
    pub(super) tally: &'a mut Tally,
    pub(super) plan: &'a mut Plan,
}

impl Decision<'_> {
    /// Asks for the next slice of a region if the access has touched its mark. Whether that is all: no stream of
    /// `file` explains the access.
    pub(super) fn is_of_a_region_only(&mut self, file: &FileState) -> bool {
        let context = self.context;
        let is_mark = context.access.trigger == Trigger::Mark;
        let Some(used) = is_mark.then(|| self.regions.used(context)).flatten() else {
            return false;
        };
        let is_of_a_stream = file.follows(context);
        self.regions.on_use(&used, context, is_of_a_stream, self.account, self.plan, self.tally);
        if !is_of_a_stream {
            self.plan.recognise();
        }
        !is_of_a_stream
    }

    /// The stream that explains the access goes on: it asks for its next window if it is time.
    pub(super) fn go_on(&mut self, stream: &mut Stream, mut outlook: Outlook) {
        let context = self.context;
        let before = Before::of(stream, self.tally, self.plan);
        if stream.can_gain(context) {
            self.plan.recognise();
        }
        if self.feels_pressure() && stream.has_lost(context) {
            self.thrashed();
        }
        stream.proceed(context, &mut outlook, self.plan, self.tally);
        if let Some(pages) = stream.wider_window(context, self.tally) {
            self.plan.widen(pages);
        }
        before.settle(stream, context, self.tally, self.plan, self.account);
    }

    /// A miss that no stream explains may be one of many in its region.
    pub(super) fn count_in_regions(&mut self) {
        let context = self.context;
        let is_absent = context.access.trigger == Trigger::Absent;
        if !is_absent || context.device.cost.outpaces_user_space() {
            return;
        }
        if self.feels_pressure() && self.regions.have_lost(context) {
            self.thrashed();
        }
        self.regions.on_unmatched_miss(context, self.account, self.plan, self.tally);
    }

    /// Lets the kernel read requests of `pages` pages whole, if memory has room for them. A request whose transfer
    /// takes as long as many accesses loses little if it is read in pieces.
    pub(super) fn read_whole(&mut self, pages: u64) {
        let context = self.context;
        let is_bounded = self.pressure.kernel_window(u32::MAX).is_some();
        let most = context.device.ample_pages.min(context.allowance.window);
        let is_larger = pages > u64::from(context.access.kernel_window);
        if is_bounded || !is_larger || pages > most || !context.rules.have(Rule::Whole) {
            return;
        }
        if let Ok(pages) = u32::try_from(pages) {
            self.plan.read_whole(pages);
        }
    }

    /// Bounds the kernel's window of this open file where there is pressure, or else to `own` pages.
    pub(super) fn bound_kernel_window(&mut self, own: Option<u32>) {
        let window = own.unwrap_or(self.context.access.kernel_window);
        if let Some(pages) = self.pressure.kernel_window(window).or(own) {
            self.plan.push(Action::KernelWindow { pages });
        }
    }

    /// Whether a page that this access finds missing may show pressure. Pages that the kernel had read ahead and lost
    /// have been counted already.
    fn feels_pressure(&self) -> bool {
        let rules = self.context.rules;
        rules.have(Rule::Pressure) && self.context.cache.past() != Past::EvictedUnused
    }

    /// A page that was read ahead for a reader of this group was evicted unused.
    fn thrashed(&mut self) {
        let access = self.context.access;
        self.pressure.thrashed(access.kernel_window, false, access.now);
        *self.pressures.of_mut(self.group, access.now) = self.pressure;
    }
}

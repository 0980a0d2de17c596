//! What one step of a stream is worth to its readers' [account](crate::Account).

use super::access_context::AccessContext;
use super::device::Device;
use super::number::real;
use super::stream::Stream;
use crate::Account;
use crate::access::Nanos;
use crate::plan::{Action, Plan};
use crate::tally::Tally;

/// How things stood before the step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    tally: Tally,
    seen_at: Nanos,
    actions: usize,
}

impl Before {
    pub(super) fn of(stream: &Stream, tally: &Tally, plan: &Plan) -> Self {
        Before { tally: *tally, seen_at: stream.used_at, actions: plan.actions().len() }
    }

    /// Pays for what the step has asked for, and takes what its reader has used.
    pub(super) fn settle(
        self,
        stream: &Stream,
        context: &AccessContext,
        tally: &Tally,
        plan: &Plan,
        account: &mut Account,
    ) {
        let used = tally.used_pages - self.tally.used_pages;
        if used > 0 {
            let stalls = (tally.stalls_saved - self.tally.stalls_saved) as f64;
            let saved_s = self.saved_s(stalls * stream.stall_s(context), stream, context);
            let read = real(used) * stream.read_share();
            account.use_up(read * context.device.cost.page_s(), saved_s);
        }
        let asked = &plan.actions()[self.actions..];
        if !asked.is_empty() {
            account.spend(price_s(asked, stream.kernel_reads_ahead(context), context.device));
        }
    }

    /// Seconds of `stalls_s` that readers were spared, less what the kernel's own read-ahead would have spared them. On
    /// a device that serves one access at a time, that is all, unless other readers have moved the head. Where accesses
    /// overlap, the kernel has only one window under way, so the reader would have waited for what exceeds the time
    /// since its last access.
    fn saved_s(self, stalls_s: f64, stream: &Stream, context: &AccessContext) -> f64 {
        if !stream.kernel_reads_ahead(context) {
            stalls_s
        } else if context.device.pages.is_serial {
            stalls_s * (1.0 - stream.share())
        } else {
            let elapsed_s = context.access.now.saturating_sub(self.seen_at) as f64 * 1e-9;
            (stalls_s - elapsed_s).max(0.0)
        }
    }
}

/// Seconds that the device takes for what was asked. Where the kernel would read ahead by itself, accesses are free: it
/// would make as many.
fn price_s(asked: &[Action], is_the_kernels: bool, device: &Device) -> f64 {
    let (access_s, page_s) = (device.cost.access_s(), device.pages.unit_s);
    // A disk passes over a narrower gap in the time it takes to read it. Elsewhere, each request is an access.
    let far = if device.pages.is_serial { (access_s / page_s).ceil() as u64 } else { 0 };
    let (mut accesses, mut passed, mut read, mut last_end) = (0, 0, 0, None);
    for action in asked {
        let Action::Read { start, pages, .. } = *action else { continue };
        match last_end {
            Some(end) if start.abs_diff(end) < far => passed += start.abs_diff(end),
            _ => accesses += 1,
        }
        read += pages;
        last_end = Some(start + pages);
    }
    if is_the_kernels {
        real(read) * page_s
    } else {
        real(accesses) * access_s + real(read + passed) * page_s
    }
}

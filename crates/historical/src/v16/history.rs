//! How many pages before a page are cached, and whether they were used.

use readahead::Page;

use super::AccessContext;
use super::bounds::LOOKAHEAD_RATIO;
use crate::view::PageState;

/// Number of samples in a history.
const SAMPLES: u64 = 8;

/// A prime that spreads the samples over all eighths of the history.
const SAMPLE_KEY: u64 = 29;

/// Sampling stops after this many hits.
const ENOUGH_HITS: u64 = 2;

/// Length of the history before `offset` in pages; 0 if too few of its pages were used. Beyond the
/// largest chunk, it is counted coarsely.
pub(super) fn history(context: &AccessContext, offset: Page) -> u64 {
    let most = context.bounds.most;
    let near = context.cache.run_before(offset, most);
    if near == 0 || (!context.parameters.nfsd && !is_used(context, offset - near, near)) {
        return 0;
    }
    if near < most {
        return near;
    }
    near + far(context, offset, near)
}

/// Pages of the history beyond `near`, counted in steps of the largest chunk, up to the first step
/// on an absent page or before the file.
fn far(context: &AccessContext, offset: Page, near: u64) -> u64 {
    let step = context.bounds.most;
    let ratio = u64::from(context.parameters.readahead_ratio | 1);
    let farthest = step * (LOOKAHEAD_RATIO + 1) * 100 / ratio;
    let mut count = near + step;
    while count < farthest
        && offset.checked_sub(count).is_some_and(|page| context.cache.is_cached(page))
    {
        count += step;
    }
    count - near
}

/// Whether enough of the `pages` from `start` on were used to make further reading worthwhile.
fn is_used(context: &AccessContext, start: Page, pages: u64) -> bool {
    sampled_hits(context, start, pages).saturating_mul(context.hit_rate().max(1)) >= pages
}

/// Estimates how many of the `pages` from `start` on were used at least once.
fn sampled_hits(context: &AccessContext, start: Page, pages: u64) -> u64 {
    let (mut hits, mut probes) = (0, 0);
    while probes < SAMPLES && hits < ENOUGH_HITS {
        let page = start + pages * (SAMPLE_KEY * probes % SAMPLES) / SAMPLES;
        probes += 1;
        if context.cache.state(page) == PageState::Referenced {
            hits += 1;
        }
    }
    pages * hits / probes
}

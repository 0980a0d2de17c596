//! A one-way sweep with short seeks back.
//!
//! ```text
//!          far back            near back   head      forward
//!   |--- wrapped: last ---|--- cost 2d ---|*|------ cost d ------>
//! ```
//!
//! The cheaper one of the commands just before and just behind the head is next. If all commands
//! are far back, the sweep starts again at the lowest: one seek back instead of several.

use crate::request::Sector;
use crate::sorted::{SortedQueue, Ticket};

/// Cost of a sector backwards, in sectors forwards.
const BACK_PENALTY: Sector = 2;

/// The next command for a head at `head`, which may move back by `most_back` sectors.
pub(crate) fn next(queue: &SortedQueue, head: Sector, most_back: Sector) -> Option<Ticket> {
    let forward = queue.at_or_above(head).map(|ticket| (queue.start(ticket) - head, ticket));
    let back = queue
        .below(head)
        .map(|ticket| (head - queue.start(ticket), ticket))
        .filter(|&(distance, _)| distance <= most_back)
        .map(|(distance, ticket)| (BACK_PENALTY * distance, ticket));
    let cheaper = match (forward, back) {
        (Some(forward), Some(back)) => Some(if back.0 < forward.0 { back } else { forward }),
        (forward, back) => forward.or(back),
    };
    cheaper.map(|(_, ticket)| ticket).or_else(|| queue.lowest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn next_of(starts: &[Sector], head: Sector) -> Sector {
        let mut queue = SortedQueue::default();
        for (id, &start) in (0..).zip(starts) {
            queue.insert(0, &read(id, 0, start, 8));
        }
        queue.start(next(&queue, head, 1000).unwrap())
    }

    #[test]
    fn forward_costs_the_distance_and_back_twice_as_much() {
        assert_eq!(next_of(&[90, 119], 100), 119);
        assert_eq!(next_of(&[90, 121], 100), 90);
        assert_eq!(next_of(&[90, 120], 100), 120, "forward if equal");
    }

    #[test]
    fn requests_far_back_come_after_all_requests_ahead() {
        assert_eq!(next_of(&[100, 90_000], 5000), 90_000);
    }

    #[test]
    fn a_new_sweep_begins_at_the_lowest() {
        assert_eq!(next_of(&[100, 200, 300], 5000), 100);
    }
}

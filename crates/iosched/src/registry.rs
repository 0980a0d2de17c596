//! Finds elevators by name.

use crate::{
    Anticipatory, AnticipatoryParameters, Base2561, Bfq, BfqParameters, Cfq1, Deadline,
    DeadlineParameters, Elevator, Linus, LinusParameters, MqDeadline, MqDeadlineParameters, Nanos,
    Noop,
};

/// The names that [`by_name`] accepts.
pub const NAMES: [&str; 8] =
    ["noop", "linus", "deadline", "base-2.5.61", "cfq-1", "anticipatory", "mq-deadline", "bfq"];

/// Nanoseconds in a millisecond.
const MS: Nanos = 1_000_000;

/// The elevator with this name and the parameters of its time; `None` if there is none. It merges up to `max_sectors`.
///
/// `anticipatory:25` has a time slice (`read_expire`) of 25 ms.
pub fn by_name(name: &str, max_sectors: u32) -> Option<Box<dyn Elevator>> {
    if let Some(slice) = name.strip_prefix("anticipatory:") {
        let read_expire = slice.parse::<Nanos>().ok().filter(|ms| *ms > 0)?.checked_mul(MS)?;
        let parameters = AnticipatoryParameters::february_2003();
        let parameters = AnticipatoryParameters { read_expire, ..parameters };
        return Some(Box::new(Anticipatory::new(max_sectors, parameters)));
    }
    Some(match name {
        "noop" => Box::new(Noop::new(max_sectors)),
        "linus" => Box::new(Linus::new(max_sectors, LinusParameters::default())),
        "deadline" => Box::new(Deadline::new(max_sectors, DeadlineParameters::default())),
        "base-2.5.61" => Box::new(Base2561::new(max_sectors)),
        "cfq-1" => Box::new(Cfq1::new(max_sectors, Cfq1::QUANTUM)),
        "anticipatory" => {
            Box::new(Anticipatory::new(max_sectors, AnticipatoryParameters::february_2003()))
        }
        "mq-deadline" => Box::new(MqDeadline::new(max_sectors, MqDeadlineParameters::default())),
        "bfq" => Box::new(Bfq::new(max_sectors, BfqParameters::default())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_the_elevator_of_that_name() {
        for name in NAMES {
            assert_eq!(by_name(name, 128).unwrap().name(), name);
        }
        assert!(by_name("elevator", 128).is_none());
    }

    #[test]
    fn a_slice_of_the_anticipatory_elevator_is_a_number_of_milliseconds() {
        assert!(by_name("anticipatory:25", 128).is_some());
        for wrong in ["anticipatory:", "anticipatory:0", "anticipatory:x", "noop:25"] {
            assert!(by_name(wrong, 128).is_none(), "{wrong}");
        }
    }
}

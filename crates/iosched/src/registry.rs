//! The elevators by name.

use crate::{
    Anticipatory, AnticipatoryParameters, Base2561, Bfq, BfqParameters, Cfq1, Deadline,
    DeadlineParameters, Elevator, Linus, LinusParameters, MqDeadline, MqDeadlineParameters, Noop,
};

/// What [`by_name`] knows.
pub const NAMES: [&str; 8] =
    ["noop", "linus", "deadline", "base-2.5.61", "cfq-1", "anticipatory", "mq-deadline", "bfq"];

/// The elevator of that name with the parameters of its time, merging up to `max_sectors`.
pub fn by_name(name: &str, max_sectors: u32) -> Option<Box<dyn Elevator>> {
    Some(match name {
        "noop" => Box::new(Noop::new(max_sectors)),
        "linus" => Box::new(Linus::new(max_sectors, LinusParameters::default())),
        "deadline" => Box::new(Deadline::new(max_sectors, DeadlineParameters::default())),
        "base-2.5.61" => Box::new(Base2561::new()),
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
}

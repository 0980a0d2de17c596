//! Random look-ups in a mapping that stop early, on a volume that bowwave has not seen before: where accesses overlap,
//! what it reads ahead at first sight delays nobody.

use readahead::{Nanos, PAGE_BYTES};
use sim::scripts::random::Random;
use sim::{Listed, MachineSpec, Op};

/// A network volume, and memory for all that is read.
const MACHINE: &str = r#"
    device = "net"
    device_gb = 40.0
    device_depth = 64
    request_kb = 1280
    memory_mb = 4000.0
    readahead_kb = 128
    elevator = "noop"
    reclaim = "use-once-first"
    cpu = { call_us = 0.3, page_us = 0.4, fault_us = 0.5, decision_us = 0.2, wake_us = 5.0 }
"#;

/// Some readers of random pages of a mapping of one file.
#[derive(Clone, Copy, Debug)]
struct Job {
    file_mb: u64,
    readers: u64,
}

impl Job {
    /// When the first reader has had each of its `count` accesses.
    fn times(self, policy: &str, count: usize) -> Vec<Nanos> {
        let spec: MachineSpec = toml::from_str(MACHINE).expect("it is a machine");
        let mut machine = spec.build(policy).expect("it can be built");
        let file = machine.add_file(self.file_mb << 20);
        let open = machine.open(file);
        for seed in 0..self.readers {
            let mut random = Random::new(seed);
            let mut access = move || {
                let page = random.below((self.file_mb << 20) / PAGE_BYTES);
                Op::Fault { open, page }
            };
            let ops: Vec<Op> =
                (0..count).flat_map(|_| [access(), Op::Stamp { label: 0 }]).collect();
            machine.spawn(0, Listed(ops.into_iter()));
        }
        machine.run();
        machine.outcome(0).stamps.iter().map(|(_, at)| *at).collect()
    }

    /// The stock kernel's time over bowwave's, had the job stopped after so many accesses.
    fn gains(self, stops: &[usize]) -> Vec<f64> {
        let count = *stops.iter().max().expect("there are some");
        let (stock, ours) = (self.times("linux-6", count), self.times("adaptive", count));
        stops.iter().map(|stop| stock[stop - 1] as f64 / ours[stop - 1] as f64).collect()
    }
}

/// Half a second, one and two, if each access takes 5 ms.
const STOPS: [usize; 3] = [100, 200, 400];

#[test]
fn a_lone_reader_loses_nothing_wherever_it_stops_and_gains_where_much_is_read_of_the_file() {
    for (file_mb, least) in [(32, 5.0), (128, 2.0), (512, 1.2), (2048, 0.98)] {
        let job = Job { file_mb, readers: 1 };
        let gains = job.gains(&STOPS);
        assert!(gains.iter().all(|gain| *gain > 0.98), "{job:?}: {gains:?}");
        assert!(gains[1] > least, "{job:?}: {gains:?}");
    }
}

/// What they miss and what is read ahead takes the whole bandwidth.
#[test]
fn one_beside_three_others_loses_a_third_at_most_and_has_it_back_soon() {
    for file_mb in [32, 128, 512, 2048] {
        let job = Job { file_mb, readers: 4 };
        let gains = job.gains(&STOPS);
        assert!(gains.iter().all(|gain| *gain > 0.66), "{job:?}: {gains:?}");
        assert!(gains[2] > 1.0, "{job:?}: {gains:?}");
    }
}

//! What would help a load? Replays its trace with each remedy, in each world that is plausible, and ranks the remedies.
//!
//! ```text
//!   trace ---> remedies ----+
//!                           +--> replays --> outcomes --> margins, ranking --> Advice
//!   device, memory --> worlds
//! ```
//!
//! A *world* is what the trace does not tell: how fast the device is exactly, where files are, how much memory is free.
//! A remedy is compared with today's setting in one world at a time, so that what both have in common cancels.

mod layouts;
mod margin;
mod one_pass;
mod remedy;
mod start;
mod windows;
mod worlds;

use device::Spec;
use readahead::PAGE_BYTES;
use sim::replay::{Layout, Pace, Process, Replay, ReplayError, Setup, replay, traced_waiting};
use trace::Trace;

pub use margin::{Outcome, Range, ranked, saved};
pub use remedy::Remedy;
pub use worlds::World;

/// A load, and the machine that it runs on.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// What the programs read.
    pub trace: &'a Trace,
    /// The device from which they read.
    pub device: Spec,
    /// How far the device may be from that description: 0.1 stands for latency and bandwidth 10 % up or down.
    pub device_error: f64,
    /// Bytes of memory that may hold their files.
    pub memory_bytes: u64,
    /// Today's window, in KiB.
    pub readahead_kb: u64,
    /// The largest window to consider, in KiB.
    pub most_kb: u64,
}

/// What a remedy is expected to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The remedy.
    pub remedy: Remedy,
    /// Seconds that all processes take together, from their start to their end.
    pub seconds: Range,
    /// Seconds less than with today's setting.
    pub saved: Range,
    /// Of the expected seconds, those that processes wait for the device or for memory.
    pub waited_s: f64,
    /// Seconds until the last process ends.
    pub ends_s: f64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Of these, bytes that were read ahead and not used.
    pub unused_bytes: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The remedies, best first. One of them is [`Remedy::Leave`].
    pub predictions: Vec<Prediction>,
    /// Bytes that the trace reads, each page counted once.
    pub needed_bytes: u64,
    /// Of these, bytes that were in memory when the trace was recorded.
    pub cached_bytes: u64,
    /// Seconds that today's processes take together: of those that wait for less than a twentieth of their own time,
    /// only what they wait, unless all do. What a remedy saves is compared with these.
    pub busy_s: f64,
    /// Seconds that all reads waited together when the trace was recorded, if it tells.
    pub traced_s: Option<f64>,
    /// The worlds in which the remedies were tried.
    pub worlds: Vec<&'static str>,
}

impl Advice {
    /// The prediction for today's setting.
    pub fn today(&self) -> &Prediction {
        let today = self.predictions.iter().find(|it| it.remedy == Remedy::Leave);
        today.unwrap_or(&self.predictions[0])
    }

    /// The remedy to choose.
    pub fn first(&self) -> &Prediction {
        &self.predictions[0]
    }
}

/// Predicts what each remedy does to a load. Calls `progress` with the share that is done, in `[0, 1]`.
///
/// # Errors
/// If the machine cannot be simulated.
pub fn advise(load: &Load, progress: &mut dyn FnMut(f64)) -> Result<Advice, ReplayError> {
    let traced = traced_waiting(load.trace);
    let study = Study::of(load, traced.is_some());
    let layouts = plausible_layouts(load, &study, traced)?;
    let expected_world = World::expected(layouts[0]);
    let today = study.replay(&Remedy::Leave, expected_world)?;
    // If the simulator explains how long the reads took, its waiting is scaled to that.
    let scale = layouts::scale(today.stalled_s(), traced).unwrap_or(1.0);
    let busy_s = busy_s(&today, scale);
    let window = best_window(load, &study, expected_world, &today, progress)?;
    let mut remedies = vec![Remedy::Leave];
    remedies.extend(window);
    remedies.push(Remedy::Bowwave);
    remedies.extend(drop_behind(load, &today));
    remedies.extend(start::is_one(load.trace).then_some(Remedy::Remember));
    let worlds = worlds::all(load.device_error, traced.is_some(), &layouts);
    let all = (remedies.len() * worlds.len()) as f64;
    let mut outcomes = Vec::new();
    let mut expected = Vec::new();
    for remedy in &remedies {
        let mut row = Vec::new();
        for world in &worlds {
            let replay = study.replay(remedy, *world)?;
            row.push(outcome(&replay).with_waiting(scale));
            if *world == expected_world {
                expected.push(replay);
            }
            let done = (outcomes.len() * worlds.len() + row.len()) as f64;
            progress(WINDOWS_SHARE + (1.0 - WINDOWS_SHARE) * done / all);
        }
        outcomes.push(row);
    }
    let matters: Vec<f64> = remedies.iter().map(margin::matters).collect();
    let order = ranked(&outcomes, busy_s, &matters);
    let predict = |index: usize| Prediction {
        remedy: remedies[index].clone(),
        seconds: margin::seconds(&outcomes[index]),
        saved: if index == 0 { Range::default() } else { saved(&outcomes[0], &outcomes[index]) },
        waited_s: outcomes[index][0].waited_s,
        ends_s: ends_s(&expected[index], scale),
        read_bytes: expected[index].pages_read * PAGE_BYTES,
        unused_bytes: unused_pages(&expected[index]) * PAGE_BYTES,
    };
    Ok(Advice {
        predictions: order.into_iter().map(predict).collect(),
        needed_bytes: today.pages_needed * PAGE_BYTES,
        cached_bytes: today.pages_cached * PAGE_BYTES,
        busy_s,
        traced_s: traced,
        worlds: worlds.iter().map(|world| world.name).collect(),
    })
}

/// The layouts that may be, the likeliest first.
fn plausible_layouts(
    load: &Load,
    study: &Study,
    traced: Option<f64>,
) -> Result<Vec<Layout>, ReplayError> {
    if load.trace.files().len() < 2 {
        return Ok(vec![Layout::AsTraced]);
    }
    let mut simulated = Vec::new();
    for layout in Layout::ALL {
        let replay = study.replay(&Remedy::Leave, World::expected(layout))?;
        simulated.push((layout, replay.stalled_s()));
    }
    Ok(layouts::plausible(&simulated, traced))
}

/// The share of the work that is the choice of a window.
const WINDOWS_SHARE: f64 = 0.3;

/// The window to consider besides today's.
fn best_window(
    load: &Load,
    study: &Study,
    world: World,
    today: &Replay,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Remedy>, ReplayError> {
    let sizes = windows::candidates(load.readahead_kb, load.most_kb);
    let mut tried = Vec::new();
    for (done, kib) in sizes.iter().enumerate() {
        let seconds = if *kib == load.readahead_kb {
            outcome(today).seconds
        } else {
            outcome(&study.replay(&Remedy::Window { kib: *kib }, world)?).seconds
        };
        tried.push((*kib, seconds));
        progress(WINDOWS_SHARE * (done + 1) as f64 / sizes.len() as f64);
    }
    let best = windows::best(&tried, busy_s(today, 1.0)).filter(|kib| *kib != load.readahead_kb);
    Ok(best.map(|kib| Remedy::Window { kib }))
}

/// Drop-behind for processes that read everything once, if others or they themselves had to read evicted pages again.
fn drop_behind(load: &Load, today: &Replay) -> Option<Remedy> {
    let is_short_of_memory = today.refaulted + today.read_again > 0;
    let processes = one_pass::processes(load.trace, load.memory_bytes);
    (is_short_of_memory && !processes.is_empty()).then_some(Remedy::DropBehind { processes })
}

/// Replays of one trace.
struct Study<'a> {
    trace: &'a Trace,
    base: Setup,
    device: Spec,
    memory_bytes: u64,
}

impl<'a> Study<'a> {
    fn of(load: &Load<'a>, has_durations: bool) -> Self {
        Study {
            trace: load.trace,
            base: Setup {
                readahead_kb: Some(load.readahead_kb),
                // Without durations, they would count as pauses.
                pace: if has_durations { Pace::Trace } else { Pace::None },
                traced_readahead_kb: Some(load.readahead_kb),
                longest_idle: Some(LONGEST_IDLE),
                ..Setup::default()
            },
            // Angles that resonate with a load would not do so on a real disk.
            device: load.device.clone().with_random_rotation(),
            memory_bytes: load.memory_bytes,
        }
    }

    fn replay(&self, remedy: &Remedy, world: World) -> Result<Replay, ReplayError> {
        let memory_bytes = (self.memory_bytes as f64 * world.memory) as u64;
        let setup = Setup {
            spec: Some(
                self.device.clone().with_latency(world.latency).with_bandwidth(world.bandwidth),
            ),
            memory_bytes: Some(memory_bytes.clamp(LEAST_MEMORY, enough_memory(self.trace))),
            layout: world.layout,
            pace: world.pace.unwrap_or(self.base.pace),
            ..self.base.clone()
        };
        replay(self.trace, remedy.policy(), &remedy.applied_to(setup))
    }
}

/// In a minute without any operation, everything comes to rest: streams end, and what was read ahead for them waits.
/// Simulating more of it takes long and changes nothing.
const LONGEST_IDLE: readahead::Nanos = 60_000_000_000;

/// The simulator's least memory.
const LEAST_MEMORY: u64 = 1 << 20;

/// More memory than this changes nothing but what a replay costs: all that is read fits, and an eighth of it, which
/// bowwave may have ahead, is half of all that is read.
fn enough_memory(trace: &Trace) -> u64 {
    const TIMES: u64 = 4;
    const LEAST: u64 = 1 << 30;
    let written: u64 = trace
        .records()
        .iter()
        .filter(|record| record.op == trace::TraceOp::Write)
        .map(|record| record.bytes)
        .sum();
    (TIMES * (trace.pages_needed() * PAGE_BYTES + written)).max(LEAST)
}

/// `Advice::busy_s`, with the simulated waiting multiplied by `times`.
fn busy_s(today: &Replay, times: f64) -> f64 {
    let outcomes = || today.processes.iter().map(|it| outcome_of(it).with_waiting(times));
    let waits = |it: &Outcome| it.waited_s > 0.0 && it.waited_s >= margin::MATTERS * it.seconds;
    if !outcomes().any(|it| waits(&it)) {
        return outcomes().map(|it| it.seconds).sum();
    }
    outcomes().map(|it| if waits(&it) { it.seconds } else { it.waited_s }).sum()
}

/// Seconds until the last process ends, with `times` the waiting of each.
fn ends_s(replay: &Replay, times: f64) -> f64 {
    let ends = |it: &Process| it.started_s + outcome_of(it).with_waiting(times).seconds;
    replay.processes.iter().map(ends).fold(0.0, f64::max)
}

fn outcome_of(process: &Process) -> Outcome {
    Outcome { seconds: process.ended_s - process.started_s, waited_s: process.stalled_s }
}

fn outcome(replay: &Replay) -> Outcome {
    let each = || replay.processes.iter().map(outcome_of);
    Outcome { seconds: each().map(|it| it.seconds).sum(), waited_s: replay.stalled_s() }
}

fn unused_pages(replay: &Replay) -> u64 {
    let total = replay.matrix.total();
    total.read.saturating_sub(total.hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(text: &str) -> Advice {
        let trace = Trace::parse(text.as_bytes()).expect("valid");
        let load = Load {
            trace: &trace,
            device: device::load("net").expect("it is known"),
            device_error: 0.1,
            memory_bytes: 1 << 30,
            readahead_kb: 128,
            most_kb: 8192,
        };
        advise(&load, &mut |_| ()).expect("it is simulated")
    }

    /// One program walks through small files, and others wake up now and then for what is in memory.
    fn walk(idle: u32) -> String {
        let read = |n: u32| format!("{},grep,/w/{}/{n},read,0,12288,5200\n", n * 5300, n / 50);
        let wakes = |n: u32| {
            let wake = |at: u32| format!("{},idle{n},/h/{n},read,0,4096,3\n", at * 1_000_000);
            (0..60).map(wake).collect::<String>()
        };
        let records: String = (0..400).map(read).chain((0..idle).map(wakes)).collect();
        format!("time_us,process,file,op,offset,bytes,took_us\n{records}")
    }

    #[test]
    fn programs_that_hardly_wait_change_no_advice() {
        let (alone, beside) = (advice(&walk(0)), advice(&walk(10)));
        assert_eq!(alone.first().remedy, Remedy::Bowwave);
        assert_eq!(beside.first().remedy, Remedy::Bowwave, "{beside:?}");
        assert!((beside.busy_s / alone.busy_s - 1.0).abs() < 0.01, "{beside:?}");
        assert!(beside.today().seconds.expected > 10.0 * 59.0, "all are in the sum");
    }

    /// A replay of processes: when each started and ended, and how long it waited.
    fn replay_of(processes: &[(f64, f64, f64)]) -> Replay {
        let trace = Trace::parse(walk(0).as_bytes()).expect("valid");
        let replay = replay(&trace, "none", &Setup::default()).expect("it is simulated");
        let process = |&(started_s, ended_s, stalled_s): &(f64, f64, f64)| Process {
            name: "p".into(),
            started_s,
            ended_s,
            stalled_s,
        };
        Replay { processes: processes.iter().map(process).collect(), ..replay }
    }

    #[test]
    fn what_many_that_hardly_wait_could_save_is_no_more_than_all_take() {
        let busy = (0.0, 3.0, 2.5);
        let replay = replay_of(&[vec![(0.0, 60.0, 2.0); 40], vec![busy]].concat());
        assert_eq!(busy_s(&replay, 1.0), 83.0, "2 s of each, and all of the other one");
        assert_eq!(busy_s(&replay_of(&[(0.0, 60.0, 2.0)]), 1.0), 60.0, "nobody else waits");
    }

    #[test]
    fn each_process_ends_by_its_own_waiting() {
        let replay = replay_of(&[(0.0, 10.0, 0.0), (3.0, 9.0, 4.0)]);
        assert_eq!(
            [0.5, 1.0, 1.25, 2.0].map(|times| ends_s(&replay, times)),
            [10.0, 10.0, 10.0, 13.0]
        );
    }
}

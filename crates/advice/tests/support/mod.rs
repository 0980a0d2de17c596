//! Loads, and machines on which they run as they would on a real one: with other places of files, another seed of the
//! device's delays, and a device that is not quite as it is described. A run is recorded as a trace with durations.

use std::sync::{Arc, Mutex};

use advice::{Advice, Load, Remedy, advise};
use controller::behind::{Mode, Rule, Rules};
use device::Spec;
use sim::scripts::random::Random;
use sim::{FileIndex, Machine, MachineSpec, Op, OpenFile, Script};
use trace::Trace;

pub(crate) const K: u64 = 1 << 10;
pub(crate) const M: u64 = 1 << 20;

/// One read of `bytes` at `offset` in a file, given by its number. Before it, the program computes for `think_us`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) think_us: u64,
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) start_us: u64,
    pub(crate) is_mapped: bool,
    pub(crate) steps: Vec<Step>,
}

/// What programs read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workload {
    /// Paths and sizes, in the order of `readdir`.
    pub(crate) files: Vec<(String, u64)>,
    pub(crate) programs: Vec<Program>,
}

/// Where they run.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) device: Spec,
    pub(crate) memory: u64,
    pub(crate) readahead_kb: u64,
    /// The seed of where files lie and of the device's delays.
    pub(crate) seed: u64,
}

impl Place {
    /// A machine with this device, 2 GiB of memory and the stock window of 128 KiB.
    pub(crate) fn with(device: &str) -> Place {
        let device = device::load(device).expect("in the catalogue");
        Place { device, memory: 2 << 30, readahead_kb: 128, seed: 1 }
    }

    /// The load as an administrator describes it, who has measured the device within 10 %.
    pub(crate) fn known<'a>(&self, trace: &'a Trace) -> Load<'a> {
        Load {
            trace,
            device: self.device.clone(),
            device_error: 0.1,
            memory_bytes: self.memory,
            readahead_kb: self.readahead_kb,
            most_kb: 4096.min(self.memory >> 20),
        }
    }

    /// The machine as it is: the measurement was 5 or 6 % off, and no two accesses take the same time.
    fn machine(&self, remedy: &Remedy) -> Machine {
        let mut device = self.device.clone().with_latency(1.06).with_bandwidth(0.95);
        if let Some(channels) = &mut device.channels {
            (channels.jitter, channels.seed) = (0.2, self.seed);
        }
        if let Some(disk) = &mut device.disk {
            (disk.random_rotation, disk.seed) = (true, self.seed);
        }
        let mut spec: MachineSpec = toml::from_str(MACHINE).expect("valid");
        spec.device_spec = Some(device);
        spec.memory_mb = self.memory as f64 / 1e6;
        spec.readahead_kb = match remedy {
            Remedy::Window { kib } => *kib,
            _ => self.readahead_kb,
        };
        let policy = match remedy {
            Remedy::Leave | Remedy::Window { .. } => "linux-6",
            Remedy::Bowwave | Remedy::DropBehind { .. } | Remedy::Remember => "adaptive",
        };
        let always = |name: &String| Rule {
            path: None,
            cgroup: None,
            command: Some(name.clone()),
            mode: Mode::Always,
        };
        spec.behind = Some(match remedy {
            Remedy::DropBehind { processes } => {
                Rules { mode: Mode::Auto, rules: processes.iter().map(always).collect() }
            }
            _ => Rules::default(),
        });
        spec.build(policy).expect("it exists")
    }
}

const MACHINE: &str = r#"
device = "hdd"
device_gb = 100.0
device_depth = 32
request_kb = 1280
memory_mb = 1000.0
readahead_kb = 128
elevator = "mq-deadline"
reclaim = "use-once-first"
cpu = { call_us = 0.4, page_us = 0.5, page_write_us = 0.6, fault_us = 0.8, fill_us = 1.0, decision_us = 0.2, wake_us = 9.0 }
"#;

/// What a run has shown.
pub(crate) struct Run {
    pub(crate) trace: Trace,
    /// Seconds of all programs together.
    pub(crate) seconds: f64,
}

type Times = Arc<Mutex<Vec<(u64, u64)>>>;

/// Carries out a program's steps, and notes when each began and ended.
struct Recorder {
    steps: std::vec::IntoIter<(OpenFile, bool, Step)>,
    current: Option<(OpenFile, bool, Step)>,
    began: u64,
    next_page: u64,
    is_reading: bool,
    times: Times,
}

impl Script for Recorder {
    fn next(&mut self, now: u64) -> Op {
        if let Some((open, is_mapped, step)) = self.current {
            if !self.is_reading {
                (self.is_reading, self.began, self.next_page) = (true, now, step.offset / 4096);
                if !is_mapped {
                    return Op::Read { open, at: step.offset, bytes: step.bytes };
                }
            }
            if is_mapped && self.next_page * 4096 < step.offset + step.bytes {
                self.next_page += 1;
                return Op::Fault { open, page: self.next_page - 1 };
            }
            self.times.lock().expect("one thread").push((self.began, now));
        }
        self.is_reading = false;
        self.current = self.steps.next();
        self.current.map_or(Op::Exit, |(_, _, step)| Op::Compute { ns: step.think_us * 1000 })
    }
}

impl Workload {
    pub(crate) fn run(&self, place: &Place, remedy: &Remedy) -> Run {
        let mut machine = place.machine(remedy);
        if *remedy == Remedy::Remember {
            let mut first = place.machine(remedy);
            first.begin_start(Vec::new());
            self.start(place, &mut first);
            machine.begin_start(first.remembered());
        }
        self.start(place, &mut machine)
    }

    fn start(&self, place: &Place, machine: &mut Machine) -> Run {
        let files = self.lay_out(machine, place.seed);
        let mut running = Vec::new();
        for program in &self.programs {
            let mut opens: Vec<Option<OpenFile>> = vec![None; files.len()];
            let steps: Vec<_> = program
                .steps
                .iter()
                .map(|step| {
                    let open =
                        *opens[step.file].get_or_insert_with(|| machine.open(files[step.file]));
                    (open, program.is_mapped, *step)
                })
                .collect();
            let times = Times::default();
            let recorder = Recorder {
                steps: steps.into_iter(),
                current: None,
                began: 0,
                next_page: 0,
                is_reading: false,
                times: Arc::clone(&times),
            };
            let number = machine.spawn(program.start_us * 1000, recorder);
            machine.name_process(number, &program.name);
            running.push((program, number, times));
        }
        machine.run();
        let took = |number: usize| machine.outcome(number).ended - machine.outcome(number).started;
        let seconds = running.iter().map(|(_, number, _)| took(*number) as f64 * 1e-9).sum();
        let records: String = running
            .iter()
            .flat_map(|(program, _, times)| {
                let times = times.lock().expect("one thread").clone();
                program.steps.iter().zip(times).map(|(step, time)| self.line(program, step, time))
            })
            .collect();
        Run { trace: self.trace(&records), seconds }
    }

    /// Directories follow one another; in each of them, files have random places.
    fn lay_out(&self, machine: &mut Machine, seed: u64) -> Vec<FileIndex> {
        let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        Random::new(seed ^ 0xbeef).shuffle(&mut order);
        order.sort_by_key(|number| {
            let own = folder(&self.files[*number].0);
            self.files.iter().position(|(path, _)| folder(path) == own)
        });
        let mut files = vec![None; self.files.len()];
        for number in order {
            files[number] = Some(machine.add_file(self.files[number].1));
        }
        let files: Vec<FileIndex> = files.into_iter().flatten().collect();
        let top = machine.add_top();
        let mut known = std::collections::HashMap::new();
        for ((path, _), file) in self.files.iter().zip(&files) {
            let (folder, name) = path.rsplit_once('/').expect("absolute");
            let directory =
                *known.entry(folder).or_insert_with(|| machine.add_directory(top, folder));
            machine.name_file(directory, name, *file);
        }
        files
    }

    fn line(&self, program: &Program, step: &Step, (began, ended): (u64, u64)) -> String {
        let op = if program.is_mapped { "mmap" } else { "read" };
        let (file, us) = (&self.files[step.file].0, |ns: u64| ns as f64 / 1000.0);
        let Program { name, .. } = program;
        format!(
            "{:.3},{name},{file},{op},{},{},{:.3}\n",
            us(began),
            step.offset,
            step.bytes,
            us(ended - began)
        )
    }

    fn trace(&self, records: &str) -> Trace {
        let sizes: String =
            self.files.iter().map(|(name, bytes)| format!("{bytes},{name}\n")).collect();
        let text = format!(
            "file_bytes,file\n{sizes}time_us,process,file,op,offset,bytes,took_us\n{records}"
        );
        Trace::parse(text.as_bytes()).expect("valid")
    }
}

/// One program that reads one file in this order.
pub(crate) fn reader(is_mapped: bool, file_bytes: u64, order: &[(u64, u64)]) -> Workload {
    let step = |&(offset, bytes): &(u64, u64)| Step { think_us: 5, file: 0, offset, bytes };
    let steps = order.iter().map(step).collect();
    let program = Program { name: "reader".into(), start_us: 0, is_mapped, steps };
    Workload { files: vec![("/srv/data".into(), file_bytes)], programs: vec![program] }
}

/// `count` programs that each read a file of `bytes` forward, in reads of `request` bytes.
pub(crate) fn streams(count: usize, bytes: u64, request: u64) -> Workload {
    let program = |file: usize| Program {
        name: format!("cat{file}"),
        start_us: file as u64 * 400,
        is_mapped: false,
        steps: forward(file, bytes, request, 20),
    };
    Workload {
        files: (0..count).map(|n| (format!("/srv/stream{n}"), bytes)).collect(),
        programs: (0..count).map(program).collect(),
    }
}

fn forward(file: usize, bytes: u64, request: u64, think_us: u64) -> Vec<Step> {
    let step = |offset| Step { think_us, file, offset, bytes: request.min(bytes - offset) };
    (0..bytes).step_by(request as usize).map(step).collect()
}

/// A program that reads all files of a tree, directory by directory, in the order of `readdir`.
pub(crate) fn walk(directories: usize, files: usize, bytes: u64) -> Workload {
    let all = directories * files;
    let steps = (0..all).flat_map(|file| forward(file, bytes, 64 * K, 30)).collect();
    Workload {
        files: (0..all).map(|n| (format!("/srv/{}/file{n}", n / files), bytes)).collect(),
        programs: vec![Program { name: "grep".into(), start_us: 0, is_mapped: false, steps }],
    }
}

/// A program that reads all files of a tree sorted by name, while `readdir` has another order.
pub(crate) fn sorted_walk(directories: usize, files: usize, bytes: u64, seed: u64) -> Workload {
    let mut load = walk(directories, files, bytes);
    let mut names: Vec<String> =
        (0..directories * files).map(|n| format!("/srv/{:03}/file{n:05}", n / files)).collect();
    Random::new(seed).shuffle(&mut names);
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|number| &names[*number]);
    load.programs[0].steps =
        order.into_iter().flat_map(|file| forward(file, bytes, 64 * K, 30)).collect();
    load.files = names.into_iter().map(|name| (name, bytes)).collect();
    load
}

/// A program that starts: it reads `count` small files, in an order that no folder has, and of each folder only a few.
pub(crate) fn imports(count: usize, seed: u64) -> Workload {
    let mut random = Random::new(seed);
    let (all, folders) = (count * 3, count / 8);
    let path = |n: usize| format!("/lib/package{}/module{n}.pyc", n % folders);
    let files: Vec<(String, u64)> =
        (0..all).map(|n| (path(n), 2 * K + random.below(38 * K))).collect();
    let mut order: Vec<usize> = (0..all).filter(|n| n / folders % 3 == 0).collect();
    random.shuffle(&mut order);
    let steps = order.into_iter().flat_map(|file| forward(file, files[file].1, 64 * K, 400));
    let (name, steps) = ("python3".into(), steps.collect());
    Workload { files, programs: vec![Program { name, start_us: 0, is_mapped: false, steps }] }
}

/// A database that reads its working set again and again, and a backup of files that are each much smaller than memory.
pub(crate) fn backup_beside_working_set(working_set: u64, backup: u64, seed: u64) -> Workload {
    const FILE: u64 = 4 * M;
    const READ: u64 = 16 * K;
    const LOOKUPS: u64 = 4000;
    let mut random = Random::new(seed);
    let mut database = forward(0, working_set, 128 * K, 20);
    database.extend((0..LOOKUPS).map(|_| {
        let offset = random.below(working_set / READ) * READ;
        Step { think_us: 4000, file: 0, offset, bytes: READ }
    }));
    let copied = backup / FILE;
    let mut files = vec![("/srv/db".to_owned(), working_set)];
    files.extend((0..copied).map(|n| (format!("/home/file{n}"), FILE)));
    let think_us = 14_000_000 * 128 * K / backup;
    let steps = (1..=copied as usize).flat_map(|n| forward(n, FILE, 128 * K, think_us)).collect();
    let program = |name: &str, start_us, steps| Program {
        name: name.into(),
        start_us,
        is_mapped: false,
        steps,
    };
    Workload {
        files,
        programs: vec![program("database", 0, database), program("backup", 3_000_000, steps)],
    }
}

/// A predicted saving may be off by this share of the actual one.
const MOST_ERROR: f64 = 0.25;

/// Another remedy may be better by this share of today's time.
const MATTERS: f64 = 0.1;

pub(crate) fn advice_for(load: &Workload, place: &Place) -> (Advice, f64) {
    let today = load.run(place, &Remedy::Leave);
    let advice = advise(&place.known(&today.trace), &mut |_| {}).expect("it can be simulated");
    (advice, today.seconds)
}

/// Checks that the first remedy is of this kind, saves what is predicted, and is hardly slower than any other one.
pub(crate) fn check(name: &str, load: &Workload, place: &Place, is_right: fn(&Remedy) -> bool) {
    let (advice, today) = advice_for(load, place);
    let first = advice.first();
    let after: Vec<f64> =
        advice.predictions.iter().map(|it| load.run(place, &it.remedy).seconds).collect();
    let saved = today - after[0];
    let about = format!("{name}: {today:.3} s, then {after:.3?}\n{}", shown(&advice));
    println!("{about}");
    assert!(is_right(&first.remedy), "{about}");
    let error = (first.saved.expected - saved).abs();
    assert!(error <= MOST_ERROR * saved.abs(), "{about}");
    assert!((first.saved.least..=first.saved.most).contains(&saved), "{about}");
    let best = after.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(after[0] - best <= MATTERS * today, "{about}");
}

pub(crate) fn shown(advice: &Advice) -> String {
    let line = |it: &advice::Prediction| {
        format!(
            "  {:?}: {:.3?}, saves {:.3?}, waits {:.3} s\n",
            it.remedy, it.seconds, it.saved, it.waited_s
        )
    };
    advice.predictions.iter().map(line).collect()
}

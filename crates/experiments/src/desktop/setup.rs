//! The machine of one row, its files and its program.

use readahead::{Nanos, PAGE_BYTES};
use sim::scripts::programs::{Input, Program};
use sim::{Export, FileIndex, Listed, Machine, Op, Parts, Server, Service};
use sim::{MachineError, MachineSpec};

use super::super::experiment::{Experiment, ExperimentError};
use super::row::{Files, Mount, Task};
use super::{Row, Workload};

/// Where a file is on a device.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    bytes: u64,
}

/// A program and the files that it reads; a comparison has two copies of them.
struct Job {
    task: Task,
    program: Program,
    sizes: Vec<u64>,
    /// In an image, one file in this many is the page of a directory, followed by the files in it. All directories come
    /// before all files, as in ISO 9660.
    directory_every: Option<usize>,
    /// Position of the first copy on the disk, and distance of the second one from it.
    at: u64,
    apart: u64,
    /// If the files are on the disk itself, the second copy is cached.
    is_half_cached: bool,
}

impl Job {
    fn of(workload: &Workload, row: &Row) -> Result<Self, ExperimentError> {
        let mb = |mb: f64| vec![(mb * 1e6) as u64];
        let directory_files = workload.looped.directory_files.get();
        let (task, files) = row.task()?;
        let sizes = match files {
            Files::Lib => workload.lib.sizes(),
            Files::Image => {
                let sizes = workload.image.sizes();
                let directories = sizes.chunks(directory_files);
                directories.flat_map(|files| [&[PAGE_BYTES], files].concat()).collect()
            }
            Files::Debian => mb(workload.debian_mb),
            Files::Dsl => mb(workload.dsl_mb),
            Files::Sparse => mb(workload.sparse_mb),
            Files::Backward => mb(workload.backward_mb),
        };
        let program = match (task, files) {
            (Task::Scan, Files::Lib | Files::Image) => workload.grep,
            (Task::Scan, _) => workload.dd,
            (Task::Compare, _) => workload.diff,
            (Task::Backward { read_kb }, _) => {
                Program { read_kb, read_us: workload.backward_read_us, ..workload.dd }
            }
        };
        let is_dsl = files == Files::Dsl;
        let at = if is_dsl { (workload.dsl_at_gb * 1e9) as u64 } else { 0 };
        let at = at / PAGE_BYTES * PAGE_BYTES;
        let apart = workload.apart_mib << 20;
        let is_half_cached = is_dsl && task == Task::Compare;
        let directory_every = (files == Files::Image).then_some(directory_files + 1);
        Ok(Job { task, program, sizes, directory_every, at, apart, is_half_cached })
    }

    fn copies(&self) -> u64 {
        if self.task == Task::Compare { 2 } else { 1 }
    }

    /// Lays out the copies, one file after the other, with `gap` bytes in between.
    fn places(&self, gap: u64) -> Vec<Vec<Place>> {
        let is_directory =
            |index: usize| self.directory_every.is_some_and(|every| index.is_multiple_of(every));
        let directories = (0..self.sizes.len()).filter(|index| is_directory(*index)).count() as u64;
        let copy = |number| {
            let mut directory_at = self.at + number * (self.apart + gap * self.sizes.len() as u64);
            let mut file_at = directory_at + directories * PAGE_BYTES;
            let place = |(index, bytes): (usize, &u64)| {
                let at = if is_directory(index) { &mut directory_at } else { &mut file_at };
                let place = Place { at: *at, bytes: *bytes };
                *at += bytes.next_multiple_of(PAGE_BYTES) + gap;
                place
            };
            self.sizes.iter().enumerate().map(place).collect()
        };
        (0..self.copies()).map(copy).collect()
    }

    /// Runs the program over the copies' files from `start` on. Returns the seconds that it takes.
    fn run(&self, machine: &mut Machine, copies: &[Vec<FileIndex>], start: Nanos) -> f64 {
        let mut inputs = copies.iter().map(|files| self.inputs(machine, files));
        let first = inputs.next().unwrap_or_default();
        let second = inputs.next().unwrap_or_default();
        drop(inputs);
        let script: Box<dyn Iterator<Item = Op> + Send> = match self.task {
            Task::Scan => Box::new(self.program.scan(first)),
            Task::Backward { .. } => Box::new(first.into_iter().flat_map({
                let program = self.program;
                move |input| program.backward(input)
            })),
            Task::Compare => {
                let pairs = first.into_iter().zip(second).map(|(a, b)| [a, b]).collect();
                Box::new(self.program.compare(pairs))
            }
        };
        finish(machine, start, script)
    }

    /// Reads a copy's files, so that they are cached. Returns when that is over.
    fn warm(&self, machine: &mut Machine, files: &[FileIndex]) -> Nanos {
        let inputs = self.inputs(machine, files);
        let seconds = finish(machine, 0, Box::new(self.program.scan(inputs)));
        (seconds * 1e9) as Nanos
    }

    fn inputs(&self, machine: &mut Machine, files: &[FileIndex]) -> Vec<Input> {
        let input =
            |(file, bytes): (&FileIndex, &u64)| Input { open: machine.open(*file), bytes: *bytes };
        files.iter().zip(&self.sizes).map(input).collect()
    }
}

/// Runs a script from `start` on. Returns the seconds that it takes.
fn finish(machine: &mut Machine, start: Nanos, script: Box<dyn Iterator<Item = Op> + Send>) -> f64 {
    let process = machine.spawn(start, Listed(script));
    machine.run();
    let outcome = machine.outcome(process);
    (outcome.ended - outcome.started) as f64 * 1e-9
}

/// Seconds of a row's task under the policy of a column.
pub(super) fn seconds(
    experiment: &Experiment<Workload>,
    row: &Row,
    column: &str,
    window_kb: u64,
) -> Result<f64, ExperimentError> {
    let workload = &experiment.workload;
    let mut spec = experiment.machine.clone();
    spec.readahead_kb = window_kb;
    let mut job = Job::of(workload, row)?;
    // A sparse file has no blocks on the disk.
    let is_sparse = row.task()?.1 == Files::Sparse;
    let bench = Bench { experiment, spec, column };
    match row.mount()? {
        Mount::Nfs { rsize, is_again } => {
            if is_again && row.task()?.1 == Files::Lib {
                job.sizes = workload.nfs.lib_again.sizes();
            }
            job.program.file_us += workload.nfs.file_us;
            bench.over_nfs(&job, rsize)
        }
        Mount::Image => bench.in_image(&job),
        Mount::Disk => bench.local(&job, is_sparse),
    }
}

/// What all runs of one row and column have in common.
struct Bench<'a> {
    experiment: &'a Experiment<Workload>,
    spec: MachineSpec,
    column: &'a str,
}

impl Bench<'_> {
    /// The policy of the column on a machine with this role, with a window of `window` pages.
    fn policy(&self, role: &str, window: u64) -> String {
        let key = format!("{}{role}", self.column);
        let policies = &self.experiment.policies;
        let name = policies.get(&key).or_else(|| policies.get(self.column));
        let name = name.map_or(self.column, String::as_str);
        if name.contains(':') { format!("{name},max={window}") } else { name.to_owned() }
    }

    fn window(&self) -> u64 {
        self.spec.readahead_kb * 1024 / PAGE_BYTES
    }

    fn local(&self, job: &Job, is_sparse: bool) -> Result<f64, ExperimentError> {
        let mut machine = self.spec.build(&self.policy("", self.window()))?;
        let add = |place: &Place| match is_sparse {
            true => machine.add_sparse_file(place.bytes),
            false => machine.add_file_at(place.bytes, place.at),
        };
        let files = each(&job.places(0), add);
        let start = match files.get(1).filter(|_| job.is_half_cached) {
            Some(second) => job.warm(&mut machine, second),
            None => 0,
        };
        Ok(job.run(&mut machine, &files, start))
    }

    /// Both ends of the mount are this machine: each has half of its memory for its page cache.
    fn over_nfs(&self, job: &Job, rsize: u64) -> Result<f64, ExperimentError> {
        let nfs = &self.experiment.workload.nfs;
        let mut spec = self.halved();
        spec.cpu.page_us = nfs.server_page_us;
        let mut server = spec.build(&self.policy(" nfsd", self.window()))?;
        let on_disk = job.places(0);
        let exported = each(&on_disk, |place| server.add_file_at(place.bytes, place.at));
        // A page between files keeps requests of two files from being merged into one.
        let mounted = job.places(PAGE_BYTES);
        let exports = mounted.iter().flatten().zip(exported.iter().flatten());
        let service = Service {
            workers: vec![nfs.threads],
            read_bytes: rsize,
            request_ns: (nfs.request_us * 1e3) as Nanos,
            is_stateless: self.column == "adaptive",
        };
        let exports = exports.map(|(place, file)| Export { at: place.at, file: *file, lane: 0 });
        let server = Server::new(server, service, exports.collect());
        let window = nfs.client_requests * rsize / PAGE_BYTES;
        let initial = (rsize / PAGE_BYTES).min(4);
        let mut policy = self.policy("", window);
        if policy.contains(':') {
            policy += &format!(",initial={initial}");
        }
        let mut client = self.client(server, &policy, window, nfs.slots, rsize)?;
        let files = each(&mounted, |place| client.add_file_at(place.bytes, place.at));
        Ok(job.run(&mut client, &files, 0))
    }

    /// A file system in a file on the disk, one loop device for each copy.
    fn in_image(&self, job: &Job) -> Result<f64, ExperimentError> {
        let looped = &self.experiment.workload.looped;
        let mut server = self.halved().build(&self.policy(" loop", self.window()))?;
        let places = job.places(0);
        let mut exports = Vec::new();
        for (lane, copy) in places.iter().enumerate() {
            let at = job.at + lane as u64 * job.apart;
            let end = copy.iter().map(|place| place.at + place.bytes).max().unwrap_or(at);
            exports.push(Export { at, file: server.add_file_at(end - at, at), lane });
        }
        let service = Service {
            workers: vec![1; exports.len()],
            read_bytes: looped.read_kb << 10,
            request_ns: 0,
            is_stateless: false,
        };
        let server = Server::new(server, service, exports);
        let policy = self.policy("", self.window());
        let request = looped.request_kb << 10;
        // A loop device queues without bound and merges nothing.
        let mut client = self.client(server, &policy, self.window(), usize::MAX, request)?;
        let files = each(&places, |place| client.add_file_at(place.bytes, place.at));
        Ok(job.run(&mut client, &files, 0))
    }

    fn halved(&self) -> MachineSpec {
        MachineSpec { memory_mb: self.spec.memory_mb / 2.0, ..self.spec.clone() }
    }

    /// A machine whose device is a server.
    fn client(
        &self,
        server: Server,
        policy: &str,
        window: u64,
        depth: usize,
        request: u64,
    ) -> Result<Machine, ExperimentError> {
        let elevator = iosched::by_name("noop", (request / 512) as u32)
            .ok_or_else(|| MachineError::Elevator("noop".into()))?;
        Ok(Machine::new(Parts {
            device: Box::new(server),
            elevator,
            device_depth: depth,
            request_pages: request / PAGE_BYTES,
            kernel_window: window as u32,
            ..self.halved().parts(policy)?
        }))
    }
}

/// Adds each place's file.
fn each(copies: &[Vec<Place>], mut add: impl FnMut(&Place) -> FileIndex) -> Vec<Vec<FileIndex>> {
    copies.iter().map(|copy| copy.iter().map(&mut add).collect()).collect()
}

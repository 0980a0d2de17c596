//! A machine that serves another: the exports of an NFS server, or image files behind loop devices.
//!
//! ```text
//!   client: page cache, its own policy --(requests: byte ranges of its "device")--+
//!                                                                                v
//!   server:   lane (queue) --> workers read the exported file --> page cache, policy, disk
//! ```
//!
//! To the client it is a [`Model`] like any device. One worker of its export's lane reads each request: the threads of
//! an NFS server share a lane, a loop device has a separate worker. Both machines keep their own time. The client
//! advances the server to each of the server's events.

use std::collections::VecDeque;

use device::{Completion, Counters, Model};
use readahead::{Nanos, OpenFileId, PAGE_BYTES};

use crate::block::{NO_WAITER, earlier};
use crate::machine::Machine;
use crate::process::{Doing, FileIndex, Listed, Op, OpenFile, Outcome, Process};

/// A file of the server as the client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// First byte on the client's device.
    pub at: u64,
    /// The server's file.
    pub file: FileIndex,
    /// The lane of the workers that serve it.
    pub lane: usize,
}

/// How requests are served.
#[derive(Clone, Debug)]
pub struct Service {
    /// Workers of each lane.
    pub workers: Vec<usize>,
    /// Largest single read of a worker.
    pub read_bytes: u64,
    /// Processor time of a worker per request, before it reads. The workers of a lane share one processor: the next one
    /// begins when the last one has finished, or would have without waiting.
    pub request_ns: Nanos,
    /// Whether every request is a new open file. Otherwise a request begins with a copy of the state that its file's
    /// last finished request left, as `nfsd` keeps it; requests served side by side begin with the same state.
    pub is_stateless: bool,
}

/// A machine behind a [`Model`].
pub struct Server {
    machine: Machine,
    service: Service,
    /// Each with the open file of its last finished request.
    exports: Vec<(Export, Option<OpenFile>)>,
    lanes: Vec<Lane>,
    workers: Vec<Worker>,
    counters: Counters,
    in_flight: usize,
}

/// The requests of some exports, which share workers and a processor.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<device::Request>,
    /// Until when its processor is busy with the last request.
    busy_until: Nanos,
    idle_workers: usize,
}

impl Lane {
    /// When the next request begins, if one waits and a worker is idle.
    fn next_start(&self) -> Option<Nanos> {
        (self.idle_workers > 0 && !self.waiting.is_empty()).then_some(self.busy_until)
    }
}

#[derive(Debug)]
struct Worker {
    process: usize,
    lane: usize,
    job: Option<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    request: device::Request,
    export: usize,
    open: OpenFile,
}

impl Server {
    /// An idle server, with `exports` in the order of their places, each as long as its file.
    pub fn new(mut machine: Machine, service: Service, exports: Vec<Export>) -> Self {
        let lane = |workers: &usize| Lane { idle_workers: *workers, ..Lane::default() };
        let lanes = service.workers.iter().map(lane).collect();
        let mut workers = Vec::new();
        for (lane, count) in service.workers.iter().enumerate() {
            workers.extend((0..*count).map(|_| Worker {
                process: machine.add_worker(),
                lane,
                job: None,
            }));
        }
        Server {
            machine,
            service,
            exports: exports.into_iter().map(|export| (export, None)).collect(),
            lanes,
            workers,
            counters: Counters::default(),
            in_flight: 0,
        }
    }

    /// The export with this byte of the client's device.
    fn export_of(&self, offset: u64) -> usize {
        self.exports.partition_point(|(export, _)| export.at <= offset).saturating_sub(1)
    }

    /// Gives the request that has waited longest in a lane to an idle worker, if it is time.
    fn start(&mut self, now: Nanos, lane: usize) {
        if self.lanes[lane].next_start().is_none_or(|at| at > now) {
            return;
        }
        let is_idle = |worker: &Worker| worker.lane == lane && worker.job.is_none();
        let Some(index) = self.workers.iter().position(is_idle) else { return };
        let Some(request) = self.lanes[lane].waiting.pop_front() else { return };
        let export = self.export_of(request.offset);
        let (Export { file, .. }, left) = self.exports[export];
        let open = self.machine.open(file);
        if let Some(left) = left.filter(|_| !self.service.is_stateless) {
            self.machine.copy_state(now, left, open);
        }
        let job = Job { request, export, open };
        self.lanes[lane].busy_until = now + self.longest_without_waiting(&request);
        self.lanes[lane].idle_workers -= 1;
        self.workers[index].job = Some(job);
        let script = self.script(job);
        self.machine.assign(now, self.workers[index].process, script);
    }

    /// Nanoseconds after which a worker has finished a request, unless it waits for the disk by then.
    fn longest_without_waiting(&self, request: &device::Request) -> Nanos {
        let Service { read_bytes, request_ns, .. } = self.service;
        let cpu = &self.machine.cpu;
        // There is a decision when a page is absent and when it is marked; a call comes at its beginning.
        let calls = request.bytes.div_ceil(read_bytes) * (cpu.call + cpu.decision);
        let pages = request.bytes.div_ceil(PAGE_BYTES) * (cpu.page + 2 * cpu.decision);
        request_ns + calls + pages
    }

    /// A worker's reads for a job.
    fn script(&self, job: Job) -> impl Iterator<Item = Op> + Send + 'static {
        let Service { read_bytes, request_ns, .. } = self.service;
        let from = job.request.offset - self.exports[job.export].0.at;
        let end = from + job.request.bytes;
        let read = move |at: u64| Op::Read { open: job.open, at, bytes: read_bytes.min(end - at) };
        let reads = (from..end).step_by(read_bytes as usize).map(read);
        std::iter::once(Op::Compute { ns: request_ns }).chain(reads).chain([Op::Park])
    }

    /// Takes the finished jobs from their workers, and appends their completions.
    fn collect(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            let Some(job) = worker.job.filter(|_| self.machine.is_parked(worker.process)) else {
                continue;
            };
            worker.job = None;
            self.lanes[worker.lane].idle_workers += 1;
            self.exports[job.export].1 = Some(job.open);
            self.in_flight -= 1;
            self.counters.requests += 1;
            self.counters.bytes += job.request.bytes;
            done.push(Completion { id: job.request.id, at: now });
        }
    }
}

impl Model for Server {
    fn submit(&mut self, now: Nanos, request: device::Request) {
        let lane = self.exports[self.export_of(request.offset)].0.lane;
        self.in_flight += 1;
        let lane = &mut self.lanes[lane];
        lane.waiting.push_back(request);
        lane.busy_until = lane.busy_until.max(now);
    }

    fn next_event(&self) -> Option<Nanos> {
        let starts = self.lanes.iter().filter_map(Lane::next_start).min();
        earlier(starts, self.machine.next_event())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.machine.limit = now;
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            // A request that finishes when another one begins leaves its state first.
            if self.machine.next_event() == Some(at) {
                self.machine.turn(at);
                self.collect(now, done);
            } else {
                (0..self.lanes.len()).for_each(|lane| self.start(now, lane));
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Requests and bytes of the client, and seeks of the server's own disk.
    fn counters(&self) -> Counters {
        Counters { seeks: self.machine.device_counters().seeks, ..self.counters }
    }
}

impl Machine {
    /// Adds a process that waits for a script.
    fn add_worker(&mut self) -> usize {
        self.processes.push(Process {
            name: String::new(),
            script: Box::new(Listed(std::iter::empty())),
            doing: Doing::Parked,
            next_waiter: NO_WAITER,
            waits_since: 0,
            outcome: Outcome::default(),
        });
        self.processes.len() - 1
    }

    /// Gives an open file the state of another one of the same file.
    fn copy_state(&mut self, now: Nanos, from: OpenFile, to: OpenFile) {
        self.opens[to.0 as usize] = self.opens[from.0 as usize];
        let [from, to] = [from, to].map(|open| OpenFileId(u64::from(open.0)));
        self.kernel.copy_state(from, to, now);
    }

    /// Gives a worker a script.
    fn assign(
        &mut self,
        at: Nanos,
        worker: usize,
        script: impl Iterator<Item = Op> + Send + 'static,
    ) {
        let process = &mut self.processes[worker];
        process.script = Box::new(Listed(script));
        process.doing = Doing::Next;
        self.wake_at(at, worker as u32);
    }

    fn is_parked(&self, worker: usize) -> bool {
        matches!(self.processes[worker].doing, Doing::Parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuCosts, Parts, Reclaim};

    const FILE: u64 = 1 << 20;

    /// A server of two files for a client whose device ends the first file and begins the second
    /// at 2 MiB.
    fn server(workers: Vec<usize>, is_stateless: bool) -> Server {
        let spec = device::load("st3250820a").expect("the catalogue has it");
        let mut machine = Machine::new(Parts {
            memory_pages: 10_000,
            kernel: historical::by_name("stock-2.6.17", 64).expect("it is known"),
            on_top: None,
            kernel_window: 256,
            elevator: iosched::by_name("noop", 1024).expect("it is known"),
            device: spec.build(250 << 30),
            cost: readahead::DeviceCost { latency_s: 0.01, bandwidth: 7e7, concurrency: 1.0 },
            device_depth: 1,
            request_pages: 128,
            reclaim: Reclaim::Linux26,
            cpu: CpuCosts::default(),
        });
        let last = workers.len() - 1;
        let exports = [(0, 0), (2 * FILE, last)].map(|(at, lane)| {
            let file = machine.add_file(FILE);
            Export { at, file, lane }
        });
        let service = Service { workers, read_bytes: 4096, request_ns: 1000, is_stateless };
        Server::new(machine, service, exports.to_vec())
    }

    /// Serves requests that come at once. Returns their ids in the order of completion.
    fn serve(server: &mut Server, requests: &[(u64, u64)]) -> Vec<u64> {
        for (id, (offset, bytes)) in requests.iter().enumerate() {
            server.submit(0, device::Request { id: id as u64, offset: *offset, bytes: *bytes });
        }
        let mut done = Vec::new();
        while let Some(now) = server.next_event() {
            server.advance(now, &mut done);
        }
        assert_eq!(server.in_flight(), 0);
        assert!(done.is_sorted_by_key(|completion| completion.at));
        done.iter().map(|completion| completion.id).collect()
    }

    #[test]
    fn a_request_reads_its_part_of_its_file() {
        let mut server = server(vec![1], false);
        let done = serve(&mut server, &[(8192, 4096), (2 * FILE + 40_960, 8192)]);
        assert_eq!(done, [0, 1]);
        assert_eq!((server.counters().requests, server.counters().bytes), (2, 12_288));
        let cached = |file, page| server.machine.cache.lookup(file, page).is_some();
        assert!(cached(0, 2) && cached(1, 10) && cached(1, 11) && !cached(0, 10));
    }

    #[test]
    fn one_worker_serves_in_order_and_lanes_do_not_wait_for_each_other() {
        let requests = [(0, FILE), (512 << 10, 4096), (2 * FILE, 4096)];
        assert_eq!(serve(&mut server(vec![1], false), &requests), [0, 1, 2]);
        assert_eq!(serve(&mut server(vec![1, 1], false), &requests), [2, 0, 1]);
    }

    #[test]
    fn state_handed_on_makes_requests_a_sequence() {
        let requests: Vec<_> = (0..32).map(|i| (i * 8192, 8192)).collect();
        let pages_read = |is_stateless| {
            let mut server = server(vec![1], is_stateless);
            serve(&mut server, &requests);
            server.machine.device_counters().bytes / 4096
        };
        let (handed_on, lost) = (pages_read(false), pages_read(true));
        assert!(handed_on > 100 && lost < 70, "64 pages wanted, {handed_on} and {lost} read");
    }

    #[test]
    fn a_request_beside_another_begins_with_the_state_before_either() {
        let mut server = server(vec![2], false);
        serve(&mut server, &[(0, 4096)]);
        let left = server.exports[0].1;
        server.submit(0, device::Request { id: 1, offset: 40 * 4096, bytes: 4096 });
        server.submit(0, device::Request { id: 2, offset: 80 * 4096, bytes: 4096 });
        [1 << 40, 1 << 41].into_iter().for_each(|now| server.start(now, 0));
        let opens = server.workers.iter().map(|worker| worker.job.expect("it has one").open);
        let opens: Vec<_> = opens.collect();
        assert_ne!(opens[0], opens[1]);
        assert_eq!(server.exports[0].1, left, "until one of them has finished");
        let previous = |open: OpenFile| server.machine.opens[open.0 as usize].previous;
        assert!(opens.into_iter().all(|open| previous(open) == Some(0)));
    }
}

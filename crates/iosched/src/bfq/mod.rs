//! `bfq`: budget fair queueing, as far as it matters for reads.
//!
//! Each process has a queue. One queue is *in service*: it has the device to itself until it has
//! used up its budget of sectors.
//!
//! ```text
//!   virtual time (sectors served to each)  ------------------------------>
//!   process 1   start |=========== budget ===========| finish
//!   process 2         start |======= budget =======| finish     <- smallest finish: in service
//!   process 3                                 start |==== ...   <- not eligible yet
//!                          ^ now
//! ```
//!
//! * **Choice** (B-WF2Q+). Virtual time advances by the sectors served, divided among the competing
//!   queues. A queue asks for a budget: it starts where its last service ended, but not in the past,
//!   and would finish a budget later. Among queues that may have started, the one with the earliest
//!   finish is served. If none may, virtual time jumps to the earliest start.
//! * **Service** ends when the next request exceeds the budget, after `timeout`, or when the queue is
//!   empty and nothing arrives within `slice_idle` of its last completion. The device idles that
//!   long for it, unless the queue is seeky or its process thinks for longer.
//! * **Charge.** A queue pays for the sectors it received. A seeky queue, or one that ran into the
//!   timeout, pays for its time if that is more: if it used half of the timeout, it pays half of
//!   its budget.
//! * **Within a queue**, requests are served in one sweep with short seeks back, an expired one
//!   first.
//! * Asynchronous writes share one queue, for which the device never idles.
//!
//! Simplified: all weights are equal. The budget is constant; the kernel adapts it to use and to
//! the device's measured rate. Interactive and soft real-time processes get no preference.
//! Cooperating queues are not merged. A scan over the processes replaces the kernel's tree. The
//! rules and the constants, except `slice_idle` and the expiry times, are recalled from memory.

mod parameters;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::request::{Command, Nanos, ProcessId, Request, RequestId, Sector};
use crate::sorted::Ticket;
use crate::sweep;
use crate::{Dispatch, Elevator, UNTIL_COMPLETION};

use queue::Queue;

pub use parameters::BfqParameters;

/// The owner of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Process(ProcessId),
    /// All asynchronous writes share one queue.
    Writeback,
}

/// The queue in service, and its service so far.
#[derive(Clone, Copy, Debug)]
struct Service {
    owner: Owner,
    since: Nanos,
    /// Sectors that it may receive, and those that it has received.
    budget: u64,
    served: u64,
}

/// What the queue in service offers next.
enum Offer {
    Serve(Ticket),
    /// Nothing until then: idle.
    Idle(Nanos),
    /// The service is over; the queue pays for this many sectors.
    Expired(u64),
}

/// The elevator.
#[derive(Debug)]
pub struct Bfq {
    queues: BTreeMap<Owner, Queue>,
    service: Option<Service>,
    /// In sectors, as in the diagram above.
    virtual_time: u64,
    /// End of the last command.
    head: Sector,
    /// Commands at the device, by their first request.
    in_flight: Vec<(RequestId, Owner)>,
    parameters: BfqParameters,
    max_sectors: u32,
    queued: usize,
}

impl Bfq {
    /// With nothing queued. It merges requests into commands of up to `max_sectors`, the device's largest request.
    pub fn new(max_sectors: u32, parameters: BfqParameters) -> Self {
        Bfq {
            queues: BTreeMap::new(),
            service: None,
            virtual_time: 0,
            head: 0,
            in_flight: Vec::new(),
            parameters,
            max_sectors,
            queued: 0,
        }
    }

    /// Among queues that may have started, the one with the earliest finish.
    fn elect(&mut self) -> Option<Owner> {
        let busy = || self.queues.iter().filter(|(_, queue)| queue.is_busy);
        let earliest = busy().map(|(_, queue)| queue.start).min()?;
        self.virtual_time = self.virtual_time.max(earliest);
        busy()
            .filter(|(_, queue)| queue.start <= self.virtual_time)
            .min_by_key(|&(owner, queue)| (queue.finish, queue.start, *owner))
            .map(|(owner, _)| *owner)
    }

    /// The queue in service, or else the elected one.
    fn service(&mut self, now: Nanos) -> Option<Service> {
        if self.service.is_none() {
            let owner = self.elect()?;
            let budget = self.queues.get(&owner).map_or(0, |queue| self.budget(queue));
            self.service = Some(Service { owner, since: now, budget, served: 0 });
        }
        self.service
    }

    /// The budget, raised if the next request needs more.
    fn budget(&self, queue: &Queue) -> u64 {
        let next = self.next(queue, 0).and_then(|ticket| queue.requests.get(ticket));
        let least = next.map_or(0, |queued| queued.command.sectors);
        u64::from(self.parameters.budget.max(least))
    }

    /// The next command of a queue: an expired one, or the next of the sweep.
    fn next(&self, queue: &Queue, now: Nanos) -> Option<Ticket> {
        let oldest = queue.requests.oldest()?;
        let is_sync = queue.requests.get(oldest)?.is_sync;
        let age = if is_sync { self.parameters.sync_expire } else { self.parameters.async_expire };
        let overdue = queue.requests.overdue(now, age);
        overdue.or_else(|| sweep::next(&queue.requests, self.head, self.parameters.most_back))
    }

    /// Decides what to do for the queue in service.
    fn offer(&self, now: Nanos, service: &Service, queue: &Queue) -> Offer {
        let BfqParameters { timeout, slice_idle, budget, .. } = self.parameters;
        let elapsed = now.saturating_sub(service.since);
        let by_time = u64::from(budget) * elapsed.min(timeout) / timeout.max(1);
        let for_time = service.served.max(by_time);
        let charge = if queue.is_seeky() { for_time } else { service.served };
        if elapsed >= timeout && service.served > 0 {
            return Offer::Expired(for_time);
        }
        if let Some(ticket) = self.next(queue, now) {
            let sectors = queue.requests.get(ticket).map_or(0, |queued| queued.command.sectors);
            let is_affordable = service.served + u64::from(sectors) <= service.budget;
            // The first request is always served, however small the budget is now.
            let is_first = service.served == 0;
            return if is_affordable || is_first {
                Offer::Serve(ticket)
            } else {
                Offer::Expired(charge)
            };
        }
        if service.owner == Owner::Writeback || !queue.is_worth_idling(slice_idle) {
            return Offer::Expired(charge);
        }
        if queue.in_flight > 0 {
            return Offer::Idle(UNTIL_COMPLETION);
        }
        let until = queue.last_completion.unwrap_or(service.since).saturating_add(slice_idle);
        if now < until { Offer::Idle(until) } else { Offer::Expired(charge) }
    }

    /// Ends a service. The queue asks for its next one.
    fn expire(&mut self, service: Service, charge: u64) {
        self.service = None;
        let competing = self.queues.values().filter(|queue| queue.is_busy).count().max(1);
        self.virtual_time += service.served / competing as u64;
        let budget = u64::from(self.parameters.budget);
        if let Some(queue) = self.queues.get_mut(&service.owner) {
            queue.finish = queue.start + charge;
            queue.is_busy = false;
            if !queue.requests.is_empty() {
                activate(queue, 0, budget);
            }
        }
        self.forget_if_gone(service.owner);
    }

    fn serve(&mut self, owner: Owner, ticket: Ticket) -> Option<Command> {
        let queue = self.queues.get_mut(&owner)?;
        let command = queue.requests.remove(ticket)?.command;
        queue.in_flight += 1;
        self.head = command.end();
        self.queued -= command.requests.count();
        self.in_flight.push((command.requests.first(), owner));
        if let Some(service) = &mut self.service {
            service.served += u64::from(command.sectors);
        }
        Some(command)
    }

    fn forget_if_gone(&mut self, owner: Owner) {
        let is_gone = |queue: &Queue| queue.exited && !queue.is_busy && queue.in_flight == 0;
        if self.queues.get(&owner).is_some_and(is_gone) {
            self.queues.remove(&owner);
        }
    }
}

/// Lets a queue compete, from the end of its last service but not before `earliest`.
fn activate(queue: &mut Queue, earliest: u64, budget: u64) {
    queue.is_busy = true;
    queue.start = queue.finish.max(earliest);
    queue.finish = queue.start + budget;
}

impl Elevator for Bfq {
    fn name(&self) -> &'static str {
        "bfq"
    }

    fn add(&mut self, now: Nanos, request: Request) {
        self.queued += 1;
        let owner =
            if request.is_sync { Owner::Process(request.process) } else { Owner::Writeback };
        let queue = self.queues.entry(owner).or_default();
        queue.observe(now, &request, self.parameters.slice_idle);
        if queue.requests.merge(&request, self.max_sectors).is_none() {
            queue.requests.insert(now, &request);
        }
        if !queue.is_busy {
            activate(queue, self.virtual_time, u64::from(self.parameters.budget));
        }
    }

    fn dispatch(&mut self, now: Nanos) -> Dispatch {
        while self.queued > 0
            && let Some(service) = self.service(now)
            && let Some(queue) = self.queues.get(&service.owner)
        {
            match self.offer(now, &service, queue) {
                Offer::Idle(until) => return Dispatch::WaitUntil(until),
                Offer::Expired(charge) => self.expire(service, charge),
                Offer::Serve(ticket) => {
                    let command = self.serve(service.owner, ticket);
                    return command.map_or(Dispatch::Empty, Dispatch::Command);
                }
            }
        }
        Dispatch::Empty
    }

    fn completed(&mut self, now: Nanos, command: &Command) {
        let first = command.requests.first();
        let Some(place) = self.in_flight.iter().position(|&(id, _)| id == first) else {
            return;
        };
        let (_, owner) = self.in_flight.swap_remove(place);
        if let Some(queue) = self.queues.get_mut(&owner) {
            queue.completed(now);
        }
        self.forget_if_gone(owner);
    }

    fn exited(&mut self, _now: Nanos, process: ProcessId) {
        let owner = Owner::Process(process);
        if let Some(queue) = self.queues.get_mut(&owner) {
            queue.exited = true;
        }
        self.forget_if_gone(owner);
    }

    fn queued(&self) -> usize {
        self.queued
    }
}

//! Loads programs/trace.bpf.c, and fetches their events.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};

use super::{Event, Lost, decode};
use crate::error::{ObserveError, check_machine};
use crate::kernel::{self, BTF};
use crate::observe::Scope;
use crate::warnings::{self, refused};

mod skeleton {
    #![allow(unsafe_code, unreachable_pub, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/trace.skel.rs"));
}
use skeleton::{TraceSkel, TraceSkelBuilder};

/// Without one of these, operations would be missing.
const NEEDED: [&str; 6] = [
    "mm_filemap_get_pages",
    "mm_filemap_fault",
    "mm_filemap_map_pages",
    "page_fault_user",
    "page_fault_kernel",
    "writeback_dirty_folio",
];

/// As many events as the ring can hold: 8 MiB of the smallest, a thread's of 32 bytes with a header of 8.
const MOST_EVENTS: usize = (8 << 20) / 40;

/// These tracepoints tell what programs have advised, and which pages they want (Linux 6.18).
const OF_ABSENT: [&str; 2] = ["page_cache_sync_ra", "page_cache_async_ra"];

/// This tells which pages the kernel brings in. Without [`OF_ABSENT`], nobody knows where windows end and what was
/// asked for.
const OF_WINDOWS: &str = "mm_filemap_add_to_page_cache";

/// These tell what block devices are asked for.
const OF_REQUESTS: [&str; 3] = ["block_rq_issue", "block_rq_requeue", "block_rq_complete"];

/// The attached programs and their events.
pub struct Tracing {
    ring: RingBuffer<'static>,
    /// Filled by the ring buffer's callback.
    fetched: Rc<RefCell<Vec<Event>>>,
    skeleton: TraceSkel<'static>,
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracing").finish_non_exhaustive()
    }
}

impl Tracing {
    /// Loads and attaches the programs. With [`Scope::Process`], that process must have no descendants yet.
    ///
    /// # Errors
    /// As [`crate::observe::open`], and [`ObserveError::Tracepoint`] on kernels before 6.12.
    pub fn open(scope: &Scope) -> Result<Self, ObserveError> {
        let mut tracing = Self::load(scope)?;
        if let Scope::Process(pid) = scope {
            let tasks = &tracing.skeleton.maps.tasks;
            tasks
                .update(&pid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(refused)?;
        }
        tracing.skeleton.attach().map_err(refused)?;
        Ok(tracing)
    }

    fn load(scope: &Scope) -> Result<Self, ObserveError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(ObserveError::Architecture("record"));
        }
        check_machine()?;
        let tracepoints = kernel::tracepoints();
        if tracepoints.is_empty() {
            return Err(ObserveError::Refused(format!("it has no type information ({BTF})")));
        }
        if let Some(missing) = NEEDED.into_iter().find(|name| !tracepoints.contains(*name)) {
            return Err(ObserveError::Tracepoint(missing));
        }
        warnings::begin();
        // The skeleton borrows this object for as long as the process traces, so one small leak does no harm.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = TraceSkelBuilder::default().open(object).map_err(refused)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the object has constants");
        constants.our_tgid = std::process::id();
        constants.only_tasks = matches!(scope, Scope::Process(_));
        let tells_absent = OF_ABSENT.iter().all(|name| tracepoints.contains(*name));
        open.progs.on_sync_ra.set_autoload(tells_absent);
        open.progs.on_async_ra.set_autoload(tells_absent);
        open.progs.on_add.set_autoload(tells_absent && tracepoints.contains(OF_WINDOWS));
        let tells_requests = OF_REQUESTS.iter().all(|name| tracepoints.contains(*name));
        open.progs.on_issue.set_autoload(tells_requests);
        open.progs.on_requeue.set_autoload(tells_requests);
        open.progs.on_complete.set_autoload(tells_requests);
        open.progs.on_complete_in_interrupt.set_autoload(tells_requests);
        let skeleton = open.load().map_err(refused)?;
        let fetched: Rc<RefCell<Vec<Event>>> = Rc::default();
        let of_ring = Rc::clone(&fetched);
        let mut builder = RingBufferBuilder::new();
        let receive = move |bytes: &[u8]| {
            of_ring.borrow_mut().extend(decode::event(bytes));
            0
        };
        builder.add(&skeleton.maps.events, receive).map_err(refused)?;
        let ring = builder.build().map_err(refused)?;
        Ok(Tracing { ring, fetched, skeleton })
    }

    /// A descriptor that is readable when the ring fills. Take the events ten times a second in any case.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.skeleton.maps.events.as_fd()
    }

    /// All events since the last call, but no more than the ring holds: programs may read faster than we fetch. A
    /// thread's runs come in their order.
    ///
    /// # Errors
    /// [`ObserveError::Lost`].
    pub fn take(&mut self) -> Result<Vec<Event>, ObserveError> {
        let fetched = self.ring.consume_raw_n(MOST_EVENTS);
        if fetched < 0 && fetched != -libc::EINTR {
            let error = io::Error::from_raw_os_error(-fetched);
            return Err(ObserveError::Lost(error.to_string()));
        }
        Ok(self.fetched.take())
    }

    /// What the programs had no room for, since they were attached.
    pub fn lost(&self) -> Lost {
        let shared = self.skeleton.maps.bss_data.as_deref();
        shared.map_or(Lost::default(), |shared| Lost {
            calls: shared.lost_calls,
            pages: shared.lost_pages,
            requests: shared.lost_requests,
        })
    }
}

#[cfg(test)]
mod tests {
    use linux::privilege::Privilege;

    use super::*;

    #[test]
    fn the_kernel_accepts_the_programs() {
        if !Privilege::own().may_observe() {
            return crate::skip("needs root");
        }
        let mut tracing = Tracing::load(&Scope::Machine).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (tracing.take().expect("its ring"), tracing.lost()),
            (Vec::new(), Lost::default())
        );
    }
}

//! Keeps time on a machine with other work.
#![allow(unsafe_code)]

/// Real-time priority of the timing threads: above ordinary work, below the kernel's own threads.
const PRIORITY: i32 = 10;

/// Gives the calling thread real-time priority and no timer slack. Without the privilege it stays ordinary, as the
/// lateness counters then show.
pub(crate) fn take_precedence() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the pointer refers to a live structure; both calls affect only the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

//! Does some work for each of many things, on all processors.
//!
//! Each simulated machine stays on one thread, so the results do not depend on the number of threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The results of `work` for each of `things`, in order, or the first error. Calls `progress` with the share that is
/// done, in `[0, 1]`.
pub(super) fn side_by_side<T: Sync, R: Send, E: Send>(
    things: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.min(things.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, thing)) = take(next, things) {
                    if sender.send((index, work(thing))).is_err() {
                        return;
                    }
                }
            });
        }
        // The channel closes when the last worker ends.
        drop(sender);
        let mut done = Vec::with_capacity(things.len());
        for (index, result) in results {
            done.push((index, result?));
            progress(done.len() as f64 / things.len() as f64);
        }
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    })
}

/// The next of `things` that nobody has taken, and its index.
fn take<'a, T>(next: &AtomicUsize, things: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    things.get(index).map(|thing| (index, thing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_things_and_progress_ends_at_one() {
        let things: Vec<u64> = (0..1000).collect();
        let mut shares = Vec::new();
        let squares =
            side_by_side(&things, |n| Ok::<_, ()>(n * n), &mut |share| shares.push(share));
        assert_eq!(squares, Ok(things.iter().map(|n| n * n).collect()));
        assert!(shares.is_sorted() && shares.last() == Some(&1.0));
    }

    #[test]
    fn an_error_ends_the_work() {
        let even = |n: &u64| if n.is_multiple_of(2) { Ok(*n) } else { Err(*n) };
        let result = side_by_side(&[0, 2, 3, 4], even, &mut |_| {});
        assert_eq!(result, Err(3));
        assert_eq!(side_by_side(&[], even, &mut |_| {}), Ok(vec![]));
    }
}

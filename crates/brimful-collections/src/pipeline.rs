//! Streams batches: some threads read ahead while the pool processes the batches read.
//!
//! Invariant: batches begin in order; an error stops the stream and is returned. Memory is bounded
//! by the batches in flight: [`READERS`] in the reading threads, as many waiting, and one per
//! worker.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use brimful_store::Resources;

use crate::error::Result;

/// Threads that read ahead.
pub(crate) const READERS: usize = 2;

/// Number of batches in memory at a time.
pub(crate) fn in_flight(resources: &Resources) -> usize {
    2 * READERS + resources.workers()
}

/// Calls `read` for each of `batches` on `READERS` threads of its own, and `work` with the result
/// on the pool.
pub(crate) fn stream<B: Sync, T: Send>(
    resources: &Resources,
    batches: &[B],
    read: impl Fn(&B) -> Result<T> + Sync,
    work: impl Fn(&B, T) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(READERS);
        for _ in 0..READERS.min(batches.len()) {
            let (sender, next, stop, read) = (sender.clone(), &next, &stop, &read);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    // The receiver is dropped early only if the work has failed.
                    if sender.send((batch, read(batch))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let receiver = Mutex::new(receiver);
        let results = resources.broadcast(|_| {
            while !stop.load(Ordering::Relaxed) {
                let received = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((batch, read)) = received else {
                    return Ok(());
                };
                let done =
                    resources.job.check().map_err(Into::into).and_then(|()| work(batch, read?));
                if done.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    return done;
                }
            }
            Ok(())
        });
        // Dropped before the scope ends, so that a reader that waits to send returns.
        drop(receiver);
        results.into_iter().collect()
    })
}

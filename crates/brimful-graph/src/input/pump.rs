//! Parses streams on all cores: one thread produces chunks, the pool's workers consume them.
//!
//! Invariant: if several chunks fail, the error of the earliest is returned, whatever the timing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use brimful_store::Resources;

use crate::error::{Error, Result};

/// The number of chunks that exist with `workers` workers.
pub fn chunks_in_flight(workers: usize) -> usize {
    2 * workers + 2
}

/// Runs `produce` until it returns false, and `work` on every chunk that it produced, numbered from
/// 0.
///
/// `begin` makes the state of a worker; `end` takes it when all chunks are processed.
pub fn pump<C: Default + Send, S>(
    resources: &Resources,
    mut produce: impl FnMut(&mut C) -> Result<bool> + Send,
    begin: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, u64, &mut C) -> Result<()> + Sync,
    end: impl Fn(S) -> Result<()> + Sync,
) -> Result<()> {
    let workers = resources.workers();
    let (full_sender, full) = sync_channel::<(u64, C)>(workers);
    let (empty_sender, empty) = channel::<C>();
    for _ in 0..chunks_in_flight(workers) {
        // The receiving end is alive, in this function.
        let _ = empty_sender.send(C::default());
    }
    let failure = EarliestFailure::default();
    std::thread::scope(|scope| {
        // Dropped before the scope ends, also by a panic, so that a producer that waits returns.
        let (full, empty_sender) = (Mutex::new(full), empty_sender);
        let failure = &failure;
        scope.spawn(move || {
            for number in 0.. {
                let Ok(mut chunk) = empty.recv() else { return };
                match resources.job.check().map_err(Error::from).and_then(|()| produce(&mut chunk))
                {
                    Ok(true) if failure.allows(number) => {}
                    Ok(_) => return,
                    Err(error) => return failure.note(number, error),
                }
                if full_sender.send((number, chunk)).is_err() {
                    return;
                }
            }
        });
        let results = resources.broadcast(|_| {
            let mut state = begin()?;
            while let Some((number, mut chunk)) = next(&full) {
                if failure.allows(number)
                    && let Err(error) = work(&mut state, number, &mut chunk)
                {
                    failure.note(number, error);
                }
                // If the producer has ended, the chunk is not needed.
                let _ = empty_sender.send(chunk);
            }
            end(state)
        });
        results.into_iter().collect::<Result<()>>()
    })
    .and_then(|()| failure.into_result())
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

struct EarliestFailure {
    number: AtomicU64,
    error: Mutex<Option<Error>>,
}

impl Default for EarliestFailure {
    fn default() -> Self {
        Self { number: AtomicU64::new(u64::MAX), error: Mutex::new(None) }
    }
}

impl EarliestFailure {
    /// True if no earlier chunk has failed.
    fn allows(&self, number: u64) -> bool {
        number < self.number.load(Ordering::Relaxed)
    }

    fn note(&self, number: u64, error: Error) {
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if self.allows(number) {
            self.number.store(number, Ordering::Relaxed);
            *kept = Some(error);
        }
    }

    fn into_result(self) -> Result<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::time::Duration;

    use brimful_store::{Budget, Job};

    use super::*;

    /// The result of a pump whose worker begins and works so; `None` if it panics.
    fn pumped(
        begin: impl Fn() -> Result<()> + Send + Sync + 'static,
        work: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Option<Result<()>> {
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let resources =
                Resources::new(Budget::new(1 << 20, 0), Arc::new(Job::new()), Some(1)).unwrap();
            let produce = |_: &mut ()| Ok(true);
            let pumped = catch_unwind(AssertUnwindSafe(|| {
                pump(&resources, produce, &begin, |_, _, _| work(), |_| Ok(()))
            }));
            sender.send(pumped.ok()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(60)).expect("the producer waits forever")
    }

    #[test]
    fn the_producer_ends_if_all_workers_end_early() {
        let refuse = || Err(Error::Usage("refused".into()));
        assert!(pumped(|| Ok(()), || panic!("on purpose")).is_none());
        assert!(matches!(pumped(refuse, || Ok(())), Some(Err(Error::Usage(_)))));
        assert!(matches!(pumped(|| Ok(()), refuse), Some(Err(Error::Usage(_)))));
    }
}

//! The resources of a long call: memory, threads, cancellation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::job::Job;

/// Budget, job and the one pool of compute threads; clones share them.
#[derive(Debug, Clone)]
pub struct Resources {
    /// The source of all memory.
    pub budget: Arc<Budget>,
    /// Cancellation, progress, traffic.
    pub job: Arc<Job>,
    /// The compute threads.
    pub pool: Arc<ThreadPool>,
}

impl Resources {
    /// Resources with `threads` compute threads; `None`: one per core.
    pub fn new(budget: Arc<Budget>, job: Arc<Job>, threads: Option<usize>) -> Result<Self> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(Self::threads(threads))
            .thread_name(|index| format!("brimful-{index}"))
            .stack_size(1 << 20)
            .build()
            .map_err(|e| Error::io("the compute threads", "start", std::io::Error::other(e)))?;
        Ok(Self { budget, job, pool: Arc::new(pool) })
    }

    /// The same job and threads with a budget of `bytes` of its own, which does not count in this
    /// one.
    #[must_use]
    pub fn within(&self, bytes: u64) -> Self {
        Self { budget: Budget::new(bytes, 0), ..self.clone() }
    }

    /// Number of compute threads that [`Resources::new`] makes for `threads`.
    pub fn threads(threads: Option<usize>) -> usize {
        threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .max(1)
    }

    /// Number of compute threads.
    pub fn workers(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Calls `work(worker)` on every compute thread, and returns all results.
    pub fn broadcast<R: Send>(&self, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        broadcast(&self.pool, work)
    }

    /// Calls `work(index, buffers)` for each index below `count`, on all threads, each with its own
    /// buffers. Returns the results by index. After a failure or a cancellation no thread begins
    /// another index.
    pub fn parallel_map<Buffers: Default, R: Send, E: From<Error> + Send>(
        &self,
        count: usize,
        work: impl Fn(usize, &mut Buffers) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let (next, results, failure) = (AtomicUsize::new(0), Results::new(count), Mutex::new(None));
        on_all(&self.pool, &|_| {
            let mut buffers = Buffers::default();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                match self.job.check().map_err(E::from).and_then(|()| work(index, &mut buffers)) {
                    Ok(result) => results.put(index, result),
                    Err(error) => {
                        next.store(count, Ordering::Relaxed);
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(results.into_vec()),
        }
    }
}

/// Calls `work(worker)` on every thread of `pool`, and returns all results.
pub(crate) fn broadcast<R: Send>(pool: &ThreadPool, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let results = Results::new(pool.current_num_threads());
    on_all(pool, &|worker| results.put(worker, work(worker)));
    results.into_vec()
}

/// The part of `broadcast` without type parameters, compiled once.
fn on_all(pool: &ThreadPool, work: &(dyn Fn(usize) + Sync)) {
    pool.broadcast(|context| work(context.index()));
}

/// Results by index, which threads fill in. Compiled once for a type of results; most calls of
/// `broadcast` and `parallel_map` have the same.
struct Results<R>(Mutex<Vec<Option<R>>>);

impl<R> Results<R> {
    fn new(count: usize) -> Self {
        let mut results = Vec::new();
        results.resize_with(count, || None);
        Self(Mutex::new(results))
    }

    fn put(&self, index: usize, result: R) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
    }

    /// The results; all are there if no thread failed or panicked.
    fn into_vec(self) -> Vec<R> {
        let results = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_work_is_done_once_each_and_comes_back_in_order() {
        for threads in 1..=4 {
            let resources =
                Resources::new(Budget::new(1 << 20, 0), Arc::default(), Some(threads)).unwrap();
            let squares = resources.parallel_map(1000, |index, calls: &mut usize| {
                *calls += 1;
                Ok::<_, Error>((index * index, *calls))
            });
            let squares = squares.unwrap();
            assert!(
                squares.iter().map(|(square, _)| *square).eq((0..1000).map(|index| index * index))
            );
            // Each thread counted its own calls.
            assert!(squares.iter().filter(|(_, calls)| *calls == 1).count() <= threads);
        }
    }

    #[test]
    fn resources_within_others_have_a_budget_of_their_own_and_the_same_threads() {
        let resources = Resources::new(Budget::new(1 << 20, 0), Arc::default(), Some(2)).unwrap();
        let within = resources.within(1 << 10);
        assert_eq!((within.budget.limit(), resources.budget.limit()), (1 << 10, 1 << 20));
        assert!(Arc::ptr_eq(&within.pool, &resources.pool));
        assert!(Arc::ptr_eq(&within.job, &resources.job));
    }

    #[test]
    fn shared_work_ends_with_the_first_failure() {
        let resources = Resources::new(Budget::new(1 << 20, 0), Arc::default(), Some(2)).unwrap();
        let begun = AtomicUsize::new(0);
        let result = resources.parallel_map(1_000_000, |_, (): &mut ()| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(Error::Interrupted)
        });
        assert!(matches!(result, Err(Error::Interrupted)));
        assert!(begun.into_inner() <= 4, "work went on");
    }
}

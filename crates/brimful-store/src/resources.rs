//! All that a long call is given: memory, threads, a stop button.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::job::Job;

/// Budget, job and the one pool of compute threads.
#[derive(Debug)]
pub struct Resources {
    /// Where memory comes from.
    pub budget: Arc<Budget>,
    /// Cancellation, progress, traffic.
    pub job: Arc<Job>,
    /// The compute threads.
    pub pool: ThreadPool,
}

impl Resources {
    /// Resources with `threads` compute threads; `None`: one per core.
    pub fn new(budget: Arc<Budget>, job: Arc<Job>, threads: Option<usize>) -> Result<Self> {
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("brimful-{index}"))
            .stack_size(1 << 20)
            .build()
            .map_err(|e| Error::io("(threads)", "start the compute", std::io::Error::other(e)))?;
        Ok(Self { budget, job, pool })
    }

    /// Number of compute threads.
    pub fn workers(&self) -> usize {
        self.pool.current_num_threads()
    }
}

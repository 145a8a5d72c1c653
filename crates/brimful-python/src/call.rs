//! Long calls: they release the GIL, show progress and react to Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brimful::collections::{self, Options};
use brimful::store::automatic::{AutomaticShare, auto_budget_bytes};
use brimful::store::memory::{release_free_memory, resident_bytes, return_freed_memory};
use brimful::store::{Budget, Job, Resources};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::Failure;

/// Interval between updates of progress and checks for Python signals.
const TICK: Duration = Duration::from_millis(100);

/// Memory and threads, as an object in Python has them: `brimful.resources.Resources`.
#[derive(Debug, Clone, Copy, FromPyObject)]
pub(crate) struct Limits {
    pub(crate) threads: Option<usize>,
    pub(crate) budget: Option<u64>,
    pub(crate) process_budget: bool,
    pub(crate) reserve_bytes: u64,
}

/// The resources of a call, as given from Python: its limits, and the function that it tells its
/// progress.
pub(crate) struct GivenResources<'py> {
    pub(crate) limits: Limits,
    pub(crate) progress: Option<Bound<'py, PyAny>>,
}

impl<'py> FromPyObject<'_, 'py> for GivenResources<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self { limits: object.extract()?, progress: object.getattr("progress")?.extract()? })
    }
}

/// The least memory of the process itself: interpreter, this library, thread stacks.
const PROCESS_BYTES: u64 = 40 << 20;
/// Growth of the process beyond the memory that brimful accounts for, with the constants below.
const SLACK_BYTES: u64 = 10 << 20;
/// Rounding step of the overhead, and the largest difference in resident memory between two
/// processes of the same command.
const OVERHEAD_STEP_BYTES: u64 = 8 << 20;
const JITTER_BYTES: u64 = 2 << 20;

/// The budget, in whole MiB, for work that needs `bytes` in addition to the overhead in `budget`.
pub(crate) fn whole(budget: &Budget, bytes: u64) -> u64 {
    let bytes = budget.smallest(bytes);
    bytes.checked_next_multiple_of(1 << 20).unwrap_or(bytes)
}

impl Limits {
    /// The limits of work on one thread within `budget`.
    pub(crate) fn one_thread(budget: Option<u64>) -> Self {
        Self { threads: Some(1), budget, process_budget: false, reserve_bytes: 0 }
    }

    /// Budget in bytes, as given or automatic.
    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget.unwrap_or_else(auto_budget_bytes)
    }

    /// The budget with its overhead, and the variation of that overhead between runs of the same
    /// command.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        let total = self.budget_bytes();
        if !self.process_budget {
            return Budget::new(total, 0);
        }
        return_freed_memory();
        // Free memory within the heap differs from run to run.
        release_free_memory();
        let resident = resident_bytes().unwrap_or(0) + SLACK_BYTES;
        // Rounded, so that errors name the same smallest budget in every run. Most processes are
        // small; they get the least even if their memory is slightly above it.
        let least = PROCESS_BYTES + self.reserve_bytes;
        let overhead = |bytes: u64| match bytes <= least + JITTER_BYTES {
            true => least.next_multiple_of(OVERHEAD_STEP_BYTES),
            false => bytes.next_multiple_of(OVERHEAD_STEP_BYTES),
        };
        let (now, at_most) = (overhead(resident - JITTER_BYTES), overhead(resident));
        let new = if self.budget.is_some() { Budget::given } else { Budget::automatic };
        new(total, now, at_most - now)
    }

    /// The budget, in whole MiB, for work that needs `bytes`.
    pub(crate) fn whole(&self, bytes: u64) -> u64 {
        whole(&self.budget(), bytes)
    }

    /// The same limits, with `bytes` more that stay free.
    pub(crate) fn beside(self, bytes: u64) -> Self {
        Self { reserve_bytes: self.reserve_bytes + bytes, ..self }
    }

    /// Compute threads.
    pub(crate) fn workers(&self) -> usize {
        Resources::threads(self.threads)
    }

    /// Refuses work that needs more than `bytes`.
    pub(crate) fn require(&self, bytes: u64, purpose: &str) -> Result<(), Failure> {
        Ok(self.budget().require(bytes, purpose)?)
    }

    fn resources(&self, job: &Arc<Job>) -> Result<Resources, Failure> {
        Ok(Resources::new(self.budget(), Arc::clone(job), self.threads)?)
    }
}

/// Runs `work` on a separate thread without the GIL. Ctrl-C, and an exception raised by `progress`,
/// cancel the work and are raised again. Messages of the work go to the logger `brimful`.
pub(crate) fn with_job<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Job>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let job = Arc::new(Job::new());
    supervised(py, progress, &job, || (), || work(&job))
}

/// [`with_job`] with the caller's job, for any error; `on_stop` ends operations that do not check
/// the job.
fn supervised<T: Send, E: Into<PyErr> + Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    job: &Arc<Job>,
    on_stop: impl FnOnce(),
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let (mut on_stop, mut work, mut result) = (Some(on_stop), Some(work), None);
    let stop = &mut || on_stop.take().into_iter().for_each(|on_stop| on_stop());
    supervise(py, progress, job, stop, &mut || result = work.take().map(|work| work()))?;
    result.map_or_else(|| Err(panicked()), |result| result.map_err(Into::into))
}

/// The part of `supervised` without type parameters, compiled once: calls `work` once, and `stop`
/// once if the work is cancelled.
fn supervise(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    job: &Arc<Job>,
    stop: &mut dyn FnMut(),
    work: &mut (dyn FnMut() + Send),
) -> PyResult<()> {
    let (done_sender, done) = sync_channel(1);
    let done = Mutex::new(done);
    let wait = || done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            work();
            // The receiver lives until this thread is joined.
            let _ = done_sender.send(());
        });
        let mut stopped = None;
        // A worker that panicked has dropped its sender, which ends the wait too.
        while py.detach(wait) == Err(RecvTimeoutError::Timeout) {
            if stopped.is_some() {
                continue;
            }
            let seen =
                py.check_signals().and_then(|()| tell(py, job)).and_then(|()| show(progress, job));
            if let Err(error) = seen {
                job.cancel();
                stop();
                stopped = Some(error);
            }
        }
        let result = py.detach(|| worker.join());
        match (stopped.or_else(|| tell(py, job).err()), result) {
            (Some(error), _) => Err(error),
            (None, result) => result.map_err(|_| panicked()),
        }
    })
}

/// The error of work that panicked.
fn panicked() -> PyErr {
    PyRuntimeError::new_err("internal error in brimful; please report it")
}

/// [`with_job`] for work that needs memory and threads.
pub(crate) fn with_resources<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    limits: Limits,
    work: impl FnOnce(&Resources) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    with_job(py, progress, |job| with_memory(limits.resources(job)?, work))
}

/// Free memory is returned to the system after work that reserved at least this much; a short call
/// is not worth the time.
const RETURNED_BYTES: u64 = 4 << 20;

/// Does `work`, then ends its threads and returns free memory to the system. Every call has new
/// threads: without this, the heaps of earlier ones hold memory that no budget counts.
fn with_memory<T>(
    resources: Resources,
    work: impl FnOnce(&Resources) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = work(&resources);
    let peak = resources.budget.peak();
    drop(resources);
    if peak >= RETURNED_BYTES {
        release_free_memory();
    }
    result
}

/// [`with_resources`] for work that reads from `stream`; its method `stop`, if it has one, ends a
/// read.
pub(crate) fn with_stream<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    limits: Limits,
    stream: &Bound<'_, PyAny>,
    work: impl FnOnce(&Resources) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let job = Arc::new(Job::new());
    let stop = stream.getattr_opt("stop")?;
    // The interrupt that stops the read is reported, whatever `stop` raises.
    let on_stop = || drop(stop.map(|stop| stop.call0()));
    supervised(py, progress, &job, on_stop, || with_memory(limits.resources(&job)?, work))
}

/// Keys or records from which on a call runs on a separate thread, so that Ctrl-C can stop it.
pub(crate) const LONG: usize = 1 << 12;
/// Bytes of records with the same effect.
pub(crate) const LONG_BYTES: usize = 4 << 20;

/// The budget of a collection: `budget` bytes, or those of an automatic share.
pub(crate) fn given_or_shared(budget: Option<u64>) -> (Arc<Budget>, Option<AutomaticShare>) {
    match budget {
        Some(bytes) => (Budget::new(bytes, 0), None),
        None => {
            let share = AutomaticShare::take();
            (Budget::new(share.bytes(), 0), Some(share))
        }
    }
}

/// A collection, and the job that stops its long calls.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    inner: T,
    job: Arc<Job>,
    /// Is dropped after the collection, whose budget it is.
    _share: Option<AutomaticShare>,
}

impl<T> std::ops::Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: Send + Sync> Handle<T> {
    /// Opens a collection with up to `budget` bytes of brimful's own memory, and all threads.
    pub(crate) fn open(
        py: Python<'_>,
        budget: Option<u64>,
        open: impl FnOnce(Options) -> collections::Result<T> + Send,
    ) -> PyResult<Self> {
        let job = Arc::new(Job::new());
        let make = || -> Result<Self, Failure> {
            let (budget, _share) = given_or_shared(budget);
            let resources = Arc::new(Resources::new(budget, Arc::clone(&job), None)?);
            Ok(Self { inner: open(Options::new(&resources))?, job: Arc::clone(&job), _share })
        };
        supervised(py, None, &job, || (), make)
    }

    /// A short call.
    pub(crate) fn short<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&T) -> collections::Result<R> + Send,
    ) -> PyResult<R> {
        Ok(py.detach(|| f(&self.inner)).map_err(Failure::from)?)
    }

    /// A long call on a separate thread. Ctrl-C ends it, and calls of other threads on the
    /// collection too.
    pub(crate) fn long<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&T) -> collections::Result<R> + Send,
    ) -> PyResult<R> {
        let result =
            supervised(py, None, &self.job, || (), || f(&self.inner).map_err(Failure::from));
        // All stopped calls have ended, or will find nothing to do.
        self.job.resume();
        result
    }

    /// [`Handle::long`] if `is_long`, else [`Handle::short`].
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        is_long: bool,
        f: impl FnOnce(&T) -> collections::Result<R> + Send,
    ) -> PyResult<R> {
        if is_long { self.long(py, f) } else { self.short(py, f) }
    }
}

/// Passes on the messages of the work.
fn tell(py: Python<'_>, job: &Job) -> PyResult<()> {
    let said = job.take_said();
    if said.is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.call_method1("getLogger", ("brimful",))?;
    said.into_iter()
        .try_for_each(|sentence| logger.call_method1("warning", ("%s", sentence)).map(drop))
}

fn show(progress: Option<&Bound<'_, PyAny>>, job: &Job) -> PyResult<()> {
    let Some(progress) = progress else {
        return Ok(());
    };
    let now = job.progress();
    if !now.phase.is_empty() {
        progress.call1((now.phase, now.done, now.total, now.seconds))?;
    }
    Ok(())
}

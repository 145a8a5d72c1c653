//! The external sorter: it takes numbers in batches, and returns them ascending in batches.
//!
//! The sort runs on a separate thread, with a bounded queue before and after it. Invariant: the
//! thread has ended when the sorter is dropped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use brimful::collections::{self, Options, sort};
use brimful::store::memory::release_free_memory;
use brimful::store::{Error as StoreError, Job, Resources};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::call::given_or_shared;
use crate::errors::{Failure, internal};
use crate::keyed::words;

/// Numbers in a returned batch.
const CHUNK_LEN: usize = 1 << 18;
/// Numbers after which free memory of the heap is returned to the system. Buffers come and go, and
/// the C library of the process keeps the freed memory: as much again as the budget.
const RELEASE_LEN: usize = 1 << 19;
/// Interval between checks for Ctrl-C during a wait.
const TICK: Duration = Duration::from_millis(50);

type Outcome = Result<(), Failure>;

#[derive(Default)]
struct Ends {
    input: Option<SyncSender<Vec<u64>>>,
    output: Option<Receiver<Vec<u64>>>,
    thread: Option<JoinHandle<Outcome>>,
}

/// One sort of 64-bit numbers.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Sorter {
    job: Arc<Job>,
    ends: Mutex<Ends>,
}

#[pymethods]
impl Sorter {
    #[new]
    fn new(folder: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        let job = Arc::new(Job::new());
        let (input, numbers) = sync_channel::<Vec<u64>>(1);
        let (sorted, output) = sync_channel(1);
        let sort_job = Arc::clone(&job);
        let thread = std::thread::spawn(move || -> Outcome {
            let (budget, _share) = given_or_shared(budget);
            let resources = Arc::new(Resources::new(budget, sort_job, None)?);
            let moved = AtomicUsize::new(0);
            let release = |count: usize| {
                if moved.fetch_add(count, Ordering::Relaxed) + count >= RELEASE_LEN {
                    moved.store(0, Ordering::Relaxed);
                    release_free_memory();
                }
            };
            let feed = |push: &mut dyn FnMut(u64) -> collections::Result<()>| {
                numbers.iter().try_for_each(|batch| {
                    release(batch.len());
                    batch.into_iter().try_for_each(&mut *push)
                })
            };
            sort(&folder, &Options::new(&resources), feed, |batch: &[u64]| {
                // In parts, because some of them are in the queue and in Python's memory. Fails
                // when the receiver is gone.
                batch.chunks(CHUNK_LEN).try_for_each(|part| {
                    release(part.len());
                    sorted.send(part.to_vec()).map_err(|_| StoreError::Interrupted.into())
                })
            })?;
            Ok(())
        });
        let ends = Ends { input: Some(input), output: Some(output), thread: Some(thread) };
        Ok(Self { job, ends: Mutex::new(ends) })
    }

    fn add(&self, py: Python<'_>, numbers: PyBuffer<u64>) -> PyResult<()> {
        let mut batch = numbers.to_vec(py)?;
        loop {
            let sent = match &self.ends().input {
                Some(input) => input.try_send(batch),
                None => return Err(internal("numbers were added to a sorted sequence").into()),
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(back)) => batch = back,
                // The thread has failed, and `finish` returns its error.
                Err(TrySendError::Disconnected(_)) => return self.finish(py),
            }
            py.detach(|| std::thread::sleep(TICK / 50));
            py.check_signals()?;
        }
    }

    /// The next batch; None at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        self.ends().input = None;
        loop {
            let received =
                py.detach(|| self.ends().output.as_ref().map(|output| output.recv_timeout(TICK)));
            match received {
                Some(Ok(batch)) => return Ok(Some(words(py, &batch))),
                Some(Err(RecvTimeoutError::Timeout)) => py.check_signals()?,
                Some(Err(RecvTimeoutError::Disconnected)) | None => {
                    return self.finish(py).map(|()| None);
                }
            }
        }
    }
}

impl Sorter {
    fn ends(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the thread and returns its result.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let ends = std::mem::take(&mut *self.ends());
        drop((ends.input, ends.output));
        match py.detach(|| ends.thread.map(JoinHandle::join)) {
            None => Ok(()),
            Some(Ok(outcome)) => Ok(outcome?),
            Some(Err(_)) => Err(pyo3::exceptions::PyRuntimeError::new_err(
                "internal error in brimful; please report it",
            )),
        }
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.job.cancel();
        let ends = std::mem::take(&mut *self.ends());
        drop((ends.input, ends.output));
        // Its only possible error is that the receiver was gone.
        let _ = ends.thread.map(JoinHandle::join);
    }
}

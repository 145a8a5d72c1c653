//! Runs that several processes make together, connected by objects written in Python.
//!
//! A connection has the methods `all_gather(facts, signals)`, `scatter(facts, *parts)` and
//! `gather(records)`. Each takes memory views that end with the call, and returns an object whose
//! `wait(seconds)` returns a tuple of buffers for each process that owns intervals, or None after
//! that time, so that a run can be canceled. A connection between processes of one node also has
//! `share_memory(max_bytes)`. The GIL is held only during a call. Errors keep class and text.

use std::sync::Arc;

use brimful::engine::exchange::{Communicator, Contribution, Exchange, Received};
use brimful::engine::plan::partitioning::ClusterSize;
use brimful::engine::{Error, Result};
use brimful::store::Job;
use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Seconds between two checks for a cancellation during a wait.
pub(crate) const TICK_SECONDS: f64 = 0.1;

/// The communicator of this process, as given from Python.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenCommunicator {
    /// Processes that own intervals.
    count: usize,
    /// The position of this one among them; None: it is the driver.
    index: Option<usize>,
    /// True if all of them are on one node.
    together: bool,
    connection: Py<PyAny>,
}

impl GivenCommunicator {
    pub(crate) fn communicator(&self, py: Python<'_>) -> Communicator {
        let connection = Connection(self.connection.clone_ref(py));
        Communicator {
            count: self.count,
            index: self.index,
            shares_memory: self.together,
            exchange: Arc::new(connection),
        }
    }
}

/// The workers of a forecast, as given from Python.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenClusterSize {
    workers: u64,
    /// The cores that they share; None: each has its own machine.
    cores: Option<u64>,
}

impl GivenClusterSize {
    pub(crate) fn size(self) -> ClusterSize {
        ClusterSize { workers: self.workers, cores: self.cores }
    }
}

/// A connection in Python.
#[derive(Debug)]
struct Connection(Py<PyAny>);

/// A buffer of Python, for as long as it is needed.
pub(crate) struct Buffer(PyBuffer<u8>);

impl Buffer {
    /// A read-only, contiguous buffer; `None` for any other buffer.
    pub(crate) fn constant(buffer: PyBuffer<u8>) -> Option<Self> {
        (buffer.is_c_contiguous() && buffer.readonly()).then_some(Self(buffer))
    }
}

impl AsRef<[u8]> for Buffer {
    #[expect(unsafe_code, reason = "a buffer of Python is a raw pointer")]
    fn as_ref(&self) -> &[u8] {
        let (start, len) = (self.0.buf_ptr().cast::<u8>(), self.0.len_bytes());
        // SAFETY: `constant` checks that the buffer is contiguous and cannot be written; the
        // exporter keeps it in place while `self` lives.
        if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, len) } }
    }
}

fn received<const N: usize>(buffers: [PyBuffer<u8>; N]) -> Result<[Received; N]> {
    let all = buffers.map(Buffer::constant);
    if all.iter().any(Option::is_none) {
        return Err(Error::Exchange("a buffer of a connection must be constant bytes".into()));
    }
    Ok(all.map(|buffer| -> Received {
        buffer.map_or_else(|| Box::new([]) as _, |one| Box::new(one) as _)
    }))
}

/// Calls `f` with views of bytes, which Python must not keep.
pub(crate) fn with_views<'py, T>(
    py: Python<'py>,
    bytes: &[&[u8]],
    f: impl FnOnce(&[Bound<'py, PyAny>]) -> PyResult<T>,
) -> PyResult<T> {
    #[expect(unsafe_code, reason = "the views are released below, while the bytes are borrowed")]
    let views = bytes.iter().map(|bytes| unsafe { view(py, bytes) });
    let views = views.collect::<PyResult<Vec<_>>>()?;
    let done = f(&views);
    for view in views {
        if view.call_method0("release").is_err() {
            let problem = c"brimful: a connection keeps bytes after its call";
            // SAFETY: the text lives as long as the process, which ends here: Python would read
            // memory that is gone.
            #[expect(unsafe_code, reason = "Python says why it ends the process")]
            unsafe {
                pyo3::ffi::Py_FatalError(problem.as_ptr())
            }
        }
    }
    done
}

/// Bytes as a memory view.
///
/// # Safety
/// The bytes must outlive the view. It is released before they end, which fails if Python uses it.
#[expect(unsafe_code, reason = "the C interface takes a raw pointer")]
unsafe fn view<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let start = bytes.as_ptr().cast_mut().cast();
    // SAFETY: a view for reading does not write; the caller promises the rest.
    unsafe {
        let view = ffi::PyMemoryView_FromMemory(start, bytes.len() as isize, ffi::PyBUF_READ);
        Bound::from_owned_ptr_or_err(py, view)
    }
}

impl Connection {
    /// Calls a method with views of bytes, which it must not keep; returns its answer.
    fn begin(&self, py: Python<'_>, method: &str, bytes: &[&[u8]]) -> PyResult<Py<PyAny>> {
        with_views(py, bytes, |views| {
            Ok(self.0.bind(py).call_method1(method, PyTuple::new(py, views)?)?.unbind())
        })
    }

    /// Calls a method with byte slices, and waits for `N` buffers from each process.
    fn call<const N: usize>(
        &self,
        method: &str,
        bytes: &[&[u8]],
        job: &Job,
    ) -> Result<Vec<[Received; N]>> {
        let failed = |error: PyErr| Error::Exchange(Box::new(error));
        let begun = Python::attach(|py| self.begin(py, method, bytes)).map_err(failed)?;
        loop {
            job.check()?;
            let answer = Python::attach(|py| {
                let answer = begun.bind(py).call_method1("wait", (TICK_SECONDS,))?;
                answer.extract::<Option<Vec<[PyBuffer<u8>; N]>>>()
            });
            if let Some(all) = answer.map_err(failed)? {
                return all.into_iter().map(received).collect();
            }
        }
    }
}

impl Exchange for Connection {
    fn all_gather(&self, facts: &[u8], signals: &[u8], job: &Job) -> Result<Vec<Contribution>> {
        let all = self.call("all_gather", &[facts, signals], job)?;
        Ok(all.into_iter().map(|[facts, signals]| Contribution { facts, signals }).collect())
    }

    fn scatter(&self, facts: &[u8], parts: &[&[u8]], job: &Job) -> Result<Vec<Contribution>> {
        let all = self.call("scatter", &[&[facts], parts].concat(), job)?;
        Ok(all.into_iter().map(|[facts, signals]| Contribution { facts, signals }).collect())
    }

    fn gather(&self, records: &[u8], job: &Job) -> Result<Vec<Received>> {
        let all = self.call("gather", &[records], job)?;
        Ok(all.into_iter().map(|[records]| records).collect())
    }

    fn share_memory(&self, max_bytes: u64) -> Result<()> {
        Python::attach(|py| self.0.bind(py).call_method1("share_memory", (max_bytes,)).map(|_| ()))
            .map_err(|error| Error::Exchange(Box::new(error)))
    }
}

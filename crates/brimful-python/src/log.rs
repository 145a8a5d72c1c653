//! `--log`: the events of this process as lines of JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use brimful::engine::Error;
use brimful::store::external::append_to;
use brimful::store::memory::peak_resident_bytes;
use pyo3::prelude::*;
use tracing_subscriber::fmt::MakeWriter;

use crate::errors::Failure;

/// The error of the first event that could not be written.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

/// Appends every event of this process from now on to the file `path`, or to standard error.
#[pyfunction]
pub(crate) fn log_to(path: Option<PathBuf>) -> PyResult<()> {
    Ok(match path {
        Some(path) => install(Mutex::new(Log(append_to(&path).map_err(Failure::from)?))),
        None => install(|| Log(io::stderr())),
    }?)
}

fn install(writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static) -> Result<(), Failure> {
    let lines =
        tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_writer(writer);
    let subscriber = lines.finish();
    tracing::subscriber::set_global_default(subscriber).map_err(|_| {
        Error::Usage("this process already writes a log; a process writes only one".into()).into()
    })
}

/// The destination of events. The first failure is kept for the end: the work continues, and the
/// log is reported as incomplete.
struct Log<W>(W);

impl<W: Write> Write for Log<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        keep(self.0.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        keep(self.0.flush());
        Ok(())
    }
}

fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        failure().get_or_insert_with(|| error.to_string());
    }
}

fn failure() -> std::sync::MutexGuard<'static, Option<String>> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs the start of a command.
#[pyfunction]
pub(crate) fn log_start(command: &str) {
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(version, command, process, "start");
}

/// Logs the end of a command, with its message on standard error if it failed. Returns the reason
/// if the log is incomplete.
#[pyfunction]
pub(crate) fn log_end(exit_code: i32, error: Option<&str>) -> Option<String> {
    let peak_rss_bytes = peak_resident_bytes();
    match error {
        None => tracing::info!(exit_code, peak_rss_bytes, "end"),
        Some(error) => tracing::error!(exit_code, error, peak_rss_bytes, "end"),
    }
    failure().take()
}

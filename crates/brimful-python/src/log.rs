//! `--log`: the events of this process as lines of JSON.

use std::path::PathBuf;
use std::sync::Mutex;

use brimful::engine::Error;
use brimful::store::external::append_to;
use brimful::store::memory::peak_resident_bytes;
use pyo3::prelude::*;
use tracing_subscriber::fmt::MakeWriter;

use crate::errors::Failure;

/// Appends every event of this process from now on to the file `path`, or to standard error.
#[pyfunction]
pub(crate) fn log_to(path: Option<PathBuf>) -> PyResult<()> {
    Ok(match path {
        Some(path) => install(Mutex::new(append_to(&path).map_err(Failure::from)?)),
        None => install(std::io::stderr),
    }?)
}

fn install(writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static) -> Result<(), Failure> {
    let lines = tracing_subscriber::fmt().json().flatten_event(true).with_target(false).with_writer(writer);
    let subscriber = lines.finish();
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|_| Error::Usage("this process writes a log already; it can write one".into()).into())
}

/// Tells the log of a command that begins.
#[pyfunction]
pub(crate) fn log_start(command: &str) {
    let (version, process) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(version, command, process, "start");
}

/// Tells the log how a command ended, with what it says on standard error if it failed.
#[pyfunction]
pub(crate) fn log_end(exit_code: i32, error: Option<&str>) {
    let peak_rss_bytes = peak_resident_bytes();
    match error {
        None => tracing::info!(exit_code, peak_rss_bytes, "end"),
        Some(error) => tracing::error!(exit_code, error, peak_rss_bytes, "end"),
    }
}

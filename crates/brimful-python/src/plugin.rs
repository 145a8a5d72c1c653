//! Stores of vertices written in Python: objects of the class `brimful.stores.Store`.
//!
//! Each partition has an object of its own, which one worker calls at a time. The GIL is held only
//! during a call. Errors of a store keep their class and text.

use std::sync::Arc;

use brimful::store::Resources;
use brimful::store::wording::counted;
use brimful::vertices::bulk::{BATCH_BYTES, BATCH_RECORDS, Found, Pair};
use brimful::vertices::conformance::{SampleVertex, check_id_types, check_records, check_vertices};
use brimful::vertices::open::partition_folder;
use brimful::vertices::serializer::Compact;
use brimful::vertices::{Buffered, BulkStore, Error, PartitionOptions, Result, Schemes, StoreKind};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList};

use crate::call::{Limits, with_resources, with_stream};
use crate::errors::Failure;

/// Bytes of memory for a store under test, unless a budget is given: then half of it.
const MEMORY_BYTES: u64 = 8 << 20;

/// The stores of this crate, and the one that `opener` opens.
pub(crate) fn schemes(opener: Option<&Py<PyAny>>) -> PyResult<Arc<Schemes>> {
    let Some(opener) = opener else { return Ok(Arc::default()) };
    let (name, form, in_folder, opener) = Python::attach(|py| {
        let bound = opener.bind(py);
        let name: String = bound.getattr("name")?.extract()?;
        let form: String = bound.getattr("form")?.extract()?;
        let in_folder: bool = bound.getattr("in_folder")?.extract()?;
        PyResult::Ok((name, form, in_folder, opener.clone_ref(py)))
    })?;
    let kind = if in_folder { StoreKind::Folder } else { StoreKind::Database };
    let own_name = name.clone();
    let open = move |rest: &str, options: &PartitionOptions| {
        // Half of the share is for the buffer here, half for the store itself.
        let half = options.memory_bytes / 2;
        let folder = match in_folder {
            true => Some(partition_folder(&own_name, rest, options)?),
            false => None,
        };
        let opened = Python::attach(|py| {
            Ok(opener.bind(py).call_method1("open", (options.partition, half, folder))?.unbind())
        });
        let store = opened.map_err(|error| plugin_error(&own_name, error))?;
        let below = PythonStore { name: own_name.clone(), store, in_folder, scan: None };
        let budget = &options.resources.budget;
        Ok(Box::new(Buffered::new(below, half, budget)?) as _)
    };
    Ok(Arc::new(Schemes::default().with(&name, &form, kind, open)))
}

/// Bytes of memory that the library of `opener`'s store takes besides the shares of partitions.
pub(crate) fn library_bytes(opener: Option<&Py<PyAny>>) -> PyResult<u64> {
    let Some(opener) = opener else { return Ok(0) };
    Python::attach(|py| opener.bind(py).getattr("library_bytes")?.extract())
}

/// [`with_resources`] for a run on a store that `opener` may open; its `stop` ends the waits of the
/// store.
pub(crate) fn with_store<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    limits: Limits,
    opener: Option<&Py<PyAny>>,
    work: impl FnOnce(&Resources) -> std::result::Result<T, Failure> + Send,
) -> PyResult<T> {
    match opener {
        Some(opener) => with_stream(py, progress, limits, opener.bind(py), work),
        None => with_resources(py, progress, limits, work),
    }
}

fn plugin_error(store: &str, error: PyErr) -> Error {
    Error::Plugin { store: store.to_owned(), source: Box::new(error) }
}

/// The records of a partition in a store written in Python.
#[derive(Debug)]
struct PythonStore {
    name: String,
    store: Py<PyAny>,
    /// True if the store has files in a folder. They are closed with this object, before the folder
    /// is removed.
    in_folder: bool,
    scan: Option<Py<PyIterator>>,
}

impl PythonStore {
    /// Calls `work` with the store.
    fn with<R>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Result<R> {
        Python::attach(|py| work(self.store.bind(py)))
            .map_err(|error| plugin_error(&self.name, error))
    }

    fn wrong(&self, method: &str, problem: String) -> Error {
        Error::Usage(format!("{method} of the store {} {problem}", self.name))
    }
}

impl Drop for PythonStore {
    fn drop(&mut self) {
        if self.in_folder {
            Python::attach(|py| {
                let store = self.store.bind(py);
                if let Err(error) = store.call_method0("close") {
                    error.write_unraisable(py, Some(store));
                }
            });
        }
    }
}

/// A list of byte strings.
fn list<'py>(
    py: Python<'py>,
    items: impl Iterator<Item = impl AsRef<[u8]>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        list.append(PyBytes::new(py, item.as_ref()))?;
    }
    Ok(list)
}

impl BulkStore for PythonStore {
    fn load(&mut self, pairs: &[Pair<'_>]) -> Result<u64> {
        let skipped: u64 = self.with(|store| {
            let py = store.py();
            let batch = PyList::empty(py);
            for (key, record) in pairs {
                batch.append((PyBytes::new(py, key), PyBytes::new(py, record)))?;
            }
            store.call_method1("load", (batch,))?.extract()
        })?;
        if skipped > pairs.len() as u64 {
            let problem = format!("skipped {skipped} of {}", counted(pairs.len(), "record"));
            return Err(self.wrong("load", problem));
        }
        Ok(skipped)
    }

    fn get_many(&mut self, keys: &[&[u8]], found: &mut Found<'_>) -> Result<()> {
        let mut visited = Ok(());
        let count = self.with(|store| {
            let py = store.py();
            let records = store.call_method1("get_many", (list(py, keys.iter())?,))?;
            let records: Vec<Option<Bound<'_, PyBytes>>> = records.extract()?;
            for (place, record) in records.iter().enumerate() {
                if let Some(record) = record
                    && visited.is_ok()
                    && place < keys.len()
                {
                    visited = found(place, record.as_bytes());
                }
            }
            Ok(records.len())
        })?;
        if count != keys.len() {
            let problem =
                format!("returned {} for {}", counted(count, "record"), counted(keys.len(), "key"));
            return Err(self.wrong("get_many", problem));
        }
        visited
    }

    fn put_many(&mut self, pairs: &[Pair<'_>]) -> Result<()> {
        self.with(|store| {
            let py = store.py();
            let keys = list(py, pairs.iter().map(|(key, _)| key))?;
            let records = list(py, pairs.iter().map(|(_, record)| record))?;
            store.call_method1("put_many", (keys, records)).map(drop)
        })
    }

    fn remove_many(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.with(|store| {
            store.call_method1("remove_many", (list(store.py(), keys.iter())?,)).map(drop)
        })
    }

    fn begin_scan(&mut self) -> Result<()> {
        let scan = self.with(|store| Ok(store.call_method0("scan")?.try_iter()?.unbind()))?;
        self.scan = Some(scan);
        Ok(())
    }

    fn next_batch(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
        let Some(scan) = &self.scan else { return Ok(false) };
        let read = Python::attach(|py| {
            let mut scan = scan.bind(py).clone();
            let (mut records, mut bytes) = (0, 0);
            while records < BATCH_RECORDS && bytes < BATCH_BYTES {
                let Some(pair) = scan.next() else { break };
                let (key, record): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = pair?.extract()?;
                each(key.as_bytes(), record.as_bytes());
                records += 1;
                bytes += key.as_bytes().len() + record.as_bytes().len();
            }
            PyResult::Ok(records)
        });
        let records = read.map_err(|error| plugin_error(&self.name, error))?;
        if records == 0 {
            self.scan = None;
        }
        Ok(records > 0)
    }

    fn count(&mut self) -> Result<u64> {
        self.with(|store| store.call_method0("count")?.extract())
    }

    fn sync(&mut self) -> Result<()> {
        self.with(|store| store.call_method0("sync").map(drop))
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.with(|store| store.call_method0("disk_bytes")?.extract())
    }
}

/// Checks the store of `url` with the cases of one kind: "records", "vertices" or "ids".
#[pyfunction]
#[pyo3(signature = (url, opener, cases, budget))]
pub(crate) fn check_store(
    py: Python<'_>,
    url: &str,
    opener: Option<Py<PyAny>>,
    cases: &str,
    budget: Option<u64>,
) -> PyResult<()> {
    let schemes = schemes(opener.as_ref())?;
    let verdict = with_resources(py, None, Limits::one_thread(budget), |resources| {
        let mut options = PartitionOptions {
            partition: 0,
            resources: Arc::new(resources.clone()),
            memory_bytes: budget.map_or(MEMORY_BYTES, |budget| budget / 2),
            is_kept: false,
        };
        let is_live = schemes.kind(url)? == StoreKind::Live;
        Ok(match cases {
            "records" if is_live => Ok(()),
            "records" => check_records(&mut || {
                options.partition += 1;
                schemes.open_records(url, &options)
            }),
            "vertices" => check_vertices(&mut || {
                options.partition += 1;
                schemes.open::<SampleVertex>(url, &options, Compact)
            }),
            _ => check_id_types(schemes.open(url, &options, Compact)?),
        })
    })?;
    verdict.map_err(PyAssertionError::new_err)
}

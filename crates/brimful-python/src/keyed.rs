//! The ready-made collections: keys are 64-bit numbers, batches are buffers of them.

use std::path::PathBuf;

use brimful::collections;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyList};

use crate::call::collection_options;
use crate::errors::CollectionFailure;

/// What a detached call of a collection gives.
fn run<T: Send>(py: Python<'_>, f: impl FnOnce() -> collections::Result<T> + Send) -> PyResult<T> {
    Ok(py.detach(f).map_err(CollectionFailure::from)?)
}

/// Numbers as the bytes that NumPy reads in place.
fn words<'py>(py: Python<'py>, numbers: &[u64]) -> Bound<'py, PyByteArray> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    PyByteArray::new(py, &bytes)
}

/// Truths as one byte each.
fn truths<'py>(py: Python<'py>, truths: &[bool]) -> Bound<'py, PyByteArray> {
    let bytes: Vec<u8> = truths.iter().map(|truth| u8::from(*truth)).collect();
    PyByteArray::new(py, &bytes)
}

/// Counts of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct FrequencyCounter {
    inner: collections::FrequencyCounter,
}

#[pymethods]
impl FrequencyCounter {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        let open = || -> Result<Self, CollectionFailure> {
            let options = collection_options(budget)?;
            Ok(Self { inner: collections::FrequencyCounter::open(&path, options)? })
        };
        Ok(py.detach(open)?)
    }

    fn add_many(&self, py: Python<'_>, keys: PyBuffer<u64>) -> PyResult<()> {
        let keys = keys.to_vec(py)?;
        run(py, || self.inner.add_many(&keys))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(run(py, || self.inner.len())? as usize)
    }

    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.inner.file_bytes().map_err(CollectionFailure::from)?)
    }

    fn count(&self, py: Python<'_>, key: u64) -> PyResult<u64> {
        run(py, || self.inner.count(key))
    }

    fn count_many<'py>(&self, py: Python<'py>, keys: PyBuffer<u64>) -> PyResult<Bound<'py, PyByteArray>> {
        let keys = keys.to_vec(py)?;
        Ok(words(py, &run(py, || self.inner.count_many(&keys))?))
    }

    fn top(&self, py: Python<'_>, most: usize) -> PyResult<Vec<(u64, u64)>> {
        run(py, || self.inner.top(most))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.sync())
    }
}

/// An exact set of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct MembershipSet {
    inner: collections::MembershipSet,
}

#[pymethods]
impl MembershipSet {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        let open = || -> Result<Self, CollectionFailure> {
            let options = collection_options(budget)?;
            Ok(Self { inner: collections::MembershipSet::open(&path, options)? })
        };
        Ok(py.detach(open)?)
    }

    fn add_many(&self, py: Python<'_>, keys: PyBuffer<u64>) -> PyResult<()> {
        let keys = keys.to_vec(py)?;
        run(py, || self.inner.add_many(&keys))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(run(py, || self.inner.len())? as usize)
    }

    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.inner.file_bytes().map_err(CollectionFailure::from)?)
    }

    fn contains(&self, py: Python<'_>, key: u64) -> PyResult<bool> {
        run(py, || self.inner.contains(key))
    }

    fn contains_many<'py>(&self, py: Python<'py>, keys: PyBuffer<u64>) -> PyResult<Bound<'py, PyByteArray>> {
        let keys = keys.to_vec(py)?;
        Ok(truths(py, &run(py, || self.inner.contains_many(&keys))?))
    }

    fn remove(&self, py: Python<'_>, key: u64) -> PyResult<bool> {
        run(py, || self.inner.remove(key))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.sync())
    }
}

/// An approximate set of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct BloomFilter {
    inner: collections::BloomFilter,
}

#[pymethods]
impl BloomFilter {
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        keys: u64,
        false_positives: f64,
        budget: Option<u64>,
    ) -> PyResult<Self> {
        let open = || -> Result<Self, CollectionFailure> {
            let options = collection_options(budget)?;
            Ok(Self { inner: collections::BloomFilter::open(&path, keys, false_positives, options)? })
        };
        Ok(py.detach(open)?)
    }

    fn add_many(&self, py: Python<'_>, keys: PyBuffer<u64>) -> PyResult<()> {
        let keys = keys.to_vec(py)?;
        run(py, || self.inner.add_many(&keys))
    }

    fn contains(&self, py: Python<'_>, key: u64) -> PyResult<bool> {
        run(py, || self.inner.contains(key))
    }

    fn contains_many<'py>(&self, py: Python<'py>, keys: PyBuffer<u64>) -> PyResult<Bound<'py, PyByteArray>> {
        let keys = keys.to_vec(py)?;
        Ok(truths(py, &run(py, || self.inner.contains_many(&keys))?))
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    #[getter]
    fn probes(&self) -> u32 {
        self.inner.probes()
    }

    #[getter]
    fn added(&self) -> u64 {
        self.inner.added()
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.sync())
    }
}

/// A map from bytes to one or more values of bytes.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct DiskMap {
    inner: collections::DiskMap,
}

#[pymethods]
impl DiskMap {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        let open = || -> Result<Self, CollectionFailure> {
            let options = collection_options(budget)?;
            Ok(Self { inner: collections::DiskMap::open(&path, options)? })
        };
        Ok(py.detach(open)?)
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.inner.file_bytes().map_err(CollectionFailure::from)?)
    }

    fn get<'py>(&self, py: Python<'py>, key: PyBackedBytes) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(run(py, || self.inner.get(&key))?.map(|value| PyBytes::new(py, &value)))
    }

    fn get_all<'py>(&self, py: Python<'py>, key: PyBackedBytes) -> PyResult<Bound<'py, PyList>> {
        let values = run(py, || self.inner.get_all(&key))?;
        PyList::new(py, values.iter().map(|value| PyBytes::new(py, value)))
    }

    fn insert(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        run(py, || self.inner.insert(&key, &value))
    }

    fn chain(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        run(py, || self.inner.chain(&key, &value))
    }

    fn remove(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<bool> {
        run(py, || self.inner.remove(&key))
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.compact())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.sync())
    }
}

/// Growing lists of 32-bit numbers.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct DiskLists {
    inner: collections::DiskLists,
}

#[pymethods]
impl DiskLists {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, count: u64, budget: Option<u64>) -> PyResult<Self> {
        let open = || -> Result<Self, CollectionFailure> {
            let options = collection_options(budget)?;
            Ok(Self { inner: collections::DiskLists::open(&path, count, options)? })
        };
        Ok(py.detach(open)?)
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.inner.file_bytes().map_err(CollectionFailure::from)?)
    }

    fn append_many(&self, py: Python<'_>, lists: PyBuffer<u32>, items: PyBuffer<u32>) -> PyResult<()> {
        let (lists, items) = (lists.to_vec(py)?, items.to_vec(py)?);
        run(py, || self.inner.append_many(&lists, &items))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        lists: PyBuffer<u64>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let lists = lists.to_vec(py)?;
        let (counts, items) = run(py, || self.inner.get_many(&lists))?;
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
        Ok((words(py, &counts), PyByteArray::new(py, &bytes)))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.inner.sync())
    }
}

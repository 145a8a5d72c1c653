//! Collections by key: keys are 64-bit numbers, or bytes in a `DiskMap`, and batches are buffers of
//! them.

use std::path::PathBuf;

use brimful::collections;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyList};

use crate::call::{Handle, LONG};
use crate::methods::methods;

/// Numbers as bytes that NumPy reads in place.
pub(crate) fn words<'py>(py: Python<'py>, numbers: &[u64]) -> Bound<'py, PyByteArray> {
    PyByteArray::new(py, bytemuck::cast_slice(numbers))
}

/// Makes a Python object of `len` bytes, which `read` fills; `read` returns it with the length that
/// the record has now. Directly in Python's memory, because a record may exceed the budget.
pub(crate) fn read_whole<T>(
    mut len: u64,
    read: impl Fn(usize, &mut u64) -> PyResult<T>,
) -> PyResult<T> {
    loop {
        let mut new_len = len;
        let record = read(len as usize, &mut new_len)?;
        if new_len == len {
            return Ok(record);
        }
        // Another thread has changed the length since.
        len = new_len;
    }
}

/// Booleans as one byte each.
fn truths<'py>(py: Python<'py>, truths: &[bool]) -> Bound<'py, PyByteArray> {
    let bytes: Vec<u8> = truths.iter().map(|truth| u8::from(*truth)).collect();
    PyByteArray::new(py, &bytes)
}

/// Counts of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct FrequencyCounter {
    inner: Handle<collections::FrequencyCounter>,
}

#[pymethods]
impl FrequencyCounter {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::FrequencyCounter::open(&path, options)
            })?,
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.inner.long(py, |inner| inner.len())? as usize)
    }

    fn count(&self, py: Python<'_>, key: u64) -> PyResult<u64> {
        self.inner.call(py, self.inner.pending() > 0, |inner| inner.count(key))
    }

    fn count_many<'py>(
        &self,
        py: Python<'py>,
        keys: PyBuffer<u64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let keys = keys.to_vec(py)?;
        let counts = self.inner.call(py, keys.len() >= LONG, |inner| inner.count_many(&keys))?;
        drop(keys);
        Ok(words(py, &counts))
    }

    fn top(&self, py: Python<'_>, most: usize) -> PyResult<Vec<(u64, u64)>> {
        self.inner.long(py, |inner| inner.top(most))
    }
}

methods!(FrequencyCounter: durable, sized, keys);

/// An exact set of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct MembershipSet {
    inner: Handle<collections::MembershipSet>,
}

#[pymethods]
impl MembershipSet {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::MembershipSet::open(&path, options)
            })?,
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.inner.long(py, |inner| inner.len())? as usize)
    }

    fn remove(&self, py: Python<'_>, key: u64) -> PyResult<bool> {
        self.inner.call(py, self.inner.pending() > 0, |inner| inner.remove(key))
    }
}

methods!(MembershipSet: durable, sized, keys, membership);

/// An approximate set of keys.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct BloomFilter {
    inner: Handle<collections::BloomFilter>,
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
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::BloomFilter::open(&path, keys, false_positives, options)
            })?,
        })
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
}

methods!(BloomFilter: durable, keys, membership);

/// Keys with values.
type Pairs<'py> = Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>;

/// A map from bytes to one or more values of bytes.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct DiskMap {
    inner: Handle<collections::DiskMap>,
}

#[pymethods]
impl DiskMap {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, budget: Option<u64>) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| collections::DiskMap::open(&path, options))?,
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        key: PyBackedBytes,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.inner.short(py, |inner| inner.get(&key))?.map(|value| PyBytes::new(py, &value)))
    }

    fn get_all<'py>(&self, py: Python<'py>, key: PyBackedBytes) -> PyResult<Bound<'py, PyList>> {
        let values = self.inner.short(py, |inner| inner.get_all(&key))?;
        PyList::new(py, values.iter().map(|value| PyBytes::new(py, value)))
    }

    fn insert(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        self.inner.short(py, |inner| inner.insert(&key, &value))
    }

    fn chain(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        self.inner.short(py, |inner| inner.chain(&key, &value))
    }

    fn remove(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<bool> {
        self.inner.short(py, |inner| inner.remove(&key))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<PyBackedBytes>,
    ) -> PyResult<Bound<'py, PyList>> {
        let values = self.inner.long(py, |inner| inner.get_many(&keys))?;
        PyList::new(
            py,
            values.iter().map(|value| value.as_deref().map(|value| PyBytes::new(py, value))),
        )
    }

    /// Keys and values of the next batch, and the start of the batch after it; None at the end.
    fn items_from<'py>(&self, py: Python<'py>, start: u64) -> PyResult<(Pairs<'py>, Option<u64>)> {
        let mut pairs = Vec::new();
        let next = self.inner.long(py, |inner| {
            inner.first_values(start, |key, value| {
                pairs.push((key.to_vec(), value.to_vec()));
                Ok(())
            })
        })?;
        let bytes = |bytes: Vec<u8>| PyBytes::new(py, &bytes);
        Ok((pairs.into_iter().map(|(key, value)| (bytes(key), bytes(value))).collect(), next))
    }

    fn insert_many(
        &self,
        py: Python<'_>,
        pairs: Vec<(PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<()> {
        self.inner.long(py, |inner| inner.insert_many(&pairs))
    }

    fn chain_many(
        &self,
        py: Python<'_>,
        pairs: Vec<(PyBackedBytes, PyBackedBytes)>,
    ) -> PyResult<()> {
        self.inner.long(py, |inner| inner.chain_many(&pairs))
    }
}

methods!(DiskMap: durable, sized, compacted);

/// Growing lists of 32-bit numbers.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct DiskLists {
    inner: Handle<collections::DiskLists>,
}

#[pymethods]
impl DiskLists {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, count: u64, budget: Option<u64>) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::DiskLists::open(&path, count, options)
            })?,
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn append_many(
        &self,
        py: Python<'_>,
        lists: PyBuffer<u32>,
        items: PyBuffer<u32>,
    ) -> PyResult<()> {
        let (lists, items) = (lists.to_vec(py)?, items.to_vec(py)?);
        self.inner.call(py, items.len() >= LONG, |inner| inner.append_many(&lists, &items))
    }

    #[getter]
    fn taken(&self) -> u64 {
        self.inner.accepted()
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        lists: PyBuffer<u64>,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let lists = lists.to_vec(py)?;
        let (counts, items) = self.inner.long(py, |inner| inner.get_many(&lists))?;
        Ok((words(py, &counts), PyByteArray::new(py, bytemuck::cast_slice(&items))))
    }

    /// The items of a list as little-endian bytes.
    fn get<'py>(&self, py: Python<'py>, list: u64) -> PyResult<Bound<'py, PyByteArray>> {
        let len = self.inner.long(py, |inner| inner.count(list))? * 4;
        read_whole(len, |len, new_len| {
            PyByteArray::new_with(py, len, |out| {
                *new_len = self.inner.long(py, |inner| inner.read_into(list, out))?;
                Ok(())
            })
        })
    }
}

methods!(DiskLists: durable, sized);

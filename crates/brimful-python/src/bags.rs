//! `RecordBag`: records of any length as bytes; `brimful.containers.bags` interprets them.

use std::path::PathBuf;

use brimful::collections;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::call::{Handle, LONG};
use crate::keyed::read_whole;
use crate::methods::methods;

/// A disk-resident sequence of records of any length.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct RecordBag {
    inner: Handle<collections::RecordBag>,
}

#[pymethods]
impl RecordBag {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, schema: &str, budget: Option<u64>) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::RecordBag::open(&path, schema.as_bytes(), options)
            })?,
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    #[getter]
    fn count(&self) -> u64 {
        self.inner.count()
    }

    #[getter]
    fn batch_len(&self) -> usize {
        self.inner.batch_len()
    }

    fn fetch<'py>(&self, py: Python<'py>, id: u64) -> PyResult<Bound<'py, PyBytes>> {
        let Some(len) = self.inner.short(py, |inner| inner.long_len(id))? else {
            let record = self.inner.short(py, |inner| inner.get(id))?;
            return Ok(PyBytes::new(py, &record));
        };
        read_whole(len, |len, new_len| {
            PyBytes::new_with(py, len, |out| {
                *new_len = self.inner.long(py, |inner| inner.read_into(id, out))?;
                Ok(())
            })
        })
    }

    fn fetch_next<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        most: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        if self.inner.short(py, |inner| inner.long_len(start))?.is_some() {
            match self.fetch(py, start) {
                Ok(record) => return PyList::new(py, [record]),
                // Another thread removed the record; the batch below begins without it.
                Err(error) if error.get_type(py).qualname()? == "RecordIdError" => {}
                Err(error) => return Err(error),
            }
        }
        let records = self.inner.call(py, most >= LONG, |inner| inner.fetch_next(start, most))?;
        PyList::new(
            py,
            (0..records.len()).map(|index| records.get(index).map(|r| PyBytes::new(py, r))),
        )
    }

    fn fetch_range<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let records =
            self.inner.call(py, count >= LONG, |inner| inner.fetch_range(start, count))?;
        PyList::new(
            py,
            (0..records.len()).map(|index| records.get(index).map(|r| PyBytes::new(py, r))),
        )
    }

    fn fetch_batch<'py>(
        &self,
        py: Python<'py>,
        ids: PyBuffer<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = ids.to_vec(py)?;
        let batches = self.inner.call(py, ids.len() >= LONG, |inner| inner.fetch_batch(&ids))?;
        let list = PyList::empty(py);
        for records in &batches {
            for record in records.iter() {
                list.append(PyBytes::new(py, record))?;
            }
        }
        Ok(list)
    }

    fn contains(&self, py: Python<'_>, id: u64) -> PyResult<bool> {
        self.inner.short(py, |inner| inner.contains(id))
    }

    fn store(&self, py: Python<'_>, id: u64, record: PyBackedBytes) -> PyResult<()> {
        self.inner.short(py, |inner| inner.store(id, &record))
    }

    fn store_batch(
        &self,
        py: Python<'_>,
        ids: PyBuffer<u64>,
        records: Vec<PyBackedBytes>,
    ) -> PyResult<()> {
        let ids = ids.to_vec(py)?;
        self.inner.call(py, ids.len() >= LONG, |inner| inner.store_batch(&ids, &records))
    }

    fn append_to(&self, py: Python<'_>, id: u64, record: PyBackedBytes) -> PyResult<()> {
        self.inner.short(py, |inner| inner.append_to(id, &record))
    }

    fn append_to_batch(
        &self,
        py: Python<'_>,
        ids: PyBuffer<u64>,
        items: Vec<PyBackedBytes>,
    ) -> PyResult<()> {
        let ids = ids.to_vec(py)?;
        self.inner.call(py, ids.len() >= LONG, |inner| inner.append_to_batch(&ids, &items))
    }

    fn extend(&self, py: Python<'_>, records: Vec<PyBackedBytes>) -> PyResult<u64> {
        self.inner.short(py, |inner| inner.extend(&records))
    }

    fn remove(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.inner.short(py, |inner| inner.remove(id))
    }
}

methods!(RecordBag: durable, sized, compacted);

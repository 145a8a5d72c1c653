//! `RecordBox`: records as bytes; `brimful.containers.boxes` adds a dtype.

use std::path::PathBuf;

use brimful::collections;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::call::{Handle, LONG, LONG_BYTES};
use crate::errors::Failure;
use crate::methods::methods;

/// A disk-resident array of records of one size.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct RecordBox {
    inner: Handle<collections::RecordBox>,
}

type Outcome<T> = Result<T, Failure>;

#[pymethods]
impl RecordBox {
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        record_bytes: usize,
        schema: &str,
        budget: Option<u64>,
    ) -> PyResult<Self> {
        Ok(Self {
            inner: Handle::open(py, budget, |options| {
                collections::RecordBox::open(&path, record_bytes, schema.as_bytes(), options)
            })?,
        })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    #[getter]
    fn batch_len(&self) -> usize {
        self.inner.batch_len()
    }

    fn fetch<'py>(&self, py: Python<'py>, id: u64) -> PyResult<Bound<'py, PyBytes>> {
        let record = self.inner.fetch(id, |record| PyBytes::new(py, record));
        Ok(record.map_err(Failure::from)?)
    }

    fn fetch_range<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let len = self.bytes_of(count)?;
        // Checked before allocating: an impossible count must not become an allocation.
        if start.checked_add(count as u64).is_none_or(|end| end > self.inner.len()) {
            let (id, len) = (start.max(self.inner.len()), self.inner.len());
            let error = collections::Error::OutOfRange { path: self.inner.path().into(), id, len };
            return Err(Failure::from(error).into());
        }
        PyByteArray::new_with(py, len, |out| {
            self.inner.call(py, len >= LONG_BYTES, |inner| inner.fetch_range(start, out))
        })
    }

    fn fetch_batch<'py>(
        &self,
        py: Python<'py>,
        ids: PyBuffer<u64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let ids = ids.to_vec(py)?;
        PyByteArray::new_with(py, self.bytes_of(ids.len())?, |out| {
            self.inner.call(py, ids.len() >= LONG, |inner| inner.fetch_batch(&ids, out))
        })
    }

    fn store_range(&self, py: Python<'_>, start: u64, records: PyBuffer<u8>) -> PyResult<()> {
        let records = records.to_vec(py)?;
        self.inner.call(py, records.len() >= LONG_BYTES, |inner| inner.store_range(start, &records))
    }

    fn store_batch(
        &self,
        py: Python<'_>,
        ids: PyBuffer<u64>,
        records: PyBuffer<u8>,
    ) -> PyResult<()> {
        let (ids, records) = (ids.to_vec(py)?, records.to_vec(py)?);
        self.inner.call(py, ids.len() >= LONG, |inner| inner.store_batch(&ids, &records))
    }

    fn extend(&self, py: Python<'_>, records: PyBuffer<u8>) -> PyResult<u64> {
        let records = records.to_vec(py)?;
        self.inner.call(py, records.len() >= LONG_BYTES, |inner| inner.extend(&records))
    }

    fn resize(&self, py: Python<'_>, len: u64) -> PyResult<()> {
        self.inner.short(py, |inner| inner.resize(len))
    }
}

methods!(RecordBox: durable, sized, compacted);

impl RecordBox {
    fn bytes_of(&self, records: usize) -> Outcome<usize> {
        let bytes = records.checked_mul(self.inner.record_bytes());
        bytes.ok_or_else(|| {
            collections::Error::Usage(format!(
                "{records} records are more than a box can have; give a smaller length"
            ))
            .into()
        })
    }
}

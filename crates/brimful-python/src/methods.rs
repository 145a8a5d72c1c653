//! Methods that several collections have in Python, each written once. The module of a class
//! imports the types of its groups.

/// Gives a class the named groups of methods. Its field `inner` is a
/// [`Handle`](crate::call::Handle).
macro_rules! methods {
    ($class:ident: $($group:ident),+) => {
        $(methods!(@$group $class);)+
    };
    (@durable $class:ident) => {
        #[pymethods]
        impl $class {
            fn verify(&self, py: Python<'_>) -> PyResult<u64> {
                self.inner.long(py, |inner| inner.verify())
            }

            fn sync(&self, py: Python<'_>) -> PyResult<()> {
                self.inner.long(py, |inner| inner.sync())
            }
        }
    };
    (@sized $class:ident) => {
        #[pymethods]
        impl $class {
            fn file_bytes(&self) -> PyResult<u64> {
                Ok(self.inner.file_bytes().map_err(crate::errors::Failure::from)?)
            }
        }
    };
    (@compacted $class:ident) => {
        #[pymethods]
        impl $class {
            fn compact(&self, py: Python<'_>) -> PyResult<()> {
                self.inner.long(py, |inner| inner.compact())
            }
        }
    };
    (@keys $class:ident) => {
        #[pymethods]
        impl $class {
            fn add_many(&self, py: Python<'_>, keys: PyBuffer<u64>) -> PyResult<()> {
                let keys = keys.to_vec(py)?;
                self.inner.call(py, keys.len() >= LONG, |inner| inner.add_many(&keys))
            }

            #[getter]
            fn taken(&self) -> u64 {
                self.inner.accepted()
            }

            /// The number of keys for which one look-up is most efficient.
            #[getter]
            fn question_len(&self) -> usize {
                self.inner.question_len()
            }
        }
    };
    (@membership $class:ident) => {
        #[pymethods]
        impl $class {
            fn contains(&self, py: Python<'_>, key: u64) -> PyResult<bool> {
                self.inner.call(py, self.inner.pending() > 0, |inner| inner.contains(key))
            }

            fn contains_many<'py>(
                &self,
                py: Python<'py>,
                keys: PyBuffer<u64>,
            ) -> PyResult<Bound<'py, PyByteArray>> {
                let keys = keys.to_vec(py)?;
                let contained =
                    self.inner.call(py, keys.len() >= LONG, |inner| inner.contains_many(&keys))?;
                Ok(truths(py, &contained))
            }
        }
    };
}

pub(crate) use methods;

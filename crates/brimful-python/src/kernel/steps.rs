//! The Python object that acts between the supersteps of a kernel, as the engine's [`Master`].

use brimful::engine::vertex::kernel::AGGREGATES;
use brimful::engine::vertex::slot::Slot;
use brimful::engine::{Error, Master};
use pyo3::prelude::*;

/// An object of the class `brimful.kernels.steps.KernelSteps`, which acts between supersteps. It
/// takes and returns the words of the aggregate.
#[derive(Debug)]
pub(super) struct Steps(pub(super) Py<PyAny>);

impl Steps {
    /// Calls a method of the object. Its exceptions reach the caller of the run as they are.
    fn call<T>(
        &self,
        work: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> std::result::Result<T, Error> {
        Python::attach(|py| work(self.0.bind(py)))
            .map_err(|error| Error::ProgramCall(Box::new(error)))
    }
}

/// The words of an aggregate.
pub(super) type Words = [u64; 2 * AGGREGATES];

impl Master for Steps {
    fn begin(&self, aggregate: &mut [Slot; AGGREGATES]) -> std::result::Result<(), Error> {
        let words: Words = self.call(|steps| steps.call_method0("begin")?.extract())?;
        *aggregate = bytemuck::cast(words);
        Ok(())
    }

    fn next_superstep(
        &self,
        done: u64,
        aggregate: &mut [Slot; AGGREGATES],
    ) -> std::result::Result<bool, Error> {
        let words: Words = bytemuck::cast(*aggregate);
        // The call *initial* was superstep 0.
        let words: Option<Words> =
            self.call(|steps| steps.call_method1("next_superstep", (done + 1, words))?.extract())?;
        if let Some(words) = words {
            *aggregate = bytemuck::cast(words);
        }
        Ok(words.is_some())
    }

    fn save(&self) -> std::result::Result<String, Error> {
        self.call(|steps| steps.call_method0("save")?.extract())
    }

    fn restore(&self, saved: &str) -> std::result::Result<(), Error> {
        self.call(|steps| steps.call_method1("restore", (saved,)).map(drop))
    }
}

//! Samples of the rule that `collect` and `combine` change no object that they receive.
//!
//! States and signals are alive, and several vertices may hold one object. A change in place would
//! affect all of them, and the change of the vertex itself would go unnoticed. The first calls are
//! checked, and one in [`SAMPLED`] later calls.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyNone, PyString};

/// Calls that are watched at first, and the distance of the later ones.
const FIRST: u64 = 64;
const SAMPLED: u64 = 61;

/// Chooses the calls to watch, and copies their objects.
pub(super) struct Purity {
    deepcopy: Py<PyAny>,
    /// Calls of `collect`, and of `combine`.
    collects: AtomicU64,
    combines: AtomicU64,
}

/// An object that a call receives: its name, itself, and a copy from before the call.
type Copied<'py> = (&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The objects of a watched call.
pub(super) struct Watched<'py> {
    method: &'static str,
    objects: Vec<Copied<'py>>,
}

impl Purity {
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        let deepcopy = py.import("copy")?.getattr("deepcopy")?.unbind();
        Ok(Self { deepcopy, collects: AtomicU64::new(0), combines: AtomicU64::new(0) })
    }

    /// Copies the objects of a call of `collect`; `None` if it is not watched.
    pub(super) fn watch<'py>(
        &self,
        state: &Bound<'py, PyAny>,
        signals: &Bound<'py, PyList>,
    ) -> Option<Watched<'py>> {
        let signals = signals.iter().map(|signal| ("a signal", signal));
        let call = self.collects.fetch_add(1, Ordering::Relaxed);
        self.watch_all(
            "collect",
            call,
            std::iter::once(("the state", state.clone())).chain(signals),
        )
    }

    /// Copies the signals of a call of `combine`; `None` if it is not watched.
    pub(super) fn watch_signals<'py>(
        &self,
        signals: [&Bound<'py, PyAny>; 2],
    ) -> Option<Watched<'py>> {
        let call = self.combines.fetch_add(1, Ordering::Relaxed);
        self.watch_all("combine", call, signals.into_iter().map(|one| ("a signal", one.clone())))
    }

    fn watch_all<'py>(
        &self,
        method: &'static str,
        call: u64,
        objects: impl Iterator<Item = (&'static str, Bound<'py, PyAny>)>,
    ) -> Option<Watched<'py>> {
        if call >= FIRST && !call.is_multiple_of(SAMPLED) {
            return None;
        }
        let copied =
            objects.filter(|(_, object)| !is_constant(object)).filter_map(|(name, object)| {
                // An object that cannot be copied, or does not equal its copy, cannot be watched.
                let copy = self.deepcopy.bind(object.py()).call1((&object,)).ok()?;
                copy.eq(&object).ok()?.then_some((name, object, copy))
            });
        Some(Watched { method, objects: copied.collect() })
    }
}

/// True for objects that nothing can change.
fn is_constant(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyNone>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyBytes>()
}

impl Watched<'_> {
    /// Checks after the call that its objects are as they were. The attribute `changed` of an error
    /// has the names of the method and of the object.
    pub(super) fn check(&self) -> PyResult<()> {
        let method = self.method;
        for (name, object, before) in &self.objects {
            if !before.eq(object)? {
                let problem = format!("{method} changed {name} in place");
                let error = PyTypeError::new_err(format!("{problem}; return a new object instead"));
                error.value(object.py()).setattr("changed", (method, *name))?;
                return Err(error);
            }
        }
        Ok(())
    }
}

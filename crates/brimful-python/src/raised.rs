//! The exception of a user's program, on its way through the engine.

use std::fmt;

use pyo3::prelude::*;

/// An exception of a program: the vertex, its state if it has one, and the superstep.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) vertex: Py<PyAny>,
    pub(crate) state: Option<Py<PyAny>>,
    pub(crate) superstep: Option<u64>,
    pub(crate) error: PyErr,
}

/// Characters of a state in a message.
const SHOWN: usize = 60;

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.error.to_string();
        f.write_str(text.strip_suffix(": ").unwrap_or(&text))?;
        let Some(superstep) = self.superstep else { return Ok(()) };
        write!(f, "; superstep {superstep}")?;
        let Some(state) = &self.state else { return Ok(()) };
        let state = Python::attach(|py| state.bind(py).repr().map(|text| text.to_string()));
        match state {
            Ok(text) if text.chars().count() <= SHOWN => write!(f, ", state {text}"),
            Ok(text) => write!(f, ", state {}...", text.chars().take(SHOWN).collect::<String>()),
            // The exception of the program is the one to report.
            Err(_) => Ok(()),
        }
    }
}

impl std::error::Error for Raised {}

//! The data of a checkpoint in addition to the vertices: ids of vertices that messages created, and
//! a string of the Python side (aggregators, master and worker context of Pregel).

use std::sync::Arc;

use brimful::execution::Error;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::ids::{Ids, Key};
use crate::errors::raised;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    created: Vec<Key>,
    text: String,
}

/// Saves and restores this data.
pub(super) struct ExtraState<'s> {
    /// The Python callables that save and restore the string, if the program has one.
    pub(super) calls: Option<&'s (Py<PyAny>, Py<PyAny>)>,
    pub(super) ids: Arc<Ids>,
}

impl ExtraState<'_> {
    /// The extra state for a checkpoint; empty if there is none.
    pub(super) fn save(&self) -> Result<String, Error> {
        let text = match self.calls {
            None => String::new(),
            Some((save, _)) => {
                Python::attach(|py| save.bind(py).call0()?.extract()).map_err(raised)?
            }
        };
        let created = self.ids.created_keys();
        if text.is_empty() && created.is_empty() {
            return Ok(String::new());
        }
        serde_json::to_string(&Saved { created, text }).map_err(internal)
    }

    /// Restores the string that [`ExtraState::save`] returned.
    pub(super) fn restore(&self, saved: &str) -> Result<(), Error> {
        if saved.is_empty() {
            return Ok(());
        }
        let Saved { created, text } = serde_json::from_str(saved).map_err(internal)?;
        self.ids.restore(created)?;
        match self.calls {
            Some((_, restore)) if !text.is_empty() => {
                Python::attach(|py| restore.bind(py).call1((text,)).map(drop)).map_err(raised)
            }
            _ => Ok(()),
        }
    }
}

fn internal(error: serde_json::Error) -> Error {
    Error::Internal(error.to_string())
}

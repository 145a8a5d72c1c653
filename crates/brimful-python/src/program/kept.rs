//! Vertices between runs: those of kept stores (`brimful.VertexStore`), and those that a run on
//! disk leaves for its result.
//!
//! - `location`: the location of the vertices of a run; `opened`: vertices between two runs;
//!   `order`: these vertices in the order of their ids; `copied`: those of a run on a database;
//!   `class`: the class for Python. This module has the open stores and the common code of these
//!   parts.
//!
//! Invariants: a store in a folder is open once in a process, and all its users share it; its
//! `generation` grows with each change, so that the result of an earlier run is never mixed with
//! later states.

mod class;
mod copied;
mod location;
mod opened;
mod order;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brimful::algos::registry::StoreChoice;
use brimful::execution::kept::{Condition, KeptStore};
use brimful::execution::{Error, Start};
use brimful::vertices::Vertex as Stored;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::{Deserialize, Serialize};

use super::ids::{Ids, Key};
use super::value::{Value, Values};
pub(crate) use class::KeptVertexStore;
pub(super) use copied::Copied;
pub(super) use location::Location;
use opened::Usage;
pub(super) use opened::{Opened, rows_of};

type ProgramVertex = Stored<u64, Value, f64, Value>;

/// Notes in the manifest of a kept store.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Notes {
    /// The ids of created vertices, by rank from that of the first.
    created: Vec<Key>,
    /// Vertices whose incoming edges were removed since the last run.
    touched: BTreeSet<u64>,
    /// True if a run of Pregel left its states in place of the values of the vertices.
    #[serde(default)]
    is_unsettled: bool,
}

impl Notes {
    /// Records the notes and the condition of a kept store, durably.
    fn record(&self, kept: &mut KeptStore, condition: Condition) -> Result<(), Error> {
        let notes =
            serde_json::to_string(self).map_err(|error| Error::Internal(error.to_string()))?;
        kept.update(|now| {
            now.condition = condition;
            now.notes = notes;
        })
    }
}

/// The properties of the records of a program in the store of `url`.
fn properties(url: &str, serializer: &str, weighted: bool) -> Vec<(&'static str, String)> {
    let store = url.split(':').next().unwrap_or_default();
    vec![
        ("store", store.into()),
        ("records", "of programs in Python".into()),
        ("serializer", serializer.into()),
        ("weights", weighted.to_string()),
    ]
}

/// How a run treats a kept store.
pub(super) struct Keeping {
    pub(super) serializer: String,
    pub(super) start: Start,
    pub(super) is_pregel: bool,
}

/// Stores of this process that are open.
static OPEN: Mutex<Vec<(PathBuf, Weak<Mutex<Opened>>)>> = Mutex::new(Vec::new());

/// Vertices between runs, shared by their users.
pub(super) type Shared = Arc<Mutex<Opened>>;

/// The shared vertices of a folder, if they are open.
fn shared(path: &Path) -> Option<Shared> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = |shared: &Weak<Mutex<Opened>>| {
        shared.upgrade().is_some_and(|shared| locked(&shared).usage != Usage::Closed)
    };
    open.retain(|(_, shared)| is_open(shared));
    open.iter().find(|(folder, _)| folder == path).and_then(|(_, shared)| shared.upgrade())
}

fn share(path: Option<PathBuf>, opened: Opened) -> Shared {
    let new = Arc::new(Mutex::new(opened));
    if let Some(path) = path {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((path, Arc::downgrade(&new)));
    }
    new
}

/// Locks shared vertices. The owner of the lock never waits for the interpreter.
pub(super) fn locked(shared: &Shared) -> MutexGuard<'_, Opened> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first folder of a store, in one form.
fn path_of(url: &str, choice: &StoreChoice) -> Result<Option<PathBuf>, Error> {
    let folders = choice.schemes.folders(url)?;
    Ok(folders.map(|(_, folders)| folders[0].canonicalize().unwrap_or_else(|_| folders[0].into())))
}

fn notes_of(kept: &KeptStore) -> Result<Notes, Error> {
    match kept.description().notes.as_str() {
        "" => Ok(Notes::default()),
        notes => serde_json::from_str(notes).map_err(|error| Error::Internal(error.to_string())),
    }
}

fn not_whole() -> String {
    "the last run on the store, or the last change of its vertices, did not finish; reset every \
     vertex with store.run(program), or with bf.run(graph, program, store=URL, keep=True)"
        .into()
}

/// Rows as pairs of Python objects.
pub(super) fn listed<'py>(
    py: Python<'py>,
    ids: &Ids,
    values: &Values,
    rows: Vec<(u64, Value)>,
) -> PyResult<Bound<'py, PyList>> {
    let out = PyList::empty(py);
    for (rank, state) in rows {
        out.append((ids.get(py, rank)?, values.object(py, &state)?))?;
    }
    Ok(out)
}

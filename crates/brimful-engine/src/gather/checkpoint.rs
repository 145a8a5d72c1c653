//! What a superstep hands to the next, as a checkpoint has it: the states as an array, all else in [`Fields`].

use brimful_store::Error as StoreError;
use brimful_store::checkpoint::Saved;
use serde::{Deserialize, Serialize};

use super::Gather;
use super::run::Run;
use crate::aggregate::Aggregate;
use crate::checkpoint::Checkpointer;
use crate::error::{Error, Result};
use crate::options::RunOptions;
use crate::stats::{Durations, Swept};

/// The fields of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    superstep: u64,
    aggregate: Vec<u64>,
    visited: u64,
    gathered: u64,
    durations: Durations,
}

/// What of a run of `G` its states depend on beside the graph, and the user's parameters.
pub(super) fn identity<G: Gather>(options: &RunOptions) -> [(&'static str, String); 3] {
    [
        ("weighted", options.weighted.to_string()),
        ("program", std::any::type_name::<G>().into()),
        ("bytes of a state", size_of::<G::State>().to_string()),
    ]
}

impl<G: Gather> Run<'_, G> {
    /// Makes a checkpoint between two supersteps, if it is due.
    pub(super) fn checkpoint(&mut self, checkpointer: &mut Checkpointer<'_>) -> Result<bool> {
        let globals = &self.handed.globals;
        if !checkpointer.is_due(globals.superstep) {
            return Ok(false);
        }
        let mut aggregate = Vec::new();
        globals.aggregate.save(&mut aggregate);
        let fields = Fields {
            superstep: globals.superstep,
            aggregate,
            visited: self.swept.edges,
            gathered: self.swept.signals,
            durations: self.durations.clone(),
        };
        checkpointer.make(globals.superstep, fields, |draft, resources| -> Result<()> {
            Ok(draft.array(&self.handed.states, resources)?)
        })?;
        Ok(true)
    }

    /// Goes on from a checkpoint.
    pub(super) fn restore(&mut self, saved: &mut Saved, fields: Fields) -> Result<()> {
        saved.array(&mut self.handed.states, self.fixed.resources)?;
        let misfit =
            || Error::from(StoreError::corrupt_checkpoint(saved.path(), 0, "its fields do not fit this run"));
        let globals = &mut self.handed.globals;
        globals.aggregate = G::Aggregate::restore(&mut fields.aggregate.into_iter()).ok_or_else(misfit)?;
        globals.superstep = fields.superstep;
        self.swept = Swept { signals: fields.gathered, edges: fields.visited };
        self.durations = fields.durations;
        Ok(())
    }
}

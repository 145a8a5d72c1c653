//! Starts a gather run, and writes and restores its checkpoints: the states are an array, all else
//! is in [`CheckpointState`].

use brimful_store::Error as StoreError;
use brimful_store::checkpoint::Saved;
use serde::{Deserialize, Serialize};

use super::distributed::merged;
use super::run::GatherRun;
use super::step::GatherContext;
use crate::checkpoint::Checkpointer;
use crate::error::{Error, Result};
use crate::plan::options::RunOptions;
use crate::result::stats::{Durations, Swept};
use crate::supersteps::Resumable;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::attributes::VertexAttributes;
use crate::vertex::gather::Gather;

/// The fields of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointState {
    superstep: u64,
    aggregate: Vec<u64>,
    visited: u64,
    gathered: u64,
    durations: Durations,
}

/// The options of a run of `G` that its states depend on, besides the graph and the user's
/// parameters.
pub(super) fn identity<G: Gather>(options: &RunOptions) -> [(&'static str, String); 3] {
    [
        ("weighted", options.weighted.to_string()),
        ("program", std::any::type_name::<G>().into()),
        ("bytes of a state", size_of::<G::State>().to_string()),
    ]
}

impl<G: Gather> Resumable for GatherRun<'_, G> {
    type Fields = CheckpointState;

    fn initialize(&mut self) -> Result<()> {
        let GatherContext { program, graph, resources, shards, .. } = &self.context;
        let offsets = G::NEEDS_EXTERNAL.then(|| graph.id_offsets()).transpose()?;
        resources.job.begin("initialize", shards.intervals() as u64);
        let windows = self.current.states.windows();
        resources.parallel_map(
            shards.intervals(),
            |interval, (attributes, buffer): &mut (VertexAttributes, Vec<G::State>)| {
                let range = shards.window(interval);
                self.context.read_degrees(attributes, &range)?;
                attributes.read_external(graph, offsets, &range)?;
                let initial = |at| program.initial(attributes.vertex(range.start, at));
                windows.overwrite(interval, buffer, |states| {
                    states.iter_mut().enumerate().for_each(|(at, state)| *state = initial(at));
                })?;
                resources.job.advance(1);
                Ok::<_, Error>(())
            },
        )?;
        drop(windows);
        // Every process has the first states of all vertices.
        let states = &self.current.states;
        let all = 0..self.context.shards.intervals();
        self.current.globals.aggregate = merged(self.context.aggregates(states, states, all)?);
        Ok(())
    }

    fn checkpoint(&mut self, checkpointer: &mut Checkpointer<'_>) -> Result<bool> {
        if !checkpointer.is_due(self.current.globals.superstep) {
            return Ok(false);
        }
        // With several processes, the driver alone writes.
        self.gather_states()?;
        if self.context.division.as_ref().is_some_and(|division| !division.is_driver()) {
            return Ok(true);
        }
        let globals = &self.current.globals;
        let mut aggregate = Vec::new();
        globals.aggregate.save(&mut aggregate);
        let saved_state = CheckpointState {
            superstep: globals.superstep,
            aggregate,
            visited: self.swept.edges,
            gathered: self.swept.signals,
            durations: self.durations.clone(),
        };
        checkpointer.make(globals.superstep, saved_state, |draft, resources| -> Result<()> {
            Ok(draft.array(&self.current.states, resources)?)
        })?;
        Ok(true)
    }

    fn restore(&mut self, saved: &mut Saved, saved_state: CheckpointState) -> Result<()> {
        saved.array(&mut self.current.states, self.context.resources)?;
        let misfit = || {
            Error::from(StoreError::corrupt_checkpoint(
                saved.path(),
                0,
                "its fields do not fit this run",
            ))
        };
        let globals = &mut self.current.globals;
        globals.aggregate =
            G::Aggregate::restore(&mut saved_state.aggregate.into_iter()).ok_or_else(misfit)?;
        globals.superstep = saved_state.superstep;
        self.swept = Swept { signals: saved_state.gathered, edges: saved_state.visited };
        self.durations = saved_state.durations;
        Ok(())
    }

    /// Gathers the states of all processes.
    fn complete(&mut self) -> Result<()> {
        self.gather_states()
    }
}

//! Starts a run over shards, and writes and restores its checkpoints.
//!
//! Arrays: the states; then the signals, except in full programs whose vertices signal one by one,
//! where they follow from the states. All else is in [`CheckpointState`], the frontier as a map.
//! Invariant: a resumed run computes the same bits as the run that wrote the checkpoint.

use std::sync::atomic::{AtomicBool, Ordering};

use brimful_store::Error as StoreError;
use brimful_store::checkpoint::Saved;
use serde::{Deserialize, Serialize};

use super::asynchronous::SavedSweeps;
use super::{ShardRun, SignalOf};
use crate::checkpoint::Checkpointer;
use crate::error::{Error, Result};
use crate::plan::options::RunOptions;
use crate::result::stats::{Durations, Swept};
use crate::supersteps::Resumable;
use crate::traverse::frontier::Frontier;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::isolated::Isolated;
use crate::vertex::program::{Mode, Program};
use crate::vertex::turn::Turn;

/// The fields of a checkpoint; floats are stored as raw bits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckpointState {
    superstep: u64,
    round: u64,
    aggregate: Vec<u64>,
    isolated: Option<Vec<u8>>,
    /// For each interval, whether all of its vertices are finished.
    finished: Vec<bool>,
    /// The number of vertices that signal, and for each block of vertices whether any does.
    frontier: Option<(u64, Vec<bool>)>,
    signals: u64,
    edges: u64,
    last_visits: u64,
    durations: Durations,
    asynchronous: Option<SavedSweeps>,
    /// See [`Program::extra_state`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    extra_state: String,
}

/// The options of a run of `program` that its states depend on, besides the graph and the user's
/// parameters.
pub fn identity<P: Program>(program: &P, options: &RunOptions) -> [(&'static str, String); 5] {
    let sizes = (program.state_len() * size_of::<P::State>(), size_of::<SignalOf<P>>());
    identity_of(std::any::type_name::<P>(), sizes, options)
}

/// The part of [`identity`] without type parameters, compiled once.
fn identity_of(
    program: &str,
    sizes: (usize, usize),
    options: &RunOptions,
) -> [(&'static str, String); 5] {
    let thresholds = [options.signal_threshold, options.collect_threshold];
    [
        ("mode", if options.asynchronous { "async" } else { "sync" }.into()),
        ("weighted", options.weighted.to_string()),
        ("thresholds", format!("{thresholds:?}")),
        ("program", program.into()),
        ("bytes of a state and a signal", format!("{} and {}", sizes.0, sizes.1)),
    ]
}

impl<P: Program> ShardRun<'_, P> {
    /// True if a vertex's signal is [`Program::signal`] of its current state.
    fn signals_follow(&self) -> bool {
        P::MODE == Mode::Full && !P::BATCHED
    }
}

impl<P: Program> Resumable for ShardRun<'_, P> {
    type Fields = CheckpointState;

    /// Sets every state and computes the first signals.
    fn initialize(&mut self) -> Result<()> {
        self.context.resources.job.begin("initialize", self.context.graph.intervals());
        self.context.program.begin(&mut self.globals)?;
        self.pass(Turn::First)
    }

    fn checkpoint(&mut self, checkpointer: &mut Checkpointer<'_>) -> Result<bool> {
        if !checkpointer.is_due(self.globals.superstep) {
            return Ok(false);
        }
        // With several processes, the driver alone writes.
        self.gather(!self.signals_follow())?;
        if self.context.division.as_ref().is_some_and(|division| !division.is_driver()) {
            return Ok(true);
        }
        let mut aggregate = Vec::new();
        self.globals.aggregate.save(&mut aggregate);
        let saved_state = CheckpointState {
            superstep: self.globals.superstep,
            round: self.globals.round,
            aggregate,
            isolated: self.isolated.to_bytes(),
            finished: self.finished.clone(),
            frontier: self.frontier.as_mut().map(|frontier| {
                let map =
                    frontier.map().iter().map(|active| active.load(Ordering::Relaxed)).collect();
                (frontier.count(), map)
            }),
            signals: self.swept.signals,
            edges: self.swept.edges,
            last_visits: self.last_visits,
            durations: self.durations.clone(),
            asynchronous: self.asynchronous.as_ref().map(|asynchronous| asynchronous.save()),
            extra_state: self.context.program.extra_state()?,
        };
        checkpointer.make(
            self.globals.superstep,
            saved_state,
            |draft, resources| -> Result<()> {
                draft.array(&self.states, resources)?;
                match (self.signals_follow(), &self.spilled_sums) {
                    (true, _) => {}
                    (false, Some(_)) => draft.array(&self.next, resources)?,
                    (false, None) => {
                        draft.records(&self.signals, self.context.window(), resources)?
                    }
                }
                Ok(())
            },
        )?;
        Ok(true)
    }

    fn restore(&mut self, saved: &mut Saved, saved_state: CheckpointState) -> Result<()> {
        let (graph, resources, window) =
            (self.context.graph, self.context.resources, self.context.window());
        resources.job.begin("resume", graph.intervals());
        saved.array(&mut self.states, resources)?;
        match (self.signals_follow(), &self.spilled_sums) {
            // This also sets globals and isolated vertices, which are restored below.
            (true, _) => self.pass(Turn::Round)?,
            (false, Some(_)) => saved.array(&mut self.next, resources)?,
            (false, None) => saved.records(&mut self.signals, window, resources)?,
        }
        let path = saved.path();
        let misfit = || {
            Error::from(StoreError::corrupt_checkpoint(&path, 0, "its fields do not fit this run"))
        };
        let vertices = graph.connected() as usize;
        self.frontier = match saved_state.frontier {
            Some((count, map))
                if P::MODE != Mode::Full
                    && count <= vertices as u64
                    && map.len() == Frontier::empty_map(vertices).len() =>
            {
                Some(Frontier::marked(
                    vertices,
                    map.into_iter().map(AtomicBool::new).collect(),
                    count,
                ))
            }
            None if P::MODE == Mode::Full => None,
            _ => return Err(misfit()),
        };
        let silenced = P::MODE == Mode::Full && saved_state.finished.contains(&true);
        if saved_state.finished.len() != self.finished.len() || silenced {
            return Err(misfit());
        }
        self.finished = saved_state.finished;
        let state_len = self.context.program.state_len();
        self.isolated =
            Isolated::of_bytes(saved_state.isolated.as_deref(), state_len).ok_or_else(misfit)?;
        let mut words = saved_state.aggregate.into_iter();
        self.globals.aggregate = P::Aggregate::restore(&mut words).ok_or_else(misfit)?;
        (self.globals.superstep, self.globals.round) = (saved_state.superstep, saved_state.round);
        self.swept = Swept { signals: saved_state.signals, edges: saved_state.edges };
        self.swept_before = self.swept;
        self.last_visits = saved_state.last_visits;
        self.context.program.restore_extra_state(&saved_state.extra_state)?;
        self.durations = saved_state.durations;
        match (&mut self.asynchronous, saved_state.asynchronous) {
            (Some(asynchronous), Some(saved)) => asynchronous.restore(saved),
            // The checkpointed run had already changed to supersteps, or this run has no sweeps:
            // the frontier is all that supersteps need.
            (sweeps, _) => {
                *sweeps = None;
                Ok(())
            }
        }
    }

    /// Gathers the states of all processes.
    fn complete(&mut self) -> Result<()> {
        self.gather(false)
    }
}

//! What a superstep hands to the next, as a checkpoint has it.
//!
//! Arrays: the states; then the signals, wherever they are kept, but in a full program whose vertices signal one by one, where they follow from the states. All else
//! is in [`Handed`]. The frontier is there as a map, from which its list follows. Invariant: a run that goes on from it
//! makes the bits that the run which wrote it made.

use std::sync::atomic::{AtomicBool, Ordering};

use brimful_store::Error as StoreError;
use brimful_store::checkpoint::Saved;
use serde::{Deserialize, Serialize};

use super::asynchronous::Heard;
use super::{Run, SignalOf};
use crate::aggregate::Aggregate;
use crate::checkpoint::Checkpointer;
use crate::collect::Turn;
use crate::error::{Error, Result};
use crate::frontier::Frontier;
use crate::options::RunOptions;
use crate::program::{Mode, Program};
use crate::stats::{Durations, Swept};

/// The fields of a checkpoint; numbers that are not whole as their bits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handed {
    superstep: u64,
    round: u64,
    aggregate: Vec<u64>,
    isolated: Option<Vec<u8>>,
    over: Vec<bool>,
    /// How many vertices signal, and for each block of vertices whether any does.
    frontier: Option<(u64, Vec<bool>)>,
    signals: u64,
    edges: u64,
    last_visits: u64,
    durations: Durations,
    asynchronous: Option<Heard>,
}

/// What of a run of `P` its states depend on beside the graph, and the user's parameters.
pub fn identity<P: Program>(options: &RunOptions) -> [(&'static str, String); 6] {
    let thresholds = [options.signal_threshold, options.collect_threshold];
    let sizes = (size_of::<P::State>(), size_of::<SignalOf<P>>());
    [
        ("mode", if options.asynchronous { "async" } else { "sync" }.into()),
        ("layout", options.layout.name().into()),
        ("weighted", options.weighted.to_string()),
        ("thresholds", format!("{thresholds:?}")),
        ("program", std::any::type_name::<P>().into()),
        ("bytes of a state and a signal", format!("{} and {}", sizes.0, sizes.1)),
    ]
}

impl<P: Program> Run<'_, P> {
    /// True if what a vertex says is [`Program::signal`] of the state in which it is.
    fn signals_follow(&self) -> bool {
        P::MODE == Mode::Full && self.fixed.program.batched().is_none()
    }

    /// Makes a checkpoint between two supersteps, if it is due.
    pub(super) fn checkpoint(&mut self, checkpointer: &mut Checkpointer<'_>) -> Result<bool> {
        if !checkpointer.is_due(self.globals.superstep) {
            return Ok(false);
        }
        self.take_states_from_records()?;
        let mut aggregate = Vec::new();
        self.globals.aggregate.save(&mut aggregate);
        let handed = Handed {
            superstep: self.globals.superstep,
            round: self.globals.round,
            aggregate,
            isolated: self.isolated.map(|state| bytemuck::bytes_of(&state).to_vec()),
            over: self.over.clone(),
            frontier: self.frontier.as_mut().map(|frontier| {
                let map = frontier.map().iter().map(|active| active.load(Ordering::Relaxed)).collect();
                (frontier.count(), map)
            }),
            signals: self.swept.signals,
            edges: self.swept.edges,
            last_visits: self.last_visits,
            durations: self.durations.clone(),
            asynchronous: self.asynchronous.as_ref().map(|asynchronous| asynchronous.save()),
        };
        checkpointer.make(self.globals.superstep, handed, |draft, resources| -> Result<()> {
            draft.array(&self.states, resources)?;
            match (self.signals_follow(), &self.kept) {
                (true, _) => {}
                (false, Some(_)) => draft.array(&self.next, resources)?,
                (false, None) => draft.records(&self.signals, self.fixed.window(), resources)?,
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Goes on from a checkpoint. Degrees are loaded.
    pub(super) fn restore(&mut self, saved: &mut Saved, handed: Handed) -> Result<()> {
        let (graph, resources, window) = (self.fixed.graph, self.fixed.resources, self.fixed.window());
        resources.job.begin("resume", graph.intervals());
        saved.array(&mut self.states, resources)?;
        self.put_states_into_records()?;
        match (self.signals_follow(), &self.kept) {
            // Sets globals too, and the isolated ones, which come next.
            (true, _) => self.pass(Turn::Round)?,
            (false, Some(_)) => saved.array(&mut self.next, resources)?,
            (false, None) => saved.records(&mut self.signals, window, resources)?,
        }
        let path = saved.path();
        let misfit =
            || Error::from(StoreError::corrupt_checkpoint(&path, 0, "its fields do not fit this run"));
        let vertices = graph.connected() as usize;
        self.frontier = match handed.frontier {
            Some((count, map))
                if P::MODE != Mode::Full
                    && count <= vertices as u64
                    && map.len() == Frontier::empty_map(vertices).len() =>
            {
                Some(Frontier::marked(vertices, map.into_iter().map(AtomicBool::new).collect(), count))
            }
            None if P::MODE == Mode::Full => None,
            _ => return Err(misfit()),
        };
        let silenced = P::MODE == Mode::Full && handed.over.contains(&true);
        if handed.over.len() != self.over.len() || silenced {
            return Err(misfit());
        }
        self.over = handed.over;
        self.isolated = match handed.isolated {
            Some(bytes) => Some(bytemuck::try_pod_read_unaligned(&bytes).map_err(|_| misfit())?),
            None => None,
        };
        let mut words = handed.aggregate.into_iter();
        self.globals.aggregate = P::Aggregate::restore(&mut words).ok_or_else(misfit)?;
        (self.globals.superstep, self.globals.round) = (handed.superstep, handed.round);
        self.swept = Swept { signals: handed.signals, edges: handed.edges };
        self.last_visits = handed.last_visits;
        self.durations = handed.durations;
        match (&mut self.asynchronous, handed.asynchronous) {
            (Some(asynchronous), Some(heard)) => asynchronous.restore(heard),
            (None, None) => Ok(()),
            (sweeps @ Some(_), None) => {
                // By then the run went on in supersteps.
                *sweeps = None;
                Ok(())
            }
            (None, Some(_)) => Err(misfit()),
        }
    }

    /// States go back into records, if they lie there.
    fn put_states_into_records(&mut self) -> Result<()> {
        let Some(records) = self.fixed.records.as_ref().filter(|records| records.is_coupled()) else {
            return Ok(());
        };
        let (mut window, mut room) = (Vec::new(), Vec::new());
        for interval in 0..self.states.window_count() {
            self.fixed.resources.job.check()?;
            records.set_states(
                interval,
                self.states.slice(self.states.window_range(interval), &mut window)?,
                &mut room,
            )?;
        }
        Ok(())
    }
}

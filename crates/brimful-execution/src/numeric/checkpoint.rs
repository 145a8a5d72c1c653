//! Checkpoints of a numeric run on a store.
//!
//! A checkpoint holds the state of each vertex, and whether it is due to signal. A resumed run
//! loads the edges from the graph.

use brimful_engine::checkpoint::CheckpointOptions;
use brimful_engine::result::stats::{Durations, Swept};
use brimful_graph::Graph;
use brimful_store::huge::HugeArray;
use brimful_store::{Error as StoreError, Reservation, Resources};
use brimful_vertices::VertexStore;
use serde::{Deserialize, Serialize};

use crate::checkpoint::RunCheckpoints;
use crate::error::Result;
use crate::from_graph::EdgeData;
use crate::numeric::erased::{Erased, ProgramProgress};
use crate::numeric::program::Numeric;
use crate::program::VertexOf;
use crate::{Execution, RunMode};

/// The fields of a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointState {
    progress: ProgramProgress,
    swept: Swept,
    durations: Durations,
}

/// The checkpoints of one run, and the list of due vertices for them.
pub(super) struct NumericCheckpoints<'c> {
    checkpoints: RunCheckpoints<'c>,
    resources: &'c Resources,
    /// A bit for each vertex with edges: whether it is due to signal.
    due: HugeArray<u64>,
    _memory: Reservation,
    /// Number of vertices whose states form a block.
    window: usize,
}

/// Figures of the run that this one resumes.
#[derive(Default)]
pub(super) struct PriorNumericRun {
    pub(super) resumed_from: Option<u64>,
    pub(super) swept: Swept,
    pub(super) durations: Durations,
}

impl<'c> NumericCheckpoints<'c> {
    /// Opens the folder of checkpoints. `identity` names the parameters that the program's states
    /// depend on.
    ///
    /// # Errors
    /// As [`RunCheckpoints::open`]; budget errors.
    pub(super) fn open(
        options: &'c CheckpointOptions,
        limits: (RunMode, u64),
        graph: &Graph,
        identity: &[(&str, String)],
        resources: &'c Resources,
    ) -> Result<Self> {
        let words = graph.connected().div_ceil(64);
        let memory = resources.budget.reserve(8 * words, "for checkpoints")?;
        Ok(Self {
            checkpoints: RunCheckpoints::open(options, limits, graph, identity, resources)?,
            resources,
            due: HugeArray::zeroed(words as usize),
            _memory: memory,
            window: 1 << graph.description().interval_bits,
        })
    }

    /// Restores the states of `program` from the newest checkpoint, if the run resumes and there is
    /// one.
    ///
    /// # Errors
    /// As [`brimful_engine::checkpoint::Checkpointer::resume`].
    pub(super) fn resume(&mut self, program: &mut dyn Erased) -> Result<PriorNumericRun> {
        let (resources, window, due) = (self.resources, self.window, &mut self.due);
        let mut prior = PriorNumericRun::default();
        self.checkpoints.resume(&mut |mut saved, saved_state: CheckpointState| {
            let path = saved.path();
            program.restore(&mut saved, resources)?;
            saved.records(due, window, resources)?;
            if !program.restore_progress(&saved_state.progress)? {
                return Err(StoreError::corrupt_checkpoint(
                    &path,
                    0,
                    "its fields do not fit this run",
                )
                .into());
            }
            (prior.swept, prior.durations) = (saved_state.swept, saved_state.durations);
            Ok(())
        })?;
        prior.resumed_from = self.checkpoints.resumed_from();
        Ok(prior)
    }

    /// Whether a vertex of a resumed run is due to signal; `None` for a new run.
    pub(super) fn is_due(&self, id: u64) -> Option<bool> {
        // A vertex without edges takes part in every superstep or in none.
        let word = self.due.get((id / 64) as usize).copied().unwrap_or(u64::MAX);
        self.checkpoints.resumed_from().map(|_| word >> (id % 64) & 1 == 1)
    }

    /// Makes a checkpoint if one is due; true if it was.
    ///
    /// # Errors
    /// Errors of the vertices, and of writing this checkpoint or the one before.
    pub(super) fn make_if_due<'p, const S: usize, const M: usize, E: EdgeData, T>(
        &mut self,
        execution: &mut Execution<'_, Numeric<'p, S, M, E>, T>,
        (mut swept, durations): (Swept, &Durations),
    ) -> Result<bool>
    where
        T: VertexStore<VertexOf<Numeric<'p, S, M, E>>>,
    {
        let Some(number) = self.checkpoints.due(execution.program().program.superstep()) else {
            return Ok(false);
        };
        execution.drain_signals()?;
        let due = &mut self.due;
        due.fill(0);
        execution.for_each_by(|numeric, vertex| {
            let id = *vertex.id();
            numeric.program.keep(id, vertex.state.state())?;
            if let Some(word) = due.get_mut((id / 64) as usize) {
                *word |= u64::from(vertex.signalled.is_none()) << (id % 64);
            }
            Ok(())
        })?;
        swept += execution.swept();
        let program = &*execution.program().program;
        let saved_state =
            CheckpointState { progress: program.progress()?, swept, durations: durations.clone() };
        let window = self.window;
        self.checkpoints.make(number, saved_state, |draft, resources| {
            program.draft(draft, resources)?;
            Ok(draft.records(due, window, resources)?)
        })?;
        Ok(true)
    }

    /// Waits until all checkpoints are complete; returns the seconds that they cost the run.
    pub(super) fn finish(self) -> Result<f64> {
        self.checkpoints.finish()
    }
}

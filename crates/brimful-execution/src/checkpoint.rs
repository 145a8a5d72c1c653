//! Checkpoints of a run on stores, with whole vertices in them.
//!
//! A checkpoint is made while no signal is in flight: between two synchronous supersteps, or after
//! [`Execution::drain_signals`]. The remaining work is then in the to-signal lists. A checkpoint
//! has the ids of these lists, and the vertices with their edges, as partition chunks. In
//! asynchronous mode, checkpoints are numbered one after the other.

use brimful_engine::checkpoint::{CheckpointOptions, Checkpointer, Every};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::checkpoint::{Draft, Saved};
use brimful_store::sealed::Buffer;
use brimful_vertices::{PartitionChunk, Serializer, VertexStore, partition_chunk};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::due::{self, DueVertices};
use crate::error::{Error, Result};
use crate::loading::PriorRun;
use crate::program::{VertexOf, VertexProgram};
use crate::{Execution, Loading, RunMode};

/// The checkpoints of one run.
pub struct RunCheckpoints<'c> {
    checkpointer: Checkpointer<'c>,
    /// The number of the last checkpoint; `None` in synchronous mode, which counts supersteps.
    number: Option<u64>,
    max_supersteps: u64,
    resumed_from: Option<u64>,
    extra_state: String,
}

impl<'c> RunCheckpoints<'c> {
    /// Opens the folder of checkpoints, for a run of at most `max_supersteps` if it is
    /// synchronous. `identity` names the parameters that the program's states depend on.
    ///
    /// # Errors
    /// As [`Checkpointer::open`]; [`Error::Usage`] for a checkpoint every n supersteps in
    /// asynchronous mode.
    pub fn open(
        options: &'c CheckpointOptions,
        (mode, max_supersteps): (RunMode, u64),
        graph: &Graph,
        identity: &[(&str, String)],
        resources: &'c Resources,
    ) -> Result<Self> {
        let is_synchronous = mode == RunMode::Synchronous;
        if !is_synchronous && matches!(options.every, Some(Every::Supersteps(_))) {
            return Err(Error::Usage(
                "asynchronous mode has no supersteps to count; make checkpoints by time, such as \
                 every 30s"
                    .into(),
            ));
        }
        let mode = if is_synchronous { "sync" } else { "async" };
        let identity = [identity, &[("vertices in a store", mode.to_owned())]].concat();
        Ok(Self {
            checkpointer: Checkpointer::open(options, graph, &identity, resources, true)?,
            number: (!is_synchronous).then_some(0),
            max_supersteps: if is_synchronous { max_supersteps } else { u64::MAX },
            resumed_from: None,
            extra_state: String::new(),
        })
    }

    /// As [`Checkpointer::resume`].
    pub(crate) fn resume<T: DeserializeOwned>(
        &mut self,
        restore: &mut dyn FnMut(Saved, T) -> brimful_engine::Result<()>,
    ) -> Result<()> {
        self.resumed_from = self.checkpointer.resume(self.max_supersteps, restore)?;
        self.number = self.number.map(|none| self.resumed_from.unwrap_or(none));
        Ok(())
    }

    /// The superstep, or the number, of the checkpoint that the run resumed from, if any.
    pub fn resumed_from(&self) -> Option<u64> {
        self.resumed_from
    }

    /// The caller's string in the checkpoint from which the run resumed; empty if there is none.
    pub fn extra_state(&self) -> &str {
        &self.extra_state
    }

    /// The number of the checkpoint that is due after the given number of supersteps, if one is.
    pub(crate) fn due(&self, supersteps: u64) -> Option<u64> {
        let number = self.number.map_or(supersteps, |last| last + 1);
        self.checkpointer.is_due(number).then_some(number)
    }

    /// As [`Checkpointer::make`].
    pub(crate) fn make<T: Serialize>(
        &mut self,
        number: u64,
        fields: T,
        arrays: impl FnOnce(&mut Draft, &Resources) -> Result<()>,
    ) -> Result<()> {
        self.number = self.number.map(|_| number);
        self.checkpointer.make(number, fields, arrays)
    }

    /// Waits until all checkpoints are complete; returns the seconds that they cost the run.
    ///
    /// # Errors
    /// Errors of completing the last one.
    pub fn finish(self) -> Result<f64> {
        Ok(self.checkpointer.finish()?)
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'_, P, S> {
    /// Makes a checkpoint, if one is due, of all vertices, as `serializer` writes them, and of the
    /// string that `extra_state` returns.
    ///
    /// # Errors
    /// Errors of the vertices and of `extra_state`, and of writing this checkpoint or the one
    /// before.
    pub fn checkpoint(
        &mut self,
        checkpoints: &mut RunCheckpoints<'_>,
        serializer: &mut dyn Serializer<VertexOf<P>>,
        extra_state: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        let stats = self.stats()?;
        let Some(number) = checkpoints.due(stats.supersteps) else { return Ok(()) };
        self.drain_signals()?;
        let mut due = 0;
        self.for_each_due(|_| {
            due += 1;
            Ok(())
        })?;
        let prior = PriorRun {
            supersteps: stats.supersteps,
            signals_sent: stats.signals_sent,
            edges_visited: stats.edges_visited,
            due,
            extra_state: extra_state()?,
        };
        checkpoints.make(number, prior, |draft, resources| {
            due::save(draft, |each| self.for_each_due(each), &resources.job)?;
            self.for_each_store(|store| {
                Ok(store.pack(serializer, &mut |chunk| {
                    resources.job.check()?;
                    Ok(draft.block(chunk.as_bytes())?)
                })?)
            })
        })
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Loading<'_, P, S> {
    /// Loads the vertices of the newest complete checkpoint; false if the run does not resume or
    /// there is none.
    ///
    /// # Errors
    /// As [`Checkpointer::resume`]; [`Error::Usage`] if another serializer wrote it; errors of
    /// stores.
    pub fn resume(
        &mut self,
        checkpoints: &mut RunCheckpoints<'_>,
        serializer: &mut dyn Serializer<VertexOf<P>>,
    ) -> Result<bool> {
        let (mut newest, mut block) = (None, Buffer::new());
        checkpoints.resume(&mut |mut saved, prior: PriorRun| {
            // All blocks are checked before the first vertex is loaded: an older checkpoint may be
            // valid.
            while saved.block(&mut block)? {}
            saved.rewind();
            newest = Some((saved, prior));
            Ok(())
        })?;
        let Some((saved, prior)) = newest else { return Ok(false) };
        let mut due = DueVertices::new(saved, prior.due);
        let chunks = due.rest::<P::Id>()?;
        while chunks.block(&mut block)? {
            self.resources.job.check()?;
            let chunk = PartitionChunk::from_bytes(block.bytes().to_vec())?;
            partition_chunk::unpack(
                serializer,
                &chunk,
                &mut |vertex| Ok(self.add_vertex(vertex)?),
            )?;
        }
        checkpoints.extra_state.clone_from(&prior.extra_state);
        self.due = Some(due);
        self.prior = prior;
        Ok(true)
    }
}

//! Checkpoints of a run on stores: when they are made, and whole vertices in them.
//!
//! The cut is where nothing is under way: between two synchronous supersteps, or after [`Execution::settle`]. What there is to say is
//! then known by the vertices alone. They are saved as parcels, edges and all, and a resumed run loads them from there. Where there are no
//! supersteps a checkpoint goes by its number instead.

use brimful_engine::checkpoint::{CheckpointOptions, Checkpointer, Every};
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::checkpoint::{Draft, Saved};
use brimful_store::sealed::Buffer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::execution::{Execution, Loading, Mode};
use crate::parcel::{self, Parcel};
use crate::program::{VertexOf, VertexProgram};
use crate::serializer::Serializer;
use crate::store::VertexStore;

/// The checkpoints of one run.
pub struct Checkpoints<'c> {
    checkpointer: Checkpointer<'c>,
    /// The last one's; `None`: there are supersteps.
    number: Option<u64>,
    max_supersteps: u64,
    resumed_from: Option<u64>,
}

/// What was done by the run that this one goes on from.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    pub(super) supersteps: u64,
    pub(super) signals_sent: u64,
}

impl<'c> Checkpoints<'c> {
    /// Opens their folder for a run of at most so many supersteps, if it has any. `own` is what of the program its states depend on.
    ///
    /// # Errors
    /// As [`Checkpointer::open`]; [`Error::Usage`] for supersteps to be counted where there are none.
    pub fn open(
        options: &'c CheckpointOptions,
        (mode, max_supersteps): (Mode, u64),
        graph: &Graph,
        own: &[(&str, String)],
        resources: &'c Resources,
    ) -> Result<Self> {
        let is_synchronous = mode == Mode::Synchronous;
        if !is_synchronous && matches!(options.every, Some(Every::Supersteps(_))) {
            return Err(Error::Usage(
                "without supersteps checkpoints are made every so many seconds: give, say, 30s".into(),
            ));
        }
        let way = if is_synchronous { "sync" } else { "async" };
        let own = [own, &[("vertices in a store", way.to_owned())]].concat();
        Ok(Self {
            checkpointer: Checkpointer::open(options, graph, &own, resources)?,
            number: (!is_synchronous).then_some(0),
            max_supersteps: if is_synchronous { max_supersteps } else { u64::MAX },
            resumed_from: None,
        })
    }

    /// As [`Checkpointer::resume`].
    pub(crate) fn resume<T: DeserializeOwned>(
        &mut self,
        restore: impl FnMut(Saved, T) -> brimful_engine::Result<()>,
    ) -> Result<()> {
        self.resumed_from = self.checkpointer.resume(self.max_supersteps, restore)?;
        self.number = self.number.map(|none| self.resumed_from.unwrap_or(none));
        Ok(())
    }

    /// The superstep, or the number, of the checkpoint that the run goes on from, if there is one.
    pub fn resumed_from(&self) -> Option<u64> {
        self.resumed_from
    }

    /// By what the checkpoint goes that is due after so many supersteps.
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

    /// Waits until all are complete; the seconds that they cost the run.
    ///
    /// # Errors
    /// Those of completing the last one.
    pub fn finish(self) -> Result<f64> {
        Ok(self.checkpointer.finish()?)
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'_, P, S> {
    /// Makes a checkpoint of all vertices, as `serializer` writes them, if it is time.
    ///
    /// # Errors
    /// Those of the vertices, and of writing this checkpoint or the one before.
    pub fn checkpoint(
        &mut self,
        checkpoints: &mut Checkpoints<'_>,
        serializer: &mut dyn Serializer<VertexOf<P>>,
    ) -> Result<()> {
        let stats = self.stats()?;
        let Some(number) = checkpoints.due(stats.supersteps) else { return Ok(()) };
        self.settle()?;
        let before = Before { supersteps: stats.supersteps, signals_sent: stats.signals_sent };
        checkpoints.make(number, before, |draft, resources| {
            self.for_each_store(|store| {
                store.pack(serializer, &mut |parcel| {
                    resources.job.check()?;
                    Ok(draft.block(parcel.as_bytes())?)
                })
            })
        })
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Loading<'_, P, S> {
    /// Loads the vertices of the newest checkpoint that is whole; false if the run is not to resume or there is none.
    ///
    /// # Errors
    /// As [`Checkpointer::resume`]; [`Error::Usage`] if another serializer wrote it; those of the stores.
    pub fn resume(
        &mut self,
        checkpoints: &mut Checkpoints<'_>,
        serializer: &mut dyn Serializer<VertexOf<P>>,
    ) -> Result<bool> {
        let (mut newest, mut block) = (None, Buffer::new());
        checkpoints.resume(|mut saved, before: Before| {
            // All of it is whole before a vertex is loaded, else an older one may be.
            while saved.block(&mut block)? {}
            saved.rewind();
            newest = Some((saved, before));
            Ok(())
        })?;
        let Some((mut saved, before)) = newest else { return Ok(false) };
        while saved.block(&mut block)? {
            self.resources.job.check()?;
            let parcel = Parcel::from_bytes(block.bytes().to_vec())?;
            parcel::unpack(serializer, &parcel, &mut |vertex| self.add_vertex(vertex))?;
        }
        self.before = before;
        Ok(true)
    }
}

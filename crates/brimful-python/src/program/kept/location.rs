//! The place of the vertices of a run, and the condition of a kept store during the run.

use std::sync::Arc;

use brimful::algos::registry::StoreChoice;
use brimful::execution::from_graph::of_one_run;
use brimful::execution::kept::{Condition, KeptStore};
use brimful::execution::{Error, KeptVertices, Partitioner, Start};
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use brimful::store::external::TemporaryFolder;

use super::opened::{Opened, Usage};
use super::{
    Keeping, Notes, Shared, locked, not_whole, notes_of, path_of, properties, share, shared,
};
use crate::program::ids::{Ids, Key};
use crate::program::value::Values;

/// The location of the vertices of a run.
pub(in super::super) struct Location {
    pub(in super::super) url: String,
    /// The folders of one run.
    folders: Vec<TemporaryFolder>,
    kept: Option<KeptStore>,
    start: Start,
    is_pregel: bool,
    /// The vertices of the kept store, if they are open.
    shared: Option<Shared>,
    notes: Notes,
}

impl Location {
    /// A place for the vertices of a run, kept or not.
    pub(in super::super) fn new(
        choice: &StoreChoice,
        graph: &Arc<Inner>,
        (keeping, weighted): (Option<&Keeping>, bool),
    ) -> Result<Self, Error> {
        let Some(keeping) = keeping else {
            let (url, folders) = of_one_run(&choice.url, &choice.schemes)?;
            let (start, is_pregel, notes) = (Start::Fresh, false, Notes::default());
            return Ok(Self { url, folders, kept: None, start, is_pregel, shared: None, notes });
        };
        let shared = path_of(&choice.url, choice)?.and_then(|path| shared(&path));
        let kept = match &shared {
            Some(shared) => locked(shared).lend()?,
            None => None,
        };
        let properties = properties(&choice.url, &keeping.serializer, weighted);
        let kept = match kept {
            Some(kept) => kept,
            None => KeptStore::open(&choice.url, &choice.schemes, graph, &properties)?,
        };
        let notes = notes_of(&kept)?;
        let own = Self {
            url: choice.url.clone(),
            folders: Vec::new(),
            kept: Some(kept),
            start: keeping.start,
            is_pregel: keeping.is_pregel,
            shared,
            notes,
        };
        own.check(graph, &properties)
    }

    fn check(self, graph: &Inner, properties: &[(&str, String)]) -> Result<Self, Error> {
        let Some(kept) = &self.kept else { return Ok(self) };
        kept.check(graph, properties)?;
        let condition = kept.description().condition;
        if self.start == Start::Continue && condition != Condition::Whole {
            return Err(Error::Usage(match condition {
                Condition::Loading => {
                    "the store has no states to continue from; run a program with \
                     start=\"initial\" first"
                        .into()
                }
                _ => not_whole(),
            }));
        }
        Ok(self)
    }

    /// The vertices that the store has.
    pub(in super::super) fn vertices(&self) -> Option<KeptVertices<'_>> {
        let kept = self.kept.as_ref()?;
        // Pregel makes a state of its own from each kept one.
        let start = if self.is_pregel { Start::Fresh } else { self.start };
        Some(KeptVertices { edges: &kept.description().edges, start })
    }

    /// The ids of created vertices.
    pub(in super::super) fn created(&self) -> Vec<Key> {
        self.notes.created.clone()
    }

    /// Vertices that are to collect first.
    pub(in super::super) fn touched(&self) -> impl Iterator<Item = u64> {
        let is_continued = self.start == Start::Continue;
        self.notes.touched.iter().copied().filter(move |_| is_continued)
    }

    /// Records that the states of the kept vertices begin to change.
    pub(in super::super) fn begin(&mut self) -> Result<(), Error> {
        match &self.kept {
            Some(kept) if !kept.description().edges.is_empty() => {
                self.notes.is_unsettled = self.is_pregel;
                self.record(Condition::Running)
            }
            _ => Ok(()),
        }
    }

    /// Records the condition of a kept store, and its notes.
    fn record(&mut self, condition: Condition) -> Result<(), Error> {
        self.kept.as_mut().map_or(Ok(()), |kept| self.notes.record(kept, condition))
    }

    /// Records the ids of created vertices, before the records that have them are durable.
    pub(in super::super) fn name(&mut self, ids: &Ids) -> Result<(), Error> {
        let created = ids.created_keys();
        if self.kept.is_none() || created.len() == self.notes.created.len() {
            return Ok(());
        }
        self.notes.created = created;
        self.record(Condition::Running)
    }

    /// True if the vertices of a kept store are not all loaded yet.
    pub(in super::super) fn is_loading(&self) -> bool {
        let condition = self.kept.as_ref().map(|kept| kept.description().condition);
        condition == Some(Condition::Loading)
    }

    /// Records that all vertices are loaded, and durable.
    pub(in super::super) fn loaded(&mut self, edges: &[u64]) -> Result<(), Error> {
        if let Some(kept) = &mut self.kept {
            kept.update(|now| now.edges = edges.to_vec())?;
        }
        self.begin()
    }

    /// Records that the run stopped before its end, with its changes on disk.
    pub(in super::super) fn stopped(&mut self) -> Result<(), Error> {
        match &self.kept {
            Some(kept) if kept.description().condition == Condition::Running => {
                self.record(Condition::Stopped)
            }
            _ => Ok(()),
        }
    }

    /// Replaces the states that a run of Pregel left by the values of the vertices. The store then
    /// counts as stopped.
    pub(in super::super) fn settle(
        &mut self,
        (graph, choice): (&Arc<Inner>, &StoreChoice),
        own: (Arc<Ids>, Arc<Values>),
        resources: &Resources,
    ) -> Result<(), Error> {
        if !self.notes.is_unsettled {
            return Ok(());
        }
        self.record(Condition::Running)?;
        let partitions = self.vertices().map_or(0, |kept| kept.edges.len());
        let mut opened = self.opened((graph, choice, partitions), own, resources);
        let settled = opened.settle(&resources.job);
        // Also after an error, so that the files of the store are consistent.
        let synced = opened.sync_stores();
        self.kept = opened.kept.take();
        if synced.is_ok() {
            self.notes.is_unsettled = settled.is_err();
            self.stopped()?;
        }
        settled.and(synced)
    }

    /// Records that the run ended, with its changes on disk.
    pub(in super::super) fn finished(&mut self, ids: &Ids) -> Result<(), Error> {
        self.notes = Notes { created: ids.created_keys(), ..Notes::default() };
        self.record(Condition::Whole)
    }

    /// The vertices outside a run, with the kept store.
    fn opened(
        &mut self,
        (graph, choice, partitions): (&Arc<Inner>, &StoreChoice, usize),
        (ids, values): (Arc<Ids>, Arc<Values>),
        resources: &Resources,
    ) -> Opened {
        Opened {
            partitions: None,
            kept: self.kept.take(),
            notes: self.notes.clone(),
            url: self.url.clone(),
            choice: choice.clone(),
            count: partitions,
            partitioner: None,
            graph: Arc::clone(graph),
            ids,
            values,
            order: None,
            generation: 0,
            budget: Arc::clone(&resources.budget),
            usage: Usage::Shared,
        }
    }

    /// The vertices between runs, which are durable, for results and for later runs. `partitioner`
    /// is that of the run, if there was one.
    pub(in super::super) fn leave(
        mut self,
        of: (&Arc<Inner>, &StoreChoice, usize),
        partitioner: Option<Partitioner<u64>>,
        own: (Arc<Ids>, Arc<Values>),
        resources: &Resources,
    ) -> Result<Shared, Error> {
        let choice = of.1;
        let mut opened = self.opened(of, own, resources);
        opened.partitioner = partitioner.filter(|_| opened.kept.is_none());
        if let Some(shared) = self.shared.take() {
            let mut before = locked(&shared);
            let generation = before.generation + 1;
            *before = Opened { generation, ..opened };
            drop(before);
            return Ok(shared);
        }
        if opened.kept.is_some() {
            return Ok(share(path_of(&self.url, choice)?, opened));
        }
        // Open files stay readable without names, and nothing is left behind after a kill.
        opened.partitions()?;
        self.folders.clear();
        Ok(share(None, opened))
    }
}

/// Returns a kept store to its other users, after a run that failed.
impl Drop for Location {
    fn drop(&mut self) {
        if let (Some(kept), Some(shared)) = (self.kept.take(), &self.shared) {
            let mut opened = locked(shared);
            (opened.kept, opened.usage) = (Some(kept), Usage::Shared);
        }
    }
}

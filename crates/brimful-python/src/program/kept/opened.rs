//! Vertices between two runs, read and changed one at a time.

use std::sync::Arc;

use brimful::algos::registry::StoreChoice;
use brimful::execution::from_graph::{Partitions, StoreOptions};
use brimful::execution::kept::{Condition, KeptStore};
use brimful::execution::{Error, KeptVertices, Partitioner, Partitioning, Start};
use brimful::graph::Graph as Inner;
use brimful::store::{Budget, Job, Reservation, Resources};
use brimful::vertices::{Edges, Field as _, Loan, Vertex as Stored, VertexStore as _};
use pyo3::PyErr;

use super::order::Order;
use super::{Notes, ProgramVertex, not_whole};
use crate::program::calls::settled;
use crate::program::ids::Ids;
use crate::program::record::Records;
use crate::program::value::{Value, Values};

/// Vertices between runs.
pub(in super::super) struct Opened {
    /// Closed during a run; with their memory.
    pub(super) partitions: Option<(Partitions<ProgramVertex>, Reservation)>,
    /// `None` for the vertices of one run, and during a run.
    pub(super) kept: Option<KeptStore>,
    pub(super) notes: Notes,
    pub(super) url: String,
    pub(super) choice: StoreChoice,
    pub(super) count: usize,
    /// The partitioner of the run whose vertices these are; `None` for kept vertices.
    pub(super) partitioner: Option<Partitioner<u64>>,
    pub(super) graph: Arc<Inner>,
    pub(super) ids: Arc<Ids>,
    pub(super) values: Arc<Values>,
    /// All vertices in the order of external ids, if it was requested.
    pub(super) order: Option<Order>,
    pub(in super::super) generation: u64,
    pub(super) budget: Arc<Budget>,
    pub(super) usage: Usage,
}

/// The current use of the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Readers share the vertices.
    Shared,
    /// A run has the vertices.
    Lent,
    /// The use has ended.
    Closed,
}

/// Memory of a store between runs, at most half of the budget.
const MEMORY_BYTES: u64 = 32 << 20;

impl Opened {
    pub(super) fn partitions(&mut self) -> Result<&mut Partitions<ProgramVertex>, Error> {
        self.check_usage()?;
        if self.partitions.is_none() {
            if let Some(kept) = &self.kept
                && kept.description().condition != Condition::Whole
            {
                return Err(Error::Usage(not_whole()));
            }
            self.open()?;
        }
        let opened = self.partitions.as_mut().map(|(partitions, _)| partitions);
        opened.ok_or_else(|| Error::Internal("no partitions are open".into()))
    }

    fn open(&mut self) -> Result<(), Error> {
        let bytes = MEMORY_BYTES.min(self.budget.limit() / 2);
        let memory = self.budget.reserve(bytes, "to read a store of vertices")?;
        let job = Arc::new(Job::new());
        let resources = Resources::new(Budget::new(bytes, 0), job, Some(1))?;
        let edges = vec![1; self.count];
        let stores = StoreOptions {
            store: &self.url,
            schemes: &self.choice.schemes,
            cache: None,
            partitioning: Partitioning::default(),
            kept: Some(KeptVertices { edges: &edges, start: Start::Continue }),
        };
        let records = || Ok(Box::new(Records(Arc::clone(&self.values))) as _);
        let (stores, partitioner) = ((&stores, self.count), self.partitioner.clone());
        let opened = Partitions::open(stores, partitioner, &self.graph, &records, &resources)?;
        self.partitions = Some((opened, memory));
        Ok(())
    }

    /// Replaces the states of a run of Pregel by the values of the vertices, and removes
    /// the vertices that do not exist. A vertex that has halted counts as one that has signalled.
    pub(super) fn settle(&mut self, job: &Job) -> Result<(), Error> {
        self.open()?;
        let values = Arc::clone(&self.values);
        let Some((partitions, _)) = &mut self.partitions else { return Ok(()) };
        for store in partitions.stores() {
            let mut gone = Vec::new();
            store.for_each(&mut |vertex| {
                job.check()?;
                let Value::Working(state) = &vertex.state else { return Ok(()) };
                match settled(&values, state).map_err(|error| of_serializer(&error))? {
                    Some((value, is_idle)) => {
                        vertex.signalled = is_idle.then(|| value.clone());
                        vertex.state = value;
                    }
                    None => gone.push(*vertex.id()),
                }
                Ok(())
            })?;
            gone.iter().try_for_each(|rank| store.remove(rank).map(drop))?;
        }
        Ok(())
    }

    fn check_usage(&self) -> Result<(), Error> {
        Err(Error::Usage(match self.usage {
            Usage::Shared => return Ok(()),
            Usage::Lent => "a run uses the vertices of this store; wait until the run ends".into(),
            Usage::Closed => "the store is closed; open it again".into(),
        }))
    }

    /// Ends the use of the vertices by all owners.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        if self.usage == Usage::Closed {
            return Ok(());
        }
        self.check_usage()?;
        self.sync()?;
        (self.partitions, self.order, self.kept) = (None, None, None);
        self.usage = Usage::Closed;
        Ok(())
    }

    /// Gives the store to a run.
    pub(in super::super) fn lend(&mut self) -> Result<Option<KeptStore>, Error> {
        self.check_usage()?;
        self.sync()?;
        (self.partitions, self.order) = (None, None);
        self.usage = Usage::Lent;
        Ok(self.kept.take())
    }

    /// Records that the vertices change.
    pub(super) fn change(&mut self) -> Result<(), Error> {
        self.partitions()?;
        self.generation += 1;
        match &mut self.kept {
            Some(kept) if kept.description().condition == Condition::Whole => {
                kept.update(|now| now.condition = Condition::Running)
            }
            Some(_) => Ok(()),
            None => {
                Err(Error::Usage("these vertices belong to one run; they cannot be changed".into()))
            }
        }
    }

    /// Makes all changes durable.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        if self.partitions.is_none() {
            return Ok(());
        }
        let is_changed =
            self.kept.as_ref().map(|kept| kept.description().condition) == Some(Condition::Running);
        if is_changed {
            // Before the records that have these ids.
            self.notes.created = self.ids.created_keys();
            self.record(Condition::Running)?;
        }
        self.sync_stores()?;
        if is_changed { self.record(Condition::Whole) } else { Ok(()) }
    }

    fn record(&mut self, condition: Condition) -> Result<(), Error> {
        self.kept.as_mut().map_or(Ok(()), |kept| self.notes.record(kept, condition))
    }

    pub(super) fn sync_stores(&mut self) -> Result<(), Error> {
        let stores = self.partitions.iter_mut().flat_map(|(partitions, _)| partitions.stores());
        stores.into_iter().try_for_each(|store| Ok(store.sync()?))
    }

    pub(in super::super) fn len(&mut self) -> Result<u64, Error> {
        Ok(self.partitions()?.stores().map(|store| store.len()).sum())
    }

    /// Lends the vertex of a rank; `None` if it does not exist.
    pub(super) fn with<T>(
        &mut self,
        rank: u64,
        work: impl FnOnce(&mut Loan<'_, ProgramVertex>) -> T,
    ) -> Result<Option<T>, Error> {
        let (mut work, mut out) = (Some(work), None);
        self.partitions()?.store(rank)?.lend(&rank, &mut |vertex| {
            out = work.take().map(|work| work(vertex));
            Ok(())
        })?;
        Ok(out)
    }

    /// The number of vertices that a reader announces at a time.
    fn lookahead(&mut self) -> Result<usize, Error> {
        let ahead = self.partitions()?.stores().map(|store| store.lookahead()).max();
        Ok(ahead.filter(|ahead| *ahead > 0).unwrap_or(usize::MAX))
    }

    /// Announces the vertices that are lent next.
    fn announce(&mut self, ranks: &[u64]) -> Result<(), Error> {
        let partitions = self.partitions()?;
        let mut keys = vec![Vec::new(); partitions.stores().count()];
        for rank in ranks {
            let mut key = Vec::new();
            rank.write(&mut key);
            keys[partitions.partition(*rank)].push(key);
        }
        for (store, keys) in partitions.stores().zip(&keys) {
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            store.prefetch(&keys)?;
        }
        Ok(())
    }

    /// The state of the vertex of a rank.
    pub(in super::super) fn state(&mut self, rank: u64) -> Result<Option<Value>, Error> {
        self.with(rank, |vertex| vertex.state.clone())
    }

    /// All vertices in the order of external ids.
    fn order(&mut self) -> Result<&Order, Error> {
        self.partitions()?;
        let (Some((partitions, _)), None) = (&mut self.partitions, &self.order) else {
            return self.ordered();
        };
        let made = Order::new(partitions, &self.ids, &self.choice, &self.budget)?;
        self.order = Some(made);
        self.ordered()
    }

    fn ordered(&self) -> Result<&Order, Error> {
        self.order.as_ref().ok_or_else(|| Error::Internal("no order was made".into()))
    }

    pub(super) fn insert(
        &mut self,
        rank: u64,
        state: Value,
        edges: Edges<u64, f64>,
    ) -> Result<bool, Error> {
        self.change()?;
        self.order = None;
        Ok(self.partitions()?.store(rank)?.insert(Stored::new(rank, state, edges))?)
    }

    pub(super) fn remove(&mut self, rank: u64) -> Result<bool, Error> {
        self.change()?;
        self.order = None;
        let targets = self.with(rank, |vertex| vertex.edges().targets().to_vec())?;
        for target in targets.unwrap_or_default() {
            self.forget(rank, target)?;
        }
        Ok(self.partitions()?.store(rank)?.remove(&rank)?)
    }

    /// Adds edges to the vertex of a rank; false if it does not exist.
    pub(super) fn extend(&mut self, rank: u64, edges: &[(u64, f64)]) -> Result<bool, Error> {
        self.change()?;
        let done = self.with(rank, |vertex| {
            edges.iter().for_each(|(target, weight)| vertex.edges_mut().push(*target, *weight));
        })?;
        Ok(done.is_some())
    }

    /// Removes all edges between two vertices; returns their number, or `None` without the source.
    pub(super) fn disconnect(&mut self, rank: u64, target: u64) -> Result<Option<usize>, Error> {
        self.change()?;
        let gone = self.with(rank, |vertex| {
            let before = vertex.edges().len();
            if vertex.edges().targets().contains(&target) {
                vertex.edges_mut().retain(|edge| *edge.target != target);
            }
            before - vertex.edges().len()
        })?;
        if gone.is_some_and(|gone| gone > 0) {
            self.forget(rank, target)?;
        }
        Ok(gone)
    }

    /// Lets `target` forget the signals of `source`, and collect again in the next run.
    fn forget(&mut self, source: u64, target: u64) -> Result<(), Error> {
        if self.with(target, |vertex| vertex.forget_source(&source))?.is_some() {
            self.notes.touched.insert(target);
        }
        Ok(())
    }
}

fn of_serializer(error: &PyErr) -> Error {
    Error::Usage(format!("the serializer cannot read or write the value of a vertex: {error}"))
}

/// Ranks and states from position `start` on, in the order of ids.
pub(in super::super) fn rows_of(
    opened: &mut Opened,
    start: usize,
    count: usize,
) -> Result<Vec<(u64, Value)>, Error> {
    let ranks = opened.order()?.ranks(start, count)?;
    let mut rows = Vec::with_capacity(ranks.len());
    for part in ranks.chunks(opened.lookahead()?) {
        opened.announce(part)?;
        for rank in part {
            rows.extend(opened.state(*rank)?.map(|state| (*rank, state)));
        }
    }
    Ok(rows)
}

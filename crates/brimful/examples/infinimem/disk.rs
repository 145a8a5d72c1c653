//! Box and Bag with the interface of the paper (its Figures 3 to 5), that count and time what they
//! are asked for.
//!
//! The kinds of operations are those of its Tables 4 and 5: batches of vertices, batches of edge
//! lists, single vertices. One thread, as time that several wait cannot be told from time that they
//! work.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brimful::collections::{self, DiskBag, DiskBox, Options};
use brimful::store::Resources;
use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::input::{Edge, Input, Loaded};

/// Bytes of a page: small, as most reads are of one vertex.
const PAGE_BYTES: usize = 4 << 10;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    VertexBatchRead,
    EdgeBatchRead,
    VertexRead,
    VertexBatchWrite,
}

impl Kind {
    pub(crate) const ALL: [(Self, &str); 4] = [
        (Self::VertexBatchRead, "vertex_batch_reads"),
        (Self::EdgeBatchRead, "edge_batch_reads"),
        (Self::VertexRead, "vertex_reads"),
        (Self::VertexBatchWrite, "vertex_batch_writes"),
    ];
}

/// How often an operation of each kind was asked for, and how long they took.
#[derive(Debug, Default)]
pub(crate) struct Meter([Cell<(u64, Duration)>; Kind::ALL.len()]);

impl Meter {
    fn time<R>(&self, kind: Kind, operation: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = operation();
        let (count, took) = self.of(kind);
        self.0[kind as usize].set((count + 1, took + begin.elapsed()));
        result
    }

    pub(crate) fn of(&self, kind: Kind) -> (u64, Duration) {
        self.0[kind as usize].get()
    }
}

/// A folder, and the memory that its collections may take.
pub(crate) struct Disk<'d> {
    folder: &'d Path,
    options: Options,
    pub(crate) meter: Meter,
}

/// The states of all vertices: fixed size, so that one is found without an index.
pub(crate) struct States<'d, S> {
    records: DiskBox<S>,
    disk: &'d Disk<'d>,
}

/// A vertex with its edges in one record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Vertex<S, E> {
    pub(crate) state: S,
    pub(crate) edges: Vec<E>,
}

/// All vertices, coupled with their edges.
pub(crate) struct Vertices<'d, S, E> {
    records: DiskBag<Vertex<S, E>>,
    disk: &'d Disk<'d>,
}

impl<'d> Disk<'d> {
    pub(crate) fn new(folder: &'d Path, resources: &Arc<Resources>) -> Self {
        let options = Options { page_bytes: PAGE_BYTES, ..Options::new(resources) };
        Self { folder, options, meter: Meter::default() }
    }

    /// Those of one of so many collections.
    fn options(&self, collections: u64) -> Options {
        self.options.clone().memory(self.options.memory_bytes / collections)
    }

    /// A Box of what `first` makes of each vertex.
    pub(crate) fn states<E: Edge, S: Pod + Send + Sync>(
        &'d self,
        input: &Input,
        first: impl Fn(&Loaded<E>) -> S,
    ) -> Result<States<'d, S>> {
        let records = DiskBox::open(&self.folder.join("states"), self.options(2))?;
        input.load(|vertices| {
            records.extend(&vertices.iter().map(&first).collect::<Vec<_>>())?;
            Ok(())
        })?;
        Ok(States { records, disk: self })
    }

    /// A Bag of the edges of each vertex.
    pub(crate) fn edges<E: Edge>(&self, input: &Input) -> Result<DiskBag<Vec<E>>> {
        let records = DiskBag::open(&self.folder.join("edges"), self.options(2))?;
        input.load(|vertices| {
            records.extend(&vertices.into_iter().map(|vertex| vertex.edges).collect::<Vec<_>>())?;
            Ok(())
        })?;
        Ok(records)
    }

    /// A Bag of vertices, their states and edges in one record.
    pub(crate) fn vertices<E: Edge, S: Serialize + DeserializeOwned + Send>(
        &'d self,
        input: &Input,
        first: impl Fn(&Loaded<E>) -> S,
    ) -> Result<Vertices<'d, S, E>> {
        let records = DiskBag::open(&self.folder.join("vertices"), self.options(1))?;
        input.load(|vertices| {
            let coupled = |vertex: Loaded<E>| Vertex { state: first(&vertex), edges: vertex.edges };
            records.extend(&vertices.into_iter().map(coupled).collect::<Vec<_>>())?;
            Ok(())
        })?;
        Ok(Vertices { records, disk: self })
    }
}

impl<S: Pod + Send + Sync + PartialEq> States<'_, S> {
    /// The state of one vertex.
    pub(crate) fn fetch(&self, vertex: u32) -> Result<S> {
        Ok(self.disk.meter.time(Kind::VertexRead, || self.records.fetch(vertex.into()))?)
    }

    /// Gives each vertex the state that `update` makes of its own and its edges; stores those that
    /// changed (Figure 5b).
    pub(crate) fn process<E: Edge>(
        &self,
        lists: &DiskBag<Vec<E>>,
        mut update: impl FnMut(S, &[E]) -> Result<S>,
    ) -> Result<()> {
        let (meter, most) = (&self.disk.meter, lists.records().batch_len());
        let mut start = 0;
        while start < self.records.len() {
            let edges = meter.time(Kind::EdgeBatchRead, || lists.fetch_next(start, most))?;
            let before = meter
                .time(Kind::VertexBatchRead, || self.records.fetch_range(start, edges.len()))?;
            let (mut ids, mut changed) = (Vec::new(), Vec::new());
            for ((id, before), edges) in (start..).zip(before).zip(&edges) {
                let after = update(before, edges)?;
                if before != after {
                    ids.push(id);
                    changed.push(after);
                }
            }
            if !ids.is_empty() {
                meter.time(Kind::VertexBatchWrite, || self.records.store_batch(&ids, &changed))?;
            }
            start += edges.len() as u64;
        }
        Ok(())
    }

    /// What `answer` makes of each state.
    pub(crate) fn map<R>(&self, answer: impl Fn(S) -> R) -> Result<Vec<R>> {
        let states = self.records.iter().map(|state| Ok(answer(state?)));
        states.collect::<collections::Result<_>>().map_err(Into::into)
    }
}

impl<S: Serialize + DeserializeOwned + Send + PartialEq + Copy, E: Edge> Vertices<'_, S, E> {
    /// One vertex, with its edges, whether they are wanted or not.
    pub(crate) fn fetch(&self, vertex: u32) -> Result<Vertex<S, E>> {
        Ok(self.disk.meter.time(Kind::VertexRead, || self.records.fetch(vertex.into()))?)
    }

    /// Gives each vertex the state that `update` makes of its own and its edges; stores those that
    /// changed (Figure 5a).
    pub(crate) fn process(&self, mut update: impl FnMut(S, &[E]) -> Result<S>) -> Result<()> {
        let (meter, most) = (&self.disk.meter, self.records.records().batch_len());
        let mut start = 0;
        while start < self.records.len() {
            let vertices =
                meter.time(Kind::VertexBatchRead, || self.records.fetch_next(start, most))?;
            let count = vertices.len() as u64;
            let (mut ids, mut changed) = (Vec::new(), Vec::new());
            for (id, mut vertex) in (start..).zip(vertices) {
                let after = update(vertex.state, &vertex.edges)?;
                if vertex.state != after {
                    vertex.state = after;
                    ids.push(id);
                    changed.push(vertex);
                }
            }
            if !ids.is_empty() {
                meter.time(Kind::VertexBatchWrite, || self.records.store_batch(&ids, &changed))?;
            }
            start += count;
        }
        Ok(())
    }

    /// What `answer` makes of each state.
    pub(crate) fn map<R>(&self, answer: impl Fn(S) -> R) -> Result<Vec<R>> {
        let states = self.records.iter().map(|vertex| Ok(answer(vertex?.1.state)));
        states.collect::<collections::Result<_>>().map_err(Into::into)
    }
}

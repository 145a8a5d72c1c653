//! The vertices of a graph, each with the list of its neighbors, as the programs load them.
//!
//! Every edge of the graph leads both ways. Vertices are numbered from 0 on, as the graph has them
//! inside.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use brimful::graph::Graph;
use brimful::graph::edges::EdgeBatch;
use brimful::graph::ids::offsets::IdOffsets;
use brimful::graph::read::lookup::{Direction, Lookup, NeighborReader};
use brimful::store::Moved;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// The other end of an edge, with a weight where a program wants one.
pub(crate) trait Edge: Serialize + DeserializeOwned + Send {
    fn new(neighbor: u32, weight: f64) -> Self;
}

impl Edge for u32 {
    fn new(neighbor: u32, _: f64) -> Self {
        neighbor
    }
}

impl Edge for (u32, f64) {
    fn new(neighbor: u32, weight: f64) -> Self {
        (neighbor, weight)
    }
}

/// A vertex as it is loaded.
pub(crate) struct Loaded<E> {
    pub(crate) number: u32,
    pub(crate) external: u64,
    /// The external id, counted from the smallest of the graph.
    pub(crate) place: u64,
    pub(crate) edges: Vec<E>,
}

/// A graph to load.
pub(crate) struct Input {
    lookup: Arc<Lookup>,
    pub(crate) external: Vec<u64>,
    offsets: IdOffsets,
    numbers: HashMap<u64, u32>,
    /// When the last collection was loaded, and what was moved by then.
    loaded: Cell<(Instant, Moved)>,
}

impl Input {
    pub(crate) fn new(graph: &Arc<Graph>) -> Result<Self> {
        if graph.description().directed {
            return Err("the programs are for undirected graphs; make one with --undirected".into());
        }
        let mut external = vec![0; graph.connected() as usize];
        graph.external_ids(0, &mut external)?;
        let numbers = external.iter().copied().zip(0..).collect();
        let offsets = graph.id_offsets()?;
        let loaded = Cell::new((Instant::now(), graph.traffic().moved()));
        Ok(Self {
            lookup: Arc::new(Lookup::new(Arc::clone(graph))),
            external,
            offsets,
            numbers,
            loaded,
        })
    }

    /// Seconds since everything was loaded, and what was moved in them.
    pub(crate) fn since_loaded(&self) -> (f64, Moved) {
        let (begin, before) = self.loaded.get();
        (begin.elapsed().as_secs_f64(), self.lookup.graph().traffic().moved() - before)
    }

    /// Calls `each` with all vertices in order, some at a time.
    pub(crate) fn load<E: Edge>(
        &self,
        mut each: impl FnMut(Vec<Loaded<E>>) -> Result<()>,
    ) -> Result<()> {
        let all: Vec<u64> = (0..self.external.len() as u64).collect();
        let weighted = self.lookup.graph().description().weighted;
        let mut reader =
            NeighborReader::new(Arc::clone(&self.lookup), all, Direction::Out, weighted);
        let mut batch = EdgeBatch::default();
        // Every vertex has an edge, and those of one vertex come in one batch.
        while reader.next(&mut batch)? {
            let mut vertices: Vec<Loaded<E>> = Vec::new();
            for (at, (source, target)) in batch.sources.iter().zip(&batch.targets).enumerate() {
                let edge = E::new(self.numbers[target], batch.weight(at));
                match vertices.last_mut().filter(|last| last.external == *source) {
                    Some(last) => last.edges.push(edge),
                    None => vertices.push(Loaded {
                        number: self.numbers[source],
                        external: *source,
                        place: self.offsets.of(*source),
                        edges: vec![edge],
                    }),
                }
            }
            each(vertices)?;
        }
        self.loaded.set((Instant::now(), self.lookup.graph().traffic().moved()));
        Ok(())
    }

    /// What `first` makes of each vertex, in memory.
    pub(crate) fn states<E: Edge, S>(&self, first: impl Fn(&Loaded<E>) -> S) -> Result<Vec<S>> {
        let mut states = Vec::new();
        self.load(|vertices| {
            states.extend(vertices.iter().map(&first));
            Ok(())
        })?;
        Ok(states)
    }

    /// The edges of each vertex, in memory.
    pub(crate) fn edges<E: Edge>(&self) -> Result<Vec<Vec<E>>> {
        let mut lists = Vec::new();
        self.load(|vertices| {
            lists.extend(vertices.into_iter().map(|vertex| vertex.edges));
            Ok(())
        })?;
        Ok(lists)
    }
}

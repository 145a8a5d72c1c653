//! Memory for vertices with very many edges.
//!
//! Loading, lending and writing a vertex each need a copy of the whole vertex. Copies of average
//! vertices are small; those of a hub with millions of edges exceed all other memory. Invariant:
//! before vertices are loaded, memory is reserved for the copies of as many of the largest ones as
//! all workers may hold at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use brimful_graph::{Graph, Index};
use brimful_store::Budget;
use brimful_vertices::{Growth, StoreKind};

use crate::error::Result;
use crate::options::StoreOptions;

/// Vertices with fewer edges are not hubs.
const FEW_EDGES: u64 = 1 << 14;
/// Bytes of a neighbor in a vertex.
const NEIGHBOR_BYTES: u64 = 8;

/// The size of the copies of a vertex.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies {
    /// Bytes of an edge in all copies.
    edge_bytes: u64,
    /// Vertices that workers hold at once.
    at_once: usize,
}

impl Copies {
    /// The copies for a store, with edge data of `data_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] for an unknown store.
    pub(crate) fn new(stores: &StoreOptions<'_>, data_bytes: u64, at_once: usize) -> Result<Self> {
        // During loading, the copies are the vertex as read, as gathered, and as a record. During a
        // loan they are the vertex, the written record, and the record gathered with others; on
        // disk also the record that was read, its value, and the stored link.
        let StoreOptions { store, schemes, cache, .. } = *stores;
        let copies = if schemes.kind(store)?.has_share() {
            6
        } else if schemes.kind(store)? != StoreKind::Live {
            3
        } else {
            2
        };
        let copies = copies + u64::from(cache.is_some());
        Ok(Self { edge_bytes: copies * (NEIGHBOR_BYTES + data_bytes), at_once: at_once.max(1) })
    }
}

/// The largest vertices so far, and the memory for their copies.
#[derive(Debug)]
pub(crate) struct Hubs {
    copies: Copies,
    largest: BinaryHeap<Reverse<u64>>,
    /// The edges of these vertices.
    edges: u64,
    memory: Growth,
}

impl Hubs {
    /// No vertices yet.
    pub(crate) fn new(copies: Copies, budget: &Arc<Budget>) -> Result<Self> {
        let memory = Growth::new(budget, "for the largest vertices while they are copied")?;
        Ok(Self { copies, largest: BinaryHeap::new(), edges: 0, memory })
    }

    /// The largest of the first `count` vertices of a graph with `indexes`, estimated from
    /// out-degrees and the largest in-degree.
    pub(crate) fn of_graph(
        copies: Copies,
        (graph, indexes, count): (&Graph, &[Index], u64),
        budget: &Arc<Budget>,
    ) -> Result<Self> {
        let mut hubs = Self::new(copies, budget)?;
        hubs.memory.take(bytes_of_graph(copies, (graph, indexes, count))?)?;
        Ok(hubs)
    }

    /// Reserves memory before a vertex has this many edges.
    ///
    /// # Errors
    /// Budget errors.
    #[inline]
    pub(crate) fn reserve_for(&mut self, edges: u64) -> Result<()> {
        if edges < FEW_EDGES || !edges.is_multiple_of(FEW_EDGES) {
            return Ok(());
        }
        self.reserve(self.edges_with(edges))
    }

    /// Records a vertex with this many edges.
    ///
    /// # Errors
    /// Budget errors.
    #[inline]
    pub(crate) fn record(&mut self, edges: u64) -> Result<()> {
        if edges < FEW_EDGES {
            return Ok(());
        }
        let all = self.edges_with(edges);
        if all <= self.edges {
            return Ok(());
        }
        self.reserve(all)?;
        self.edges = all;
        self.largest.push(Reverse(edges));
        if self.largest.len() > self.copies.at_once {
            self.largest.pop();
        }
        Ok(())
    }

    /// Edges of the largest vertices if a further vertex has `edges` edges.
    fn edges_with(&self, edges: u64) -> u64 {
        let leaves = match self.largest.peek() {
            Some(Reverse(least)) if self.largest.len() >= self.copies.at_once => *least,
            _ => 0,
        };
        self.edges + edges.saturating_sub(leaves)
    }

    fn reserve(&mut self, edges: u64) -> Result<()> {
        let bytes = edges.saturating_mul(self.copies.edge_bytes);
        Ok(self.memory.take(bytes.saturating_sub(self.memory.used()))?)
    }
}

/// Bytes that [`Hubs::of_graph`] reserves.
///
/// # Errors
/// I/O.
pub(crate) fn bytes_of_graph(
    copies: Copies,
    (graph, indexes, count): (&Graph, &[Index], u64),
) -> Result<u64> {
    let mut all = 0;
    if indexes.contains(&Index::In) {
        let mut largest = BinaryHeap::new();
        for edges in graph.degrees_of_first(count) {
            let edges = edges?;
            if edges >= FEW_EDGES {
                largest.push(Reverse(edges));
                if largest.len() > copies.at_once {
                    largest.pop();
                }
            }
        }
        all += largest.iter().map(|Reverse(edges)| *edges).sum::<u64>();
    }
    if indexes.contains(&Index::Reverse) {
        // The graph has no in-degrees but the largest one.
        let description = graph.description();
        let longest = description.longest_lists.map_or(0, |lists| lists.incoming);
        if longest >= FEW_EDGES {
            all += longest.saturating_mul(copies.at_once as u64).min(description.arcs);
        }
    }
    Ok(all.saturating_mul(copies.edge_bytes))
}

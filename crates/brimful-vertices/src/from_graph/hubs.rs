//! Memory for vertices that have very many edges.
//!
//! A vertex is whole while it is loaded, lent and written, and each step has its own copy. Of usual
//! vertices these copies are small change; of a hub with millions of edges they are more than all
//! else. Invariant: as many bytes are set aside as the copies of the largest vertices take that all
//! workers may have in hand at once, before there are any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use brimful_graph::{Graph, Index};
use brimful_store::Budget;

use crate::error::Result;
use crate::growth::Growth;
use crate::open::Schemes;

/// Edges below which a vertex is a usual one.
const FEW_EDGES: u64 = 1 << 14;
/// Vertices whose degrees are read at once.
const WINDOW: u64 = 1 << 14;
/// Bytes of a neighbour in a vertex.
const NEIGHBOUR_BYTES: u64 = 8;

/// How much the copies of a vertex take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies {
    /// Bytes that all copies of an edge take.
    edge_bytes: u64,
    /// Vertices in hand at once.
    hands: usize,
}

impl Copies {
    /// In the store that `url` names, where an edge carries `data_bytes`.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] for an unknown store.
    pub(crate) fn new(
        (url, schemes): (&str, &Schemes),
        is_cached: bool,
        data_bytes: u64,
        hands: usize,
    ) -> Result<Self> {
        // While it is loaded: as it comes, as it is gathered, and as its record. While it is lent:
        // the vertex, the record that is written, and the one that gathers with others; on disk
        // also the record read, its value, and the link that is stored.
        let copies = if schemes.folder(url)?.is_some() {
            6
        } else if schemes.keeps_records(url)? {
            3
        } else {
            2
        };
        let copies = copies + u64::from(is_cached);
        Ok(Self { edge_bytes: copies * (NEIGHBOUR_BYTES + data_bytes), hands: hands.max(1) })
    }
}

/// The largest vertices that came so far, and the memory for their copies.
#[derive(Debug)]
pub(crate) struct Hubs {
    copies: Copies,
    largest: BinaryHeap<Reverse<u64>>,
    /// Their edges.
    edges: u64,
    memory: Growth,
}

impl Hubs {
    /// None yet.
    pub(crate) fn new(copies: Copies, budget: &Arc<Budget>) -> Result<Self> {
        let memory = Growth::new(budget, "for the largest vertices while they are copied")?;
        Ok(Self { copies, largest: BinaryHeap::new(), edges: 0, memory })
    }

    /// Those of the first `count` vertices of a graph, as far as their out-degrees say, walked by
    /// `indexes`.
    pub(crate) fn of_graph(
        copies: Copies,
        (graph, indexes, count): (&Graph, &[Index], u64),
        budget: &Arc<Budget>,
    ) -> Result<Self> {
        let mut hubs = Self::new(copies, budget)?;
        hubs.memory.take(bytes_of_graph(copies, (graph, indexes, count))?)?;
        Ok(hubs)
    }

    /// A vertex is about to have so many edges.
    ///
    /// # Errors
    /// The budget's.
    #[inline]
    pub(crate) fn coming(&mut self, edges: u64) -> Result<()> {
        if edges < FEW_EDGES || !edges.is_multiple_of(FEW_EDGES) {
            return Ok(());
        }
        self.set_aside(self.with(edges))
    }

    /// A vertex has so many edges.
    ///
    /// # Errors
    /// The budget's.
    #[inline]
    pub(crate) fn came(&mut self, edges: u64) -> Result<()> {
        if edges < FEW_EDGES {
            return Ok(());
        }
        let all = self.with(edges);
        if all <= self.edges {
            return Ok(());
        }
        self.set_aside(all)?;
        self.edges = all;
        self.largest.push(Reverse(edges));
        if self.largest.len() > self.copies.hands {
            self.largest.pop();
        }
        Ok(())
    }

    /// Edges of the largest if one more vertex has so many.
    fn with(&self, edges: u64) -> u64 {
        let leaves = match self.largest.peek() {
            Some(Reverse(least)) if self.largest.len() >= self.copies.hands => *least,
            _ => 0,
        };
        self.edges + edges.saturating_sub(leaves)
    }

    fn set_aside(&mut self, edges: u64) -> Result<()> {
        let bytes = edges.saturating_mul(self.copies.edge_bytes);
        self.memory.take(bytes.saturating_sub(self.memory.used()))
    }
}

/// Bytes that [`Hubs::of_graph`] sets aside.
///
/// # Errors
/// I/O.
pub(crate) fn bytes_of_graph(
    copies: Copies,
    (graph, indexes, count): (&Graph, &[Index], u64),
) -> Result<u64> {
    if !indexes.contains(&Index::In) {
        return Ok(0);
    }
    let mut largest = BinaryHeap::new();
    let mut window = Vec::new();
    for start in (0..count).step_by(WINDOW as usize) {
        window.resize((count - start).min(WINDOW) as usize, 0);
        graph.degrees(start, &mut window)?;
        for edges in window.iter().filter(|edges| **edges >= FEW_EDGES) {
            largest.push(Reverse(*edges));
            if largest.len() > copies.hands {
                largest.pop();
            }
        }
    }
    let all: u64 = largest.iter().map(|Reverse(edges)| *edges).sum();
    Ok(all.saturating_mul(copies.edge_bytes))
}

//! What is known of a graph that is not built, and how large it will be on disk.

use crate::codec::{BATCH, DIRECTORY_ROW};

/// Bytes of a weight: most are whole numbers or 32-bit floats.
pub const WEIGHT_BYTES: u64 = 4;

/// What is known of a graph that is not built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Vertices with edges.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// Every edge is stored in both directions.
    pub undirected: bool,
    /// Edges have weights.
    pub weighted: bool,
    /// The reverse index is built with it.
    pub reverse: bool,
    /// Bytes of a packed edge, weights not counted; `None`: [`Sizes::usual_bytes_per_edge`].
    pub bytes_per_edge: Option<f64>,
}

impl Sizes {
    /// Stored arcs.
    pub fn arcs(&self) -> u64 {
        self.edges.saturating_mul(if self.undirected { 2 } else { 1 })
    }

    /// Bytes that a packed edge of a graph of this size usually takes. Where nothing is skewed a
    /// gap between neighbours in a shard is vertices^2 / arcs on average. Uniform graphs take the
    /// bits of that and 1.7, R-MAT graphs of 2^20 to 2^27 vertices 3.4 bits and .63 of them: this
    /// is between the two.
    pub fn usual_bytes_per_edge(&self) -> f64 {
        let gap = (self.vertices as f64).powi(2) / self.arcs().max(1) as f64;
        (4.5 + 0.63 * gap.max(1.0).log2()) / 8.0
    }

    /// Bytes of the packed edges of an index.
    pub fn packed_bytes(&self) -> u64 {
        let of_edge = self.bytes_per_edge.unwrap_or_else(|| self.usual_bytes_per_edge());
        (self.arcs() as f64 * of_edge) as u64
    }

    /// Bytes of the weights of an index.
    pub fn weight_bytes(&self) -> u64 {
        if self.weighted { self.arcs().saturating_mul(WEIGHT_BYTES) } else { 0 }
    }

    /// Bytes of an index on disk: edges, weights and where blocks begin.
    pub fn index_bytes(&self) -> u64 {
        let blocks = self.arcs().div_ceil(BATCH as u64) * DIRECTORY_ROW as u64;
        self.packed_bytes().saturating_add(self.weight_bytes()).saturating_add(blocks)
    }

    /// Indexes that are built with it; an undirected graph is its own reverse.
    pub fn indexes(&self) -> u64 {
        1 + u64::from(self.reverse && !self.undirected)
    }

    /// Bytes of the graph on disk: ids and degrees take about a byte a vertex.
    pub fn graph_bytes(&self) -> u64 {
        self.index_bytes().saturating_mul(self.indexes()).saturating_add(self.vertices)
    }
}

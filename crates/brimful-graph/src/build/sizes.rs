//! The facts about a graph before it is built, and its expected size on disk.

use crate::codec::{BATCH, DIRECTORY_ROW};

/// Bytes of a weight; most weights are integers or 32-bit floats.
pub const WEIGHT_BYTES: u64 = 4;

/// The facts about a graph before it is built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Number of vertices with edges.
    pub vertices: u64,
    /// Number of edges.
    pub edges: u64,
    /// True if every edge is stored in both directions.
    pub undirected: bool,
    /// True if edges have weights.
    pub weighted: bool,
    /// True if the reverse index is built too.
    pub reverse: bool,
    /// Bytes of a packed edge without weights; `None`: [`Sizes::usual_bytes_per_edge`].
    pub bytes_per_edge: Option<f64>,
}

impl Sizes {
    /// Number of stored arcs.
    pub fn arcs(&self) -> u64 {
        self.edges.saturating_mul(if self.undirected { 2 } else { 1 })
    }

    /// The usual bytes of a packed edge in a graph of this size. Without skew, a gap between
    /// neighbors in a shard is vertices^2 / arcs on average. An edge of a uniform graph takes 1.7
    /// bits more than the bits of that gap; an edge of an R-MAT graph of 2^20 to 2^27 vertices
    /// takes 0.63 times those bits and 3.4 more. This estimate is between the two.
    pub fn usual_bytes_per_edge(&self) -> f64 {
        let gap = (self.vertices as f64).powi(2) / self.arcs().max(1) as f64;
        (4.5 + 0.63 * gap.max(1.0).log2()) / 8.0
    }

    /// Bytes of the packed edges of an index.
    pub fn packed_bytes(&self) -> u64 {
        let bytes_per_edge = self.bytes_per_edge.unwrap_or_else(|| self.usual_bytes_per_edge());
        (self.arcs() as f64 * bytes_per_edge) as u64
    }

    /// Bytes of the weights of an index.
    pub fn weight_bytes(&self) -> u64 {
        if self.weighted { self.arcs().saturating_mul(WEIGHT_BYTES) } else { 0 }
    }

    /// Bytes of an index on disk: edges, weights and block starts.
    pub fn index_bytes(&self) -> u64 {
        let blocks = self.arcs().div_ceil(BATCH as u64) * DIRECTORY_ROW as u64;
        self.packed_bytes().saturating_add(self.weight_bytes()).saturating_add(blocks)
    }

    /// Number of indexes; an undirected graph is its own reverse.
    pub fn indexes(&self) -> u64 {
        1 + u64::from(self.reverse && !self.undirected)
    }

    /// Bytes of the graph on disk. Ids and degrees take about a byte a vertex.
    pub fn graph_bytes(&self) -> u64 {
        self.index_bytes().saturating_mul(self.indexes()).saturating_add(self.vertices)
    }
}

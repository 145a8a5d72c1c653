//! Shards: all edges into one target interval, sorted by (source, target), cut into segments.
//!
//! The geometry depends on the edges alone, never on budget or threads. A shard of many edges is
//! cut into *windows* at source boundaries. The engine sums each window separately and adds the
//! sums in window order, so that the result does not depend on the workers that computed them.
//! Windows are cut into segments; each is packed by the codec that suits it. Segments are read in
//! *units* of about 4 MiB. The files of weights and of block starts have the same units, for
//! readers that need them. Invariant: no segment crosses a window, a shard or a unit; segments
//! cover their unit exactly.

mod reader;
mod segment;
mod writer;

use serde::{Deserialize, Serialize};

pub use reader::ShardFile;
pub use segment::{PackedSegment, Segment};
pub use writer::ShardWriter;

/// The limits at which shards are cut. Tests use small limits; graphs on disk have the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Bits of a target within its interval.
    pub interval_bits: u32,
    /// Number of edges after which a window ends at the next source.
    pub window_edges: u64,
    /// The maximum number of edges in a segment.
    pub segment_edges: u32,
    /// Number of bytes after which a unit is full.
    pub unit_bytes: usize,
}

impl Default for Geometry {
    /// 2^16 sums of 8 bytes stay in a second-level cache next to the data that streams through it
    /// (measured against 2^17 to 2^19: docs/adr/0003). A unit is large enough to read a disk at
    /// full speed.
    fn default() -> Self {
        Self {
            interval_bits: 16,
            window_edges: 1 << 23,
            segment_edges: 1 << 16,
            unit_bytes: 4 << 20,
        }
    }
}

/// The names of the files of one index.
struct Names {
    shards: String,
    weights: String,
    blocks: String,
}

impl Names {
    fn new(name: &str) -> Self {
        Self {
            shards: format!("{name}.shards"),
            weights: format!("{name}.weights"),
            blocks: format!("{name}.blocks"),
        }
    }
}

/// The names of the files that may belong to the index `name`.
pub(crate) fn file_names(name: &str) -> [String; 3] {
    let Names { shards, weights, blocks } = Names::new(name);
    [shards, weights, blocks]
}

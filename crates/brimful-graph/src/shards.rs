//! Shards: all edges into one target interval, sorted by (source, target), cut into segments.
//!
//! The geometry depends on the edges alone, never on budget or threads. A shard of many edges is
//! cut into *windows* at source boundaries: the engine sums each window on its own and adds the
//! sums in window order, so that the result does not depend on who summed what. Segments cut
//! windows further, each packed by the codec that suits it. Segments are read in *units* of about 4
//! MiB; a file of weights and a file of block starts have the same units, for readers that want
//! them. Invariant: no segment crosses a window, a shard or a unit; segments cover their unit
//! exactly.

mod reader;
mod segment;
mod writer;

pub use reader::ShardFile;
pub use segment::{PackedSegment, Segment};
pub use writer::ShardWriter;

/// How shards are cut. Tests use small numbers; graphs on disk have the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bits of a target within its interval.
    pub interval_bits: u32,
    /// Edges after which a window ends at the next source.
    pub window_edges: u64,
    /// Most edges of a segment.
    pub segment_edges: u32,
    /// Bytes after which a unit is full.
    pub unit_bytes: usize,
}

impl Default for Geometry {
    /// 2^16 accumulators of 8 bytes stay in a second-level cache beside what streams through it
    /// (measured against 2^17 to 2^19: docs/adr/0003); a unit is what a disk reads at full speed.
    fn default() -> Self {
        Self {
            interval_bits: 16,
            window_edges: 1 << 23,
            segment_edges: 1 << 16,
            unit_bytes: 4 << 20,
        }
    }
}

/// Names of the files of one index.
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

/// The files that the index `name` may consist of.
pub(crate) fn file_names(name: &str) -> [String; 3] {
    let Names { shards, weights, blocks } = Names::new(name);
    [shards, weights, blocks]
}

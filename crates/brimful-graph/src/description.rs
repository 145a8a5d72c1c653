//! What a graph's manifest says, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::ids::IdType;
use crate::weights::WeightRange;

/// The graph format this program writes. Before 2 there were no seals.
pub const FORMAT: u32 = 2;

/// The payload of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Format version.
    pub format: u32,
    /// The program that wrote it.
    pub created_by: String,
    /// Number of vertices.
    pub vertices: u64,
    /// Vertices that have edges: the internal ids below this.
    pub connected: u64,
    /// Input edges that are in the graph.
    pub edges: u64,
    /// Stored arcs.
    pub arcs: u64,
    /// False if every edge is stored in both directions.
    pub directed: bool,
    /// True if edges have weights.
    pub weighted: bool,
    /// The range of the weights; `None` without weights, without edges, or from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightRange>,
    /// The longest lists of neighbours; `None` from before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_lists: Option<LongestLists>,
    /// How internal ids follow from external ones.
    pub order: Order,
    /// The external ids.
    pub ids: Ids,
    /// Bits of a target within its interval.
    pub interval_bits: u32,
    /// What the import counted.
    pub counts: Counts,
    /// Forward shards: edges by target.
    #[serde(rename = "in")]
    pub forward: Option<Shards>,
    /// Reverse shards: edges by source.
    pub reverse: Option<Shards>,
    /// The seal of each file beside the manifest, by name: a whole file of another graph is not
    /// taken for it.
    #[serde(default)]
    pub seals: BTreeMap<String, u64>,
    /// The columns of the input that the edges were read from; `None` where its format says, and
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Whatever the caller of the import wants to find again.
    pub origin: Option<String>,
}

/// The most arcs that a vertex has, with multiplicity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongestLists {
    /// Arcs to it.
    pub incoming: u64,
    /// Arcs from it.
    pub outgoing: u64,
}

/// The internal order of vertices: a few runs, each ascending by external id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// How the runs were made.
    pub name: OrderName,
    /// The internal id at which each run begins. The last run holds the vertices without edges, if
    /// any.
    pub runs: Vec<u64>,
}

/// A way to order vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderName {
    /// Ascending external ids.
    External,
    /// Degree classes, the highest first.
    Degree,
}

impl OrderName {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Degree => "degree",
        }
    }
}

/// The external ids of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ids {
    /// How the bits are read.
    #[serde(rename = "type")]
    pub id_type: IdType,
    /// Bits of the first id where ids are consecutive; `None`: they are in the file `ids`.
    pub first: Option<u64>,
}

/// What an import saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Lines of text, or records, read.
    pub lines: u64,
    /// Edges from a vertex to itself.
    pub self_loops: u64,
    /// Edges equal to an earlier one, weights ignored.
    pub duplicates: u64,
    /// Lines or records not taken.
    pub rejected: u64,
    /// Self-loops that were left out, of those seen.
    #[serde(default)]
    pub self_loops_dropped: u64,
    /// Duplicates that were merged into another edge, of those seen.
    #[serde(default)]
    pub duplicates_dropped: u64,
}

/// The shards of one direction: layers over one another, the base first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shards {
    /// Version 1 has exactly one.
    pub layers: Vec<Layer>,
}

/// One set of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// What its files are called, before the point.
    pub name: String,
    /// Arcs in it.
    pub arcs: u64,
    /// Length of its files in bytes.
    pub bytes: u64,
}

//! The contents of a graph's manifest, as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use brimful_store::{Error as StoreError, manifest};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::external::IdType;
use crate::input::columns::Columns;
use crate::order::choice::OrderName;
use crate::read::tables::{Table, TableName};
use crate::read::versioned;
use crate::read::weight_range::WeightRange;

/// The newest graph format that this program reads. Formats before 2 have no seals, formats before
/// 3 no tables. A graph without tables is written as format 2, which older programs read.
pub const FORMAT: u32 = 3;
/// The format of a graph without tables.
const WITHOUT_TABLES: u32 = 2;
/// The maximum number of runs in an order.
pub const MAX_RUNS: usize = 8;

/// The payload of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Format version.
    pub format: u32,
    /// The program that wrote the manifest.
    pub created_by: String,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of vertices that have edges; their internal ids are below this number.
    pub connected: u64,
    /// Number of input edges in the graph.
    pub edges: u64,
    /// Number of stored arcs.
    pub arcs: u64,
    /// False if every edge is stored in both directions.
    pub directed: bool,
    /// True if edges have weights.
    pub weighted: bool,
    /// The range of the weights; `None` without weights, without edges, or in older graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightRange>,
    /// The longest lists of neighbors; `None` in older graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_lists: Option<LongestLists>,
    /// The internal order.
    pub order: Order,
    /// The external ids.
    pub ids: Ids,
    /// Bits of a target within its interval.
    pub interval_bits: u32,
    /// The counts of the import.
    pub counts: Counts,
    /// Forward shards: edges by target.
    #[serde(rename = "in")]
    pub forward: Shards,
    /// Reverse shards: edges by source.
    pub reverse: Option<Shards>,
    /// The seals of all files except the manifest, by name. A seal distinguishes a file from an
    /// intact file of another graph.
    #[serde(default)]
    pub seals: BTreeMap<String, u64>,
    /// The tables of the graph. Absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<TableName, Table>,
    /// The input columns from which the edges were read; `None` if the format defines them, and in
    /// older graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// A text that the caller of the import stores for later use.
    pub origin: Option<String>,
}

impl Description {
    /// Parses the payload of manifest `number` of the graph at `path`.
    ///
    /// # Errors
    /// Corruption if its values contradict each other; newer versions.
    pub(crate) fn parse(path: &Path, number: u64, payload: &[u8]) -> Result<Self> {
        let file = path.join(manifest::name(number));
        let description: Self = versioned::parse(&file, 64, payload, FORMAT)?;
        // A name that contains a folder would lead out of the graph.
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let (vertices, connected, runs) =
            (description.vertices, description.connected, &description.order.runs);
        // The runs cover every vertex, and vertices without edges are a run of their own.
        let runs_cover = runs.first().copied() == (vertices > 0).then_some(0)
            && runs.is_sorted_by(|a, b| a < b)
            && runs.last().is_none_or(|last| *last < vertices)
            && runs.len() <= MAX_RUNS
            && connected <= vertices
            && (connected == vertices || runs.last() == Some(&connected));
        let lists =
            description.longest_lists.iter().flat_map(|lists| [lists.incoming, lists.outgoing]);
        let sane = (1..=24).contains(&description.interval_bits)
            && runs_cover
            && lists.max().is_none_or(|longest| longest <= description.arcs)
            && [&description.forward]
                .into_iter()
                .chain(&description.reverse)
                .all(|Shards { layers: [layer] }| is_name(&layer.name))
            && description.tables.values().all(|table| is_name(&table.name));
        if !sane {
            return Err(StoreError::corrupt(&file, 64, "the manifest has impossible values").into());
        }
        Ok(description)
    }

    /// The format in which this is written.
    pub fn written_format(&self) -> u32 {
        if self.tables.is_empty() { WITHOUT_TABLES } else { FORMAT }
    }
}

/// The longest lists of neighbors, in arcs with multiplicity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongestLists {
    /// The maximum number of arcs to one vertex.
    pub incoming: u64,
    /// The maximum number of arcs from one vertex.
    pub outgoing: u64,
}

/// The internal order of vertices: a few runs, each ascending by external id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The rule that made the runs.
    pub name: OrderName,
    /// The first internal id of each run. Vertices without edges, if any, are in the last run.
    pub runs: Vec<u64>,
}

/// The external ids of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ids {
    /// The interpretation of the bits.
    #[serde(rename = "type")]
    pub id_type: IdType,
    /// Bits of the first id if ids are consecutive; `None` if the file `ids` holds them.
    pub first: Option<u64>,
}

/// The counts of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Lines of text or records read.
    pub lines: u64,
    /// Edges from a vertex to itself.
    pub self_loops: u64,
    /// Edges equal to an earlier one, weights ignored.
    pub duplicates: u64,
    /// Rejected lines or records.
    pub rejected: u64,
    /// Number of self-loops that were dropped.
    #[serde(default)]
    pub self_loops_dropped: u64,
    /// Number of duplicates that were merged into another edge.
    #[serde(default)]
    pub duplicates_dropped: u64,
}

/// The shards of one direction: stacked layers, the base first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shards {
    /// The layers; for now exactly one.
    pub layers: [Layer; 1],
}

/// One set of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// The names of its files, without the extension.
    pub name: String,
    /// Number of arcs in the layer.
    pub arcs: u64,
    /// Length of its files in bytes.
    pub bytes: u64,
}

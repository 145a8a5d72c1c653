//! The size of a graph, in the plain numbers that a plan needs: of a graph on disk, or estimated
//! for a graph that is not built yet.

use std::sync::Arc;

use brimful_graph::build::sizes::Sizes;
use brimful_graph::codec::{BATCH, WeightType};
use brimful_graph::read::directory::Directory;
use brimful_graph::read::shards::{Geometry, Segment, ShardFile};
use brimful_graph::{Graph, Index};

use crate::traverse::residency::{columns, segments_of_intervals, unit_bytes};

/// Bytes of a weight in the narrower type, of 4 or 8 bytes, that holds all weights of these types
/// exactly.
pub(crate) fn weight_bytes(mut types: impl Iterator<Item = WeightType>) -> u8 {
    let is_narrow = |weights: WeightType| !matches!(weights, WeightType::U32 | WeightType::F64);
    if types.all(is_narrow) { 4 } else { 8 }
}

/// The size of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Extent {
    /// Vertices with edges.
    pub vertices: u64,
    /// Bits of a target's position within its interval.
    pub interval_bits: u32,
    /// True if the run uses weights.
    pub weighted: bool,
    /// Bytes of a weight in the narrowest type, of 4 or 8 bytes, that holds all weights exactly.
    pub weight_bytes: u8,
    /// Number of separate arrays of sums: one for each interval, or one for each window of an
    /// interval with several.
    pub sum_arrays: u64,
    /// The maximum number of neighbors of a vertex in all indexes, or an upper bound; 0 if it is
    /// unknown.
    pub longest_list: u64,
    /// The indexes that are walked.
    pub indexes: Vec<IndexExtent>,
}

/// The size of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexExtent {
    /// Edges.
    pub edges: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of memory of the block directory.
    pub directory: u64,
    /// Edges of the largest shard.
    pub largest_shard: u64,
    /// Bytes of the largest segment that is compressed, when decompressed.
    pub plain_segment_bytes: u64,
    /// The units of edges, then of weights if the run uses them.
    pub columns: Vec<ColumnExtent>,
    /// The fraction of all sources that lie between the first and the last source of a unit, on
    /// average.
    pub reach: f64,
    /// `Some` if the index must be built first.
    pub to_build: Option<ToBuild>,
}

/// An index that must be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToBuild {
    /// Bytes of disk.
    pub bytes: u64,
    /// True if it has weights, whether the run uses them or not.
    pub weighted: bool,
}

/// The sizes of the units of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnExtent {
    /// Bytes of the largest unit.
    pub largest: u64,
    /// Bytes of all units.
    pub packed: u64,
}

impl Extent {
    /// The extent of a graph on disk. A missing index that the run would build is expected to have
    /// the size of the forward one; the numbers that the smallest budget depends on are upper
    /// bounds.
    pub fn of(graph: &Graph, indexes: &[Index], weighted: bool) -> Self {
        let shards = present(graph, indexes);
        let mut extent = Self::of_shards(graph, &shards, weighted);
        let missing = indexes.iter().find(|index| graph.shards(**index).is_none());
        if let Some((missing, forward)) = missing.zip(shards.first()) {
            let bounds = UpperBounds::of(graph, *missing, forward.edges());
            // Light intervals have one array of sums for all indexes.
            extent.sum_arrays += bounds.windows - graph.intervals();
            extent.longest_list += longest_list(graph, *missing).unwrap_or(bounds.shard);
            extent.indexes.push(bounds.index(
                &IndexExtent::of(forward, graph.connected(), weighted),
                graph,
                forward,
            ));
        }
        extent
    }

    /// The extent of `shards`, indexes of `graph`.
    pub(crate) fn of_shards(graph: &Graph, shards: &[&Arc<ShardFile>], weighted: bool) -> Self {
        let intervals = segments_of_intervals(shards.iter().copied(), graph.intervals() as usize);
        let mut sum_arrays = 0;
        for shard in &intervals {
            let windows = |(file, range): &(usize, std::ops::Range<usize>)| {
                u64::from(
                    shards[*file].segments()[range.clone()].last().map_or(0, |last| last.window),
                ) + 1
            };
            let max_windows: u64 = shard.iter().map(windows).max().unwrap_or(1);
            sum_arrays += if max_windows > 1 { shard.iter().map(windows).sum() } else { 1 };
        }
        let longest = |shards: &&Arc<ShardFile>| {
            let index = [Index::In, Index::Reverse].into_iter().find(|index| {
                graph.shards(*index).is_some_and(|of_index| Arc::ptr_eq(of_index, shards))
            });
            let recorded = index.and_then(|index| longest_list(graph, index));
            recorded.unwrap_or_else(|| shards.shard_edges().max().unwrap_or(0))
        };
        Self {
            vertices: graph.connected(),
            interval_bits: graph.description().interval_bits,
            weighted,
            weight_bytes: weight_bytes(
                shards
                    .iter()
                    .flat_map(|shards| shards.segments().iter().map(|segment| segment.weight_type)),
            ),
            sum_arrays,
            longest_list: shards.iter().map(longest).sum(),
            indexes: shards
                .iter()
                .map(|shards| IndexExtent::of(shards, graph.connected(), weighted))
                .collect(),
        }
    }

    /// The estimated extent of a graph that is not built.
    pub fn estimate(sizes: &Sizes, indexes: &[Index]) -> Self {
        let geometry = Geometry::default();
        let (arcs, intervals) =
            (sizes.arcs(), sizes.vertices.div_ceil(1 << geometry.interval_bits).max(1));
        let unit = geometry.unit_bytes as u64;
        let column = |packed: u64| ColumnExtent { largest: packed.min(unit), packed };
        let packed = sizes.packed_bytes();
        let weights = sizes.weighted.then_some(column(sizes.weight_bytes()));
        let segments = arcs / u64::from(geometry.segment_edges) + intervals.min(arcs);
        let forward = IndexExtent {
            edges: arcs,
            segments,
            directory: Directory::bytes_of(arcs.div_ceil(BATCH as u64), segments),
            largest_shard: arcs / intervals,
            plain_segment_bytes: 0,
            columns: [Some(column(packed)), weights].into_iter().flatten().collect(),
            reach: (unit as f64 * intervals as f64 / packed.max(1) as f64).min(1.0),
            to_build: None,
        };
        let reverse = IndexExtent {
            to_build: (!sizes.reverse)
                .then(|| ToBuild { bytes: sizes.index_bytes(), weighted: sizes.weighted }),
            ..forward.clone()
        };
        let count = if sizes.undirected { 1 } else { indexes.len() };
        Self {
            vertices: sizes.vertices,
            interval_bits: geometry.interval_bits,
            weighted: sizes.weighted,
            weight_bytes: 4,
            sum_arrays: intervals + arcs / geometry.window_edges,
            // The longest list is unknown.
            longest_list: 0,
            indexes: [forward, reverse].into_iter().take(count).collect(),
        }
    }

    /// Number of intervals.
    pub fn intervals(&self) -> u64 {
        self.vertices.div_ceil(self.interval())
    }

    /// Targets of an interval.
    pub fn interval(&self) -> u64 {
        1 << self.interval_bits
    }

    /// Edges of all indexes.
    pub fn edges(&self) -> u64 {
        self.indexes.iter().map(|index| index.edges).sum()
    }

    /// Bytes of all units.
    pub fn packed(&self) -> u64 {
        self.columns().map(|column| column.packed).sum()
    }

    /// Bytes of the largest unit.
    pub(crate) fn largest_unit(&self) -> u64 {
        self.columns().map(|column| column.largest).max().unwrap_or(0)
    }

    /// The files that have units.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &ColumnExtent> {
        self.indexes.iter().flat_map(|index| &index.columns)
    }

    /// Bytes of a [`SegmentReader`](brimful_graph::read::segment_reader::SegmentReader).
    pub fn reader_bytes(&self) -> u64 {
        self.columns().map(|column| column.largest).sum::<u64>() + self.plain_segment_bytes()
    }

    /// Bytes of the largest segment that is compressed, when decompressed.
    pub(crate) fn plain_segment_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.plain_segment_bytes).max().unwrap_or(0)
    }

    /// Segments of all indexes.
    pub(crate) fn segments(&self) -> u64 {
        self.indexes.iter().map(|index| index.segments).sum()
    }
}

impl IndexExtent {
    fn of(shards: &ShardFile, vertices: u64, weighted: bool) -> Self {
        let segments = shards.segments();
        let units = segments.chunk_by(|_, next| !next.begins_unit);
        let reach = |unit: &[Segment]| {
            let first = unit.iter().map(|segment| segment.first_source).min().unwrap_or(0);
            let last = unit.iter().map(|segment| segment.last_source).max().unwrap_or(0);
            (last - first + 1) as f64 / vertices.max(1) as f64
        };
        let reaches: f64 = units.map(reach).sum();
        let column = |file| ColumnExtent {
            largest: unit_bytes(shards, file).max().unwrap_or(0),
            packed: unit_bytes(shards, file).sum(),
        };
        Self {
            edges: shards.edges(),
            segments: segments.len() as u64,
            directory: Directory::memory_bytes(shards),
            largest_shard: shards.shard_edges().max().unwrap_or(0),
            plain_segment_bytes: shards.largest_unpacked(),
            columns: columns(shards, weighted).map(|file| column(file)).collect(),
            reach: reaches / shards.units().max(1) as f64,
            to_build: None,
        }
    }
}

/// The existing indexes, each once; an undirected graph is its own reverse.
pub(crate) fn present<'g>(graph: &'g Graph, indexes: &[Index]) -> Vec<&'g Arc<ShardFile>> {
    let mut shards: Vec<&Arc<ShardFile>> =
        indexes.iter().filter_map(|index| graph.shards(*index)).collect();
    shards.dedup_by(|a, b| Arc::ptr_eq(a, b));
    shards
}

/// Bytes of all files of an index, except for their headers.
fn disk_bytes(shards: &ShardFile) -> u64 {
    let blocks = shards.files().flat_map(|file| file.entries());
    shards.directory_bytes() + blocks.map(|block| block.len.next_multiple_of(8)).sum::<u64>()
}

/// The maximum number of neighbors of a vertex in `index`; `None` if a version of brimful that did
/// not store it wrote the graph.
fn longest_list(graph: &Graph, index: Index) -> Option<u64> {
    let longest = graph.description().longest_lists?;
    Some(match index {
        Index::In => longest.incoming,
        Index::Reverse => longest.outgoing,
    })
}

/// Upper bounds of the size of an index, from the rules by which shards are cut.
struct UpperBounds {
    edges: u64,
    /// Edges of the largest shard, and its windows.
    shard: u64,
    /// Windows of all shards.
    windows: u64,
}

impl UpperBounds {
    /// Maximum bytes of an edge in any codec.
    const EDGE_BYTES: u64 = 12;

    /// The bounds for the index `missing` of `graph` with the given number of edges.
    fn of(graph: &Graph, missing: Index, edges: u64) -> Self {
        let window_edges = Geometry::default().window_edges;
        let targets = graph.connected().min(1 << graph.description().interval_bits);
        let shard = longest_list(graph, missing)
            .map_or(edges, |longest| edges.min(longest.saturating_mul(targets)));
        Self { edges, shard, windows: graph.intervals() + edges / window_edges }
    }

    /// The index, expected to be about as large as `forward`, the index of `shards`.
    fn index(&self, forward: &IndexExtent, graph: &Graph, shards: &ShardFile) -> IndexExtent {
        let (edges, geometry) = (self.edges, Geometry::default());
        let (of_segment, unit) = (u64::from(geometry.segment_edges), geometry.unit_bytes as u64);
        // A segment ends when it is full, with its window, or where the gap between sources exceeds
        // 32 bits.
        let jumps = self.windows * (graph.connected() >> 32);
        let largest = unit.min(edges.saturating_mul(Self::EDGE_BYTES)).next_multiple_of(8);
        let column = |column: &ColumnExtent| ColumnExtent { largest, ..*column };
        IndexExtent {
            segments: edges / of_segment + self.windows + jumps,
            largest_shard: forward.largest_shard,
            plain_segment_bytes: edges.min(of_segment) * Self::EDGE_BYTES,
            columns: forward.columns.iter().map(column).collect(),
            to_build: Some(ToBuild {
                bytes: disk_bytes(shards),
                weighted: graph.description().weighted,
            }),
            ..forward.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use brimful_graph::build::import::{ImportOptions, Input, import};
    use brimful_graph::generate::{Generator, Kind};
    use brimful_store::{Budget, Job, Resources};

    use super::*;
    use crate::plan::memory::Plan;
    use crate::plan::needs::Needs;

    const BOTH: &[Index] = &[Index::In, Index::Reverse];

    fn rmat(path: &Path, options: &ImportOptions) -> Graph {
        let resources =
            Resources::new(Budget::new(1 << 30, 0), Arc::new(Job::new()), Some(2)).unwrap();
        let generator = Generator::new(Kind::Rmat { scale: 17, edge_factor: 16 }, 3).unwrap();
        let input = Input::Numbered(&generator, generator.vertices());
        import(input, path, options, &resources).unwrap();
        Graph::open(path, resources.job.traffic()).unwrap()
    }

    fn sizes(graph: &Graph) -> Sizes {
        Sizes {
            vertices: graph.connected(),
            edges: graph.description().edges,
            undirected: !graph.description().directed,
            weighted: false,
            reverse: false,
            bytes_per_edge: None,
        }
    }

    fn near(one: u64, other: u64) -> bool {
        one.abs_diff(other) as f64 <= 0.25 * one.max(other) as f64
    }

    #[test]
    fn an_estimate_is_near_the_graph() {
        let folder = tempfile::tempdir().unwrap();
        for undirected in [false, true] {
            let path = folder.path().join(format!("{undirected}.brimful"));
            let graph = rmat(&path, &ImportOptions { undirected, ..Default::default() });
            let (real, guess) =
                (Extent::of(&graph, BOTH, false), Extent::estimate(&sizes(&graph), BOTH));
            assert_eq!(real.indexes.len(), if undirected { 1 } else { 2 });
            assert_eq!(guess.indexes.len(), real.indexes.len());
            assert_eq!((guess.intervals(), guess.sum_arrays), (real.intervals(), real.sum_arrays));
            for (real, guess) in real.indexes.iter().zip(&guess.indexes) {
                // A self-loop is stored once.
                assert!(near(real.edges, guess.edges), "{real:?} {guess:?}");
                assert!(near(real.directory, guess.directory), "{real:?} {guess:?}");
                assert!(
                    near(real.columns[0].packed, guess.columns[0].packed),
                    "{real:?} {guess:?}"
                );
                assert_eq!(real.to_build.is_some(), guess.to_build.is_some());
            }
            let (bytes, len) = (disk_bytes(graph.forward()), graph.forward().len_bytes().unwrap());
            assert!(bytes <= len && len - bytes < len / 1000, "{bytes} {len}");
            let bytes = graph.bytes_on_disk().unwrap();
            assert!(near(bytes, sizes(&graph).graph_bytes()), "{bytes}");
        }
    }

    /// The needs of a program with words of eight bytes.
    const NEEDS: Needs = Needs {
        large_sums: false,
        state: 8,
        signal: 8,
        sum: 8,
        target_sum: 16,
        partial: 0,
        degrees: false,
        external: false,
        full: true,
        ordered: false,
        commutes: false,
        distributed: false,
        exchange: 0,
        indexes: &[Index::In],
    };

    #[test]
    fn the_plan_of_an_estimate_is_near_that_of_the_graph() {
        let folder = tempfile::tempdir().unwrap();
        let graph = rmat(&folder.path().join("g.brimful"), &ImportOptions::default());
        let needs = Needs { partial: 64, degrees: true, ..NEEDS };
        let real = Extent::of(&graph, needs.indexes, false);
        let guess = Extent::estimate(&sizes(&graph), needs.indexes);
        let least = Plan::minimum_bytes(&needs, &real, false, 2);
        assert!(near(least, Plan::minimum_bytes(&needs, &guess, false, 2)));
        assert!(Plan::new(&needs, &real, false, 2, &Budget::new(least - 1, 0)).is_err());
        let mut scratch = Vec::new();
        for budget in [least, least + (1 << 20), least + (2 << 20), 8 * least] {
            let plan = |extent: &Extent| {
                // The minimum of an estimate may be slightly larger.
                let budget = budget.max(Plan::minimum_bytes(&needs, extent, false, 2));
                let plan = Plan::new(&needs, extent, false, 2, &Budget::new(budget, 0)).unwrap();
                assert!(plan.total_bytes <= budget);
                let likely = plan.likely_bytes(&needs, extent, 2, extent.vertices, extent.packed());
                assert!(likely <= plan.total_bytes);
                let [states, next] = plan.paged_bytes(&needs, extent.vertices);
                (likely, states + next + plan.spilled_bytes(&needs, extent))
            };
            let (real, guess) = (plan(&real), plan(&guess));
            assert!(near(real.0, guess.0), "{real:?} {guess:?}");
            scratch.push(real.1);
        }
        assert!(
            scratch[0] > scratch[3] && scratch[3] == 0,
            "what does not fit is on disk: {scratch:?}"
        );
    }

    #[test]
    fn sparse_supersteps_come_before_states_where_memory_is_short() {
        let folder = tempfile::tempdir().unwrap();
        let graph = rmat(&folder.path().join("g.brimful"), &ImportOptions::default());
        let needs = Needs { full: false, ..NEEDS };
        let extent = Extent::of(&graph, needs.indexes, false);
        let plan =
            |budget: u64| Plan::new(&needs, &extent, false, 2, &Budget::new(budget, 0)).unwrap();
        let least = Plan::minimum_bytes(&needs, &extent, false, 2);
        let first = (least..).step_by(1 << 12).find(|budget| plan(*budget).source_window.is_none());
        let plan = plan(first.unwrap());
        assert!(plan.sparse.is_some() && !plan.states_resident);
    }

    #[test]
    fn windows_rule_out_sparse_supersteps_only_if_they_save_half() {
        let folder = tempfile::tempdir().unwrap();
        let graph = rmat(&folder.path().join("g.brimful"), &ImportOptions::default());
        let mut extent = Extent::of(&graph, NEEDS.indexes, false);
        let windows_of = |extent: &Extent, full| {
            let needs = Needs { full, ..NEEDS };
            let least = Plan::minimum_bytes(&needs, extent, false, 2);
            let budget = |limit| Budget::new(limit, 0);
            assert!(Plan::new(&needs, extent, false, 2, &budget(least - 1)).is_err());
            let plan = Plan::new(&needs, extent, false, 2, &budget(least)).unwrap();
            assert!(plan.total_bytes <= least);
            assert_eq!(plan.sparse.is_none(), full || plan.source_window.is_some());
            plan.source_window.is_some()
        };
        assert_eq!([false, true].map(|full| windows_of(&extent, full)), [false, true]);
        extent.vertices = 1 << 27;
        assert_eq!([false, true].map(|full| windows_of(&extent, full)), [true, true]);
    }

    #[test]
    fn shared_memory_is_within_the_budget_or_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let graph = rmat(&folder.path().join("g.brimful"), &ImportOptions::default());
        let alone = Needs { distributed: true, ..NEEDS };
        let needs = alone.with_exchange(1_000_003);
        let extent = Extent::of(&graph, needs.indexes, false);
        let least = Plan::minimum_bytes(&needs, &extent, false, 2);
        assert_eq!(least, Plan::minimum_bytes(&alone, &extent, false, 2));
        let plan = |needs: &Needs, budget: u64| {
            let plan = Plan::new(needs, &extent, false, 2, &Budget::new(budget, 0)).unwrap();
            assert!(plan.total_bytes <= budget);
            plan
        };
        assert_eq!(plan(&needs, least + needs.exchange - 1).exchange_bytes, 0);
        let first = plan(&needs, least + needs.exchange);
        assert_eq!(first.exchange_bytes, needs.exchange);
        assert!(!first.states_resident, "it comes before states");
        let ample = Plan::in_memory_bytes(&needs, &extent, false, 2);
        assert_eq!(ample, Plan::in_memory_bytes(&alone, &extent, false, 2) + needs.exchange);
        let (with, without) = (plan(&needs, ample), plan(&alone, ample - needs.exchange));
        assert!(with.states_resident && with.exchange_bytes == needs.exchange);
        assert_eq!(with.total_bytes, without.total_bytes + needs.exchange);
    }
}

//! From edges with internal ids to shards: sort, cut, encode, count.
//!
//! Sorted pieces are cut into segments in order, which is fast; segments are encoded in parallel
//! and written in order. Invariant: the bytes of the index depend on the multiset of edges alone.

mod cutter;

use std::path::Path;
use std::sync::Arc;

use brimful_store::sorter::{SortWriter, Sorter};
use brimful_store::{Folder, Resources, Traffic};

use self::cutter::{Cut, Cutter};
use crate::build::edge_writer::EdgeWriter;
use crate::build::records::{EdgeRecord, KeyLayout};
use crate::error::{Error, Result};
use crate::input::policy::{Applied, Merger, Policy};
use crate::read::degree_counter::DegreeCounter;
use crate::read::shards::{Geometry, PackedSegment, ShardWriter};
use crate::read::weight_range::WeightRange;

/// Sorts edges with internal ids into shards.
pub struct ShardSorter<'j, R: EdgeRecord> {
    sorter: Sorter<'j, R>,
    layout: KeyLayout,
    geometry: Geometry,
    undirected: bool,
}

/// The counts of writing shards.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// Number of stored arcs.
    pub arcs: u64,
    /// The counts of self-loops and duplicates.
    pub applied: Applied,
    /// The range of stored weights.
    pub weights: Option<WeightRange>,
    /// Length of the files in bytes.
    pub bytes: u64,
}

impl<'j, R: EdgeRecord> ShardSorter<'j, R> {
    /// A sorter that stores each edge in both directions if `undirected`.
    pub fn new(
        folder: &dyn Folder,
        layout: KeyLayout,
        geometry: Geometry,
        undirected: bool,
        bytes: u64,
        workers: usize,
        job: &'j brimful_store::Job,
    ) -> Result<Self> {
        Ok(Self { sorter: Sorter::new(folder, bytes, workers, job)?, layout, geometry, undirected })
    }

    /// A writer for one worker.
    pub fn writer(&self) -> EdgeWriter<SortWriter<'_, 'j, R>> {
        EdgeWriter::new(self.sorter.writer(), self.layout, self.undirected)
    }

    /// A writer for edges that are records already, in every direction that is to be stored.
    pub(crate) fn record_writer(&self) -> SortWriter<'_, 'j, R> {
        self.sorter.writer()
    }

    /// Writes the edges that `policy` keeps as the index `name`, and reports each to `degrees`.
    pub(crate) fn write(
        self,
        folder: &dyn Folder,
        name: &str,
        policy: Policy,
        input: &Path,
        degrees: &mut DegreeCounter,
        resources: &Resources,
    ) -> Result<Built> {
        resources.job.begin("write shards", self.sorter.len());
        let traffic = resources.job.traffic();
        let mut index = IndexWriter::create(folder, name, R::WEIGHTED, self.geometry, traffic)?;
        let applied = self.encode(policy, degrees, resources, |encoded| index.append(&encoded))?;
        index.finish(applied, input)
    }

    /// Encodes the edges that `policy` keeps, reports each to `degrees`, and passes the segments
    /// on in order.
    pub(crate) fn encode(
        self,
        policy: Policy,
        degrees: &mut DegreeCounter,
        resources: &Resources,
        mut pass: impl FnMut(Encoded) -> Result<()> + Send,
    ) -> Result<Applied> {
        let (layout, geometry) = (self.layout, self.geometry);
        let merger = Merger::new(policy, self.undirected);
        let mut cutter = Cutter::new(layout, geometry, merger, degrees);
        self.sorter.merge_in_stages(
            &resources.pool,
            |piece| {
                let repeats = piece.repeats.map_or(0, |(_, count)| count);
                resources.job.advance((repeats + piece.records.len()) as u64);
                Ok::<_, Error>(cutter.cut(piece))
            },
            |cuts: Vec<Cut<R>>, records| {
                Ok(cuts.iter().map(|cut| cut.encode(layout, records)).collect::<Vec<_>>())
            },
            |encoded| encoded.into_iter().try_for_each(&mut pass),
        )?;
        let (last_cuts, applied) = cutter.finish();
        last_cuts.iter().map(|cut| cut.encode(layout, &[])).try_for_each(pass)?;
        Ok(applied)
    }
}

/// A segment ready to be written, and the range of its weights.
pub(crate) type Encoded = (PackedSegment, Option<WeightRange>);

/// Writes the segments of an index.
pub(crate) struct IndexWriter {
    shards: ShardWriter,
    weights: Option<WeightRange>,
}

impl IndexWriter {
    /// Creates the files of the index `name`.
    pub(crate) fn create(
        folder: &dyn Folder,
        name: &str,
        weighted: bool,
        geometry: Geometry,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let shards = ShardWriter::create(folder, name, weighted, geometry, traffic)?;
        Ok(Self { shards, weights: None })
    }

    /// Adds the next segment.
    pub(crate) fn append(&mut self, (segment, weights): &Encoded) -> Result<()> {
        self.weights = WeightRange::union(self.weights, *weights);
        self.shards.append(segment)
    }

    /// Makes the files durable; `applied` are the counts of the policy, and `input` is the name of
    /// the edges in messages.
    pub(crate) fn finish(self, applied: Applied, input: &Path) -> Result<Built> {
        if self.weights.is_some_and(WeightRange::any_infinite) {
            let problem = "the weights of parallel edges add up to more than the largest 64-bit \
                           float; scale the weights down, or choose --duplicates keep, drop or \
                           min";
            return Err(Error::input(input, problem));
        }
        let (arcs, bytes) = self.shards.finish()?;
        Ok(Built { arcs, applied, weights: self.weights, bytes })
    }
}

/// Memory for encoding shards besides the sorter, in bytes. For each worker: a segment's carried
/// records, with positions if `positioned`, its keys, weights and output; and the unit being
/// written.
pub fn encoding_bytes(workers: usize, weighted: bool, positioned: bool) -> u64 {
    let geometry = Geometry::default();
    let edge_bytes =
        if weighted { 24 + 8 + 8 + 8 + 4 } else { 16 + 8 + 4 } + if positioned { 8 } else { 0 };
    // The edges and their directory, then the weights.
    let unit_bytes =
        geometry.unit_bytes as u64 * 5 / 4 + if weighted { geometry.unit_bytes as u64 } else { 0 };
    workers as u64 * u64::from(geometry.segment_edges) * edge_bytes + unit_bytes
}

#[cfg(test)]
mod tests {
    use brimful_store::{Budget, DiskFolder, Job};

    use super::*;
    use crate::build::records::{Pair, WeightedKey, WeightedPair};
    use crate::input::policy::{Duplicates, SelfLoops};
    use crate::input_position::UNKNOWN;
    use crate::read::segment_reader::SegmentReader;
    use crate::read::shards::ShardFile;

    type Edges = Vec<(u64, u64, f64)>;

    const KEEP: Policy = Policy { self_loops: SelfLoops::Keep, duplicates: Duplicates::Keep };

    /// Writes the index of `edges`; returns the edges read back, with the counts.
    fn round_trip<R: EdgeRecord>(
        vertices: u64,
        geometry: Geometry,
        edges: &Edges,
        policy: Policy,
        workers: usize,
    ) -> (Edges, Built, ShardFile) {
        let folder = tempfile::tempdir().unwrap();
        let (folder, job) = (DiskFolder::new(folder.path()), Arc::new(Job::new()));
        let resources =
            Resources::new(Budget::new(1 << 30, 0), Arc::clone(&job), Some(workers)).unwrap();
        let layout = KeyLayout::new(vertices, geometry.interval_bits);
        // The smallest memory makes the most pieces.
        let sorter =
            ShardSorter::<R>::new(&folder, layout, geometry, false, 1, workers, &job).unwrap();
        let mut writer = sorter.writer();
        edges.iter().for_each(|&(s, t, w)| writer.push(s, t, w, 0).unwrap());
        writer.finish().unwrap();
        let mut degrees = DegreeCounter::new(0..vertices.min(10), false);
        let built = sorter
            .write(&folder, "in", policy, Path::new("input"), &mut degrees, &resources)
            .unwrap();
        let bits = geometry.interval_bits;
        let shards =
            ShardFile::open(&folder, "in", vertices, R::WEIGHTED, bits, job.traffic()).unwrap();
        let (mut reader, mut out) = (SegmentReader::default(), Vec::new());
        let directory = shards.open_directory().unwrap();
        for index in 0..shards.segments().len() {
            reader.for_each_edge(&shards, index, |s, t, w| out.push((s, t, w))).unwrap();
            reader.verify_directory(&shards, &directory, index).unwrap();
        }
        (out, built, shards)
    }

    fn in_order(edges: &Edges, interval_bits: u32) -> Edges {
        let mut edges = edges.clone();
        edges.sort_by_key(|&(s, t, w)| (t >> interval_bits, s, t, w.to_bits()));
        edges
    }

    #[test]
    fn graphs_of_2_to_the_33_vertices_keep_their_edges() {
        let (top, geometry) = ((1_u64 << 33) + 4, Geometry::default());
        let mut edges: Edges =
            vec![(0, 0, 1.0), (top, top, 0.1), (5, top, 3.0), (top, 0, 7.0), (1, 1 << 32, 2.0)];
        // The sources are more than 32 bits apart from the segment's first, so segments are cut
        // between them.
        edges.extend((0..250).map(|i| (i << 25, 77, i as f64)));
        let (out, built, shards) = round_trip::<WeightedPair>(top + 1, geometry, &edges, KEEP, 2);
        assert_eq!(out, in_order(&edges, geometry.interval_bits));
        assert_eq!((built.arcs, built.applied.duplicates), (255, 0));
        assert!(shards.segments().iter().all(|s| s.last_source - s.first_source < 1 << 32));
        let unweighted: Edges = edges.iter().map(|&(s, t, _)| (s, t, 1.0)).collect();
        let (out, ..) = round_trip::<Pair>(top + 1, geometry, &unweighted, KEEP, 1);
        assert_eq!(out, in_order(&unweighted, geometry.interval_bits));
    }

    #[test]
    fn shards_of_one_edge_and_graphs_of_none_are_written() {
        let geometry = Geometry::default();
        let edges: Edges = (0..40).map(|i| (39 - i, i << 16, 1.0)).collect();
        let (out, _, shards) = round_trip::<u64>(40 << 16, geometry, &edges, KEEP, 2);
        assert_eq!(out, in_order(&edges, 16));
        assert_eq!((shards.segments().len(), shards.units()), (40, 1), "they share a unit");
        let (out, built, shards) = round_trip::<u64>(0, geometry, &Vec::new(), KEEP, 2);
        assert_eq!((out.len(), built.arcs, shards.units()), (0, 0, 0));
    }

    #[test]
    fn policies_see_repeats_that_are_not_materialised() {
        let geometry = Geometry {
            interval_bits: 4,
            window_edges: 3000,
            segment_edges: 1000,
            unit_bytes: 4000,
        };
        // Three edges, each repeated so often that it is a piece of its own; one is a self-loop.
        // Adding 0.1 many times differs from multiplying it.
        let many = |edge| std::iter::repeat_n(edge, 50_000);
        let mut edges: Edges = (0..20_000_u64).map(|i| (i * i % 977, i * 31 % 40, 0.5)).collect();
        edges.extend(many((500, 3, 0.1)).chain(many((7, 7, 1.0))).chain(many((501, 3, 2.0))));
        for self_loops in [SelfLoops::Keep, SelfLoops::Drop] {
            for duplicates in [Duplicates::Keep, Duplicates::Drop, Duplicates::Sum] {
                let policy = Policy { self_loops, duplicates };
                let mut merger = Merger::new(policy, false);
                let whole = in_order(&edges, 4).into_iter().map(|(s, t, w)| (s, t, Some(w)));
                let mut expected: Vec<_> =
                    whole.filter_map(|edge| merger.push(edge, UNKNOWN)).collect();
                expected.extend(merger.finish());
                for workers in [1, 3] {
                    let (out, built, _) =
                        round_trip::<WeightedKey>(1000, geometry, &edges, policy, workers);
                    assert!(
                        out.iter().map(|&(s, t, w)| (s, t, Some(w))).eq(expected.iter().copied())
                    );
                    assert_eq!(built.applied, merger.applied(), "{policy:?} {workers}");
                    assert_eq!(built.arcs, expected.len() as u64);
                }
            }
        }
    }

    #[test]
    fn cuts_do_not_depend_on_pieces_and_repeats_are_kept() {
        let geometry = Geometry {
            interval_bits: 4,
            window_edges: 3000,
            segment_edges: 1000,
            unit_bytes: 4000,
        };
        let mut edges: Edges = (0..60_000_u64).map(|i| (i * i % 977, i * 31 % 40, 1.0)).collect();
        // One edge, repeated so often that the sorter does not materialize it.
        edges.extend(std::iter::repeat_n((500, 3, 1.0), 50_000));
        let (out, built, one) = round_trip::<u64>(1000, geometry, &edges, KEEP, 1);
        assert_eq!(out, in_order(&edges, 4));
        let mut distinct = out;
        distinct.dedup();
        assert_eq!(built.applied.duplicates, 110_000 - distinct.len() as u64);
        let (.., many) = round_trip::<u64>(1000, geometry, &edges, KEEP, 3);
        assert_eq!(one.segments(), many.segments());
        assert!(one.segments().iter().any(|s| s.window > 1));
        let windows =
            one.segments().chunk_by(|a, b| (a.interval, a.window) == (b.interval, b.window));
        for pair in windows.collect::<Vec<_>>().windows(2) {
            let edges: u32 = pair[0].iter().map(|s| s.edges).sum();
            assert!(pair[1][0].window == 0 || edges >= 3000, "a window ends after so many edges");
        }
    }
}

//! From edges with internal ids to shards: pack, sort, cut, encode, count.
//!
//! Sorted pieces are cut into segments in order, which is quick; encoded in parallel; and written in
//! order. Invariant: the bytes of the index depend on the multiset of edges alone.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use brimful_store::sorter::{Piece, SortWriter, Sorter};
use brimful_store::{Folder, Resources};

use crate::codec::{WeightType, pack};
use crate::degrees::DegreeCounter;
use crate::error::Result;
use crate::records::{EdgeRecord, KeyLayout};
use crate::shards::{Geometry, PackedSegment, Segment, ShardWriter};

/// Edges with internal ids, going into shards.
pub struct ShardSorter<'j, R: EdgeRecord> {
    sorter: Sorter<'j, R>,
    layout: KeyLayout,
    geometry: Geometry,
    undirected: bool,
}

/// What writing shards counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Built {
    /// Arcs stored.
    pub arcs: u64,
    /// Edges equal to an earlier one.
    pub duplicates: u64,
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
    pub fn writer(&self) -> ShardSortWriter<'_, 'j, R> {
        ShardSortWriter { writer: self.sorter.writer(), layout: self.layout, undirected: self.undirected }
    }

    /// Writes all edges as the index `name` and tells `degrees` of each.
    pub(crate) fn write(
        self,
        folder: &dyn Folder,
        name: &str,
        degrees: &mut DegreeCounter,
        resources: &Resources,
    ) -> Result<Built> {
        let total = self.sorter.len();
        resources.job.begin("write shards", total);
        let (layout, geometry) = (self.layout, self.geometry);
        let traffic = resources.job.traffic();
        let mut shards = ShardWriter::create(folder, name, R::WEIGHTED, geometry, traffic)?;
        // Buffers for keys, passed from one piece to another: fresh memory would be zeroed for each.
        let spare = Mutex::new(Vec::new());
        let mut cutter = Cutter::new(layout, geometry, self.undirected, degrees);
        self.sorter.merge_in_stages(
            &resources.pool,
            |piece| {
                resources.job.advance(piece.records.len() as u64);
                Ok::<_, crate::Error>(cutter.cut(piece))
            },
            |cuts: Vec<Cut<R>>, records| {
                let lock = || spare.lock().unwrap_or_else(PoisonError::into_inner);
                let mut keys = lock().pop().unwrap_or_default();
                let encoded = cuts.iter().map(|cut| cut.encode(layout, records, &mut keys)).collect();
                lock().push(keys);
                Ok(encoded)
            },
            |encoded: Vec<PackedSegment>| encoded.iter().try_for_each(|segment| shards.append(segment)),
        )?;
        let duplicates = cutter.duplicates;
        if let Some(rest) = cutter.finish() {
            shards.append(&rest.encode(layout, &[], &mut Vec::new()))?;
        }
        let (arcs, bytes) = shards.finish()?;
        Ok(Built { arcs, duplicates, bytes })
    }
}

/// A segment cut from the ordered stream: what earlier pieces left, repeats of a record, and a
/// range of the piece.
struct Cut<R> {
    interval: u64,
    window: u32,
    carried: Vec<R>,
    repeats: Option<(R, usize)>,
    range: Range<usize>,
}

impl<R: EdgeRecord> Cut<R> {
    fn len(&self) -> usize {
        self.carried.len() + self.repeats.map_or(0, |(_, count)| count) + self.range.len()
    }

    fn encode(&self, layout: KeyLayout, records: &[R], keys: &mut Vec<u64>) -> PackedSegment {
        let records = &records[self.range.clone()];
        let repeats = self.repeats.iter().flat_map(|(record, count)| std::iter::repeat_n(record, *count));
        let all = || self.carried.iter().chain(repeats.clone()).chain(records);
        let (bits, first) = (layout.interval_bits, all().next().map_or(0, |record| record.unpack(layout).0));
        keys.clear();
        keys.reserve_exact(self.len());
        keys.extend(all().map(|record| {
            let (source, target, _) = record.unpack(layout);
            (source - first) << bits | target & ((1 << bits) - 1)
        }));
        let mut weights = Vec::new();
        if R::WEIGHTED {
            weights.extend(all().map(|record| record.unpack(layout).2.unwrap_or(1.0)));
        }
        let (mut bytes, mut packed_weights, mut directory) = (Vec::new(), Vec::new(), Vec::new());
        let (packing, plain, blocks) = pack(keys, bits, &mut bytes, &mut directory);
        let weight_type = WeightType::narrowest(&weights);
        weight_type.encode(&weights, &mut packed_weights);
        let entry = Segment {
            interval: self.interval,
            first_source: first,
            last_source: first + (keys.last().copied().unwrap_or(0) >> bits),
            window: self.window,
            edges: keys.len() as u32,
            blocks: blocks as u32,
            stored: bytes.len() as u32,
            plain: plain as u32,
            packing,
            weight_type,
            begins_unit: false,
        };
        PackedSegment { entry, bytes, weights: packed_weights, directory }
    }
}

/// Cuts the ordered stream into segments and counts what must be counted in order.
struct Cutter<'d, R> {
    layout: KeyLayout,
    geometry: Geometry,
    undirected: bool,
    degrees: &'d mut DegreeCounter,
    duplicates: u64,
    last: Option<(u64, u64)>,
    /// Where the segment under way belongs, and its records of earlier pieces.
    interval: u64,
    window: u32,
    carried: Vec<R>,
    first_source: u64,
    /// Edges of the window under way, the segment's included.
    window_edges: u64,
}

impl<'d, R: EdgeRecord> Cutter<'d, R> {
    fn new(layout: KeyLayout, geometry: Geometry, undirected: bool, degrees: &'d mut DegreeCounter) -> Self {
        Self {
            layout,
            geometry,
            undirected,
            degrees,
            duplicates: 0,
            last: None,
            interval: 0,
            window: 0,
            carried: Vec::new(),
            first_source: 0,
            window_edges: 0,
        }
    }

    fn cut(&mut self, piece: Piece<'_, R>) -> Vec<Cut<R>> {
        let mut cuts = Vec::new();
        if let Some((record, mut count)) = piece.repeats {
            while count > 0 {
                // Never more than a segment at once, so that none is materialised longer.
                let now = count.min(self.geometry.segment_edges as usize);
                let batch = vec![record; now];
                self.cut_records(&batch, &mut cuts, true);
                count -= now;
            }
        }
        self.cut_records(piece.records, &mut cuts, false);
        cuts
    }

    /// Cuts `records`, whose ranges the cuts refer to, but for `repeats` of one record.
    fn cut_records(&mut self, records: &[R], cuts: &mut Vec<Cut<R>>, repeats: bool) {
        let mut start = 0;
        let mut length = self.carried.len();
        for (at, record) in records.iter().enumerate() {
            let (source, target, weight) = record.unpack(self.layout);
            // Both directions of an undirected edge are stored; one of them counts.
            let counts = !self.undirected || source <= target;
            let (interval, new_source) =
                (target >> self.layout.interval_bits, self.last.is_none_or(|last| last.0 != source));
            self.duplicates += u64::from(self.last == Some((source, target)) && counts);
            self.last = Some((source, target));
            self.degrees.add(source, weight);
            let new_interval = interval != self.interval;
            let new_window = self.window_edges >= self.geometry.window_edges && new_source;
            let far = source.wrapping_sub(self.first_source) > u64::from(u32::MAX);
            if new_interval || new_window || length == self.geometry.segment_edges as usize || far {
                if length > 0 {
                    cuts.push(self.take(start..at, records, repeats));
                }
                start = at;
                length = 0;
                if new_interval {
                    (self.interval, self.window, self.window_edges) = (interval, 0, 0);
                } else if new_window {
                    (self.window, self.window_edges) = (self.window + 1, 0);
                }
            }
            if length == 0 {
                self.first_source = source;
            }
            length += 1;
            self.window_edges += 1;
        }
        self.carried.extend_from_slice(&records[start..]);
    }

    fn take(&mut self, range: Range<usize>, records: &[R], repeats: bool) -> Cut<R> {
        let (interval, window, carried) = (self.interval, self.window, std::mem::take(&mut self.carried));
        let repeated = repeats.then(|| records.first().map(|record| (*record, range.len()))).flatten();
        Cut { interval, window, carried, repeats: repeated, range: if repeats { 0..0 } else { range } }
    }

    fn finish(self) -> Option<Cut<R>> {
        let rest = Cut {
            interval: self.interval,
            window: self.window,
            carried: self.carried,
            repeats: None,
            range: 0..0,
        };
        (rest.len() > 0).then_some(rest)
    }
}

/// One worker's end of a [`ShardSorter`]. [`ShardSortWriter::finish`] must be called.
pub struct ShardSortWriter<'s, 'j, R> {
    writer: SortWriter<'s, 'j, R>,
    layout: KeyLayout,
    undirected: bool,
}

impl<R: EdgeRecord> ShardSortWriter<'_, '_, R> {
    /// Adds an edge.
    #[inline]
    pub fn push(&mut self, source: u64, target: u64, weight: f64) -> Result<()> {
        self.writer.push(R::pack(self.layout, source, target, weight))?;
        if self.undirected && source != target {
            self.writer.push(R::pack(self.layout, target, source, weight))?;
        }
        Ok(())
    }

    /// Hands over what is left.
    pub fn finish(self) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}

/// Bytes needed beside the sorter while shards are encoded: for each worker a segment's records
/// carried over, keys, weights and output, and the unit being written.
pub fn encoding_bytes(workers: usize, weighted: bool) -> u64 {
    let geometry = Geometry::default();
    let an_edge = if weighted { 24 + 8 + 8 + 8 + 4 } else { 16 + 8 + 4 };
    // Edges and their directory, and weights.
    let units = geometry.unit_bytes as u64 * 5 / 4 + if weighted { geometry.unit_bytes as u64 } else { 0 };
    workers as u64 * u64::from(geometry.segment_edges) * an_edge + units
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_store::{Budget, DiskFolder, Job};

    use super::*;
    use crate::records::{Pair, WeightedPair};
    use crate::shards::{SegmentReader, ShardFile};

    type Edges = Vec<(u64, u64, f64)>;

    /// Writes the index of `edges` and reads it back, with what was counted.
    fn round_trip<R: EdgeRecord>(
        vertices: u64,
        geometry: Geometry,
        edges: &Edges,
        workers: usize,
    ) -> (Edges, Built, ShardFile) {
        let folder = tempfile::tempdir().unwrap();
        let (folder, job) = (DiskFolder::new(folder.path()), Arc::new(Job::new()));
        let resources = Resources::new(Budget::new(1 << 30, 0), Arc::clone(&job), Some(workers)).unwrap();
        let layout = KeyLayout::new(vertices, geometry.interval_bits);
        // The smallest memory, so that pieces are many.
        let sorter = ShardSorter::<R>::new(&folder, layout, geometry, false, 1, workers, &job).unwrap();
        let mut writer = sorter.writer();
        edges.iter().for_each(|&(s, t, w)| writer.push(s, t, w).unwrap());
        writer.finish().unwrap();
        let mut degrees = DegreeCounter::new(0..vertices.min(10), false);
        let built = sorter.write(&folder, "in", &mut degrees, &resources).unwrap();
        let bits = geometry.interval_bits;
        let shards = ShardFile::open(&folder, "in", vertices, R::WEIGHTED, bits, job.traffic()).unwrap();
        let (mut reader, mut out) = (SegmentReader::default(), Vec::new());
        for index in 0..shards.segments().len() {
            reader.for_each_edge(&shards, index, |s, t, w| out.push((s, t, w))).unwrap();
            reader.verify_directory(&shards, index).unwrap();
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
        // Far beyond 32 bits above the segment's first source, so that segments are cut between them.
        edges.extend((0..250).map(|i| (i << 25, 77, i as f64)));
        let (out, built, shards) = round_trip::<WeightedPair>(top + 1, geometry, &edges, 2);
        assert_eq!(out, in_order(&edges, geometry.interval_bits));
        assert_eq!((built.arcs, built.duplicates), (255, 0));
        assert!(shards.segments().iter().all(|s| s.last_source - s.first_source < 1 << 32));
        let unweighted: Edges = edges.iter().map(|&(s, t, _)| (s, t, 1.0)).collect();
        let (out, ..) = round_trip::<Pair>(top + 1, geometry, &unweighted, 1);
        assert_eq!(out, in_order(&unweighted, geometry.interval_bits));
    }

    #[test]
    fn shards_of_one_edge_and_graphs_of_none_are_written() {
        let geometry = Geometry::default();
        let edges: Edges = (0..40).map(|i| (39 - i, i << 16, 1.0)).collect();
        let (out, _, shards) = round_trip::<u64>(40 << 16, geometry, &edges, 2);
        assert_eq!(out, in_order(&edges, 16));
        assert_eq!((shards.segments().len(), shards.units()), (40, 1), "they share a unit");
        let (out, built, shards) = round_trip::<u64>(0, geometry, &Vec::new(), 2);
        assert_eq!((out.len(), built.arcs, shards.units()), (0, 0, 0));
    }

    #[test]
    fn cuts_do_not_depend_on_pieces_and_repeats_are_kept() {
        let geometry =
            Geometry { interval_bits: 4, window_edges: 3000, segment_edges: 1000, unit_bytes: 4000 };
        let mut edges: Edges = (0..60_000_u64).map(|i| (i * i % 977, i * 31 % 40, 1.0)).collect();
        // One edge so often that the sorter does not materialise it.
        edges.extend(std::iter::repeat_n((500, 3, 1.0), 50_000));
        let (out, built, one) = round_trip::<u64>(1000, geometry, &edges, 1);
        assert_eq!(out, in_order(&edges, 4));
        let mut distinct = out;
        distinct.dedup();
        assert_eq!(built.duplicates, 110_000 - distinct.len() as u64);
        let (.., many) = round_trip::<u64>(1000, geometry, &edges, 3);
        assert_eq!(one.segments(), many.segments());
        assert!(one.segments().iter().any(|s| s.window > 1));
        let windows = one.segments().chunk_by(|a, b| (a.interval, a.window) == (b.interval, b.window));
        for pair in windows.collect::<Vec<_>>().windows(2) {
            let edges: u32 = pair[0].iter().map(|s| s.edges).sum();
            assert!(pair[1][0].window == 0 || edges >= 3000, "a window ends after so many edges");
        }
    }
}

//! The counts and ids of an input, filled by many threads, and their summary.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::edges::EdgeBatch;
use crate::ids::external::IdType;
use crate::input::columns::Columns;
use crate::input::formats::parser::VertexClaim;
use crate::input::parsed::Scanned;
use crate::input::stream::{Listed, Rejection};
use crate::input_position::{InputPart, PositionedEdge};
use crate::order::bitmap::IdBitmap;
use crate::order::bitmap::ranks::IdRanks;
use crate::order::choice::{EdgeSample, Sampled};

/// The vertices that exist even without an edge.
pub(crate) struct Declared {
    /// Ranges that a header or the user declares: disjoint, ascending, possibly empty.
    pub(crate) ranges: [Range<u64>; 2],
    /// Single ids, unordered and with repeats.
    pub(crate) listed: Option<Listed>,
}

impl Declared {
    /// The declared ids 0 to `count` - 1, with those of a range and of a list.
    pub(super) fn new(count: u64, range: Range<u64>, listed: Option<Listed>) -> Self {
        let ranges =
            if range.start <= count { [0..count.max(range.end), 0..0] } else { [0..count, range] };
        Self { ranges, listed }
    }

    /// Number of ids in the ranges.
    pub(crate) fn numbered(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The type of ids, `of_edges` if it holds the declared ones.
    fn type_with(&self, of_edges: IdType) -> IdType {
        let end = self.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        match of_edges {
            IdType::Int32 if end > 1 << 31 => IdType::Int64,
            IdType::UInt32 if end > 1 << 32 => IdType::Int64,
            other => other,
        }
    }

    /// True if no vertex is declared.
    pub(crate) fn is_none(&self) -> bool {
        self.numbered() == 0 && self.listed.is_none()
    }
}

/// The results of the scan.
pub(crate) struct ScanSummary {
    pub(crate) id_type: IdType,
    pub(crate) weighted: bool,
    pub(crate) lines: u64,
    pub(crate) edges: u64,
    pub(crate) self_loops: u64,
    /// The first dropped self-loop, with the bits of its ids.
    pub(crate) first_self_loop: Option<PositionedEdge>,
    /// The parts of the input, for input positions.
    pub(crate) inputs: Vec<InputPart>,
    /// The chosen columns, if the format leaves a choice.
    pub(crate) columns: Option<Columns>,
    /// `None` if the set of ids exceeds its memory.
    pub(crate) ranks: Option<IdRanks>,
    pub(crate) sampled: Sampled,
    /// The vertices that exist even without an edge.
    pub(crate) declared: Declared,
    /// True if edges may name declared vertices only.
    pub(crate) all_declared: bool,
    /// True if the format declares edges as undirected.
    pub(crate) undirected: bool,
    pub(crate) rejected: u64,
    pub(crate) rejections: Vec<Rejection>,
    /// The number of vertices that the input declares.
    pub(crate) claim: Option<VertexClaim>,
}

/// Counters and ids of the whole input, filled by many threads.
pub(crate) struct InputScan {
    pub(crate) bitmap: IdBitmap,
    sample: EdgeSample,
    /// True if self-loops are dropped. A vertex without another edge then counts as declared.
    drops_self_loops: bool,
    pub(super) edges: AtomicU64,
    self_loops: AtomicU64,
    first_self_loop: Mutex<Option<PositionedEdge>>,
}

/// Edges copied at once when self-loops are removed.
const COPIED_EDGES: usize = 1 << 10;

impl InputScan {
    pub(crate) fn new(bitmap: IdBitmap, undirected: bool, drops_self_loops: bool) -> Self {
        let sample = EdgeSample::new(undirected);
        let (edges, self_loops) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            bitmap,
            sample,
            drops_self_loops,
            edges,
            self_loops,
            first_self_loop: Mutex::default(),
        }
    }

    /// From now on, counts edges in both directions, as the input declares.
    pub(crate) fn take_both_directions(&self) {
        self.sample.take_both_directions();
    }

    pub(crate) fn add(&self, batch: &EdgeBatch) {
        let loops = batch.sources.iter().zip(&batch.targets).filter(|(s, t)| s == t).count();
        if loops > 0 && self.drops_self_loops {
            self.add_without_loops(batch);
            self.note_first_loop(batch);
        } else {
            self.bitmap.insert_edges(batch);
            self.sample.add(batch);
        }
        self.edges.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.self_loops.fetch_add(loops as u64, Ordering::Relaxed);
    }

    fn add_without_loops(&self, batch: &EdgeBatch) {
        let (mut kept, mut loops) = (EdgeBatch::default(), Vec::new());
        let chunks = batch.sources.chunks(COPIED_EDGES).zip(batch.targets.chunks(COPIED_EDGES));
        for (sources, targets) in chunks {
            for (&source, &target) in sources.iter().zip(targets) {
                if source == target {
                    loops.push(source);
                } else {
                    kept.sources.push(source);
                    kept.targets.push(target);
                }
            }
            self.bitmap.insert_declared(&loops);
            self.bitmap.insert_edges(&kept);
            self.sample.add(&kept);
            loops.clear();
            kept.clear();
        }
    }

    fn note_first_loop(&self, batch: &EdgeBatch) {
        let edges = batch.sources.iter().zip(&batch.targets).zip(&batch.positions);
        let loops = edges.filter(|((source, target), _)| source == target);
        let first = loops
            .filter_map(|((&source, &target), &position)| {
                PositionedEdge::new(position, (source, target))
            })
            .min();
        let mut kept = self.first_self_loop.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = PositionedEdge::earlier(*kept, first);
    }

    /// The counts and the sample of this scan, for the import.
    pub(crate) fn into_scanned(self) -> (Scanned, Sampled) {
        let scanned = Scanned {
            edges: self.edges.into_inner(),
            self_loops: self.self_loops.into_inner(),
            first_self_loop: self
                .first_self_loop
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
            is_whole: !self.bitmap.is_incomplete(),
        };
        (scanned, self.sample.finish())
    }

    /// Adds the scan of another process; `before` is added to input positions.
    pub(crate) fn add_scanned(&self, scanned: Scanned, sampled: Sampled, before: u64) {
        self.edges.fetch_add(scanned.edges, Ordering::Relaxed);
        self.self_loops.fetch_add(scanned.self_loops, Ordering::Relaxed);
        let own = scanned.first_self_loop;
        let own = own.map(|edge| PositionedEdge { position: edge.position + before, ..edge });
        let mut kept = self.first_self_loop.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = PositionedEdge::earlier(*kept, own);
        self.sample.add_sampled(sampled);
        if !scanned.is_whole {
            self.bitmap.give_up();
        }
    }

    pub(crate) fn into_summary(
        self,
        declared: Declared,
        id_type: IdType,
        weighted: bool,
        lines: u64,
    ) -> ScanSummary {
        ScanSummary {
            id_type: declared.type_with(id_type),
            weighted,
            lines,
            edges: self.edges.into_inner(),
            self_loops: self.self_loops.into_inner(),
            first_self_loop: self
                .first_self_loop
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
            inputs: Vec::new(),
            columns: None,
            ranks: (!self.bitmap.is_incomplete()).then(|| self.bitmap.into_ranks()),
            sampled: self.sample.finish(),
            declared,
            all_declared: false,
            undirected: false,
            rejected: 0,
            rejections: Vec::new(),
            claim: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_ids_holds_the_declared_ones() {
        let type_with = |count, kind| Declared::new(count, 0..0, None).type_with(kind);
        assert_eq!(type_with(1 << 31, IdType::Int32), IdType::Int32);
        assert_eq!(type_with((1 << 31) + 1, IdType::Int32), IdType::Int64);
        assert_eq!(type_with(1 << 32, IdType::UInt32), IdType::UInt32);
        assert_eq!(type_with((1 << 32) + 1, IdType::UInt32), IdType::Int64);
        assert_eq!(type_with(u64::MAX, IdType::UInt64), IdType::UInt64);
    }
}

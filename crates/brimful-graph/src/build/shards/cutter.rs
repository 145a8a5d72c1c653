//! Cuts sorted edges into segments, and encodes the segments.
//!
//! Invariant: cuts depend on the ordered stream of edges alone, not on its pieces.

use std::ops::Range;

use brimful_store::sorter::Piece;

use super::Encoded;
use crate::build::records::{EdgeRecord, KeyLayout};
use crate::codec::{WeightType, pack};
use crate::input::policy::{Applied, Edge, Merger};
use crate::input_position::UNKNOWN;
use crate::read::degree_counter::DegreeCounter;
use crate::read::shards::{Geometry, PackedSegment, Segment};
use crate::read::weight_range::WeightRange;

/// A segment cut from the ordered stream. Its records are, in this order, `carried`, `repeats` and
/// those in `range`.
pub(super) struct Cut<R> {
    interval: u64,
    window: u32,
    /// Records of earlier pieces.
    carried: Vec<R>,
    /// A record, and the number of its repeats.
    repeats: Option<(R, usize)>,
    /// A range of the current piece.
    range: Range<usize>,
}

impl<R: EdgeRecord> Cut<R> {
    fn len(&self) -> usize {
        self.carried.len() + self.repeats.map_or(0, |(_, count)| count) + self.range.len()
    }

    pub(super) fn encode(&self, layout: KeyLayout, records: &[R]) -> Encoded {
        let records = &records[self.range.clone()];
        let repeats =
            self.repeats.iter().flat_map(|(record, count)| std::iter::repeat_n(record, *count));
        let all_records = || self.carried.iter().chain(repeats.clone()).chain(records);
        let (bits, first) = (
            layout.interval_bits,
            all_records().next().map_or(0, |record| record.unpack(layout).0),
        );
        let mut keys = Vec::with_capacity(self.len());
        keys.extend(all_records().map(|record| {
            let (source, target, _) = record.unpack(layout);
            (source - first) << bits | target & ((1 << bits) - 1)
        }));
        let mut weights = Vec::new();
        if R::WEIGHTED {
            weights.extend(all_records().map(|record| record.unpack(layout).2.unwrap_or(1.0)));
        }
        let (mut bytes, mut packed_weights, mut directory) = (Vec::new(), Vec::new(), Vec::new());
        let (packing, plain, blocks) = pack(&keys, bits, &mut bytes, &mut directory);
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
        let segment = PackedSegment { entry, bytes, weights: packed_weights, directory };
        (segment, WeightRange::of(&weights))
    }
}

/// Cuts the kept edges of the ordered stream into segments, and makes the counts that depend on
/// their order.
pub(super) struct Cutter<'d, R> {
    layout: KeyLayout,
    geometry: Geometry,
    merger: Merger,
    degrees: &'d mut DegreeCounter,
    last_source: Option<u64>,
    /// The interval of the current segment.
    interval: u64,
    /// The window of the current segment.
    window: u32,
    /// The records of the current segment from earlier pieces.
    carried: Vec<R>,
    /// The first source of the current segment.
    first_source: u64,
    /// Edges of the current window, including those of the current segment.
    window_edges: u64,
}

impl<'d, R: EdgeRecord> Cutter<'d, R> {
    pub(super) fn new(
        layout: KeyLayout,
        geometry: Geometry,
        merger: Merger,
        degrees: &'d mut DegreeCounter,
    ) -> Self {
        Self {
            layout,
            geometry,
            merger,
            degrees,
            last_source: None,
            interval: 0,
            window: 0,
            carried: Vec::new(),
            first_source: 0,
            window_edges: 0,
        }
    }

    /// Cuts the edges of a piece that the policy keeps.
    pub(super) fn cut(&mut self, piece: Piece<'_, R>) -> Vec<Cut<R>> {
        let mut cuts = Vec::new();
        if let Some((record, count)) = piece.repeats {
            self.cut_repeats(record, count, &mut cuts);
        }
        let kept = if self.merger.keeps_all() { piece.records } else { self.keep(piece.records) };
        self.cut_records(kept, &mut cuts, false);
        cuts
    }

    /// Cuts `count` repeats of `record`.
    fn cut_repeats(&mut self, record: R, mut count: usize, cuts: &mut Vec<Cut<R>>) {
        let (source, target, _) = record.unpack(self.layout);
        if !self.merger.keeps(source, target) {
            for _ in 0..count {
                // Each push releases at most one edge.
                if let Some(kept) = self.push(&record) {
                    self.cut_records(&[kept], cuts, true);
                }
            }
            return;
        }
        self.merger.note(source, target, count as u64);
        while count > 0 {
            // At most one segment of repeats is materialized at a time.
            let now = count.min(self.geometry.segment_edges as usize);
            let batch = vec![record; now];
            self.cut_records(&batch, cuts, true);
            count -= now;
        }
    }

    /// Moves the edges that the policy keeps to the front of `records`. Writing never overtakes
    /// reading, because each edge releases at most one.
    fn keep<'p>(&mut self, records: &'p mut [R]) -> &'p [R] {
        let mut kept = 0;
        for at in 0..records.len() {
            if let Some(record) = self.push(&records[at]) {
                records[kept] = record;
                kept += 1;
            }
        }
        &records[..kept]
    }

    /// Hands an edge to the policy; returns the edge that it releases, if any.
    fn push(&mut self, record: &R) -> Option<R> {
        let edge = self.merger.push(record.unpack(self.layout), record.position())?;
        Some(self.pack_kept(edge))
    }

    /// The record of a kept edge; its input position is no longer needed.
    fn pack_kept(&self, (source, target, weight): Edge) -> R {
        R::pack(self.layout, source, target, weight.unwrap_or(1.0), UNKNOWN)
    }

    /// Cuts `records`; each cut refers to a range of them. With `repeats`, all records are equal,
    /// and a cut holds one of them and their number instead.
    fn cut_records(&mut self, records: &[R], cuts: &mut Vec<Cut<R>>, repeats: bool) {
        // In all other cases the merger has already seen the records.
        let unseen = self.merger.keeps_all() && !repeats;
        let max_len = self.geometry.segment_edges as usize;
        let (mut start, mut at) = (0, 0);
        let mut len = self.carried.len();
        while let Some(record) = records.get(at) {
            let (source, target, _) = record.unpack(self.layout);
            let interval = target >> self.layout.interval_bits;
            let end = at + self.count_run(source, interval, &records[at..], unseen);
            let new_source = self.last_source.replace(source) != Some(source);
            let new_interval = interval != self.interval;
            let new_window = self.window_edges >= self.geometry.window_edges && new_source;
            let gap_too_wide = source.wrapping_sub(self.first_source) > u64::from(u32::MAX);
            if new_interval || new_window || len == max_len || gap_too_wide {
                if len > 0 {
                    cuts.push(self.take_cut(start..at, records, repeats));
                }
                start = at;
                len = 0;
                if new_interval {
                    (self.interval, self.window, self.window_edges) = (interval, 0, 0);
                } else if new_window {
                    (self.window, self.window_edges) = (self.window + 1, 0);
                }
            }
            if len == 0 {
                self.first_source = source;
            }
            self.window_edges += (end - at) as u64;
            while len + (end - at) > max_len {
                at += max_len - len;
                cuts.push(self.take_cut(start..at, records, repeats));
                (start, len) = (at, 0);
                self.first_source = source;
            }
            len += end - at;
            at = end;
        }
        self.carried.extend_from_slice(&records[start..]);
    }

    /// Counts the records at the front that share a source and an interval; returns their number.
    #[inline]
    fn count_run(&mut self, source: u64, interval: u64, records: &[R], unseen: bool) -> usize {
        let layout = self.layout;
        let mut count = 0;
        for record in records {
            let (record_source, target, _) = record.unpack(layout);
            if record_source != source || target >> layout.interval_bits != interval {
                break;
            }
            if unseen {
                self.merger.note(source, target, 1);
            }
            count += 1;
        }
        let weights = records[..count].iter().filter_map(|record| record.unpack(layout).2);
        self.degrees.add(source, count as u64, weights);
        count
    }

    /// Ends the current segment with the records in `range`.
    fn take_cut(&mut self, range: Range<usize>, records: &[R], repeats: bool) -> Cut<R> {
        let (interval, window, carried) =
            (self.interval, self.window, std::mem::take(&mut self.carried));
        let repeated =
            repeats.then(|| records.first().map(|record| (*record, range.len()))).flatten();
        Cut {
            interval,
            window,
            carried,
            repeats: repeated,
            range: if repeats { 0..0 } else { range },
        }
    }

    /// The unfinished last segments, and the counts of the policy.
    pub(super) fn finish(mut self) -> (Vec<Cut<R>>, Applied) {
        let mut cuts = Vec::new();
        if let Some(edge) = self.merger.finish() {
            let record = self.pack_kept(edge);
            self.cut_records(&[record], &mut cuts, true);
        }
        let applied = self.merger.applied();
        let last_cut = Cut {
            interval: self.interval,
            window: self.window,
            carried: self.carried,
            repeats: None,
            range: 0..0,
        };
        cuts.extend((last_cut.len() > 0).then_some(last_cut));
        (cuts, applied)
    }
}

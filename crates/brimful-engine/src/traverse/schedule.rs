//! The order of segments in a sweep.
//!
//! Work is cut into items, in a fixed order: one window of a *heavy* interval, which has several,
//! or a run of *light* intervals. The items of a heavy interval, or one item of light ones, are a
//! block.

use std::ops::Range;

use brimful_graph::read::shards::Segment;

use crate::traverse::residency::{PinnedIndex, is_windowed};

/// Minimum number of edges of an item of light intervals; a vertex counts as an edge. Large items
/// read whole units.
const MIN_ITEM_EDGES: u64 = 1 << 16;
/// Maximum number of edges of an item of light intervals: small items let workers end together.
const MAX_ITEM_EDGES: u64 = 1 << 21;
/// Number of items of a graph of medium size.
const ITEMS: u64 = 64;

/// A segment to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentRef {
    pub(crate) interval: usize,
    pub(crate) file: usize,
    pub(crate) segment: usize,
}

/// A window of a heavy interval, or a run of light ones.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) intervals: Range<usize>,
    pub(crate) steps: Range<usize>,
    /// The number of the window among those of a heavy interval in all indexes, and their count.
    pub(crate) window: usize,
    pub(crate) windows: usize,
}

/// An item of light intervals that may get more of them.
struct OpenItem {
    first_interval: usize,
    first_step: usize,
    /// Number of edges and vertices.
    weight: u64,
}

/// A heavy interval or a run of light ones: its intervals, and its items.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleBlock {
    pub(crate) intervals: Range<usize>,
    pub(crate) items: Range<usize>,
}

/// The items of the owned intervals, in order.
pub(crate) struct Schedule {
    pub(crate) steps: Vec<SegmentRef>,
    pub(crate) items: Vec<Item>,
    blocks: Vec<ScheduleBlock>,
    /// The block of each interval.
    pub(crate) block_of: Vec<usize>,
    pub(crate) intervals: usize,
}

impl Schedule {
    /// Maximum memory in bytes of a schedule with these numbers of segments, items and intervals.
    pub(crate) fn memory_bytes(segments: u64, items: u64, intervals: u64) -> u64 {
        let of_item = size_of::<Item>() + size_of::<ScheduleBlock>();
        // A growing list takes up to twice the memory of its contents.
        2 * (segments * size_of::<SegmentRef>() as u64 + items * of_item as u64)
            + intervals * size_of::<usize>() as u64
    }

    /// The schedule of the `owned` intervals.
    pub(crate) fn new(
        files: &[PinnedIndex],
        intervals: usize,
        owned: &Range<usize>,
        interval_bits: u32,
    ) -> Self {
        let edges: u64 = files.iter().map(|file| file.shards().edges()).sum();
        let item_weight = (edges / ITEMS).clamp(MIN_ITEM_EDGES, MAX_ITEM_EDGES);
        let mut schedule = Self {
            steps: Vec::new(),
            items: Vec::new(),
            blocks: Vec::new(),
            block_of: vec![0; intervals],
            intervals,
        };
        let mut next = vec![0; files.len()];
        let mut light: Option<OpenItem> = None;
        for interval in 0..owned.end {
            let shards = files.iter().zip(&mut next).enumerate().map(|(file, (resident, next))| {
                let segments = resident.shards().segments();
                let length =
                    segments[*next..].iter().take_while(|s| s.interval == interval as u64).count();
                *next += length;
                (file, *next - length..*next)
            });
            let shards: Vec<(usize, Range<usize>)> =
                shards.filter(|(_, range)| !range.is_empty()).collect();
            if interval < owned.start {
                continue;
            }
            let segment_of =
                |file: usize, segment: usize| &files[file].shards().segments()[segment];
            let heavy = is_windowed(&shards, files);
            let splits = |(file, range): &(usize, Range<usize>)| {
                segment_of(*file, range.start).begins_unit || files[*file].is_pinned(range.start)
            };
            let full = light.as_ref().is_some_and(|item| item.weight >= item_weight)
                && shards.first().is_none_or(splits);
            if heavy || full {
                schedule.close(&mut light, interval);
            }
            if heavy {
                schedule.push_windows(interval, &shards, segment_of);
                continue;
            }
            let item = light.get_or_insert(OpenItem {
                first_interval: interval,
                first_step: schedule.steps.len(),
                weight: 0,
            });
            item.weight += 1 << interval_bits;
            for (file, range) in shards {
                item.weight += range
                    .clone()
                    .map(|segment| u64::from(segment_of(file, segment).edges))
                    .sum::<u64>();
                schedule.steps.extend(range.map(|segment| SegmentRef { interval, file, segment }));
            }
        }
        schedule.close(&mut light, owned.end);
        schedule.close_blocks();
        schedule
    }

    /// Groups the items into blocks.
    fn close_blocks(&mut self) {
        let mut items = 0;
        for part in self.items.chunk_by(|a, b| a.intervals == b.intervals) {
            let intervals = part[0].intervals.clone();
            self.block_of[intervals.clone()].fill(self.blocks.len());
            self.blocks.push(ScheduleBlock { intervals, items: items..items + part.len() });
            items += part.len();
        }
    }

    /// Heavy intervals and runs of light ones, in order; together they are all intervals.
    pub(crate) fn blocks(&self) -> &[ScheduleBlock] {
        &self.blocks
    }

    /// The segments of a block, in order.
    pub(crate) fn steps(&self, block: &ScheduleBlock) -> impl Iterator<Item = SegmentRef> + '_ {
        self.items[block.items.clone()]
            .iter()
            .flat_map(|item| self.steps[item.steps.clone()].iter().copied())
    }

    /// The segments of a block: the file, and the number of the segment in that file.
    pub(crate) fn segments(
        &self,
        block: &ScheduleBlock,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.steps(block).map(|step| (step.file, step.segment))
    }

    /// Ends the open item of light intervals before `interval`.
    fn close(&mut self, light: &mut Option<OpenItem>, interval: usize) {
        if let Some(item) = light.take() {
            let intervals = item.first_interval..interval;
            let steps = item.first_step..self.steps.len();
            self.items.push(Item { intervals, steps, window: 0, windows: 1 });
        }
    }

    fn push_windows<'s>(
        &mut self,
        interval: usize,
        shards: &[(usize, Range<usize>)],
        segment_of: impl Fn(usize, usize) -> &'s Segment,
    ) {
        let first = self.items.len();
        for (file, range) in shards {
            for segment in range.clone() {
                if segment == range.start
                    || segment_of(*file, segment).window != segment_of(*file, segment - 1).window
                {
                    let (steps, window) =
                        (self.steps.len()..self.steps.len(), self.items.len() - first);
                    self.items.push(Item {
                        intervals: interval..interval + 1,
                        steps,
                        window,
                        windows: 0,
                    });
                }
                self.steps.push(SegmentRef { interval, file: *file, segment });
                if let Some(item) = self.items.last_mut() {
                    item.steps.end = self.steps.len();
                }
            }
        }
        let windows = self.items.len() - first;
        self.items[first..].iter_mut().for_each(|item| item.windows = windows);
    }
}

//! Reads the edges of a few sources from an index, block by block.
//!
//! The block directory gives the blocks that may hold a source. Only these are read, and each is
//! checked against its own checksum. Weights, and segments with lz4, are read in whole units.
//! Invariant: each edge is returned once, in the order of (interval, window, source, target).

use std::ops::Range;
use std::sync::Arc;

use brimful_store::sealed::{Buffer, SealedFile};

use super::recent::Recent;
use crate::error::Result;
use crate::read::block_cursor::{BlockBuffers, BlockCursor, SegmentBytes};
use crate::read::directory::Directory;
use crate::read::shards::ShardFile;

/// A segment is read as a whole if it has at most this many blocks per requested source.
const BLOCKS_PER_SOURCE: u32 = 8;

/// An index open for look-ups, with a cache.
#[derive(Debug)]
pub(super) struct Blocks {
    shards: Arc<ShardFile>,
    directory_file: SealedFile,
    /// The segments of each non-empty interval, in order.
    intervals: Vec<Range<usize>>,
    /// Number of vertices with edges; all targets are below it.
    vertices: u64,
    /// Directories, by unit.
    directories: Recent<usize, Directory>,
    /// Weights, and units with compressed segments, by file and unit.
    units: Recent<(Content, usize), Buffer>,
    /// Compressed segments after unpacking.
    unpacked: Recent<usize, Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Content {
    Edges,
    Weights,
}

/// The targets of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach {
    /// All targets.
    Everywhere,
    /// The targets in the interval of this vertex.
    IntervalOf(u64),
    /// The targets in one of several parts of the intervals.
    Part {
        /// The part, from 0.
        part: usize,
        /// The number of parts.
        parts: usize,
    },
}

/// The scratch buffers of a walk, reused for all of its segments.
struct WalkBuffers {
    directory: Option<(usize, Arc<Directory>)>,
    blocks: BlockBuffers,
}

impl Blocks {
    /// Opens the index `shards` of a graph in which `vertices` vertices have edges. The cache uses
    /// about `memory_bytes`.
    pub(super) fn open(shards: &Arc<ShardFile>, vertices: u64, memory_bytes: u64) -> Result<Self> {
        let part = memory_bytes / 4;
        Ok(Self {
            intervals: shards.shards().collect(),
            directory_file: shards.open_directory()?,
            shards: Arc::clone(shards),
            vertices,
            directories: Recent::new(part),
            units: Recent::new(part),
            unpacked: Recent::new(part),
        })
    }

    /// Calls `take(place, target, weight)` for the edges of `sources` until it returns false.
    /// `sources` ascend and are distinct; `place` is the position of the source among them. The
    /// weight is 1 unless the walk is `weighted`.
    pub(super) fn walk(
        &self,
        sources: &[u64],
        reach: Reach,
        weighted: bool,
        mut take: impl FnMut(usize, u64, f64) -> bool,
    ) -> Result<()> {
        let segments = self.shards.segments();
        let intervals = match reach {
            Reach::Everywhere => &self.intervals[..],
            Reach::IntervalOf(vertex) => {
                let interval = vertex >> self.shards.interval_bits();
                let before = |range: &Range<usize>| segments[range.start].interval < interval;
                let at = self.intervals.partition_point(before);
                let next = self.intervals.get(at..=at).unwrap_or_default();
                let has_edges = next.iter().any(|range| segments[range.start].interval == interval);
                if has_edges { next } else { &[] }
            }
            Reach::Part { part, parts } => {
                let bound = |part: usize| self.intervals.len() * part / parts;
                &self.intervals[bound(part)..bound(part + 1)]
            }
        };
        let mut buffers = WalkBuffers { directory: None, blocks: BlockBuffers::default() };
        for interval in intervals {
            let (mut index, mut at) = (interval.start, 0);
            while let Some(&source) = sources.get(at) {
                index += segments[index..interval.end]
                    .partition_point(|segment| segment.last_source < source);
                let Some(segment) = segments[..interval.end].get(index) else { break };
                at += sources[at..].partition_point(|source| *source < segment.first_source);
                let end =
                    at + sources[at..].partition_point(|source| *source <= segment.last_source);
                let of_segment = &sources[at..end];
                if of_segment.is_empty() {
                    continue;
                }
                if !self.walk_segment(
                    index,
                    of_segment,
                    weighted,
                    &mut buffers,
                    |place, target, weight| take(at + place, target, weight),
                )? {
                    return Ok(());
                }
                // The edges of the last source may continue in the next segment.
                at = if of_segment.last() == Some(&segment.last_source) { end - 1 } else { end };
                index += 1;
            }
        }
        Ok(())
    }

    /// [`Blocks::walk`] in one segment; false if `take` returned false.
    fn walk_segment(
        &self,
        index: usize,
        sources: &[u64],
        weighted: bool,
        buffers: &mut WalkBuffers,
        mut take: impl FnMut(usize, u64, f64) -> bool,
    ) -> Result<bool> {
        let (shards, unit) = (&*self.shards, self.shards.unit(index));
        let segment = &shards.segments()[index];
        let directory = match &buffers.directory {
            Some((of_unit, directory)) if *of_unit == unit => Arc::clone(directory),
            _ => self.directory(unit)?,
        };
        let weights_unit = if weighted { Some(self.unit(Content::Weights, unit)?) } else { None };
        let weights = match &weights_unit {
            Some(unit) => Some(shards.weights(index, unit.bytes())?),
            None => None,
        };
        let unpacked = if segment.packing.compressed { Some(self.unpacked(index)?) } else { None };
        let bytes = match &unpacked {
            Some(bytes) => SegmentBytes::Loaded(bytes),
            None if segment.blocks / BLOCKS_PER_SOURCE <= sources.len() as u32 => {
                SegmentBytes::ReadSegment
            }
            None => SegmentBytes::ReadSources,
        };
        let (bits, first_target) =
            (shards.interval_bits(), segment.interval << shards.interval_bits());
        let (mut place, mut wants_more) = (0, true);
        let mut cursor = BlockCursor::new(
            shards,
            &directory,
            index,
            sources,
            bytes,
            weights,
            &mut buffers.blocks,
        );
        while wants_more {
            let decoded = cursor.next(|base, keys, weights| {
                place += sources[place..].iter().take_while(|source| **source < base).count();
                // The first key of the requested source at `place`, and the first after its keys.
                let keys_at = |place: usize| match sources.get(place) {
                    Some(source) => ((source - base) << bits, (source - base + 1) << bits),
                    None => (u64::MAX, u64::MAX),
                };
                let mut wanted = keys_at(place);
                let (skipped, keys) = keys.skip_below(wanted.0);
                for (key, &weight) in keys.iter().zip(&weights[skipped..]) {
                    let key = u64::from(key);
                    if key < wanted.0 {
                        continue;
                    }
                    while key >= wanted.1 {
                        place += 1;
                        wanted = keys_at(place);
                    }
                    if key < wanted.0 {
                        if place == sources.len() {
                            break;
                        }
                        continue;
                    }
                    let target = first_target + (key & ((1 << bits) - 1));
                    if target >= self.vertices {
                        return false;
                    }
                    wants_more = take(place, target, weight);
                    if !wants_more {
                        break;
                    }
                }
                true
            })?;
            if decoded.is_none() {
                buffers.directory = Some((unit, directory));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn directory(&self, unit: usize) -> Result<Arc<Directory>> {
        let load = || Directory::load_unit(&self.shards, &self.directory_file, unit);
        self.directories.get(unit, load, Directory::bytes)
    }

    fn unit(&self, content: Content, unit: usize) -> Result<Arc<Buffer>> {
        let load = || -> Result<Buffer> {
            let file = match (content, self.shards.weights_file()) {
                (Content::Weights, Some(weights)) => weights,
                _ => self.shards.file(),
            };
            let mut buffer = Buffer::new();
            file.read_block(unit, &mut buffer)?;
            Ok(buffer)
        };
        self.units.get((content, unit), load, |buffer| buffer.capacity() as u64)
    }

    /// The codec's bytes of a compressed segment, unpacked.
    fn unpacked(&self, index: usize) -> Result<Arc<Vec<u8>>> {
        let load = || -> Result<Vec<u8>> {
            let unit = self.unit(Content::Edges, self.shards.unit(index))?;
            let mut bytes = Vec::new();
            self.shards.plain(index, unit.bytes(), &mut bytes)?;
            Ok(bytes)
        };
        self.unpacked.get(index, load, |bytes| bytes.capacity() as u64)
    }
}

//! The block starts of an index in memory, for readers of few sources.
//!
//! A block takes sixteen bytes, which is about a sixteenth of a byte per edge. A directory covers
//! all segments or those of one unit. Invariant: whatever the file contains, a block that is found
//! lies within its segment and has at most 256 edges. Its bytes are verified with the unit, or, if
//! the block is read alone, against its own checksum.

use std::ops::Range;

use brimful_store::sealed::{Buffer, SealedFile};

use crate::codec::{BlockStart, directory_checksums, directory_starts};
use crate::error::Result;
use crate::read::shards::ShardFile;

/// Bits of the first edge of a block: a segment has at most 2^20 edges.
const FIRST_BITS: u32 = 24;

/// The block starts of segments of one index.
#[derive(Debug)]
pub struct Directory {
    /// Number of the first segment.
    first_segment: usize,
    /// Source of each block's first edge, relative to the segment's first source.
    sources: Vec<u32>,
    /// Offset of each block in the segment's bytes.
    offsets: Vec<u32>,
    /// Index within the segment of each block's first edge (24 bits), and the block's number of
    /// edges - 1 (8 bits).
    edges: Vec<u32>,
    /// Low half of the checksum of each block's bytes.
    checksums: Vec<u32>,
    /// First block of each segment, and the number of blocks.
    segments: Vec<u32>,
}

impl Directory {
    /// Memory of the directory of `shards`, in bytes.
    pub fn memory_bytes(shards: &ShardFile) -> u64 {
        let blocks = shards.segments().iter().map(|segment| u64::from(segment.blocks)).sum();
        Self::bytes_of(blocks, shards.segments().len() as u64)
    }

    /// Memory of the starts of `blocks` blocks of `segments` segments, in bytes.
    pub fn bytes_of(blocks: u64, segments: u64) -> u64 {
        blocks * 4 * size_of::<u32>() as u64 + 4 * (segments + 1)
    }

    /// Reads the directory of `shards`.
    ///
    /// # Errors
    /// Corruption if it contradicts the table of segments.
    pub fn load(shards: &ShardFile) -> Result<Self> {
        Self::load_segments(shards, &shards.open_directory()?, 0..shards.segments().len())
    }

    /// Reads the part of the directory for one unit; `file` is the open directory of `shards`.
    ///
    /// # Errors
    /// As [`Directory::load`].
    pub fn load_unit(shards: &ShardFile, file: &SealedFile, unit: usize) -> Result<Self> {
        Self::load_segments(shards, file, shards.segments_of(unit))
    }

    fn load_segments(shards: &ShardFile, file: &SealedFile, range: Range<usize>) -> Result<Self> {
        let segments = &shards.segments()[range.clone()];
        let blocks = segments.iter().map(|segment| segment.blocks as usize).sum();
        let mut out = Self {
            first_segment: range.start,
            sources: Vec::with_capacity(blocks),
            offsets: Vec::with_capacity(blocks),
            edges: Vec::with_capacity(blocks),
            checksums: Vec::with_capacity(blocks),
            segments: Vec::with_capacity(segments.len() + 1),
        };
        let mut unit = Buffer::new();
        let mut current = None;
        for (index, segment) in range.zip(segments) {
            if current.replace(shards.unit(index)) != Some(shards.unit(index)) {
                file.read_block(shards.unit(index), &mut unit)?;
            }
            out.segments.push(out.sources.len() as u32);
            let (mut edges, mut last) = (0, None);
            let rows = &unit.bytes()[shards.directory_range(index)];
            out.checksums.extend(directory_checksums(rows));
            for BlockStart { offset, source, edges: count } in directory_starts(rows) {
                let follows = match last {
                    Some((o, s)) => o < offset && s <= source,
                    None => (offset, source) == (0, 0),
                };
                if !follows || offset >= segment.plain {
                    return Err(file
                        .corrupt(shards.unit(index), "block starts do not ascend")
                        .into());
                }
                last = Some((offset, source));
                out.sources.push(source);
                out.offsets.push(offset);
                out.edges.push(edges | (count - 1) << FIRST_BITS);
                edges += count;
            }
            if edges != segment.edges {
                return Err(file
                    .corrupt(shards.unit(index), "blocks do not cover their segment")
                    .into());
            }
        }
        out.segments.push(out.sources.len() as u32);
        Ok(out)
    }

    /// The first block of a segment, and the end of its blocks.
    fn blocks_of(&self, segment: usize) -> (u32, u32) {
        let at = segment - self.first_segment;
        (self.segments[at], self.segments[at + 1])
    }

    /// Memory of this directory, in bytes.
    pub fn bytes(&self) -> u64 {
        Self::bytes_of(self.sources.len() as u64, self.segments.len() as u64)
    }

    /// Number of blocks of all segments.
    pub fn blocks(&self) -> usize {
        self.sources.len()
    }

    /// The blocks of segment `segment`, from block `from` on, that may hold edges of `source`.
    /// Blocks are counted from the segment's first. If there are none, an empty range at their
    /// position.
    pub fn find(&self, segment: usize, from: u32, source: u32) -> Range<u32> {
        let (first, end) = self.blocks_of(segment);
        let sources = &self.sources[(first + from) as usize..end as usize];
        // The edges of a source may begin in the block before the first one that starts with the
        // source.
        let begin = gallop(sources, |start| start < source).saturating_sub(1);
        let length = gallop(&sources[begin..], |start| start <= source);
        let begin = from + begin as u32;
        begin..begin + length as u32
    }

    /// A block of a segment; the codec's bytes of the segment have length `plain`.
    pub fn block(&self, segment: usize, block: u32, plain: u32) -> Block {
        let (first, end) = self.blocks_of(segment);
        let (at, last) = ((first + block) as usize, end as usize - 1);
        let (offset, edges) = (self.offsets[at], self.edges[at]);
        let end = if at == last { plain } else { self.offsets[at + 1] };
        let start =
            BlockStart { offset, source: self.sources[at], edges: (edges >> FIRST_BITS) + 1 };
        Block {
            start,
            first_edge: edges & ((1 << FIRST_BITS) - 1),
            bytes: offset..end,
            checksum: self.checksums[at],
        }
    }
}

/// A block of a segment.
#[derive(Debug, Clone)]
pub struct Block {
    /// The start of the block.
    pub start: BlockStart,
    /// Number of edges of the segment before the block.
    pub first_edge: u32,
    /// The range of the block in the codec's bytes of the segment.
    pub bytes: Range<u32>,
    checksum: u32,
}

impl Block {
    /// True if `bytes` match the block's checksum.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        brimful_store::checksum(bytes) as u32 == self.checksum
    }
}

/// The number of leading `sources` for which `before` holds, in time logarithmic in that number.
fn gallop(sources: &[u32], before: impl Fn(u32) -> bool) -> usize {
    let mut bound = 1;
    while sources.get(bound - 1).is_some_and(|source| before(*source)) {
        bound *= 2;
    }
    let start = bound / 2;
    start + sources[start..sources.len().min(bound)].partition_point(|source| before(*source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_finds_what_a_scan_finds() {
        let sources = [0, 0, 3, 3, 3, 7, 9, 12, 12, 20];
        for length in 0..=sources.len() {
            for wanted in 0..22 {
                let some = &sources[..length];
                let count = some.iter().filter(|source| **source < wanted).count();
                assert_eq!(gallop(some, |source| source < wanted), count);
            }
        }
    }

    #[test]
    fn blocks_that_may_hold_a_source_are_found() {
        let directory = Directory {
            first_segment: 0,
            sources: vec![0, 4, 4, 9, 0, 2],
            offsets: vec![0; 6],
            edges: vec![0; 6],
            checksums: vec![0; 6],
            segments: vec![0, 4, 6],
        };
        assert_eq!(directory.find(0, 0, 0), 0..1);
        assert_eq!(directory.find(0, 0, 3), 0..1);
        assert_eq!(directory.find(0, 0, 4), 0..3);
        assert_eq!(directory.find(0, 1, 5), 2..3);
        assert_eq!(directory.find(0, 2, 100), 3..4);
        assert_eq!(directory.find(1, 0, 2), 0..2);
    }
}

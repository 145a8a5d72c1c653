//! Decodes the blocks of a segment that may hold edges of some sources.
//!
//! Invariant: bytes that are not in memory are verified block by block, each against its own
//! checksum.

use std::ops::Range;

use brimful_store::Error as StoreError;

use crate::codec::{BATCH, Keys, Unpack, Weights};
use crate::read::directory::{Block, Directory};
use crate::read::shards::ShardFile;

/// The source from which a cursor takes the codec's bytes of a segment.
#[derive(Debug, Clone, Copy)]
pub enum SegmentBytes<'b> {
    /// From memory; the caller has verified them.
    Loaded(&'b [u8]),
    /// From the file, one block at a time.
    ReadBlocks,
    /// From the file, the blocks of one source at a time.
    ReadSources,
    /// From the file, all at once.
    ReadSegment,
}

/// The scratch buffers of a cursor, reused between segments.
#[derive(Debug)]
pub struct BlockBuffers {
    /// Bytes from the file.
    bytes: Vec<u8>,
    /// The weights of a batch of edges; ones if the cursor has none.
    weights: [f64; BATCH],
    unpack: Unpack,
}

impl Default for BlockBuffers {
    fn default() -> Self {
        Self { bytes: Vec::new(), weights: [1.0; BATCH], unpack: Unpack::fastest() }
    }
}

/// The position among the blocks of a segment that may hold edges of some sources.
#[derive(Debug)]
pub struct BlockCursor<'c> {
    shards: &'c ShardFile,
    directory: &'c Directory,
    index: usize,
    sources: std::slice::Iter<'c, u64>,
    bytes: SegmentBytes<'c>,
    weights: Option<Weights<'c>>,
    buffers: &'c mut BlockBuffers,
    /// The range of the segment's bytes that `buffers` holds.
    buffered: Range<u32>,
    /// The blocks of the last source that the cursor has not yet visited.
    blocks: Range<u32>,
}

impl<'c> BlockCursor<'c> {
    /// A cursor over the blocks of segment `index` for `sources`, which ascend within the segment.
    /// Without `weights`, all weights are 1.
    pub fn new(
        shards: &'c ShardFile,
        directory: &'c Directory,
        index: usize,
        sources: &'c [u64],
        bytes: SegmentBytes<'c>,
        weights: Option<Weights<'c>>,
        buffers: &'c mut BlockBuffers,
    ) -> Self {
        if weights.is_some() {
            buffers.weights = [1.0; BATCH];
        }
        let sources = sources.iter();
        let (buffered, blocks) = (0..0, 0..0);
        Self { shards, directory, index, sources, bytes, weights, buffers, buffered, blocks }
    }

    /// Calls `batch(base, keys, weights)` for the edges of the next block, as in
    /// [`ShardFile::decode`]; returns their number, `None` after the last block.
    ///
    /// # Errors
    /// I/O errors; corruption if the bytes are broken or `batch` refuses.
    #[inline]
    pub fn next(
        &mut self,
        mut batch: impl FnMut(u64, Keys<'_>, &[f64; BATCH]) -> bool,
    ) -> Result<Option<u32>, StoreError> {
        let (shards, index) = (self.shards, self.index);
        let segment = &shards.segments()[index];
        while self.blocks.is_empty() {
            let Some(source) = self.sources.next() else { return Ok(None) };
            let source = (source - segment.first_source) as u32;
            self.blocks = self.directory.find(index, self.blocks.end, source);
        }
        let block = self.directory.block(index, self.blocks.start, segment.plain);
        let bytes = match self.bytes {
            SegmentBytes::Loaded(bytes) => part(bytes, 0, &block.bytes),
            _ => {
                self.read(&block)?;
                let bytes = part(&self.buffers.bytes, self.buffered.start, &block.bytes);
                if !block.matches(bytes) {
                    let problem = "a block of edges fails its checksum";
                    return Err(shards.file().corrupt(shards.unit(index), problem));
                }
                bytes
            }
        };
        self.blocks.start += 1;
        let mut packed = self.weights.map(|weights| weights.skip(block.first_edge));
        let (values, unpack) = (&mut self.buffers.weights, self.buffers.unpack);
        let (codec, bits) = (segment.packing.codec, shards.interval_bits());
        let is_sound = codec.decode_block(bytes, block.start, bits, unpack, &mut |base, keys| {
            if let Some(packed) = &mut packed {
                packed.take(&mut values[..keys.len()]);
            }
            batch(segment.first_source + base, keys, values)
        });
        if is_sound { Ok(Some(block.start.edges)) } else { Err(shards.contradiction(index)) }
    }

    /// Reads a block, and the blocks that are read with it, unless the buffer holds it.
    fn read(&mut self, block: &Block) -> Result<(), StoreError> {
        if self.buffered.start <= block.bytes.start && block.bytes.end <= self.buffered.end {
            return Ok(());
        }
        let plain = self.shards.segments()[self.index].plain;
        let range = match self.bytes {
            SegmentBytes::ReadSegment => 0..plain,
            SegmentBytes::ReadSources => {
                let last = self.directory.block(self.index, self.blocks.end - 1, plain);
                block.bytes.start..last.bytes.end
            }
            _ => block.bytes.clone(),
        };
        self.shards.read_part(self.index, range.clone(), &mut self.buffers.bytes)?;
        self.buffered = range;
        Ok(())
    }
}

/// The range `wanted` of a segment's bytes, of which `bytes` are those from `start` on; empty if
/// they do not contain it.
fn part<'b>(bytes: &'b [u8], start: u32, wanted: &Range<u32>) -> &'b [u8] {
    let place = |at: u32| at.checked_sub(start).map(|at| at as usize);
    let range = place(wanted.start).zip(place(wanted.end));
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}

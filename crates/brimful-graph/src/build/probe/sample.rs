//! Samples of text: all lines of a short file, blocks from all over a long one, the first lines of
//! a compressed one.
//!
//! Invariant: the reader and the parsers of the import read the sample, so both agree on every
//! line; at most [`FIRST_BYTES`] of text and one chunk are read, and no more than a few chunks are
//! in memory.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_store::external::open_input;
use brimful_store::{Job, StoreFile};

use super::DECODER_BYTES;
use crate::build::import::ImportOptions;
use crate::error::Result;
use crate::input::decompress;
use crate::input::formats::parser::{OnError, Output, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, Chunk, Start, TextReader};
use crate::input::formats::{Body, TextFile};
use crate::input::pairs::open_plain;

/// The maximum bytes of text that are read from the front of a file.
pub(super) const FIRST_BYTES: u64 = 4 << 20;
/// Blocks of a longer file.
const BLOCKS: u64 = 32;
const BLOCK_BYTES: u64 = 8 << 10;
/// Bytes of the length at the end of a gzip file.
const GZIP_LENGTH_BYTES: u64 = 4;

/// The beginning of a text file.
pub(super) struct Front<'a> {
    file: &'a TextFile,
    reader: TextReader<'a>,
    /// The chunk of the reader in which the body begins, once that is found.
    chunk: Chunk,
    /// Length of the file in bytes, as it is stored.
    length: u64,
    compressed: Option<Compressed>,
}

/// The traffic of a decoder.
struct Compressed {
    is_gzip: bool,
    /// Bytes that the decoder has read: the progress of this job.
    stored: Arc<Job>,
    /// Bytes that it has decoded.
    decoded: Arc<AtomicU64>,
}

/// The edges of a file, estimated from a sample, and the largest id of the sample.
pub(super) struct Sampled {
    pub(super) edges: u64,
    pub(super) largest: u64,
}

impl<'a> Front<'a> {
    /// Opens a regular file of `length` bytes.
    pub(super) fn open(
        file: &'a TextFile,
        length: u64,
        options: &'a ImportOptions,
    ) -> Result<Self> {
        let start = decompress::first_bytes(&file.path, &Arc::new(Job::new()))?;
        let (stored, decoded) = (Arc::new(Job::new()), Arc::new(AtomicU64::new(0)));
        let compressed = decompress::is_compressed(&start).then(|| Compressed {
            is_gzip: decompress::is_gzip(&start),
            stored: Arc::clone(&stored),
            decoded: Arc::clone(&decoded),
        });
        let open = move |path: &Path| {
            let stored = Box::new(Pieces { reader: open_input(path, &stored)? });
            let reader = decompress::open(stored, path, DECODER_BYTES)?;
            let decoded = Arc::clone(&decoded);
            Ok(Box::new(Counted { reader, bytes: decoded }) as Box<dyn Read + Send>)
        };
        let files = std::slice::from_ref(file);
        let reader = TextReader::new(files, options.direction(), CHUNK_BYTES, Box::new(open))
            .with_columns(&options.columns);
        Ok(Self { file, reader, chunk: Chunk::default(), length, compressed })
    }

    /// Reads the header; `None` if the body does not begin within [`FIRST_BYTES`].
    pub(super) fn body(&mut self) -> Result<Option<Body>> {
        while self.chunk.offset < FIRST_BYTES && self.reader.next(&mut self.chunk)? {
            if let Some(body) = self.reader.body() {
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    /// Counts the edges of a sample of the body; `None` if it has none, or negative ids.
    pub(super) fn sample(mut self, on_error: OnError) -> Result<Option<Sampled>> {
        let mut sample = Sample::new(self.file, on_error);
        let body_at = self.chunk.offset + self.chunk.from as u64;
        let text_bytes = if self.compressed.is_none() && self.length > FIRST_BYTES {
            self.read_blocks(body_at, &mut sample)?;
            Some(self.length)
        } else if self.read_first(&mut sample)? {
            None
        } else {
            Some(self.text_bytes()?)
        };
        if sample.edges == 0 || sample.out.signs.negative {
            return Ok(None);
        }
        let edges = match text_bytes {
            // The sample is the whole body.
            None => sample.edges,
            Some(text_bytes) => {
                let body_bytes = u128::from(text_bytes.saturating_sub(body_at));
                let edges = body_bytes * u128::from(sample.edges) / u128::from(sample.bytes);
                u64::try_from(edges).unwrap_or(u64::MAX)
            }
        };
        Ok(Some(Sampled { edges, largest: sample.largest }))
    }

    /// Reads the body from its beginning; true if the sample reaches the end of the file.
    fn read_first(&mut self, sample: &mut Sample<'_>) -> Result<bool> {
        loop {
            sample.add(&self.chunk)?;
            if sample.bytes >= FIRST_BYTES {
                return Ok(false);
            }
            if !self.reader.next(&mut self.chunk)? {
                return Ok(true);
            }
        }
    }

    /// Reads the whole lines of blocks from all over the body.
    fn read_blocks(&mut self, body_at: u64, sample: &mut Sample<'_>) -> Result<()> {
        let file = open_plain(&self.file.path, &Job::new())?;
        let chunk = &mut self.chunk;
        chunk.start = Start { line: 1, ..Start::default() };
        for block in blocks(body_at..self.length, 1) {
            read_block(&file, block, &mut chunk.bytes)?;
            // The first and the last line of a block are cut.
            let (first, last) = chunk.shape.map_or((None, None), |shape| {
                let mut ends = shape.line_ends(&chunk.bytes).map(|end| end + 1);
                (ends.next(), ends.next_back())
            });
            chunk.from = first.unwrap_or(0);
            chunk.bytes.truncate(last.or(first).unwrap_or(0));
            sample.add(chunk)?;
        }
        Ok(())
    }

    /// Length of the text of this file, which for a compressed one is an estimate.
    fn text_bytes(&self) -> Result<u64> {
        let Some(Compressed { is_gzip, stored, decoded }) = &self.compressed else {
            return Ok(self.length);
        };
        let (stored, decoded) = (stored.progress().done, decoded.load(Ordering::Relaxed));
        let estimate = u128::from(decoded) * u128::from(self.length) / u128::from(stored.max(1));
        let estimate = u64::try_from(estimate).unwrap_or(u64::MAX);
        if !is_gzip || self.length < GZIP_LENGTH_BYTES {
            return Ok(estimate);
        }
        let mut low_bits = [0; GZIP_LENGTH_BYTES as usize];
        let file = open_plain(&self.file.path, &Job::new())?;
        file.read_exact_at(&mut low_bits, self.length - GZIP_LENGTH_BYTES)?;
        let low_bits = u64::from(u32::from_le_bytes(low_bits));
        // The length is that of the last part of the file, modulo 2^32. It is exact if it agrees
        // with the estimate.
        let is_whole = estimate < 1 << 30 && (estimate / 2..=2 * estimate).contains(&low_bits);
        Ok(if is_whole { low_bits } else { estimate })
    }
}

/// The edges of the parts of a text.
struct Sample<'a> {
    parser: TextParser<'a>,
    out: Output,
    /// Bytes of the lines.
    bytes: u64,
    edges: u64,
    largest: u64,
}

impl<'a> Sample<'a> {
    fn new(file: &'a TextFile, on_error: OnError) -> Self {
        let parser = TextParser::new(std::slice::from_ref(file), on_error);
        Self { parser, out: Output::default(), bytes: 0, edges: 0, largest: 0 }
    }

    /// Counts the edges of a chunk.
    fn add(&mut self, chunk: &Chunk) -> Result<()> {
        let Self { parser, out, bytes, edges, largest } = self;
        let mut take = |Output { edges: batch, declared, .. }: &mut Output| {
            *edges += batch.len() as u64;
            let ids = [&batch.sources, &batch.targets, &declared.sources];
            *largest = largest_of(&ids.map(Vec::as_slice)).max(*largest);
            batch.clear();
            declared.clear();
            Ok(())
        };
        parser.parse(chunk, out, &mut take)?;
        take(out)?;
        *bytes += (chunk.bytes.len() - chunk.from) as u64;
        Ok(())
    }
}

/// The largest of all ids; 0 if there is none.
pub(super) fn largest_of(ids: &[&[u64]]) -> u64 {
    ids.iter().flat_map(|ids| ids.iter()).copied().max().unwrap_or(0)
}

/// Blocks from all over a range of a file, or all of a short one; each begins a multiple of `unit`
/// bytes after the beginning of the range.
pub(super) fn blocks(range: Range<u64>, unit: u64) -> impl Iterator<Item = Range<u64>> {
    let length = range.end.saturating_sub(range.start);
    let (count, bytes) =
        if length <= BLOCKS * BLOCK_BYTES { (1, length) } else { (BLOCKS, BLOCK_BYTES) };
    (0..count).map(move |block| {
        // In the middle of its share of the range.
        let middle = u128::from(length) * u128::from(2 * block + 1) / u128::from(2 * count);
        let before = (middle as u64).saturating_sub(bytes / 2) / unit * unit;
        let start = range.start + if count == 1 { 0 } else { before };
        start..start + bytes
    })
}

/// Reads a block of a file.
pub(super) fn read_block(file: &StoreFile, block: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.resize((block.end - block.start) as usize, 0);
    Ok(file.read_exact_at(bytes, block.start)?)
}

/// Reads at most a block at a time, so that a decoder does not read far ahead.
struct Pieces {
    reader: Box<dyn Read + Send>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(BLOCK_BYTES as usize);
        self.reader.read(buffer.get_mut(..length).unwrap_or_default())
    }
}

/// Counts the bytes that are read.
struct Counted {
    reader: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_from_all_over_and_within() {
        for (range, unit) in [(0..0, 1), (5..9, 1), (0..BLOCKS * BLOCK_BYTES, 8)] {
            assert_eq!(blocks(range.clone(), unit).collect::<Vec<_>>(), [range]);
        }
        for range in [100..(1 << 20) + 1, 0..u64::MAX / 2] {
            let share = (range.end - range.start) / BLOCKS;
            let found: Vec<_> = blocks(range.clone(), 8).collect();
            assert_eq!(found.len() as u64, BLOCKS);
            for (number, block) in (0..).zip(found) {
                let from = range.start + share * number;
                assert!(from <= block.start && block.end <= from + share + BLOCKS);
                assert_eq!(
                    (block.end - block.start, block.start % 8),
                    (BLOCK_BYTES, range.start % 8)
                );
            }
        }
    }
}

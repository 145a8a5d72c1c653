//! The encoding of the edges of a segment.
//!
//! Edges are ascending *keys*, `(source - first source) << target bits | target in the interval`. A
//! codec turns them into bytes and back into *batches* of at most 256 keys of 32 bits above a base
//! source. [`pack`] chooses the codec that needs the fewest bytes for each segment. Invariant:
//! decoding never reads outside the bytes and never trusts a count or a width that they do not
//! support; the result does not depend on the machine.

pub mod gaps;
mod unpack;
pub mod weights;
pub mod words;

pub use unpack::{Keys, Unpack, scatter};
pub use weights::{WeightType, Weights};

/// The maximum number of keys in a batch, and of edges in a block.
pub const BATCH: usize = 256;

/// A way to pack keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Codec {
    /// 32-bit words of source difference and target ([`words`]).
    Words32 = 1,
    /// The same in 24 bits.
    Words24 = 2,
    /// Gaps between keys, bit-packed in blocks ([`gaps`]).
    Gaps = 3,
}

impl Codec {
    /// All codecs.
    pub const ALL: [Self; 3] = [Self::Words32, Self::Words24, Self::Gaps];
}

/// The encoding of a segment: a codec, with or without lz4 over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packing {
    /// The codec.
    pub codec: Codec,
    /// True if lz4 (its block format) compressed the codec's bytes.
    pub compressed: bool,
}

const COMPRESSED: u8 = 0x80;

impl Packing {
    /// The codec byte on disk.
    pub fn to_byte(self) -> u8 {
        self.codec as u8 | if self.compressed { COMPRESSED } else { 0 }
    }

    /// The packing with this codec byte; `None` if it is invalid.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let codec = Codec::ALL.into_iter().find(|codec| *codec as u8 == byte & !COMPRESSED)?;
        Some(Self { codec, compressed: byte & COMPRESSED != 0 })
    }

    /// The name in the output of `info`.
    pub fn name(self) -> &'static str {
        match (self.codec, self.compressed) {
            (Codec::Words32, false) => "words32",
            (Codec::Words24, false) => "words24",
            (Codec::Gaps, false) => "gaps",
            (Codec::Words32, true) => "words32+lz4",
            (Codec::Words24, true) => "words24+lz4",
            (Codec::Gaps, true) => "gaps+lz4",
        }
    }
}

/// The start of a block of edges, for readers that need few edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockStart {
    /// Offset in the codec's bytes.
    pub offset: u32,
    /// Source of the block's first edge, relative to the first source of the segment.
    pub source: u32,
    /// Number of edges, 1 to 256.
    pub edges: u32,
}

/// The receiver of batches `(base, keys)`; it returns false to refuse a batch. It is a trait
/// object, so that decoders are compiled once instead of once for each program. A batch takes a
/// hundred times as long as the call.
pub type Batches<'b> = dyn FnMut(u64, Keys<'_>) -> bool + 'b;

impl Codec {
    /// [`Code::encode`] of this codec.
    fn encode(
        self,
        keys: &[u64],
        target_bits: u32,
        out: &mut Vec<u8>,
        blocks: &mut Vec<BlockStart>,
    ) {
        match self {
            Self::Words32 => words::Words32::encode(keys, target_bits, out, blocks),
            Self::Words24 => words::Words24::encode(keys, target_bits, out, blocks),
            Self::Gaps => gaps::Gaps::encode(keys, target_bits, out, blocks),
        }
    }

    /// [`Code::decode`] of this codec.
    pub fn decode(
        self,
        bytes: &[u8],
        edges: u32,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        match self {
            Self::Words32 => words::Words32::decode(bytes, edges, target_bits, unpack, batch),
            Self::Words24 => words::Words24::decode(bytes, edges, target_bits, unpack, batch),
            Self::Gaps => gaps::Gaps::decode(bytes, edges, target_bits, unpack, batch),
        }
    }

    /// [`Code::decode_block`] of this codec.
    pub fn decode_block(
        self,
        bytes: &[u8],
        block: BlockStart,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        match self {
            Self::Words32 => words::Words32::decode_block(bytes, block, target_bits, unpack, batch),
            Self::Words24 => words::Words24::decode_block(bytes, block, target_bits, unpack, batch),
            Self::Gaps => gaps::Gaps::decode_block(bytes, block, target_bits, unpack, batch),
        }
    }
}

/// One codec. Keys ascend and may repeat; a segment's sources span less than 2^32.
pub trait Code {
    /// Appends the packed keys to `out`, and the start of each block to `blocks`.
    fn encode(keys: &[u64], target_bits: u32, out: &mut Vec<u8>, blocks: &mut Vec<BlockStart>);

    /// Calls `batch(base, keys)` for batches in order. The source of an edge is the segment's first
    /// source + `base + (key >> target_bits)`; its target is the low bits. Keys ascend within a
    /// batch. Returns false if the bytes are broken, if they do not hold exactly `edges` edges, or
    /// if `batch` refuses.
    fn decode(
        bytes: &[u8],
        edges: u32,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool;

    /// Decodes the single block `block` at the start of `bytes`.
    fn decode_block(
        bytes: &[u8],
        block: BlockStart,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool;
}

/// lz4 is used only if it at least halves a segment. Then a superstep that reads from disk saves
/// more time by reading less than it spends on decompression, and a segment that is pinned in
/// memory saves memory, which was scarce.
const LZ4_WORTH: usize = 2;
/// Bytes at the start of a segment that are compressed as a test before the whole segment.
const LZ4_PROBE: usize = 8 << 10;

/// Bytes of a block's row in a directory: offset (24 bits) and edges - 1 (8 bits), source (u32),
/// the low half of the checksum of the block's bytes (u32).
pub const DIRECTORY_ROW: usize = 12;
/// Bits of an offset: codecs take at most 12 bytes an edge, and a segment has at most 2^20 edges.
const OFFSET_BITS: u32 = 24;

/// Appends the directory of a segment with the codec's bytes `plain`.
fn write_directory(blocks: &[BlockStart], plain: &[u8], directory: &mut Vec<u8>) {
    for (index, block) in blocks.iter().enumerate() {
        let end = blocks.get(index + 1).map_or(plain.len(), |next| next.offset as usize);
        let checksum = brimful_store::checksum(&plain[block.offset as usize..end]) as u32;
        let place = block.offset | (block.edges - 1) << OFFSET_BITS;
        for field in [place, block.source, checksum] {
            directory.extend_from_slice(&field.to_le_bytes());
        }
    }
}

fn field(row: &[u8; DIRECTORY_ROW], at: usize) -> u32 {
    u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
}

/// The block starts of a directory.
pub fn directory_starts(rows: &[u8]) -> impl Iterator<Item = BlockStart> {
    rows.as_chunks::<DIRECTORY_ROW>().0.iter().map(|row| BlockStart {
        offset: field(row, 0) & ((1 << OFFSET_BITS) - 1),
        source: field(row, 4),
        edges: (field(row, 0) >> OFFSET_BITS) + 1,
    })
}

/// The checksums of a directory.
pub fn directory_checksums(rows: &[u8]) -> impl Iterator<Item = u32> {
    rows.as_chunks::<DIRECTORY_ROW>().0.iter().map(|row| field(row, 8))
}

/// The blocks of a directory: start, checksum, and their bytes in `plain`, empty if the row is
/// broken.
pub fn directory_rows<'b>(
    rows: &'b [u8],
    plain: &'b [u8],
) -> impl Iterator<Item = (BlockStart, u32, &'b [u8])> {
    let checksums = directory_checksums(rows);
    let ends = directory_starts(rows).skip(1).map(|next| next.offset as usize).chain([plain.len()]);
    directory_starts(rows).zip(checksums).zip(ends).map(|((block, checksum), end)| {
        (block, checksum, plain.get(block.offset as usize..end).unwrap_or_default())
    })
}

/// Replaces `out` by the packed keys and appends their blocks to `directory`. Returns the packing,
/// the length of the codec's bytes before lz4, and the number of blocks.
///
/// The smallest of the three codecs is chosen, the simpler one on a tie; lz4 is added if it halves
/// the bytes.
pub fn pack(
    keys: &[u64],
    target_bits: u32,
    out: &mut Vec<u8>,
    directory: &mut Vec<u8>,
) -> (Packing, usize, usize) {
    let mut blocks = Vec::with_capacity(keys.len() / BATCH + 1);
    out.clear();
    gaps::Gaps::encode(keys, target_bits, out, &mut blocks);
    let words = words::sizes(keys, target_bits);
    let codec = if words.narrow.is_some_and(|narrow| narrow < words.wide && narrow <= out.len()) {
        Codec::Words24
    } else if words.wide <= out.len() {
        Codec::Words32
    } else {
        Codec::Gaps
    };
    if codec != Codec::Gaps {
        out.clear();
        blocks.clear();
        codec.encode(keys, target_bits, out, &mut blocks);
    }
    write_directory(&blocks, out, directory);
    let plain = out.len();
    let compressed = compress(out);
    (Packing { codec, compressed }, plain, blocks.len())
}

fn compress(bytes: &mut Vec<u8>) -> bool {
    let probe = &bytes[..bytes.len().min(LZ4_PROBE)];
    if lz4_flex::block::compress(probe).len() * LZ4_WORTH > probe.len() {
        return false;
    }
    let smaller = lz4_flex::block::compress(bytes);
    let worth = smaller.len() * LZ4_WORTH <= bytes.len();
    if worth {
        *bytes = smaller;
    }
    worth
}

/// The codec's bytes of a segment: `stored` itself, or its decompression in `buffer`. `None` unless
/// the result has exactly `plain` bytes.
pub fn plain_bytes<'b>(
    packing: Packing,
    stored: &'b [u8],
    plain: usize,
    buffer: &'b mut Vec<u8>,
) -> Option<&'b [u8]> {
    if !packing.compressed {
        return (stored.len() == plain).then_some(stored);
    }
    buffer.resize(plain, 0);
    let length = lz4_flex::block::decompress_into(stored, buffer).ok()?;
    (length == plain).then_some(&buffer[..])
}

#[cfg(test)]
mod tests;

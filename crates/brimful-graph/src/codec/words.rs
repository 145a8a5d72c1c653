//! Fixed words: `source delta | target`, in 32 or in 24 bits.
//!
//! A word holds the target in its low bits; above it, the source's difference from the previous
//! edge (0 for the first edge of the segment). A difference of all ones is an escape: the next 8
//! bytes are the full source, relative to the first source of the segment.

use super::{BATCH, Batches, BlockStart, Code, Keys, Unpack};

/// Words of `N` bytes.
#[derive(Debug)]
pub struct Words<const N: usize>;

/// Words of 32 bits.
pub type Words32 = Words<4>;
/// Words of 24 bits.
pub type Words24 = Words<3>;

/// The maximum bits of a target that leave a useful difference in words of 24 bits.
const NARROW_TARGET_BITS: u32 = 20;

/// Sizes of keys that are encoded as words, in bytes.
pub(super) struct Sizes {
    /// In 32 bits.
    pub(super) wide: usize,
    /// In 24 bits; `None` if targets are too wide.
    pub(super) narrow: Option<usize>,
}

/// The difference that marks an escape.
const fn escape<const N: usize>(target_bits: u32) -> u64 {
    (1 << (8 * N as u32 - target_bits)) - 1
}

pub(super) fn sizes(keys: &[u64], target_bits: u32) -> Sizes {
    let narrow_fits = target_bits <= NARROW_TARGET_BITS;
    let (wide, narrow) =
        (escape::<4>(target_bits), if narrow_fits { escape::<3>(target_bits) } else { 0 });
    let mut escapes = (0, 0);
    let mut last = 0;
    for &key in keys {
        let source = key >> target_bits;
        let delta = source - last;
        escapes.0 += usize::from(delta >= wide);
        escapes.1 += usize::from(delta >= narrow);
        last = source;
    }
    Sizes {
        wide: keys.len() * 4 + escapes.0 * 8,
        narrow: narrow_fits.then_some(keys.len() * 3 + escapes.1 * 8),
    }
}

impl<const N: usize> Words<N> {
    /// Decodes `edges` words, given the source before the first edge; returns the number of bytes
    /// read.
    fn decode_from(
        bytes: &[u8],
        mut source: u64,
        edges: u32,
        target_bits: u32,
        batch: &mut Batches<'_>,
    ) -> Option<usize> {
        let (escape, mask) = (escape::<N>(target_bits), (1_u64 << target_bits) - 1);
        // The number of sources above the base that a 32-bit key can hold.
        let span = 1_u64 << (u32::BITS - target_bits);
        let mut keys = [0_u32; BATCH];
        let (mut count, mut base, mut left) = (0, 0, edges);
        let mut rest = bytes;
        while left > 0 {
            let (word, after) = rest.split_first_chunk::<N>()?;
            rest = after;
            let word = word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            let delta = word >> target_bits;
            if delta == escape {
                let (full, after) = rest.split_first_chunk::<8>()?;
                rest = after;
                let full = u64::from_le_bytes(*full);
                if full < source {
                    return None;
                }
                source = full;
            } else {
                source = source.checked_add(delta)?;
            }
            // A segment's sources span less than 2^32, and callers rely on that.
            if source > u64::from(u32::MAX) {
                return None;
            }
            if count == BATCH || (count > 0 && source - base >= span) {
                if !batch(base, Keys::ascending(&mut keys[..count])?) {
                    return None;
                }
                count = 0;
            }
            if count == 0 {
                base = source;
            }
            keys[count] = ((source - base) << target_bits | word & mask) as u32;
            count += 1;
            left -= 1;
        }
        (count == 0 || batch(base, Keys::ascending(&mut keys[..count])?))
            .then_some(bytes.len() - rest.len())
    }
}

impl<const N: usize> Code for Words<N> {
    fn encode(keys: &[u64], target_bits: u32, out: &mut Vec<u8>, blocks: &mut Vec<BlockStart>) {
        let (escape, mask) = (escape::<N>(target_bits), (1_u64 << target_bits) - 1);
        let start = out.len();
        let mut last = 0;
        for (index, &key) in keys.iter().enumerate() {
            let (source, target) = (key >> target_bits, key & mask);
            if index % BATCH == 0 {
                let (offset, source) = ((out.len() - start) as u32, source as u32);
                blocks.push(BlockStart {
                    offset,
                    source,
                    edges: (keys.len() - index).min(BATCH) as u32,
                });
            }
            let delta = (source - last).min(escape);
            let word = delta << target_bits | target;
            out.extend_from_slice(&word.to_le_bytes()[..N]);
            if delta == escape {
                out.extend_from_slice(&source.to_le_bytes());
            }
            last = source;
        }
    }

    fn decode(
        bytes: &[u8],
        edges: u32,
        target_bits: u32,
        _: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        Self::decode_from(bytes, 0, edges, target_bits, batch) == Some(bytes.len())
    }

    fn decode_block(
        bytes: &[u8],
        block: BlockStart,
        target_bits: u32,
        _: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        // The first difference starts from an edge that is not read. Its start does not matter; its
        // end is `source`.
        let Some(word) = bytes.first_chunk::<N>() else {
            return false;
        };
        let delta =
            word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)) >> target_bits;
        let before = if delta == escape::<N>(target_bits) {
            0
        } else {
            u64::from(block.source).checked_sub(delta).unwrap_or(u64::MAX)
        };
        Self::decode_from(bytes, before, block.edges, target_bits, batch).is_some()
    }
}

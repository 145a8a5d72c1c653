//! Packed gaps with exceptions: the differences of consecutive keys, bit-packed in blocks of one
//! width.
//!
//! A block has up to 256 edges, or fewer if its keys, relative to the source of its first edge,
//! would exceed 32 bits. Its parts:
//!
//! - A header of 12 bytes: source of the first edge, relative to the segment's first source (u32);
//!   target of the first edge (24 bits) and edges - 1 (8 bits); width, number of exceptions, bytes
//!   of an exception's high part (1, 2 or 4), zero.
//! - The gaps as one little-endian bit stream, gap `i` at bit `i * width`, in groups of 16. The
//!   first gap, and those after the last edge, are zero.
//! - A byte for the place of each exception, ascending.
//! - The high parts of the exceptions, to be added above the width.
//!
//! Method: patched frame of reference (Zukowski, Heman, Nes, Boncz 2006), on keys of (source,
//! target), so that one width serves jumps between sources and steps within one.

use super::unpack::{Header, Keys, MAX_EXCEPTIONS};
use super::{BATCH, Batches, BlockStart, Code, Unpack};

/// The codec.
#[derive(Debug)]
pub struct Gaps;

/// Bytes of a block's header.
pub(super) const HEADER_BYTES: usize = 12;
/// Edges in a group.
pub(super) const GROUP: usize = 16;

/// Rounds up to a width in use: one at which every gap lies within 4 bytes, so that one shift
/// extracts it.
pub(super) fn allowed_width(bits: u32) -> u32 {
    match bits {
        27 => 28,
        29..=31 => 32,
        _ => bits,
    }
}

/// Bytes for numbers of `bits` bits: 1, 2 or 4.
fn high_bytes(bits: u32) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        _ => 4,
    }
}

/// Chooses width, number of exceptions and bytes of a high part, for gaps with this histogram of
/// bit lengths.
fn choose_width(lengths: &[u8; 33], groups: usize) -> (u32, usize, usize) {
    let longest = lengths.iter().rposition(|&count| count > 0).unwrap_or(0) as u32;
    let full = allowed_width(longest);
    let packed = |width: u32| groups * 2 * width as usize;
    let mut best = (packed(full), full, 0, 1);
    let mut exceptions = 0;
    for width in (0..longest).rev() {
        exceptions += usize::from(lengths[width as usize + 1]);
        if allowed_width(width) != width || exceptions > MAX_EXCEPTIONS {
            continue;
        }
        let high = high_bytes(longest - width);
        let bytes = packed(width) + exceptions * (1 + high);
        if bytes < best.0 {
            best = (bytes, width, exceptions, high);
        }
    }
    let (_, width, exceptions, high) = best;
    (width, exceptions, high)
}

fn encode_block(keys: &[u64], target_bits: u32, out: &mut Vec<u8>) {
    let (first, count) = (keys[0], keys.len());
    let mut gaps = [0_u32; BATCH];
    let mut lengths = [0_u8; 33];
    for (gap, pair) in gaps[1..].iter_mut().zip(keys.windows(2)) {
        *gap = (pair[1] - pair[0]) as u32;
        let length = (u32::BITS - gap.leading_zeros()) as usize;
        // `lengths` counts at most 255 gaps.
        lengths[length] += 1;
    }
    let groups = count.div_ceil(GROUP);
    let (width, exceptions, high) = choose_width(&lengths, groups);
    let target = first & ((1 << target_bits) - 1);
    out.extend_from_slice(&((first >> target_bits) as u32).to_le_bytes());
    out.extend_from_slice(&(target as u32 | (count as u32 - 1) << 24).to_le_bytes());
    out.extend_from_slice(&[width as u8, exceptions as u8, high as u8, 0]);

    let low = (1_u64 << width) - 1;
    let (mut bits, mut filled) = (0_u64, 0);
    for &gap in &gaps[..groups * GROUP] {
        bits |= (u64::from(gap) & low) << filled;
        filled += width;
        if filled >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            filled -= 32;
        }
    }
    // A group is a whole number of 16-bit units, so one unit may be left.
    out.extend_from_slice(&bits.to_le_bytes()[..filled as usize / 8]);
    if exceptions > 0 {
        let patched = || gaps[..count].iter().enumerate().filter(|(_, gap)| u64::from(**gap) > low);
        out.extend(patched().map(|(place, _)| place as u8));
        for (_, gap) in patched() {
            out.extend_from_slice(&(gap >> width).to_le_bytes()[..high]);
        }
    }
}

impl Gaps {
    /// The starts of the blocks in `bytes`; `None` if the bytes are broken.
    pub(crate) fn starts(bytes: &[u8], target_bits: u32) -> Option<Vec<BlockStart>> {
        let (mut starts, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (header, after) = Header::read(rest, target_bits)?;
            let offset = (bytes.len() - rest.len()) as u32;
            let (source, edges) = (header.source, header.count as u32);
            starts.push(BlockStart { offset, source, edges });
            rest = after.get(header.payload_bytes()..)?;
        }
        Some(starts)
    }
}

impl Code for Gaps {
    fn encode(keys: &[u64], target_bits: u32, out: &mut Vec<u8>, blocks: &mut Vec<BlockStart>) {
        let start = out.len();
        let mut rest = keys;
        while let Some(&first) = rest.first() {
            let source = first >> target_bits;
            let limit = (source << target_bits) + (1 << 32);
            let most = &rest[..rest.len().min(BATCH)];
            let count = if most[most.len() - 1] < limit {
                most.len()
            } else {
                most.partition_point(|&key| key < limit)
            };
            let (offset, source) = ((out.len() - start) as u32, source as u32);
            blocks.push(BlockStart { offset, source, edges: count as u32 });
            encode_block(&rest[..count], target_bits, out);
            rest = &rest[count..];
        }
    }

    /// Unpacks each block before it passes on the previous one: the wide stores of the unpacking
    /// are then complete when narrow loads read the block.
    fn decode(
        bytes: &[u8],
        edges: u32,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        let (mut one, mut other) = ([0_u32; BATCH], [0_u32; BATCH]);
        let (mut this, mut next) = (&mut one, &mut other);
        let (mut rest, mut left) = (bytes, edges as usize);
        let mut unpacked: Option<(Header, u32)> = None;
        loop {
            let mut following = None;
            if !rest.is_empty() {
                let Some((header, after)) = Header::read(rest, target_bits) else {
                    return false;
                };
                let Some((most, after)) = unpack.gaps(&header, after, next) else {
                    return false;
                };
                rest = after;
                following = Some((header, most));
            }
            if let Some((header, most)) = &unpacked {
                let Some(fewer) = left.checked_sub(header.count) else {
                    return false;
                };
                left = fewer;
                if !batch(u64::from(header.source), Keys::of_block(header, this, *most)) {
                    return false;
                }
            }
            if following.is_none() {
                return left == 0;
            }
            unpacked = following;
            std::mem::swap(&mut this, &mut next);
        }
    }

    fn decode_block(
        bytes: &[u8],
        block: BlockStart,
        target_bits: u32,
        unpack: Unpack,
        batch: &mut Batches<'_>,
    ) -> bool {
        let mut gaps = [0_u32; BATCH];
        let agrees =
            |header: &Header| header.source == block.source && header.count == block.edges as usize;
        let header = Header::read(bytes, target_bits).filter(|(header, _)| agrees(header));
        header.is_some_and(|(header, rest)| {
            let most = unpack.gaps(&header, rest, &mut gaps);
            most.is_some_and(|(most, _)| {
                batch(u64::from(block.source), Keys::of_block(&header, &gaps, most))
            })
        })
    }
}

//! Sorts in memory by radix, completely or into parts.

use crate::huge::renew;

use bytemuck::Pod;

/// A fixed-size record with a total order; records that compare equal are equal in every byte.
pub trait Record: Pod + Ord + Send + Sync {
    /// The leading part of the key: a number that never decreases along the order.
    fn radix(&self) -> u64;
    /// True if equal `radix` implies equal records.
    const RADIX_IS_WHOLE: bool;
}

impl Record for u64 {
    const RADIX_IS_WHOLE: bool = true;
    fn radix(&self) -> u64 {
        *self
    }
}

/// Bits of a digit of a split. In a sort, a digit has at most `LOW_BITS` bits.
const TOP_BITS: u32 = 10;
/// Parts of the first split, if the keys are spread evenly.
pub(crate) const TOP_DIGITS: usize = 1 << TOP_BITS;
const LOW_BITS: u32 = 12;
/// The maximum number of digits of a least-significant-digit sort: with more, a comparison sort is
/// faster.
const MAX_PASSES: usize = 4;
/// With fewer records a comparison sort is faster.
const SMALL: usize = 1 << 9;
/// A processor's cache holds two copies of this number of 8-byte records.
const CACHED: usize = 1 << 16;

/// Sorts in memory, by least-significant-digit passes over the bits that vary. Meant for pieces of
/// which the cache holds two copies, because a pass scatters over the whole piece. `buffer` grows
/// to the size of `records`.
pub(crate) fn sort<R: Record>(records: &mut Vec<R>, buffer: &mut Vec<R>) {
    let varying = varying_bits(records);
    let low = varying.trailing_zeros();
    let bits = (u64::BITS - varying.leading_zeros()).saturating_sub(low);
    let passes = bits.div_ceil(LOW_BITS) as usize;
    if records.len() < SMALL || passes > MAX_PASSES {
        return records.sort_unstable();
    }
    grow_buffer(records.len(), buffer);
    buffer.truncate(records.len());
    // Digits as narrow as the number of passes allows.
    let width = bits.div_ceil(passes.max(1) as u32);
    let mut counts = [[0; 1 << LOW_BITS]; MAX_PASSES];
    for record in records.iter() {
        let mut digits = record.radix() >> (low % u64::BITS);
        for counts in &mut counts[..passes] {
            counts[digits as usize & ((1 << width) - 1)] += 1;
            digits >>= width;
        }
    }
    for (pass, counts) in counts[..passes].iter_mut().enumerate() {
        scatter(records, buffer, low + pass as u32 * width, &mut counts[..1 << width]);
        std::mem::swap(records, buffer);
    }
    if !R::RADIX_IS_WHOLE {
        for equal in records.chunk_by_mut(|a, b| a.radix() == b.radix()) {
            equal.sort_unstable();
        }
    }
}

/// Like [`sort`], for any number of records: first splits them into parts that fit in the cache.
pub(crate) fn sort_many<R: Record>(records: &mut Vec<R>, buffer: &mut Vec<R>) {
    if records.len() <= CACHED {
        return sort(records, buffer);
    }
    let (starts, _) = split(records, buffer, CACHED);
    let (mut part, mut part_buffer) = (Vec::new(), Vec::new());
    for ends in starts.windows(2) {
        let range = &mut records[ends[0] as usize..ends[1] as usize];
        part.clear();
        part.extend_from_slice(range);
        sort(&mut part, &mut part_buffer);
        range.copy_from_slice(&part);
    }
}

/// Splits `records` into ascending parts of at most `max_len` records, each unsorted. Returns the
/// starts of the parts and the end of the last, and the lowest bit of the first digit. `buffer`
/// grows to the size of `records`; both must have fewer than 2^32 records.
pub(crate) fn split<R: Record>(
    records: &mut Vec<R>,
    buffer: &mut Vec<R>,
    max_len: usize,
) -> (Vec<u64>, u32) {
    grow_buffer(records.len(), buffer);
    buffer.truncate(records.len());
    let mut starts = Vec::new();
    let shift = split_part(records, buffer, max_len, 0, false, &mut starts);
    std::mem::swap(records, buffer);
    starts.push(records.len() as u64);
    (starts, shift)
}

/// Splits `source` into `target` and appends the starts of the parts, counted from `offset`.
/// Returns the lowest bit of the digit. At the first digit, each digit is a part of its own, so
/// that all runs are split alike. At lower digits, `joins_parts` is true: small neighboring parts
/// stay together.
fn split_part<R: Record>(
    source: &mut [R],
    target: &mut [R],
    max_len: usize,
    offset: usize,
    joins_parts: bool,
    starts: &mut Vec<u64>,
) -> u32 {
    let bits = u64::BITS - varying_bits(source).leading_zeros();
    if source.len() <= max_len || bits == 0 {
        if source.len() > max_len {
            source.sort_unstable();
        }
        target.copy_from_slice(source);
        starts.extend((offset..offset + source.len()).step_by(max_len).map(|at| at as u64));
        return 0;
    }
    let shift = bits.saturating_sub(TOP_BITS);
    let mut start = 0;
    // Length of the last part, while more records may join it.
    let mut open_len = None;
    for end in partition::<R, TOP_DIGITS>(source, target, shift) {
        let end = end as usize;
        let len = end - start;
        if len > max_len {
            split_part(
                &mut target[start..end],
                &mut source[start..end],
                max_len,
                offset + start,
                true,
                starts,
            );
            target[start..end].copy_from_slice(&source[start..end]);
            open_len = None;
        } else if let Some(joined) = open_len
            .map(|open_len| open_len + len)
            .filter(|joined| joins_parts && *joined <= max_len)
        {
            open_len = Some(joined);
        } else if len > 0 {
            starts.push((offset + start) as u64);
            open_len = Some(len);
        }
        start = end;
    }
    shift
}

/// Distributes `source` over `target` by the digit of log2(`DIGITS`) bits from bit `shift` on,
/// keeping the order within a digit. Returns the end of each digit.
fn partition<R: Record, const DIGITS: usize>(
    source: &[R],
    target: &mut [R],
    shift: u32,
) -> [u32; DIGITS] {
    let digit = |r: &R| (r.radix() >> shift) as usize & (DIGITS - 1);
    let mut next = [0_u32; DIGITS];
    for record in source {
        next[digit(record)] += 1;
    }
    scatter(source, target, shift, &mut next);
    next
}

/// Moves the records of `source` to the slots of their digits, given the number of records per
/// digit; the number of digits is a power of two. Leaves the end of each digit in `next`.
fn scatter<R: Record>(source: &[R], target: &mut [R], shift: u32, next: &mut [u32]) {
    let mut sum = 0;
    for slot in next.iter_mut() {
        sum += std::mem::replace(slot, sum);
    }
    let last = next.len() - 1;
    for &record in source {
        let slot = &mut next[(record.radix() >> shift) as usize & last];
        target[*slot as usize] = record;
        *slot += 1;
    }
}

fn grow_buffer<R: Record>(len: usize, buffer: &mut Vec<R>) {
    if buffer.capacity() < len {
        renew(len, buffer);
    }
    buffer.resize(buffer.len().max(len), R::zeroed());
}

fn varying_bits<R: Record>(records: &[R]) -> u64 {
    let first = records.first().map_or(0, Record::radix);
    records.iter().fold(0, |bits, r| bits | (r.radix() ^ first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_agrees_with_the_standard_library() {
        let shapes: [fn(u64) -> u64; 5] = [
            |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40 << 9,
            |i| i % 3,
            |i| 1_000_000 - i,
            |_| 7,
        ];
        for shape in shapes {
            for len in [0, 1, 600, 300_000] {
                let mut records: Vec<u64> = (0..len).map(shape).collect();
                let mut expected = records.clone();
                expected.sort_unstable();
                sort_many(&mut records, &mut Vec::new());
                assert!(records == expected, "{len}");
            }
        }
    }

    #[test]
    fn parts_are_ascending_and_few() {
        let shapes: [fn(u64) -> u64; 4] = [
            |i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20,
            |i| i % 3,
            |i| i / 50_000,
            |i| i.min(90_000),
        ];
        for shape in shapes {
            let values: Vec<u64> = (0..100_000).map(shape).collect();
            for most in [64, 300, 5000] {
                let (mut records, mut buffer) = (values.clone(), Vec::new());
                let (starts, _) = split(&mut records, &mut buffer, most);
                assert_eq!((starts[0], starts[starts.len() - 1]), (0, 100_000));
                let parts: Vec<&[u64]> =
                    starts.windows(2).map(|p| &records[p[0] as usize..p[1] as usize]).collect();
                assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= most));
                assert!(parts.windows(2).all(|p| p[0].iter().max() <= p[1].iter().min()));
                // At least one digit per part, and at most twice as many parts as needed.
                assert!(
                    parts.len() <= 1024 + 4 * 100_000 / most,
                    "{} parts of {most}",
                    parts.len()
                );
                let mut sorted = records.clone();
                sorted.sort_unstable();
                let mut expected = values.clone();
                expected.sort_unstable();
                assert_eq!(sorted, expected);
            }
        }
    }
}

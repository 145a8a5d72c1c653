//! Sorting in memory by radix: completely, or into parts.

use crate::huge::advise_spare;
use crate::sorter::Record;

/// Bits per digit of the first, partitioning pass and of the passes within the cache.
const TOP_BITS: u32 = 10;
const LOW_BITS: u32 = 11;
/// Below this many records a comparison sort is faster.
const SMALL: usize = 1 << 10;

/// Sorts in memory: one partition by the leading digit that varies, then least-significant-digit
/// passes inside each part, which fits the cache. `room` grows to the size of `records`.
pub(crate) fn sort<R: Record>(records: &mut [R], room: &mut Vec<R>) {
    if records.len() < SMALL {
        return records.sort_unstable();
    }
    make_room(records.len(), room);
    let room = &mut room[..records.len()];
    let bits = u64::BITS - varying_bits(records).leading_zeros();
    let shift = bits.saturating_sub(TOP_BITS);
    let mut from = 0;
    for to in partition::<R, { 1 << TOP_BITS }>(records, room, shift) {
        let to = to as usize;
        sort_part(&mut room[from..to], &mut records[from..to], shift);
        from = to;
    }
}

/// Sorts `source` by the low `bits` bits (the higher ones are equal) into `target`.
fn sort_part<R: Record>(source: &mut [R], target: &mut [R], bits: u32) {
    if source.len() < SMALL {
        source.sort_unstable();
        return target.copy_from_slice(source);
    }
    let varying = varying_bits(source) & (1_u64 << bits).wrapping_sub(1);
    let low = varying.trailing_zeros().min(bits);
    let mut in_source = true;
    let mut shift = low;
    while shift < bits {
        let width = LOW_BITS.min(bits - shift);
        if varying >> shift & ((1 << width) - 1) != 0 {
            let (from, to) =
                if in_source { (&mut *source, &mut *target) } else { (&mut *target, &mut *source) };
            // Bits above the width are the same in the whole part and change no order.
            partition::<R, { 1 << LOW_BITS }>(from, to, shift);
            in_source = !in_source;
        }
        shift += width;
    }
    if in_source {
        target.copy_from_slice(source);
    }
    if !R::RADIX_IS_WHOLE {
        for equal in target.chunk_by_mut(|a, b| a.radix() == b.radix()) {
            equal.sort_unstable();
        }
    }
}

/// Puts `records` into ascending parts of at most `most` records, in no order within. Returns where the
/// parts begin and the last one ends, and the lowest bit of the first digit. `room` grows to the size of
/// `records`; both have fewer than 2^32.
pub(crate) fn split<R: Record>(records: &mut Vec<R>, room: &mut Vec<R>, most: usize) -> (Vec<u64>, u32) {
    make_room(records.len(), room);
    room.truncate(records.len());
    let mut starts = Vec::new();
    let shift = split_part(records, room, most, 0, false, &mut starts);
    std::mem::swap(records, room);
    starts.push(records.len() as u64);
    (starts, shift)
}

/// Splits `source` into `target`, appending where parts begin, counted from `offset`. Returns the lowest
/// bit of the digit. Small neighbours are left together `below` the first digit; there every digit is a
/// part of its own, so that runs are split alike.
fn split_part<R: Record>(
    source: &mut [R],
    target: &mut [R],
    most: usize,
    offset: usize,
    below: bool,
    starts: &mut Vec<u64>,
) -> u32 {
    let bits = u64::BITS - varying_bits(source).leading_zeros();
    if source.len() <= most || bits == 0 {
        if source.len() > most {
            source.sort_unstable();
        }
        target.copy_from_slice(source);
        starts.extend((offset..offset + source.len()).step_by(most).map(|at| at as u64));
        return 0;
    }
    let shift = bits.saturating_sub(TOP_BITS);
    let mut from = 0;
    // Length of the last part begun, while more may join it.
    let mut open = None;
    for to in partition::<R, { 1 << TOP_BITS }>(source, target, shift) {
        let to = to as usize;
        let len = to - from;
        if len > most {
            split_part(&mut target[from..to], &mut source[from..to], most, offset + from, true, starts);
            target[from..to].copy_from_slice(&source[from..to]);
            open = None;
        } else if let Some(joined) = open.map(|open| open + len).filter(|joined| below && *joined <= most) {
            open = Some(joined);
        } else if len > 0 {
            starts.push((offset + from) as u64);
            open = Some(len);
        }
        from = to;
    }
    shift
}

/// Distributes `source` over `target` by the digit of log2(`DIGITS`) bits from bit `shift` on, keeping the
/// order within a digit. Returns where each digit ends.
fn partition<R: Record, const DIGITS: usize>(source: &[R], target: &mut [R], shift: u32) -> [u32; DIGITS] {
    let digit = |r: &R| (r.radix() >> shift) as usize & (DIGITS - 1);
    let mut next = [0_u32; DIGITS];
    for record in source {
        next[digit(record)] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    for &record in source {
        let slot = &mut next[digit(&record)];
        target[*slot as usize] = record;
        *slot += 1;
    }
    next
}

fn make_room<R: Record>(len: usize, room: &mut Vec<R>) {
    // Exactly: growth by doubling would go beyond the sorter's bound.
    room.reserve_exact(len.saturating_sub(room.len()));
    advise_spare(room);
    room.resize(room.len().max(len), R::zeroed());
}

fn varying_bits<R: Record>(records: &[R]) -> u64 {
    let first = records.first().map_or(0, Record::radix);
    records.iter().fold(0, |bits, r| bits | (r.radix() ^ first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_ascending_and_few() {
        let shapes: [fn(u64) -> u64; 4] =
            [|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20, |i| i % 3, |i| i / 50_000, |i| i.min(90_000)];
        for shape in shapes {
            let values: Vec<u64> = (0..100_000).map(shape).collect();
            for most in [64, 300, 5000] {
                let (mut records, mut room) = (values.clone(), Vec::new());
                let (starts, _) = split(&mut records, &mut room, most);
                assert_eq!((starts[0], starts[starts.len() - 1]), (0, 100_000));
                let parts: Vec<&[u64]> =
                    starts.windows(2).map(|p| &records[p[0] as usize..p[1] as usize]).collect();
                assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= most));
                assert!(parts.windows(2).all(|p| p[0].iter().max() <= p[1].iter().min()));
                // A digit a part at least, and no more than twice as many as needed.
                assert!(parts.len() <= 1024 + 4 * 100_000 / most, "{} parts of {most}", parts.len());
                let mut sorted = records.clone();
                sorted.sort_unstable();
                let mut expected = values.clone();
                expected.sort_unstable();
                assert_eq!(sorted, expected);
            }
        }
    }
}

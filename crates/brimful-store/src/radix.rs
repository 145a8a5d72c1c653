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
    for to in partition(records, room, shift) {
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
            scatter(from, to, shift, width);
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

fn scatter<R: Record>(from: &[R], to: &mut [R], shift: u32, width: u32) {
    let mask = (1_usize << width) - 1;
    let mut next = [0_u32; 1 << LOW_BITS];
    for record in from {
        next[(record.radix() >> shift) as usize & mask] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    for &record in from {
        let slot = &mut next[(record.radix() >> shift) as usize & mask];
        to[*slot as usize] = record;
        *slot += 1;
    }
}

/// Puts `records` into ascending parts of at most `most` records, unsorted within, unless a part holds
/// nothing but records of one radix. Returns where the parts begin, and the end; and the lowest bit of the first digit. `room`
/// grows to the size of `records`.
pub(crate) fn split<R: Record>(records: &mut Vec<R>, room: &mut Vec<R>, most: usize) -> (Vec<u64>, u32) {
    make_room(records.len(), room);
    room.truncate(records.len());
    let mut starts = Vec::new();
    let shift = split_part(records, room, most, 0, &mut starts);
    std::mem::swap(records, room);
    starts.push(records.len() as u64);
    (starts, shift)
}

/// Splits `source` into `target`, appending where parts begin, counted from `offset`.
fn split_part<R: Record>(
    source: &mut [R],
    target: &mut [R],
    most: usize,
    offset: usize,
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
    let ends = partition(source, target, shift);
    let mut from = 0;
    for to in ends {
        if to - from > most {
            split_part(&mut target[from..to], &mut source[from..to], most, offset + from, starts);
            target[from..to].copy_from_slice(&source[from..to]);
        } else if from < to {
            starts.push((offset + from) as u64);
        }
        from = to;
    }
    shift
}

/// Distributes `source` over `target` by the digit from bit `shift` on. Returns where each digit ends.
fn partition<R: Record>(source: &[R], target: &mut [R], shift: u32) -> [usize; 1 << TOP_BITS] {
    let digit = |r: &R| (r.radix() >> shift) as usize & ((1 << TOP_BITS) - 1);
    let mut next = [0_usize; 1 << TOP_BITS];
    for record in source {
        next[digit(record)] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    for &record in source {
        let slot = &mut next[digit(&record)];
        target[*slot] = record;
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

//! Lists of numbers in few bytes: ascending integers as packed gaps, other numbers in the narrowest
//! type that holds all of them exactly.
//!
//! Integers: the kind (successive, or ascending); ascending ones are the first, then blocks of up
//! to 128 gaps, each with its width: the bits of each gap, which are packed low bits first, or 0
//! for gaps of 7 bits a byte, if these are shorter. Numbers: the kind; one number if all are equal,
//! else all of them in the type of the kind, little-endian. An empty list takes no bytes.
//!
//! Invariant: a list is as long as its bytes justify, by a factor of 64 at most.

use brimful_store::varint::{read_varint, write_varint};

use super::{Field, read_successive, take, write_successive};

/// The kinds of lists of integers.
const SUCCESSIVE: u8 = 0;
const ASCENDING: u8 = 1;
/// Gaps of a block.
const BLOCK: usize = 128;
/// The most bits of a packed gap: eight bytes contain it wherever it begins.
const MAX_BITS: u32 = 56;
const VARINTS: u8 = 0;

/// An integer as part of a packed list.
pub(crate) trait Integer: Field + Copy + Ord {
    /// The difference to an integer that is not smaller.
    fn gap(self, next: Self) -> u64;
    /// The integer after a gap, if there is one.
    fn after_gap(self, gap: u64) -> Option<Self>;
}

macro_rules! integers {
    ($($number:ty),+) => {$(
        impl Integer for $number {
            #[inline]
            fn gap(self, next: Self) -> u64 {
                next.abs_diff(self).into()
            }
            #[inline]
            fn after_gap(self, gap: u64) -> Option<Self> {
                Self::try_from(i128::from(self) + i128::from(gap)).ok()
            }
        }
    )+};
}
integers!(u16, u32, i32, i64);

impl Integer for u64 {
    #[inline]
    fn gap(self, next: Self) -> u64 {
        next - self
    }
    #[inline]
    fn after_gap(self, gap: u64) -> Option<Self> {
        self.checked_add(gap)
    }
}

/// Bytes of all `gaps`, 7 bits a byte, if none has more than `bits` bits. Counted for each length
/// instead of each gap, which the compiler can vectorize.
fn varints_bytes(gaps: &[u64], bits: u32) -> usize {
    let longer = |bytes| gaps.iter().map(|gap| u64::from(gap >> (7 * bytes) != 0)).sum::<u64>();
    gaps.len() + (1..bits.div_ceil(7)).map(longer).sum::<u64>() as usize
}

/// [`Field::write_list`] of integers.
pub(crate) fn write_integers<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    let Some((first, rest)) = values.split_first() else { return };
    if !values.is_sorted() {
        out.push(SUCCESSIVE);
        return write_successive(values, out);
    }
    out.push(ASCENDING);
    first.write(out);
    let mut gaps = [0_u64; BLOCK];
    // The number before each of `rest` is in the same place of `values`.
    for (previous, block) in values.chunks(BLOCK).zip(rest.chunks(BLOCK)) {
        let mut all = 0;
        for (gap, (previous, value)) in gaps.iter_mut().zip(previous.iter().zip(block)) {
            *gap = previous.gap(*value);
            all |= *gap;
        }
        let gaps = gaps.get(..block.len()).unwrap_or_default();
        let bits = (64 - all.leading_zeros()).max(1);
        let packed_bytes = (bits as usize * gaps.len()).div_ceil(8);
        if bits <= MAX_BITS && packed_bytes <= varints_bytes(gaps, bits) {
            out.push(bits as u8);
            pack(gaps, bits, out);
        } else {
            out.push(VARINTS);
            gaps.iter().for_each(|gap| write_varint(*gap, out));
        }
    }
}

/// Appends `gaps`, each of `bits` bits.
fn pack(gaps: &[u64], bits: u32, out: &mut Vec<u8>) {
    let (mut word, mut count) = (0_u64, 0);
    for gap in gaps {
        word |= gap << count;
        count += bits;
        if count >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            count -= 64;
            // The bits that did not fit; a gap has fewer than 64.
            word = gap >> (bits - count);
        }
    }
    out.extend(word.to_le_bytes().iter().take(count.div_ceil(8) as usize));
}

/// [`Field::read_list`] of integers.
pub(crate) fn read_integers<T: Integer>(
    count: usize,
    input: &mut &[u8],
    values: &mut Vec<T>,
) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    match u8::read(input)? {
        SUCCESSIVE => return read_successive(count, input, values),
        ASCENDING => {}
        _ => return None,
    }
    // A gap has at least a bit.
    if count > input.len().saturating_mul(8) {
        return None;
    }
    values.reserve_exact(count);
    let mut last = T::read(input)?;
    values.push(last);
    let mut left = count - 1;
    while left > 0 {
        let length = left.min(BLOCK);
        left -= length;
        match u8::read(input)? {
            VARINTS => {
                for _ in 0..length {
                    last = last.after_gap(read_varint(input)?)?;
                    values.push(last);
                }
            }
            bits if u32::from(bits) <= MAX_BITS => {
                last = unpack(length, bits, last, input, values)?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// Appends the values after `length` gaps of `bits` bits; returns the last.
fn unpack<T: Integer>(
    length: usize,
    bits: u8,
    mut last: T,
    input: &mut &[u8],
    values: &mut Vec<T>,
) -> Option<T> {
    const BYTES: usize = BLOCK * MAX_BITS as usize / 8;
    let bits = usize::from(bits);
    let packed = take(input, (length * bits).div_ceil(8))?;
    // Every gap is read by a load of eight bytes.
    let mut bytes = [0; BYTES + 8];
    bytes.get_mut(..packed.len())?.copy_from_slice(packed);
    let mask = (1_u64 << bits) - 1;
    let mut fits = true;
    values.extend((0..length).map(|at| {
        let bit = at * bits;
        let word = bytes.get(bit / 8..).and_then(|bytes| bytes.first_chunk());
        let gap = word.map_or(0, |word| u64::from_le_bytes(*word)) >> (bit % 8) & mask;
        match last.after_gap(gap) {
            Some(next) => last = next,
            None => fits = false,
        }
        last
    }));
    fits.then_some(last)
}

/// A number of fixed size as part of a packed list.
pub(crate) trait Number: Field + Copy {
    /// The narrowest kind of a list with this number.
    fn kind(self) -> u8;
    /// True if both numbers have the same bits.
    fn has_same_bits(self, other: Self) -> bool;
    /// Appends `values` in the type of `kind`.
    fn write_all(values: &[Self], kind: u8, out: &mut Vec<u8>);
    /// Appends `count` numbers of the type of `kind` to `values`.
    fn read_all(kind: u8, count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()>;
}

/// The kinds of lists of numbers, the narrowest first; all numbers of a kind are exact in the
/// later ones.
const EQUAL: u8 = 0;
const U8: u8 = 1;
const U16: u8 = 2;
const SINGLE: u8 = 3;
const WHOLE: u8 = 4;

/// Appends `values` as arrays of `N` bytes.
#[inline]
fn write_as<T: Copy, const N: usize>(
    values: &[T],
    out: &mut Vec<u8>,
    bytes: impl Fn(T) -> [u8; N],
) {
    let start = out.len();
    out.resize(start + values.len() * N, 0);
    let (places, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<N>();
    places.iter_mut().zip(values).for_each(|(place, value)| *place = bytes(*value));
}

/// Appends `count` numbers from arrays of `N` bytes to `values`.
#[inline]
fn read_as<T, const N: usize>(
    count: usize,
    input: &mut &[u8],
    values: &mut Vec<T>,
    number: impl Fn([u8; N]) -> T,
) -> Option<()> {
    let (arrays, _) = take(input, count.checked_mul(N)?)?.as_chunks::<N>();
    values.extend(arrays.iter().map(|bytes| number(*bytes)));
    Some(())
}

impl Number for u8 {
    #[inline]
    fn kind(self) -> u8 {
        WHOLE
    }
    #[inline]
    fn has_same_bits(self, other: Self) -> bool {
        self == other
    }
    fn write_all(values: &[Self], _: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(values);
    }
    fn read_all(kind: u8, count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
        values.extend_from_slice(take(input, count).filter(|_| kind == WHOLE)?);
        Some(())
    }
}

macro_rules! floats {
    ($($number:ty),+) => {$(
        impl Number for $number {
            #[inline]
            fn kind(self) -> u8 {
                // Bits are compared: neither -0 nor a fraction is an integer.
                let is_double = size_of::<Self>() > size_of::<f32>();
                match () {
                    () if Self::from(self as u8).has_same_bits(self) => U8,
                    () if Self::from(self as u16).has_same_bits(self) => U16,
                    () if is_double && (self as f32 as Self).has_same_bits(self) => SINGLE,
                    () => WHOLE,
                }
            }
            #[inline]
            fn has_same_bits(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
            fn write_all(values: &[Self], kind: u8, out: &mut Vec<u8>) {
                match kind {
                    U8 => write_as(values, out, |value| [value as u8]),
                    U16 => write_as(values, out, |value| (value as u16).to_le_bytes()),
                    SINGLE => write_as(values, out, |value| (value as f32).to_le_bytes()),
                    _ => write_as(values, out, Self::to_le_bytes),
                }
            }
            fn read_all(
                kind: u8,
                count: usize,
                input: &mut &[u8],
                values: &mut Vec<Self>,
            ) -> Option<()> {
                match kind {
                    U8 => read_as(count, input, values, |[byte]| byte.into()),
                    U16 => read_as(count, input, values, |bytes| u16::from_le_bytes(bytes).into()),
                    SINGLE => {
                        read_as(count, input, values, |bytes| f32::from_le_bytes(bytes) as Self)
                    }
                    WHOLE => read_as(count, input, values, Self::from_le_bytes),
                    _ => None,
                }
            }
        }
    )+};
}
floats!(f32, f64);

/// [`Field::write_list`] of numbers.
pub(crate) fn write_numbers<T: Number>(values: &[T], out: &mut Vec<u8>) {
    let Some((first, rest)) = values.split_first() else { return };
    if rest.iter().all(|value| value.has_same_bits(*first)) {
        out.push(EQUAL);
        return first.write(out);
    }
    let kind = values.iter().map(|value| value.kind()).max().unwrap_or(WHOLE);
    out.push(kind);
    T::write_all(values, kind, out);
}

/// [`Field::read_list`] of numbers. Equal ones take no bytes: the caller has read as many others.
pub(crate) fn read_numbers<T: Number>(
    count: usize,
    input: &mut &[u8],
    values: &mut Vec<T>,
) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    let kind = u8::read(input)?;
    if kind == EQUAL {
        let value = T::read(input)?;
        values.resize(values.len() + count, value);
        return Some(());
    }
    T::read_all(kind, count, input, values)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Writes and reads a list; returns its bytes.
    fn round_trip<T: Field + PartialEq + Debug>(values: &[T]) -> usize {
        let mut bytes = b"before".to_vec();
        T::write_list(values, &mut bytes);
        let (mut input, mut read) = (&bytes[6..], Vec::new());
        assert_eq!(T::read_list(values.len(), &mut input, &mut read), Some(()));
        assert!(input.is_empty() && read == values, "{values:?} {read:?}");
        for end in 0..bytes.len() - 6 {
            let mut cut = &bytes[6..6 + end];
            let whole = T::read_list(values.len(), &mut cut, &mut Vec::new()).is_some();
            assert!(!whole, "{end} of {} bytes", bytes.len() - 6);
        }
        bytes.len() - 6
    }

    #[test]
    fn ascending_integers_take_the_bits_of_their_gaps() {
        let every = |step: u64| (0..1000).map(|n| 5 + n * step).collect::<Vec<u64>>();
        // 1,000 gaps of 1 and 13 bits, 8 widths, the first id and the kind.
        assert_eq!(round_trip(&every(1)), 999_usize.div_ceil(8) + 8 + 2);
        assert_eq!(round_trip(&every(5000)), (999_usize * 13).div_ceil(8) + 8 + 2);
        // A jump makes the gaps of one block take a byte each.
        let jump: Vec<u64> = (0..1000).map(|n| if n < 500 { n } else { n + (1 << 40) }).collect();
        assert!(round_trip(&jump) < 1000 / 8 + 150);
        round_trip(&[0, u64::MAX]);
        round_trip(&[7_u64, 7, 7, u64::MAX - 1, u64::MAX]);
        round_trip(&[i64::MIN, -1, 0, i64::MAX]);
        round_trip(&[u32::MAX, 0, 7]);
        round_trip(&[9_u16, 8, 7]);
        round_trip::<u64>(&[]);
    }

    #[test]
    fn all_widths_and_lengths_come_back() {
        for bits in 0..64 {
            for length in [1, 2, 127, 128, 129, 130, 300] {
                let gap = (1_u64 << bits) - u64::from(bits > 3);
                let ids: Vec<u64> = (0..length)
                    .scan(3_u64, |id, n| {
                        let now = *id;
                        *id = id.checked_add(if n % 7 == 0 { gap } else { gap / 3 })?;
                        Some(now)
                    })
                    .collect();
                round_trip(&ids);
            }
        }
    }

    #[test]
    fn numbers_take_the_narrowest_type_that_is_exact() {
        let list = |f: fn(u32) -> f64| (0..100).map(f).collect::<Vec<f64>>();
        assert_eq!(round_trip(&list(|_| 0.1)), 1 + 8);
        assert_eq!(round_trip(&list(f64::from)), 1 + 100);
        assert_eq!(round_trip(&list(|n| f64::from(n) + 1000.0)), 1 + 200);
        assert_eq!(round_trip(&list(|n| f64::from(n) / 2.0)), 1 + 400);
        assert_eq!(round_trip(&list(|n| f64::from(n) / 3.0)), 1 + 800);
        assert_eq!(round_trip(&[1.0_f32, 2.0, 65_535.0]), 1 + 6);
        assert_eq!(round_trip(&[1.0_f32, 2.5]), 1 + 8);
        assert_eq!(round_trip(&[3_u8; 50]), 2);
        assert_eq!(round_trip(&[3_u8, 4, 5]), 1 + 3);
        round_trip(&[(); 9]);
        // Equal numbers with other bits stay unchanged.
        let mut bytes = Vec::new();
        f64::write_list(&[0.0, -0.0, f64::NAN, f64::INFINITY, -1.0], &mut bytes);
        let mut read = Vec::new();
        f64::read_list(5, &mut bytes.as_slice(), &mut read).unwrap();
        let bits: Vec<u64> = read.iter().map(|number| number.to_bits()).collect();
        let wanted = [0.0, -0.0, f64::NAN, f64::INFINITY, -1.0_f64].map(f64::to_bits);
        assert_eq!(bits, wanted);
    }

    #[test]
    fn lists_that_no_value_writes_are_refused_before_they_take_memory() {
        let read = |bytes: &[u8], count| u64::read_list(count, &mut { bytes }, &mut Vec::new());
        assert_eq!(read(&[ASCENDING, 1, 1, 0xff], usize::MAX), None);
        assert_eq!(read(&[SUCCESSIVE, 1, 1], usize::MAX), None);
        assert_eq!(read(&[ASCENDING, 1, 57, 0, 0, 0, 0, 0, 0, 0, 0], 2), None, "too wide");
        assert_eq!(read(&[2, 1, 1], 2), None, "no kind");
        let last = [&[ASCENDING][..], &[255; 9], &[1, 1, 1]].concat();
        assert_eq!(read(&last, 2), None, "more than 64 bits");
        assert_eq!(f64::read_list(2, &mut [5_u8, 0, 0].as_slice(), &mut Vec::new()), None);
        assert_eq!(f64::read_list(usize::MAX, &mut [U8, 0, 0].as_slice(), &mut Vec::new()), None);
    }
}

//! Values as portable bytes: ids, signals, and the parts of records of the compact serializer.
//!
//! Integers take 7 bits a byte; signed ones are zigzag-folded, so that small ones stay short. The
//! bytes of unsigned integers sort as these do, so that records merged by their bytes are in the
//! order of the ids. Lengths and differences are written low bits first. Floats and the elements of
//! arrays are little-endian. Invariant: reading never takes more memory than the bytes justify, and
//! each value has exactly one encoding.

mod packed;

use brimful_store::varint::{read_varint, write_varint};

/// A value that can be part of a record or a message.
pub trait Field: Clone + Send + 'static {
    /// Appends the value to `out`.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a value and moves `input` past it; `None` if the bytes are invalid.
    fn read(input: &mut &[u8]) -> Option<Self>;

    /// Appends the value, which follows `previous` in a list; numbers write the difference.
    #[inline]
    fn write_after(&self, previous: &Self, out: &mut Vec<u8>) {
        let _ = previous;
        self.write(out);
    }

    /// Reads a value from [`Field::write_after`].
    #[inline]
    fn read_after(previous: &Self, input: &mut &[u8]) -> Option<Self> {
        let _ = previous;
        Self::read(input)
    }

    /// Appends all of `values`; numbers are packed.
    fn write_list(values: &[Self], out: &mut Vec<u8>) {
        write_successive(values, out);
    }

    /// Appends `count` values from [`Field::write_list`] to `values`. `None`, before memory is
    /// allocated, if the bytes cannot justify so many values.
    fn read_list(count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
        read_successive(count, input, values)
    }

    /// Heap bytes of the value.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Appends values, each after the one before.
pub(crate) fn write_successive<T: Field>(values: &[T], out: &mut Vec<u8>) {
    let mut previous = None;
    for value in values {
        match previous.replace(value) {
            None => value.write(out),
            Some(previous) => value.write_after(previous, out),
        }
    }
}

/// Reads values from [`write_successive`].
pub(crate) fn read_successive<T: Field>(
    count: usize,
    input: &mut &[u8],
    values: &mut Vec<T>,
) -> Option<()> {
    // Each value takes at least one byte, except for types without bytes.
    if size_of::<T>() > 0 && count > input.len() {
        return None;
    }
    values.reserve_exact(count);
    let mut previous: Option<T> = None;
    for _ in 0..count {
        let value = match &previous {
            None => T::read(input),
            Some(previous) => T::read_after(previous, input),
        }?;
        values.extend(previous.replace(value));
    }
    values.extend(previous);
    Some(())
}

/// Bits of the largest number of each length in bytes in [`write_ordered`]; nine bytes hold all.
const BITS_A_BYTE: u32 = 7;
const MAX_FOLLOWING: u32 = 8;

/// Appends `number` so that bytes sort as numbers do: the first byte begins with a 1 for each byte
/// that follows, high bits first.
#[inline]
pub(crate) fn write_ordered(number: u64, out: &mut Vec<u8>) {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    let following = ((bits - 1) / BITS_A_BYTE).min(MAX_FOLLOWING);
    let bytes = number.to_be_bytes();
    if following == MAX_FOLLOWING {
        out.push(u8::MAX);
        out.extend_from_slice(&bytes);
        return;
    }
    let marks = !(u8::MAX >> following);
    let (_, written) = bytes.split_at(MAX_FOLLOWING as usize - following as usize - 1);
    let first = out.len();
    out.extend_from_slice(written);
    if let Some(first) = out.get_mut(first) {
        *first |= marks;
    }
}

/// Reads a number of [`write_ordered`]; `None` if it is truncated or longer than necessary.
#[inline]
pub(crate) fn read_ordered(input: &mut &[u8]) -> Option<u64> {
    let (number, rest) = match **input {
        [a @ 0..0x80, ref rest @ ..] => (u64::from(a), rest),
        [a @ 0x80..0xc0, b, ref rest @ ..] => (u64::from(a & 0x3f) << 8 | u64::from(b), rest),
        _ => return read_long_ordered(input),
    };
    let is_shortest = input.len() == rest.len() + 1 || number >> BITS_A_BYTE > 0;
    *input = rest;
    is_shortest.then_some(number)
}

/// [`read_ordered`] for any length.
fn read_long_ordered(input: &mut &[u8]) -> Option<u64> {
    let (first, _) = input.split_first()?;
    let following = first.leading_ones();
    let taken = take(input, following as usize + 1)?;
    // The marks go, and the bits after them stay.
    let start = u64::from(first & u8::MAX.checked_shr(following + 1).unwrap_or(0));
    let rest = taken.get(1..)?;
    let number = rest.iter().fold(start, |number, byte| number << 8 | u64::from(*byte));
    let is_shortest = following == 0 || number >> (following * BITS_A_BYTE) > 0;
    is_shortest.then_some(number)
}

fn fold(number: i64) -> u64 {
    (number.wrapping_shl(1) ^ (number >> 63)) as u64
}

fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// Takes `count` bytes from the front.
#[inline]
pub fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

macro_rules! integers {
    ($($number:ty, $write:ident, $read:ident, $to:expr, $from:expr);+) => {$(
        impl Field for $number {
            fn write_list(values: &[Self], out: &mut Vec<u8>) {
                packed::write_integers(values, out);
            }
            fn read_list(count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
                packed::read_integers(count, input, values)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                $write($to(*self), out);
            }
            #[inline]
            fn read(input: &mut &[u8]) -> Option<Self> {
                Self::try_from($from($read(input)?)).ok()
            }
            #[inline]
            fn write_after(&self, previous: &Self, out: &mut Vec<u8>) {
                write_varint(fold((*self as i64).wrapping_sub(*previous as i64)), out);
            }
            #[inline]
            fn read_after(previous: &Self, input: &mut &[u8]) -> Option<Self> {
                let number = (*previous as i64).wrapping_add(unfold(read_varint(input)?));
                // The sum wraps if the type has 64 bits; narrower types are checked.
                match size_of::<Self>() {
                    8 => Some(number as Self),
                    _ => Self::try_from(number).ok(),
                }
            }
        }
    )+};
}
integers!(
    u16, write_ordered, read_ordered, u64::from, |n: u64| n;
    u32, write_ordered, read_ordered, u64::from, |n: u64| n;
    u64, write_ordered, read_ordered, |n: u64| n, |n: u64| n;
    i32, write_varint, read_varint, |n: i32| fold(n.into()), unfold;
    i64, write_varint, read_varint, fold, unfold
);

macro_rules! fixed {
    ($($number:ty),+) => {$(
        impl Field for $number {
            fn write_list(values: &[Self], out: &mut Vec<u8>) {
                packed::write_numbers(values, out);
            }
            fn read_list(count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
                packed::read_numbers(count, input, values)
            }
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn read(input: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )+};
}
fixed!(u8, f32, f64);

impl Field for () {
    fn write_list(_: &[Self], _: &mut Vec<u8>) {}
    fn read_list(count: usize, _: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
        values.resize(values.len() + count, ());
        Some(())
    }
    fn write(&self, _: &mut Vec<u8>) {}
    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Field for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Field for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_varint(self.len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }
    fn read(input: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(read_varint(input)?).ok()?;
        std::str::from_utf8(take(input, len)?).ok().map(str::to_owned)
    }
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.write(out);
        }
    }
    fn read(input: &mut &[u8]) -> Option<Self> {
        if bool::read(input)? { T::read(input).map(Some) } else { Some(None) }
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, T::heap_bytes)
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_varint(self.len() as u64, out);
        self.iter().for_each(|value| value.write(out));
    }
    fn read(input: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(read_varint(input)?).ok()?;
        // Elements without bytes would justify any length.
        const { assert!(size_of::<T>() > 0) };
        if len > input.len() {
            return None;
        }
        let mut values = Self::new();
        for _ in 0..len {
            values.push(T::read(input)?);
        }
        Some(values)
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(T::heap_bytes).sum::<usize>()
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),+))+) => {$(
        impl<$($part: Field),+> Field for ($($part,)+) {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$at.write(out);)+
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(input)?,)+))
            }
            fn heap_bytes(&self) -> usize {
                0 $(+ self.$at.heap_bytes())+
            }
        }
    )+};
}
tuples!((A 0, B 1)(A 0, B 1, C 2));

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn round_trip<T: Field + PartialEq + Debug>(values: &[T]) {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| value.write(&mut bytes));
        values.windows(2).for_each(|pair| pair[1].write_after(&pair[0], &mut bytes));
        let mut input = bytes.as_slice();
        for value in values {
            assert_eq!(T::read(&mut input).as_ref(), Some(value));
        }
        for pair in values.windows(2) {
            assert_eq!(T::read_after(&pair[0], &mut input).as_ref(), Some(&pair[1]));
        }
        assert!(input.is_empty());
        for end in 0..bytes.len() {
            let mut cut = &bytes[..end];
            while !cut.is_empty() && T::read(&mut cut).is_some() {}
        }
    }

    #[test]
    fn values_come_back_alone_and_after_others() {
        round_trip(&[0_u64, 1, 127, 128, u64::MAX, 0, 1 << 63, 5]);
        round_trip(&[0_i64, -1, i64::MIN, i64::MAX, 63, -64, 64]);
        round_trip(&[u32::MAX, 0, 7]);
        round_trip(&[i32::MIN, i32::MAX, 0]);
        round_trip(&[0_u16, u16::MAX]);
        round_trip(&[1.5_f64, -0.0, f64::INFINITY]);
        round_trip(&["".to_owned(), "one".to_owned(), "\u{e9}".to_owned()]);
        round_trip(&[None, Some(3_u32)]);
        round_trip(&[vec![1.0_f32, 2.0], vec![]]);
        round_trip(&[(1_u64, true, ()), (2, false, ())]);
    }

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut numbers: Vec<u64> =
            (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]).collect();
        round_trip(&numbers);
        let written = |number: &u64| {
            let mut bytes = Vec::new();
            number.write(&mut bytes);
            bytes
        };
        numbers.sort_unstable();
        assert!(numbers.iter().map(written).is_sorted());
        for following in 1..=8 {
            let mut bytes = vec![!u8::MAX.checked_shr(following).unwrap_or(0)];
            bytes.resize(following as usize + 1, 0);
            bytes[1] = u8::from(following < 8);
            assert_eq!(u64::read(&mut bytes.as_slice()), None, "longer than necessary");
        }
    }

    #[test]
    fn small_differences_are_short_and_what_no_value_writes_is_refused() {
        let mut bytes = Vec::new();
        (1_u64 << 60).write_after(&((1 << 60) + 3), &mut bytes);
        assert_eq!(bytes, [5]);
        assert_eq!(u64::read(&mut [0x80, 0].as_slice()), None, "a number longer than it need be");
        assert_eq!(
            u32::read(&mut [0xff, 0xff, 0xff, 0xff, 0x7f].as_slice()),
            None,
            "more than 32 bits"
        );
        assert_eq!(bool::read(&mut [2].as_slice()), None);
        assert_eq!(String::read(&mut [1, 0xff].as_slice()), None, "no UTF-8");
        assert_eq!(Vec::<u64>::read(&mut [0xff, 0xff, 0xff, 0xff, 0x0f, 1].as_slice()), None);
    }
}

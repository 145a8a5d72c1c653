//! Integers of variable length: 7 bits a byte, low bits first; the high bit of a byte is set if
//! more bytes follow.

/// Appends `number`, 7 bits a byte.
#[inline(always)]
pub fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    // Most numbers are differences of one to three bytes.
    let (low, middle, high) = (number as u8 | 128, (number >> 7) as u8, (number >> 14) as u8);
    match number {
        0..0x80 => out.push(number as u8),
        0x80..0x4000 => out.extend_from_slice(&[low, middle]),
        0x4000..0x20_0000 => out.extend_from_slice(&[low, middle | 128, high]),
        _ => {
            while number >= 128 {
                out.push(number as u8 | 128);
                number >>= 7;
            }
            out.push(number as u8);
        }
    }
}

/// Reads a number; `None` if it is truncated, too large, or longer than necessary.
#[inline(always)]
pub fn read_varint(input: &mut &[u8]) -> Option<u64> {
    let bits = |byte: u8, place: u32| u64::from(byte & 127) << (7 * place);
    match **input {
        [a @ 0..128, ref rest @ ..] => {
            *input = rest;
            Some(u64::from(a))
        }
        [a, b @ 1..128, ref rest @ ..] => {
            *input = rest;
            Some(bits(a, 0) | bits(b, 1))
        }
        [a, b @ 128..=255, c @ 1..128, ref rest @ ..] => {
            *input = rest;
            Some(bits(a, 0) | bits(b, 1) | bits(c, 2))
        }
        _ => read_long_varint(input),
    }
}

/// [`read_varint`] for any length.
fn read_long_varint(input: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 127);
        if shift > 63 || (shift == 63 && bits > 1) {
            return None;
        }
        number |= bits << shift;
        if *byte < 128 {
            let is_shortest = *byte != 0 || shift == 0;
            return is_shortest.then_some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_have_one_encoding() {
        for bit in 0..64 {
            for number in [(1 << bit) - 1, 1 << bit] {
                let mut bytes = Vec::new();
                write_varint(number, &mut bytes);
                let bits = (u64::BITS - number.leading_zeros()).max(1);
                assert_eq!(bytes.len(), bits.div_ceil(7) as usize);
                let mut input = bytes.as_slice();
                assert_eq!((read_varint(&mut input), input.len()), (Some(number), 0));
                assert_eq!(read_varint(&mut &bytes[..bytes.len() - 1]), None, "cut off");
                // The same number with a redundant byte.
                if let Some(last) = bytes.last_mut() {
                    *last |= 128;
                }
                bytes.push(0);
                assert_eq!(read_varint(&mut bytes.as_slice()), None);
            }
        }
        assert_eq!(read_varint(&mut [0xff; 11].as_slice()), None, "more than 64 bits");
    }
}

//! Numbers of variable length: 7 bits a byte, low bits first; the high bit is set if more bytes
//! follow.

/// Appends `number`.
#[inline]
pub(super) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number at `at` and moves `at` past it; `None` if it is truncated or too long.
#[inline]
pub(super) fn read(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
        shift += 7;
        if shift > 56 {
            return None;
        }
    }
}

//! Instantaneous codes, read from a stream of bits, most significant first.
//!
//! Unary, Elias gamma and delta, zeta (Boldi and Vigna, "Codes for the World Wide Web", Internet
//! Mathematics 2, 2005), nibble and Golomb codes, as the WebGraph framework writes them. Invariant:
//! a code is read within 64 bits or refused; memory is one buffer.

use std::io::{self, Read};

const BUFFER_BYTES: usize = 256 << 10;

/// A code for natural numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Unary,
    Gamma,
    Delta,
    Zeta(u32),
    Nibble,
    Golomb(u64),
}

/// The reason why no number could be read.
#[derive(Debug)]
pub(super) enum BitError {
    /// The bits end within a code.
    End,
    /// The number does not fit 64 bits.
    TooLarge,
    Io(io::Error),
}

/// Reads codes from a stream.
pub(super) struct BitReader {
    reader: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    next: usize,
    /// Bits from `bytes` that are not read yet, at the upper end.
    word: u64,
    bit_count: u32,
    /// Number of bits read.
    position: u64,
}

impl BitReader {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader, bytes: Vec::new(), next: 0, word: 0, bit_count: 0, position: 0 }
    }

    /// Number of bits read so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Loads bytes until there are at least 57 bits, or the stream ends.
    #[inline]
    fn fill(&mut self) -> Result<(), BitError> {
        while self.bit_count <= 56 {
            let Some(&byte) = self.bytes.get(self.next) else {
                if self.read_more()? {
                    continue;
                }
                return Ok(());
            };
            self.word |= u64::from(byte) << (56 - self.bit_count);
            self.bit_count += 8;
            self.next += 1;
        }
        Ok(())
    }

    #[cold]
    fn read_more(&mut self) -> Result<bool, BitError> {
        self.bytes.resize(BUFFER_BYTES, 0);
        self.next = 0;
        loop {
            match self.reader.read(&mut self.bytes) {
                Ok(n) => {
                    self.bytes.truncate(n);
                    return Ok(n > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(BitError::Io(e)),
            }
        }
    }

    /// The next `count` bits as a number.
    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> Result<u64, BitError> {
        if count > 56 {
            if count > 64 {
                return Err(BitError::TooLarge);
            }
            let high = self.bits(count - 32)?;
            return Ok(high << 32 | self.bits(32)?);
        }
        if count == 0 {
            return Ok(0);
        }
        if self.bit_count < count {
            self.fill()?;
            if self.bit_count < count {
                return Err(BitError::End);
            }
        }
        let value = self.word >> (64 - count);
        self.word <<= count;
        self.bit_count -= count;
        self.position += u64::from(count);
        Ok(value)
    }

    /// The number of zeros before the next one.
    #[inline]
    pub(super) fn unary(&mut self) -> Result<u64, BitError> {
        let mut zeros = 0;
        loop {
            if self.bit_count == 0 {
                self.fill()?;
                if self.bit_count == 0 {
                    return Err(BitError::End);
                }
            }
            let run = self.word.leading_zeros();
            if run < self.bit_count {
                // Two shifts, because a run of 63 zeros would need an invalid shift by 64.
                self.word = self.word << run << 1;
                self.bit_count -= run + 1;
                self.position += u64::from(run + 1);
                return Ok(zeros + u64::from(run));
            }
            zeros += u64::from(self.bit_count);
            self.position += u64::from(self.bit_count);
            (self.word, self.bit_count) = (0, 0);
        }
    }

    #[inline]
    fn gamma(&mut self) -> Result<u64, BitError> {
        let length = self.unary()?;
        self.with_leading_one(length)
    }

    /// Reads `length` bits below a leading one; returns the number less one.
    #[inline]
    fn with_leading_one(&mut self, length: u64) -> Result<u64, BitError> {
        if length > 63 {
            return Err(BitError::TooLarge);
        }
        Ok((1 << length | self.bits(length as u32)?) - 1)
    }

    /// The next number in `code`.
    #[inline]
    pub(super) fn read(&mut self, code: Code) -> Result<u64, BitError> {
        match code {
            Code::Unary => self.unary(),
            Code::Gamma => self.gamma(),
            Code::Delta => {
                let length = self.gamma()?;
                self.with_leading_one(length)
            }
            Code::Zeta(k) => {
                let shift = self.unary()?.checked_mul(u64::from(k)).ok_or(BitError::TooLarge)?;
                let length = shift + u64::from(k) - 1;
                if length > 62 {
                    return Err(BitError::TooLarge);
                }
                let left = 1 << shift;
                let value = self.bits(length as u32)?;
                if value < left {
                    Ok(value + left - 1)
                } else {
                    Ok((value << 1 | self.bits(1)?) - 1)
                }
            }
            Code::Nibble => {
                let mut value = 0_u64;
                loop {
                    let nibble = self.bits(4)?;
                    if value >> 61 != 0 {
                        return Err(BitError::TooLarge);
                    }
                    value = value << 3 | (nibble & 7);
                    if nibble & 8 != 0 {
                        return Ok(value);
                    }
                }
            }
            Code::Golomb(modulus) => {
                if modulus == 0 {
                    return Ok(0);
                }
                let high = self.unary()?.checked_mul(modulus).ok_or(BitError::TooLarge)?;
                let low = self.minimal_binary(modulus)?;
                high.checked_add(low).ok_or(BitError::TooLarge)
            }
        }
    }

    /// A number below `bound` in minimal binary code; small numbers are a bit shorter.
    fn minimal_binary(&mut self, bound: u64) -> Result<u64, BitError> {
        let length = bound.ilog2();
        if length > 62 {
            return Err(BitError::TooLarge);
        }
        let short = (1 << (length + 1)) - bound;
        let value = self.bits(length)?;
        if value < short { Ok(value) } else { Ok((value << 1 | self.bits(1)?) - short) }
    }
}

/// The integer that a natural number encodes: 0, -1, 1, -2, 2, ...
#[inline]
pub(super) fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[cfg(test)]
pub(super) mod writer {
    //! Writes the codes for tests: bit by bit from their definitions, with no code in common with
    //! the reader.

    use super::Code;

    #[derive(Default)]
    pub(in crate::input::formats) struct BitWriter {
        pub(in crate::input::formats) bits: Vec<bool>,
    }

    impl BitWriter {
        fn low_bits(&mut self, value: u64, count: u32) {
            (0..count).rev().for_each(|bit| self.bits.push(value >> bit & 1 == 1));
        }

        pub(in crate::input::formats) fn write(&mut self, code: Code, value: u64) {
            let log = |x: u64| 63 - x.leading_zeros();
            match code {
                Code::Unary => {
                    (0..value).for_each(|_| self.bits.push(false));
                    self.bits.push(true);
                }
                Code::Gamma => {
                    self.write(Code::Unary, u64::from(log(value + 1)));
                    self.low_bits(value + 1, log(value + 1));
                }
                Code::Delta => {
                    self.write(Code::Gamma, u64::from(log(value + 1)));
                    self.low_bits(value + 1, log(value + 1));
                }
                Code::Zeta(k) => {
                    // x in [2^hk, 2^(h+1)k) is h in unary, then x - 2^hk in minimal binary.
                    let x = value + 1;
                    let h = log(x) / k;
                    self.write(Code::Unary, u64::from(h));
                    let base = 1 << (h * k);
                    self.minimal(x - base, (base << k) - base);
                }
                Code::Nibble => {
                    let groups = (log(value.max(1)) + 3) / 3;
                    for group in (0..groups).rev() {
                        self.bits.push(group == 0);
                        self.low_bits(value >> (3 * group), 3);
                    }
                }
                Code::Golomb(modulus) => {
                    self.write(Code::Unary, value / modulus);
                    self.minimal(value % modulus, modulus);
                }
            }
        }

        /// `value`, one of `bound` numbers, in the fewest bits of a prefix code.
        fn minimal(&mut self, value: u64, bound: u64) {
            let long = u64::BITS - (bound - 1).leading_zeros();
            let short_ones = (1_u64 << long) - bound;
            if value >= short_ones {
                self.low_bits(value + short_ones, long);
            } else if long > 0 {
                self.low_bits(value, long - 1);
            }
        }

        pub(in crate::input::formats) fn bytes(&self) -> Vec<u8> {
            let byte = |bits: &[bool]| {
                bits.iter().enumerate().fold(0, |byte, (at, &bit)| byte | u8::from(bit) << (7 - at))
            };
            self.bits.chunks(8).map(byte).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::writer::BitWriter;
    use super::*;

    const CODES: [Code; 11] = [
        Code::Unary,
        Code::Gamma,
        Code::Delta,
        Code::Zeta(1),
        Code::Zeta(2),
        Code::Zeta(3),
        Code::Zeta(5),
        Code::Nibble,
        Code::Golomb(1),
        Code::Golomb(3),
        Code::Golomb(8),
    ];

    #[test]
    fn every_code_reads_what_was_written() {
        for code in CODES {
            let mut numbers: Vec<u64> = (0..300).collect();
            if !matches!(code, Code::Unary | Code::Golomb(_)) {
                numbers.extend((1..50).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
            }
            let mut writer = BitWriter::default();
            numbers.iter().for_each(|&number| writer.write(code, number));
            let mut reader = BitReader::new(Box::new(io::Cursor::new(writer.bytes())));
            for &number in &numbers {
                assert_eq!(reader.read(code).unwrap(), number, "{code:?}");
            }
            assert_eq!(reader.position(), writer.bits.len() as u64);
        }
    }

    #[test]
    fn codes_are_those_of_the_paper() {
        // Table 1 of "Codes for the World Wide Web", which counts numbers from 1.
        let text = |code, number| {
            let mut writer = BitWriter::default();
            writer.write(code, number);
            writer.bits.iter().map(|&bit| if bit { '1' } else { '0' }).collect::<String>()
        };
        let zeta_3 = ["100", "1010", "1011", "1100", "1101", "1110", "1111", "0100000"];
        for (number, expected) in zeta_3.iter().enumerate() {
            assert_eq!(text(Code::Zeta(3), number as u64), *expected);
        }
        let gamma = ["1", "010", "011", "00100", "00101", "00110", "00111", "0001000"];
        for (number, expected) in gamma.iter().enumerate() {
            assert_eq!(text(Code::Gamma, number as u64), *expected);
        }
        assert_eq!(text(Code::Delta, 7), "00100000");
        assert_eq!(text(Code::Nibble, 8), "00011000");
    }

    #[test]
    fn what_ends_or_overflows_is_refused() {
        let read = |bytes: &[u8], code| {
            BitReader::new(Box::new(io::Cursor::new(bytes.to_vec()))).read(code)
        };
        assert!(matches!(read(&[], Code::Gamma), Err(BitError::End)));
        assert!(matches!(read(&[0; 9], Code::Unary), Err(BitError::End)));
        assert!(matches!(
            read(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], Code::Gamma),
            Err(BitError::TooLarge)
        ));
        assert!(matches!(read(&[0; 40], Code::Nibble), Err(BitError::End)));
        assert!(matches!(read(&[0x77; 40], Code::Nibble), Err(BitError::TooLarge)));
    }

    #[test]
    fn naturals_stand_for_integers() {
        assert_eq!((0..6).map(signed).collect::<Vec<_>>(), [0, -1, 1, -2, 2, -3]);
        assert_eq!(signed(u64::MAX), i64::MIN);
    }
}

//! How a segment's edges are packed. One codec so far: fixed 32-bit words.
//!
//! A word is `source delta | target within its interval`; a delta of all ones is an escape: the two
//! words after it hold the source in full, 64 bits. Weights stand behind the words in the narrowest
//! type that holds them exactly. Invariant: decoding never reads outside the block and never trusts
//! a count that the block does not bear out.

/// The codec byte of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// Fixed 32-bit words.
    Words32 = 1,
}

impl Codec {
    /// The codec with this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        (byte == Self::Words32 as u8).then_some(Self::Words32)
    }

    /// Its name in `info`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words32 => "words32",
        }
    }
}

/// The type of a segment's weights: the narrowest that holds each of them exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WeightType {
    /// No weights.
    None = 0,
    /// Whole numbers below 2^8.
    U8 = 1,
    /// Whole numbers below 2^16.
    U16 = 2,
    /// Whole numbers below 2^32.
    U32 = 3,
    /// Numbers that a 32-bit float holds exactly.
    F32 = 4,
    /// Anything else.
    F64 = 5,
}

impl WeightType {
    const ALL: [Self; 6] = [Self::None, Self::U8, Self::U16, Self::U32, Self::F32, Self::F64];

    /// The type with this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Bytes per weight.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The narrowest type for `weights`.
    fn narrowest(weights: &[f64]) -> Self {
        if weights.is_empty() {
            return Self::None;
        }
        // -0.0 is not a whole number here: an integer would lose its sign.
        let whole =
            |limit: f64| weights.iter().all(|w| w.fract() == 0.0 && w.is_sign_positive() && *w < limit);
        let exact_f32 = || weights.iter().all(|w| f64::from(*w as f32).to_bits() == w.to_bits());
        match () {
            () if whole(256.0) => Self::U8,
            () if whole(65_536.0) => Self::U16,
            () if whole(4_294_967_296.0) => Self::U32,
            () if exact_f32() => Self::F32,
            () => Self::F64,
        }
    }

    fn encode(self, weights: &[f64], out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::U8 => out.extend(weights.iter().map(|&w| w as u8)),
            Self::U16 => out.extend(weights.iter().flat_map(|&w| (w as u16).to_le_bytes())),
            Self::U32 => out.extend(weights.iter().flat_map(|&w| (w as u32).to_le_bytes())),
            Self::F32 => out.extend(weights.iter().flat_map(|&w| (w as f32).to_le_bytes())),
            Self::F64 => out.extend(weights.iter().flat_map(|&w| w.to_le_bytes())),
        }
    }

    /// Replaces `out` by the weights in `bytes`.
    fn decode(self, bytes: &[u8], out: &mut Vec<f64>) {
        fn fixed<const N: usize>(bytes: &[u8], out: &mut Vec<f64>, number: impl Fn([u8; N]) -> f64) {
            out.extend(bytes.as_chunks().0.iter().map(|chunk| number(*chunk)));
        }
        out.clear();
        match self {
            Self::None => {}
            Self::U8 => fixed(bytes, out, |[b]| f64::from(b)),
            Self::U16 => fixed(bytes, out, |b| f64::from(u16::from_le_bytes(b))),
            Self::U32 => fixed(bytes, out, |b| f64::from(u32::from_le_bytes(b))),
            Self::F32 => fixed(bytes, out, |b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => fixed(bytes, out, f64::from_le_bytes),
        }
    }
}

/// Packs the edges of one segment, in order of (source, target).
#[derive(Debug)]
pub struct WordsEncoder {
    target_bits: u32,
    words: Vec<u32>,
    weights: Vec<f64>,
    source: u64,
    edges: u32,
}

impl WordsEncoder {
    /// An encoder for targets of `target_bits` bits (at most 24, so that a delta has room).
    pub fn new(target_bits: u32) -> Self {
        Self { target_bits, words: Vec::new(), weights: Vec::new(), source: 0, edges: 0 }
    }

    /// Edges since the last [`WordsEncoder::finish`].
    pub fn edges(&self) -> u32 {
        self.edges
    }

    /// Adds an edge; the first of a segment sets the segment's base source.
    #[inline]
    pub fn push(&mut self, source: u64, target: u32, weight: Option<f64>) {
        if self.edges == 0 {
            self.source = source;
        }
        let delta = source - self.source;
        if delta < u64::from(escape(self.target_bits)) {
            self.words.push((delta as u32) << self.target_bits | target);
        } else {
            self.words.push(escape(self.target_bits) << self.target_bits | target);
            self.words.push(source as u32);
            self.words.push((source >> 32) as u32);
        }
        self.source = source;
        self.edges += 1;
        if let Some(weight) = weight {
            self.weights.push(weight);
        }
    }

    /// Replaces `block` by the packed edges and forgets them. Returns words and weight type.
    pub fn finish(&mut self, block: &mut Vec<u8>) -> (u32, WeightType) {
        block.clear();
        block.extend_from_slice(bytemuck::cast_slice(&self.words));
        let weight_type = WeightType::narrowest(&self.weights);
        weight_type.encode(&self.weights, block);
        let words = self.words.len() as u32;
        self.words.clear();
        self.weights.clear();
        self.edges = 0;
        (words, weight_type)
    }
}

/// The delta that marks an escape.
fn escape(target_bits: u32) -> u32 {
    u32::MAX >> target_bits
}

/// Calls `edge(source, target within the interval)` for each edge; false if the words are broken:
/// an escape is cut off or `edge` refuses.
#[inline(always)]
pub fn decode_words(
    words: &[u32],
    base: u64,
    target_bits: u32,
    mut edge: impl FnMut(u64, u32) -> bool,
) -> bool {
    let (escape, mask) = (escape(target_bits), (1_u32 << target_bits) - 1);
    let mut source = base;
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let delta = word >> target_bits;
        if delta == escape {
            let (Some(&low), Some(&high)) = (words.next(), words.next()) else {
                return false;
            };
            source = u64::from(low) | u64::from(high) << 32;
        } else {
            source = source.wrapping_add(u64::from(delta));
        }
        if !edge(source, word & mask) {
            return false;
        }
    }
    true
}

/// The parts of a packed block.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'b> {
    /// Sources and targets.
    pub words: &'b [u32],
    weights: &'b [u8],
    weight_type: WeightType,
}

impl<'b> Packed<'b> {
    /// Splits a block; `None` if its length is not what words, edges and weight type say.
    pub fn split(block: &'b [u8], words: u32, edges: u32, weight_type: WeightType) -> Option<Self> {
        let (packed, weights) = block.split_at_checked(words as usize * 4)?;
        let exact = weights.len() == edges as usize * weight_type.bytes();
        let words = bytemuck::try_cast_slice(packed).ok()?;
        exact.then_some(Self { words, weights, weight_type })
    }

    /// Replaces `out` by the weights of all edges, in edge order.
    pub fn decode_weights(&self, out: &mut Vec<f64>) {
        self.weight_type.decode(self.weights, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(
        target_bits: u32,
        edges: &[(u64, u32)],
        weights: &[f64],
    ) -> (Vec<(u64, u32)>, Vec<f64>, WeightType) {
        let mut encoder = WordsEncoder::new(target_bits);
        for (index, &(source, target)) in edges.iter().enumerate() {
            encoder.push(source, target, weights.get(index).copied());
        }
        let mut block = Vec::new();
        let (words, weight_type) = encoder.finish(&mut block);
        let mut aligned = brimful_store::sealed::Buffer::zeroed(block.len());
        aligned.bytes_mut().copy_from_slice(&block);
        let packed = Packed::split(aligned.bytes(), words, edges.len() as u32, weight_type).unwrap();
        let (mut out, mut decoded) = (Vec::new(), Vec::new());
        assert!(decode_words(packed.words, edges[0].0, target_bits, |source, target| {
            out.push((source, target));
            true
        }));
        packed.decode_weights(&mut decoded);
        (out, decoded, weight_type)
    }

    #[test]
    fn edges_come_back_across_escapes_and_beyond_32_bits() {
        let limit = u64::from(escape(18));
        let sources =
            [5, 5, 5 + limit - 1, 5 + 2 * limit - 1, 5 + 3 * limit, 1 << 33, (1 << 33) + 1, u64::MAX];
        let edges: Vec<(u64, u32)> = sources.iter().map(|&s| (s, (s % 1000) as u32)).collect();
        assert_eq!(round_trip(18, &edges, &[]).0, edges);
        assert_eq!(round_trip(4, &[(0, 15), (1 << 28, 0)], &[]).0, [(0, 15), (1 << 28, 0)]);
    }

    #[test]
    fn weights_are_exact_in_the_narrowest_type() {
        let edges = [(0, 0), (1, 1)];
        let cases = [
            ([0.0, 255.0], WeightType::U8),
            ([256.0, 1.0], WeightType::U16),
            ([65_536.0, 1.0], WeightType::U32),
            ([4_294_967_296.0, 1.0], WeightType::F32),
            ([0.5, -1.0], WeightType::F32),
            ([-0.0, 1.0], WeightType::F32),
            ([0.1, 1.0], WeightType::F64),
        ];
        for (weights, expected) in cases {
            let (_, decoded, weight_type) = round_trip(18, &edges, &weights);
            assert_eq!(weight_type, expected);
            assert!(decoded.iter().zip(weights).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }

    #[test]
    fn a_cut_escape_is_refused() {
        assert!(!decode_words(&[escape(18) << 18, 1], 0, 18, |_, _| true));
    }
}

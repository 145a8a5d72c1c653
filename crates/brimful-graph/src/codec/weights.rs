//! Edge weights: a stream next to the keys, in edge order, in the narrowest type that holds all of
//! them exactly.

/// The type of a segment's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WeightType {
    /// No weights.
    None = 0,
    /// Integers below 2^8.
    U8 = 1,
    /// Integers below 2^16.
    U16 = 2,
    /// Integers below 2^32.
    U32 = 3,
    /// Numbers that a 32-bit float holds exactly.
    F32 = 4,
    /// Any other weights.
    F64 = 5,
}

impl WeightType {
    const ALL: [Self; 6] = [Self::None, Self::U8, Self::U16, Self::U32, Self::F32, Self::F64];

    /// The type with this byte, or `None`.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// The name in the output of `info`.
    pub fn name(self) -> &'static str {
        ["none", "u8", "u16", "u32", "f32", "f64"][self as usize]
    }

    /// Bytes per weight.
    pub fn bytes(self) -> usize {
        [0, 1, 2, 4, 4, 8][self as usize]
    }

    /// The narrowest type for `weights`.
    pub fn narrowest(weights: &[f64]) -> Self {
        if weights.is_empty() {
            return Self::None;
        }
        // -0.0 does not count as an integer, because it would lose its sign.
        let whole = |limit: f64| {
            weights.iter().all(|w| w.fract() == 0.0 && w.is_sign_positive() && *w < limit)
        };
        let exact_f32 = || weights.iter().all(|w| f64::from(*w as f32).to_bits() == w.to_bits());
        match () {
            () if whole(256.0) => Self::U8,
            () if whole(65_536.0) => Self::U16,
            () if whole(4_294_967_296.0) => Self::U32,
            () if exact_f32() => Self::F32,
            () => Self::F64,
        }
    }

    /// Appends `weights`, which this type must hold exactly.
    pub fn encode(self, weights: &[f64], out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::U8 => out.extend(weights.iter().map(|&w| w as u8)),
            Self::U16 => out.extend(weights.iter().flat_map(|&w| (w as u16).to_le_bytes())),
            Self::U32 => out.extend(weights.iter().flat_map(|&w| (w as u32).to_le_bytes())),
            Self::F32 => out.extend(weights.iter().flat_map(|&w| (w as f32).to_le_bytes())),
            Self::F64 => out.extend(weights.iter().flat_map(|&w| w.to_le_bytes())),
        }
    }
}

/// The packed weights of a segment, read a batch at a time.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'b> {
    bytes: &'b [u8],
    weight_type: WeightType,
}

impl<'b> Weights<'b> {
    /// The weights of `edges` edges; `None` if the length of `bytes` contradicts that.
    pub fn new(bytes: &'b [u8], edges: u32, weight_type: WeightType) -> Option<Self> {
        (bytes.len() == edges as usize * weight_type.bytes()).then_some(Self { bytes, weight_type })
    }

    /// The weights after the first `edges`.
    pub fn skip(self, edges: u32) -> Self {
        let bytes = self.bytes.get(edges as usize * self.weight_type.bytes()..).unwrap_or_default();
        Self { bytes, ..self }
    }

    /// Fills `out` with the next weights. If none are left, or edges have none, `out` stays
    /// unchanged.
    #[inline]
    pub fn take(&mut self, out: &mut [f64]) {
        fn fixed<const N: usize>(bytes: &[u8], out: &mut [f64], number: impl Fn([u8; N]) -> f64) {
            out.iter_mut().zip(bytes.as_chunks().0).for_each(|(out, bytes)| *out = number(*bytes));
        }
        let (now, later) =
            self.bytes.split_at(self.bytes.len().min(out.len() * self.weight_type.bytes()));
        self.bytes = later;
        match self.weight_type {
            WeightType::None => {}
            WeightType::U8 => fixed(now, out, |[b]| f64::from(b)),
            WeightType::U16 => fixed(now, out, |b| f64::from(u16::from_le_bytes(b))),
            WeightType::U32 => fixed(now, out, |b| f64::from(u32::from_le_bytes(b))),
            WeightType::F32 => fixed(now, out, |b| f64::from(f32::from_le_bytes(b))),
            WeightType::F64 => fixed(now, out, f64::from_le_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_exact_in_the_narrowest_type() {
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
            let weight_type = WeightType::narrowest(&weights);
            assert_eq!(weight_type, expected);
            let (mut bytes, mut decoded) = (Vec::new(), [0.0; 2]);
            weight_type.encode(&weights, &mut bytes);
            let mut packed = Weights::new(&bytes, 2, weight_type).unwrap();
            packed.take(&mut decoded[..1]);
            packed.take(&mut decoded[1..]);
            assert!(decoded.iter().zip(weights).all(|(a, b)| a.to_bits() == b.to_bits()));
            assert!(Weights::new(&bytes, 3, weight_type).is_none());
        }
    }
}

//! SplitMix64 (Steele, Lea, Flood 2014).
//!
//! Nothing here may change: generated graphs, files of collections and results depend on it.

/// 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer, a bijection.
#[inline]
pub fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A hash of `x`: the first number of the generator from the state `x`.
#[inline]
pub fn splitmix64(x: u64) -> u64 {
    mix(x.wrapping_add(GOLDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_is_the_published_one() {
        // The first two outputs of the reference implementation from the states 0 and 1234567.
        assert_eq!(splitmix64(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(splitmix64(1_234_567), 6_457_827_717_110_365_317);
    }
}

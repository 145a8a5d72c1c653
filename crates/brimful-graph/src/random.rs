//! Random numbers that depend only on a seed and a counter.
//!
//! Invariant: only integer arithmetic and `libm`, so that numbers are the same on every platform.
//! Nothing here may change, because every generated graph would change.

pub use brimful_store::splitmix::splitmix64;
use brimful_store::splitmix::{GOLDEN, mix};

/// A bijection of `bits`-bit numbers, which moves hubs away from the low ids.
pub(crate) fn permute(x: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let half = bits.div_ceil(2);
    let x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(GOLDEN) & mask;
    let x = (x ^ x >> half).wrapping_mul(0xA5A3_5646_90F1_2C17) & mask;
    x ^ x >> half
}

/// 2^-53.
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The random numbers of unit `unit` under `seed`.
    pub fn of(seed: u64, unit: u64) -> Self {
        Self(mix(seed ^ 0x6272_696D_6675_6C00).wrapping_add(mix(unit.wrapping_add(GOLDEN))))
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`; the bias is below bound / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in (0, 1], so that its logarithm is finite.
    pub(crate) fn positive_unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 * UNIT
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * UNIT
    }

    /// True with probability `probability`.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A standard normal number (Box and Muller 1958).
    pub(crate) fn gaussian(&mut self) -> f64 {
        let radius = self.positive_unit();
        let angle = (self.next() >> 11) as f64 * UNIT;
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

/// Extends `set` to `count` distinct numbers, ascending, by drawing further numbers.
///
/// The caller ensures that `draw` yields enough distinct numbers, about twice as many as needed.
pub(crate) fn fill_distinct(set: &mut Vec<u64>, count: usize, mut draw: impl FnMut() -> u64) {
    loop {
        set.sort_unstable();
        set.dedup();
        if set.len() >= count {
            return;
        }
        set.extend((set.len()..count).map(|_| draw()));
    }
}

/// Replaces `set` by `count` distinct numbers below `bound`, ascending; all choices are equally
/// likely.
pub(crate) fn choose(random: &mut Random, set: &mut Vec<u64>, count: u64, bound: u64) {
    set.clear();
    // If `count` is large, drawing the omitted numbers is faster.
    let leave_out = count > bound / 2;
    let drawn = if leave_out { bound - count } else { count } as usize;
    fill_distinct(set, drawn, || random.below(bound));
    if leave_out {
        let mut left_out = std::mem::take(set).into_iter().peekable();
        set.extend((0..bound).filter(|number| left_out.next_if_eq(number).is_none()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_distinct_ascending_and_complete() {
        let (mut random, mut set) = (Random::of(1, 2), Vec::new());
        for (count, bound) in [(0, 0), (0, 5), (1, 1), (3, 10), (9, 10), (10, 10), (500, 1000)] {
            choose(&mut random, &mut set, count, bound);
            assert_eq!(set.len() as u64, count);
            assert!(set.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(set.iter().all(|&number| number < bound));
        }
    }
}

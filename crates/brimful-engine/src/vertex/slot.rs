//! Aggregates of kernels, whose kinds are known when a kernel runs: sums, least and greatest
//! numbers, and truth values.
//!
//! Invariant: a value carries the rule by which it is merged, so that the engine merges values of
//! intervals in their order without asking the kernel. `docs/kernel-abi.md` has the numbers.

use bytemuck::{Pod, Zeroable};

use crate::vertex::aggregate::Aggregate;

/// The rules by which values are merged.
pub mod rule {
    /// No vertex contributed.
    pub const NOTHING: u64 = 0;
    /// The sum of floats.
    pub const SUM_FLOAT: u64 = 1;
    /// The sum of signed integers.
    pub const SUM_INTEGER: u64 = 2;
    /// The least float.
    pub const MIN_FLOAT: u64 = 3;
    /// The least signed integer.
    pub const MIN_INTEGER: u64 = 4;
    /// The greatest float.
    pub const MAX_FLOAT: u64 = 5;
    /// The greatest signed integer.
    pub const MAX_INTEGER: u64 = 6;
    /// 1 if any value is 1.
    pub const ANY: u64 = 7;
    /// 1 if all values are 1.
    pub const ALL: u64 = 8;
    /// A sum of integers that 64 bits cannot hold.
    pub const OVERFLOW: u64 = 9;
    /// Added to a rule: every superstep begins with the value of the one before.
    pub const PERSISTENT: u64 = 16;
}

/// A value of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Slot {
    /// One of the numbers in [`rule`].
    pub rule: u64,
    /// The bits of the value.
    pub value: u64,
}

impl Slot {
    /// The value of a sum of floats, which is 0 over no vertices.
    pub fn float(self) -> f64 {
        if self.rule == rule::NOTHING { 0.0 } else { f64::from_bits(self.value) }
    }

    fn with(self, value: Option<u64>) -> Self {
        match value {
            Some(value) => Self { value, ..self },
            None => Self { rule: rule::OVERFLOW | self.rule & rule::PERSISTENT, value: 0 },
        }
    }
}

impl Aggregate for Slot {
    const NOTHING: Self = Self { rule: rule::NOTHING, value: 0 };

    fn merge(self, later: Self) -> Self {
        if self.rule == rule::NOTHING {
            return later;
        }
        let (left, right) = (self.value, later.value);
        let floats = (f64::from_bits(left), f64::from_bits(right));
        let integers = (left.cast_signed(), right.cast_signed());
        let is_later = match later.rule & !rule::PERSISTENT {
            rule::SUM_FLOAT => return self.with(Some((floats.0 + floats.1).to_bits())),
            rule::SUM_INTEGER if self.rule == later.rule => {
                let sum = integers.0.checked_add(integers.1);
                return self.with(sum.map(i64::cast_unsigned));
            }
            rule::MIN_FLOAT => floats.1 < floats.0,
            rule::MIN_INTEGER => integers.1 < integers.0,
            rule::MAX_FLOAT => floats.1 > floats.0,
            rule::MAX_INTEGER => integers.1 > integers.0,
            rule::ANY => right > left,
            rule::ALL => right < left,
            rule::OVERFLOW => true,
            // The later value has no vertex, or a sum has overflowed before.
            _ => false,
        };
        if is_later { later } else { self }
    }

    fn times(self, count: u64) -> Self {
        if count == 0 {
            return Self::NOTHING;
        }
        match self.rule & !rule::PERSISTENT {
            rule::SUM_FLOAT => {
                self.with(Some((f64::from_bits(self.value) * count as f64).to_bits()))
            }
            rule::SUM_INTEGER => {
                let count = i64::try_from(count).ok();
                let product = count.and_then(|count| self.value.cast_signed().checked_mul(count));
                self.with(product.map(i64::cast_unsigned))
            }
            _ => self,
        }
    }

    fn after(self, before: Self) -> Self {
        if before.rule & rule::PERSISTENT == 0 { self } else { before.merge(self) }
    }

    fn save(self, words: &mut Vec<u64>) {
        words.extend([self.rule, self.value]);
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        Some(Self { rule: words.next()?, value: words.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(rule: u64, value: u64) -> Slot {
        Slot { rule, value }
    }

    fn folded(rule: u64, values: &[u64]) -> Slot {
        values.iter().fold(Slot::NOTHING, |whole, value| whole.merge(slot(rule, *value)))
    }

    #[test]
    fn values_are_merged_by_their_rule() {
        let floats = [2.0_f64, -1.0, 4.5].map(f64::to_bits);
        let integers = [2_i64, -1, 4].map(i64::cast_unsigned);
        assert_eq!(f64::from_bits(folded(rule::SUM_FLOAT, &floats).value), 5.5);
        assert_eq!(folded(rule::SUM_INTEGER, &integers).value, 5);
        assert_eq!(folded(rule::MIN_FLOAT, &floats).value, floats[1]);
        assert_eq!(folded(rule::MAX_FLOAT, &floats).value, floats[2]);
        assert_eq!(folded(rule::MIN_INTEGER, &integers).value, integers[1]);
        assert_eq!(folded(rule::MAX_INTEGER, &integers).value, integers[2]);
        assert_eq!(folded(rule::ANY, &[0, 1, 0]).value, 1);
        assert_eq!(folded(rule::ALL, &[1, 0, 1]).value, 0);
        assert_eq!(folded(rule::ALL, &[]), Slot::NOTHING);
        assert_eq!(folded(rule::ALL, &[1]).merge(Slot::NOTHING), slot(rule::ALL, 1));
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_an_overflow() {
        let greatest = i64::MAX.cast_unsigned();
        let sum = folded(rule::SUM_INTEGER, &[greatest, 1, 0]);
        assert_eq!(sum.rule, rule::OVERFLOW);
        assert_eq!(slot(rule::SUM_INTEGER, 3).merge(sum).rule, rule::OVERFLOW);
        assert_eq!(slot(rule::SUM_INTEGER, greatest).times(2).rule, rule::OVERFLOW);
        assert_eq!(slot(rule::SUM_INTEGER, 3).times(2).value, 6);
        assert_eq!(slot(rule::SUM_INTEGER, 3).times(0), Slot::NOTHING);
    }

    #[test]
    fn a_persistent_value_is_carried_over() {
        let kept = rule::SUM_INTEGER | rule::PERSISTENT;
        assert_eq!(slot(kept, 2).after(slot(kept, 3)).value, 5);
        assert_eq!(Slot::NOTHING.after(slot(kept, 3)).value, 3);
        assert_eq!(slot(rule::SUM_INTEGER, 2).after(slot(rule::SUM_INTEGER, 3)).value, 2);
    }
}

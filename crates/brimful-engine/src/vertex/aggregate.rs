//! Aggregators: one value over all vertices in each superstep.
//!
//! Parts are merged within an interval in id order, then over intervals in order, so that sums are
//! the same bits for any assignment to threads. Aggregators combine as tuples.

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};

/// A value with an associative merge.
pub trait Aggregate: Copy + Debug + Send + Sync + 'static {
    /// The value over no vertices.
    const NOTHING: Self;

    /// Merges `later`, the value over later vertices.
    fn merge(self, later: Self) -> Self;

    /// The value over `count` vertices that contribute this value each.
    fn times(self, count: u64) -> Self;

    /// The value that the next superstep sees, if the last superstep saw `before`.
    #[must_use]
    fn after(self, before: Self) -> Self {
        let _ = before;
        self
    }

    /// Appends words for a checkpoint; [`Aggregate::restore`] restores the same bits from them.
    fn save(self, words: &mut Vec<u64>);

    /// Restores the value that was saved as the next of `words`; `None` if they are invalid.
    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self>;
}

impl Aggregate for () {
    const NOTHING: Self = ();
    fn merge(self, (): Self) -> Self {}
    fn times(self, _: u64) -> Self {}
    fn save(self, _: &mut Vec<u64>) {}
    fn restore(_: &mut impl Iterator<Item = u64>) -> Option<Self> {
        Some(())
    }
}

/// The sum of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Sum(pub f64);

impl Aggregate for Sum {
    const NOTHING: Self = Self(0.0);

    #[inline]
    fn merge(self, later: Self) -> Self {
        Self(self.0 + later.0)
    }

    fn times(self, count: u64) -> Self {
        Self(self.0 * count as f64)
    }

    fn save(self, words: &mut Vec<u64>) {
        words.push(self.0.to_bits());
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        words.next().map(|word| Self(f64::from_bits(word)))
    }
}

/// A number of vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl Aggregate for Count {
    const NOTHING: Self = Self(0);

    #[inline]
    fn merge(self, later: Self) -> Self {
        Self(self.0 + later.0)
    }

    fn times(self, count: u64) -> Self {
        Self(self.0 * count)
    }

    fn save(self, words: &mut Vec<u64>) {
        words.push(self.0);
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        words.next().map(Self)
    }
}

/// The smallest number; infinity over no vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Least(pub f64);

impl Aggregate for Least {
    const NOTHING: Self = Self(f64::INFINITY);

    #[inline]
    fn merge(self, later: Self) -> Self {
        Self(self.0.min(later.0))
    }

    fn times(self, count: u64) -> Self {
        if count == 0 { Self::NOTHING } else { self }
    }

    fn save(self, words: &mut Vec<u64>) {
        words.push(self.0.to_bits());
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        words.next().map(|word| Self(f64::from_bits(word)))
    }
}

/// The largest number; minus infinity over no vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Greatest(pub f64);

impl Aggregate for Greatest {
    const NOTHING: Self = Self(f64::NEG_INFINITY);

    #[inline]
    fn merge(self, later: Self) -> Self {
        Self(self.0.max(later.0))
    }

    fn times(self, count: u64) -> Self {
        if count == 0 { Self::NOTHING } else { self }
    }

    fn save(self, words: &mut Vec<u64>) {
        words.push(self.0.to_bits());
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        words.next().map(|word| Self(f64::from_bits(word)))
    }
}

/// Elements are merged one by one.
impl<A: Aggregate, const N: usize> Aggregate for [A; N] {
    const NOTHING: Self = [A::NOTHING; N];

    #[inline]
    fn merge(self, later: Self) -> Self {
        std::array::from_fn(|at| self[at].merge(later[at]))
    }

    fn times(self, count: u64) -> Self {
        self.map(|part| part.times(count))
    }

    fn after(self, before: Self) -> Self {
        std::array::from_fn(|at| self[at].after(before[at]))
    }

    fn save(self, words: &mut Vec<u64>) {
        self.into_iter().for_each(|part| part.save(words));
    }

    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let mut parts = Self::NOTHING;
        for part in &mut parts {
            *part = A::restore(words)?;
        }
        Some(parts)
    }
}

macro_rules! tuple {
    ($($name:ident $at:tt),*) => {
        impl<$($name: Aggregate),*> Aggregate for ($($name,)*) {
            const NOTHING: Self = ($($name::NOTHING,)*);

            #[inline]
            fn merge(self, later: Self) -> Self {
                ($(self.$at.merge(later.$at),)*)
            }

            fn times(self, count: u64) -> Self {
                ($(self.$at.times(count),)*)
            }

            fn save(self, words: &mut Vec<u64>) {
                $(self.$at.save(words);)*
            }

            fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
                Some(($($name::restore(words)?,)*))
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregators_merge_and_multiply() {
        let part = |x: f64| (Sum(x), Count(1), Least(x), Greatest(x));
        let whole = [3.0, -1.0, 2.0].into_iter().fold(Aggregate::NOTHING, |sum, x| {
            <(Sum, Count, Least, Greatest)>::merge(sum, part(x))
        });
        assert_eq!(whole, (Sum(4.0), Count(3), Least(-1.0), Greatest(3.0)));
        assert_eq!(part(2.0).times(3), (Sum(6.0), Count(3), Least(2.0), Greatest(2.0)));
        assert_eq!(part(2.0).times(0), Aggregate::NOTHING);
        assert_eq!([Sum(1.0), Sum(2.0)].merge([Sum(0.5); 2]).times(2), [Sum(3.0), Sum(5.0)]);
    }

    #[test]
    fn what_is_saved_is_restored() {
        let value = (
            Count(u64::MAX),
            [Greatest(1.0), Greatest(-0.0)],
            [Sum(0.1), Sum(f64::INFINITY)],
            (Least::NOTHING, ()),
        );
        let mut words = Vec::new();
        value.save(&mut words);
        assert_eq!(Aggregate::restore(&mut words.iter().copied()), Some(value));
        assert_eq!(<(Sum, Sum)>::restore(&mut std::iter::once(0)), None);
    }
}

//! Aggregators: one value over all vertices in each superstep.
//!
//! Parts are merged within an interval in id order, then over intervals in order, so that sums are
//! the same bits for any assignment to threads. Aggregators combine as tuples.

use std::fmt::Debug;

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
    fn after(self, before: Self) -> Self;

    /// Appends words for a checkpoint; [`Aggregate::restore`] restores the same bits from them.
    fn save(self, words: &mut Vec<u64>);

    /// Restores the value that was saved as the next of `words`; `None` if they are invalid.
    fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self>;
}

impl Aggregate for () {
    const NOTHING: Self = ();
    fn merge(self, (): Self) -> Self {}
    fn times(self, _: u64) -> Self {}
    fn after(self, (): Self) -> Self {}
    fn save(self, _: &mut Vec<u64>) {}
    fn restore(_: &mut impl Iterator<Item = u64>) -> Option<Self> {
        Some(())
    }
}

macro_rules! number {
    (
        $(#[$doc:meta])*
        $name:ident($number:ty) = $nothing:expr,
        |$value:ident, $later:ident| $merge:expr,
        |$count:ident| $times:expr
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name(pub $number);

        impl Aggregate for $name {
            const NOTHING: Self = Self($nothing);

            #[inline]
            fn merge(self, Self($later): Self) -> Self {
                let Self($value) = self;
                Self($merge)
            }

            fn times(self, $count: u64) -> Self {
                let Self($value) = self;
                Self($times)
            }

            fn after(self, _: Self) -> Self {
                self
            }

            fn save(self, words: &mut Vec<u64>) {
                words.push(bytemuck::cast(self.0));
            }

            fn restore(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
                words.next().map(|word| Self(bytemuck::cast(word)))
            }
        }
    };
}

number! {
    /// The sum of numbers.
    Sum(f64) = 0.0, |sum, later| sum + later, |count| sum * count as f64
}

number! {
    /// A number of vertices.
    Count(u64) = 0, |sum, later| sum + later, |count| sum * count
}

number! {
    /// The smallest number; infinity over no vertices.
    Least(f64) = f64::INFINITY, |least, later| least.min(later),
    |count| if count == 0 { f64::INFINITY } else { least }
}

number! {
    /// The largest number; minus infinity over no vertices.
    Greatest(f64) = f64::NEG_INFINITY, |greatest, later| greatest.max(later),
    |count| if count == 0 { f64::NEG_INFINITY } else { greatest }
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

            fn after(self, before: Self) -> Self {
                ($(self.$at.after(before.$at),)*)
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

//! Combiners: how the signals to one vertex become one sum.
//!
//! A combiner (the *reducer* of *Making Signal/Collect Scale*) folds signals on arrival, so that no
//! signal is stored. The engine relies on its laws, and [`check_laws`] tests them on examples:
//! `merge` is associative with [`Combiner::IDENTITY`] neutral, and `combine(merge(a, b), s) =
//! merge(a, combine(b, s))`. Floating-point sums are only approximately associative; the engine
//! always adds in the same order.

use std::fmt::Debug;
use std::marker::PhantomData;

use bytemuck::Pod;

/// Folds signals into sums.
pub trait Combiner: 'static {
    /// The value that a vertex sends along an edge.
    type Signal: Pod + Send + Sync + PartialEq + Debug;
    /// The value that signals are folded into.
    type Sum: Pod + Send + Sync + PartialEq + Debug;

    /// True if combining the same signal twice changes nothing: min, max, or.
    const IDEMPOTENT: bool;
    /// True if sums are the same bits in any order of signals: all but sums of floats.
    const COMMUTES: bool = Self::IDEMPOTENT;
    /// The sum of no signals.
    const IDENTITY: Self::Sum;
    /// A signal that is never combined; a silent vertex sends it.
    const SILENCE: Self::Signal;

    /// Folds one signal into a sum.
    fn combine(sum: Self::Sum, signal: Self::Signal) -> Self::Sum;
    /// Merges two sums; `earlier` is of earlier sources.
    fn merge(earlier: Self::Sum, later: Self::Sum) -> Self::Sum;
}

/// Numbers with a smallest and a largest one.
pub trait Bounded: Pod + Send + Sync + PartialOrd + Debug {
    /// The smallest number.
    const LEAST: Self;
    /// The largest number.
    const GREATEST: Self;
}

macro_rules! bounded {
    ($($number:ty: $least:expr, $greatest:expr;)*) => {$(
        impl Bounded for $number {
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;
        }
    )*};
}

bounded! {
    u8: Self::MIN, Self::MAX;
    u16: Self::MIN, Self::MAX;
    u32: Self::MIN, Self::MAX;
    u64: Self::MIN, Self::MAX;
    i32: Self::MIN, Self::MAX;
    i64: Self::MIN, Self::MAX;
    f32: Self::NEG_INFINITY, Self::INFINITY;
    f64: Self::NEG_INFINITY, Self::INFINITY;
}

macro_rules! extreme {
    ($(#[$doc:meta])* $name:ident, $silence:ident, $beats:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name<T>(PhantomData<T>);

        impl<T: Bounded + 'static> Combiner for $name<T> {
            type Signal = T;
            type Sum = T;
            const IDEMPOTENT: bool = true;
            const IDENTITY: T = T::$silence;
            const SILENCE: T = T::$silence;

            #[inline]
            fn combine(sum: T, signal: T) -> T {
                if signal $beats sum { signal } else { sum }
            }

            #[inline]
            fn merge(earlier: T, later: T) -> T {
                Self::combine(earlier, later)
            }
        }
    };
}

extreme! {
    /// The smallest signal; the largest number of the type is silence.
    Min, GREATEST, <
}

extreme! {
    /// The largest signal; the smallest number of the type is silence.
    Max, LEAST, >
}

/// The union of bits; 0 is silence.
#[derive(Debug, Clone, Copy)]
pub struct Or;

impl Combiner for Or {
    type Signal = u64;
    type Sum = u64;
    const IDEMPOTENT: bool = true;
    const IDENTITY: u64 = 0;
    const SILENCE: u64 = 0;

    #[inline]
    fn combine(sum: u64, signal: u64) -> u64 {
        sum | signal
    }

    #[inline]
    fn merge(earlier: u64, later: u64) -> u64 {
        earlier | later
    }
}

/// Numbers that are added in 64 bits.
pub trait Addend: Pod + Send + Sync + PartialEq + Debug + Into<Self::Sum> {
    /// The type of sums.
    type Sum: Pod + Send + Sync + PartialEq + Debug;
    /// True if sums do not depend on the order of their numbers.
    const IS_EXACT: bool;
    /// Zero.
    const ZERO: Self;
    /// Zero, as a sum.
    const ZERO_SUM: Self::Sum;
    /// Adds two sums.
    fn merge(earlier: Self::Sum, later: Self::Sum) -> Self::Sum;
}

macro_rules! addends {
    ($($number:ty, $sum:ty, $is_exact:literal, $zero:literal, $merge:path;)*) => {$(
        impl Addend for $number {
            type Sum = $sum;
            const IS_EXACT: bool = $is_exact;
            const ZERO: Self = $zero;
            const ZERO_SUM: $sum = $zero;

            #[inline]
            fn merge(earlier: $sum, later: $sum) -> $sum {
                $merge(earlier, later)
            }
        }
    )*};
}

// Sums of integers saturate at the largest number, so that a program can detect an overflow.
addends! {
    f64, f64, false, 0.0, std::ops::Add::add;
    f32, f64, false, 0.0, std::ops::Add::add;
    u8, u64, true, 0, u64::saturating_add;
    u64, u64, true, 0, u64::saturating_add;
}

/// The sum of the signals; zero is silence. Signals of 8 or 32 bits are added in 64.
#[derive(Debug, Clone, Copy)]
pub struct Add<T>(PhantomData<T>);

impl<T: Addend + 'static> Combiner for Add<T> {
    type Signal = T;
    type Sum = T::Sum;
    const IDEMPOTENT: bool = false;
    const COMMUTES: bool = T::IS_EXACT;
    const IDENTITY: T::Sum = T::ZERO_SUM;
    const SILENCE: T = T::ZERO;

    #[inline]
    fn combine(sum: T::Sum, signal: T) -> T::Sum {
        T::merge(sum, signal.into())
    }

    #[inline]
    fn merge(earlier: T::Sum, later: T::Sum) -> T::Sum {
        T::merge(earlier, later)
    }
}

/// Tests the laws of `C` on all pairs of `signals`, for tests of user-defined combiners.
///
/// # Errors
/// A sentence that names the law and the signals that violate it.
pub fn check_laws<C: Combiner>(signals: &[C::Signal]) -> Result<(), String> {
    let single = |signal| C::combine(C::IDENTITY, signal);
    let hold = |law: &str, left: C::Sum, right: C::Sum| {
        if left == right { Ok(()) } else { Err(format!("{law}: {left:?} is not {right:?}")) }
    };
    for &first in signals {
        let sum = single(first);
        hold("merge(identity, a) = a", C::merge(C::IDENTITY, sum), sum)?;
        hold("merge(a, identity) = a", C::merge(sum, C::IDENTITY), sum)?;
        if C::IDEMPOTENT {
            hold("combine(a, s) = a where s is in a", C::combine(sum, first), sum)?;
        }
        for &second in signals {
            let both = C::combine(sum, second);
            hold(
                "combine(a, s) = merge(a, combine(identity, s))",
                C::merge(sum, single(second)),
                both,
            )?;
            hold("merge(a, b) = merge(b, a)", C::merge(single(second), sum), both)?;
        }
    }
    Ok(())
}

/// The sums of the numbers of signals at each place; zeros are silence.
#[derive(Debug, Clone, Copy)]
pub struct AddEach<const N: usize>;

impl<const N: usize> Combiner for AddEach<N> {
    type Signal = [f64; N];
    type Sum = [f64; N];
    const IDEMPOTENT: bool = false;
    const IDENTITY: [f64; N] = [0.0; N];
    const SILENCE: [f64; N] = [0.0; N];

    #[inline]
    fn combine(mut sum: [f64; N], signal: [f64; N]) -> [f64; N] {
        sum.iter_mut().zip(signal).for_each(|(sum, signal)| *sum += signal);
        sum
    }

    #[inline]
    fn merge(earlier: [f64; N], later: [f64; N]) -> [f64; N] {
        Self::combine(earlier, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_made_combiners_obey_their_laws() {
        check_laws::<Min<u32>>(&[0, 1, 7, u32::MAX]).unwrap();
        check_laws::<Max<i64>>(&[i64::MIN, -1, 0, 9]).unwrap();
        check_laws::<Min<f64>>(&[0.0, 0.5, f64::INFINITY]).unwrap();
        check_laws::<Or>(&[0, 1, 6, u64::MAX]).unwrap();
        check_laws::<Add<u64>>(&[0, 1, 1 << 40, u64::MAX]).unwrap();
        check_laws::<Add<u8>>(&[0, 1, u8::MAX]).unwrap();
        check_laws::<Add<f32>>(&[0.0, 0.5, -3.0]).unwrap();
    }

    #[test]
    fn a_combiner_that_forgets_is_found_out() {
        struct Last;
        impl Combiner for Last {
            type Signal = u64;
            type Sum = u64;
            const IDEMPOTENT: bool = true;
            const IDENTITY: u64 = 0;
            const SILENCE: u64 = 0;
            fn combine(_: u64, signal: u64) -> u64 {
                signal
            }
            fn merge(_: u64, later: u64) -> u64 {
                later
            }
        }
        let broken = check_laws::<Last>(&[1, 2]).unwrap_err();
        assert!(broken.starts_with("merge(a, identity) = a"), "{broken}");
    }
}

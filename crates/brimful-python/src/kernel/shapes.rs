//! The shapes of programs in Python, which give the engine their types.
//!
//! A signal is one number of 64 bits, or several words that the kernel combines. Frequent changes
//! along edges are part of a shape, so that the compiler sees them in the loop over edges.

use brimful::engine::{Along, Combiner, Max, Min, Mode, Or, Shape};

/// The sum of floats. The sum of no signals is -0.0, which no sum of other signals is.
pub(super) struct Total;

impl Combiner for Total {
    type Signal = f64;
    type Sum = f64;
    const IDEMPOTENT: bool = false;
    const IDENTITY: f64 = -0.0;
    const SILENCE: f64 = -0.0;

    #[inline]
    fn combine(sum: f64, signal: f64) -> f64 {
        sum + signal
    }

    #[inline]
    fn merge(earlier: f64, later: f64) -> f64 {
        earlier + later
    }
}

/// `signal` after an edge of `weight`.
#[inline(always)]
fn float_along(along: Along, signal: f64, weight: f64) -> f64 {
    match along {
        Along::Unchanged => signal,
        Along::Plus => signal + weight,
        Along::Times => signal * weight,
        // As in Python: of equal numbers, the first.
        Along::Least => {
            if weight < signal {
                weight
            } else {
                signal
            }
        }
        Along::Greatest => {
            if weight > signal {
                weight
            } else {
                signal
            }
        }
    }
}

/// The weight of an edge is a float; signals of integers pass edges unchanged.
#[inline(always)]
fn unchanged<T>(_: Along, signal: T, _: f64) -> T {
    signal
}

/// Changes along edges that a shape fixes at compile time, which makes the loop over edges faster;
/// [`ANY`]: none is fixed.
pub(super) const ANY: usize = 0;
pub(super) const UNCHANGED: usize = 1;
pub(super) const PLUS: usize = 2;
pub(super) const TIMES: usize = 3;

/// The change that a shape fixes, else `along`.
#[inline(always)]
fn fixed_or<const CHANGE: usize>(along: Along) -> Along {
    match CHANGE {
        UNCHANGED => Along::Unchanged,
        PLUS => Along::Plus,
        TIMES => Along::Times,
        _ => along,
    }
}

/// Every vertex signals in every superstep, and sums are collected.
pub(super) struct Sums<const CHANGE: usize>;

impl<const CHANGE: usize> Shape for Sums<CHANGE> {
    type Combiner = Total;
    const MODE: Mode = Mode::Full;

    #[inline(always)]
    fn along(along: Along, signal: f64, weight: f64) -> f64 {
        let along = fixed_or::<CHANGE>(along);
        // No signal of a vertex stays so along every edge.
        let is_silent = !matches!(along, Along::Unchanged)
            && signal.to_bits() == <Total as Combiner>::SILENCE.to_bits();
        match along {
            _ if is_silent => signal,
            Along::Unchanged | Along::Plus => float_along(along, signal, weight),
            // Of these, -0.0 can come out, as of 0.0 times a negative weight.
            _ => float_along(along, signal, weight) + 0.0,
        }
    }
}

/// A vertex signals when its state changed; the least or greatest signal, or the union of bits, is
/// collected.
macro_rules! idempotent {
    ($($name:ident: $combiner:ty, $along:expr;)*) => {$(
        pub(super) struct $name<const CHANGE: usize>;

        impl<const CHANGE: usize> Shape for $name<CHANGE> {
            type Combiner = $combiner;
            const MODE: Mode = Mode::Idempotent;
            const NEEDS_EXTERNAL: bool = true;
            const ASYNCHRONOUS: bool = true;
            const KEEPS_SILENCE: bool = true;

            #[inline(always)]
            fn along(
                along: Along,
                signal: <$combiner as Combiner>::Signal,
                weight: f64,
            ) -> <$combiner as Combiner>::Signal {
                let along = fixed_or::<CHANGE>(along);
                // An infinite signal stays so in a sum with a weight, which is finite.
                let is_silent = !matches!(along, Along::Unchanged | Along::Plus)
                    && signal == <$combiner as Combiner>::SILENCE;
                if is_silent { signal } else { $along(along, signal, weight) }
            }
        }
    )*};
}

idempotent! {
    LeastFloat: Min<f64>, float_along;
    GreatestFloat: Max<f64>, float_along;
    LeastInteger: Min<i64>, unchanged;
    GreatestInteger: Max<i64>, unchanged;
    Union: Or, unchanged;
}

/// Messages of several words, which the kernel combines. A message is never all zeros.
pub(super) struct Messages<const WORDS: usize>;

impl<const WORDS: usize> Combiner for Messages<WORDS> {
    type Signal = [u64; WORDS];
    type Sum = [u64; WORDS];
    const IDEMPOTENT: bool = false;
    const IDENTITY: [u64; WORDS] = [0; WORDS];
    const SILENCE: [u64; WORDS] = [0; WORDS];

    fn combine(_: [u64; WORDS], _: [u64; WORDS]) -> [u64; WORDS] {
        unreachable!("the kernel combines these signals")
    }

    fn merge(_: [u64; WORDS], _: [u64; WORDS]) -> [u64; WORDS] {
        unreachable!("the kernel merges these signals")
    }
}

/// Messages of `WORDS` words, each of which is received once.
pub(super) struct Structured<const FULL: bool, const WORDS: usize>;

impl<const FULL: bool, const WORDS: usize> Shape for Structured<FULL, WORDS> {
    type Combiner = Messages<WORDS>;
    // In the mode delta, only vertices with messages collect.
    const MODE: Mode = if FULL { Mode::Full } else { Mode::Delta };
    const NEEDS_EXTERNAL: bool = !FULL;
    const MERGES: bool = true;
}

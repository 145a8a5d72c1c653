//! Sums of the outgoing weights of vertices: the divisors of programs that divide a score among
//! edges.
//!
//! A weight may be as small as 2^-1074, and a sum of weights as large as 2^1024, so a score divided
//! by such a sum may overflow or vanish. Multiplying all signals by a power of two, and dividing
//! all sums of signals by it, keeps both in range and changes no bit of a score. Invariant: scaled
//! signals are finite, and the signal of a significant score loses no bit.

use brimful_graph::Graph;
use brimful_store::Job;

use crate::Result;
use crate::request::{Request, shown};

/// Significant scores are at least 2 to this power.
const MIN_SCORE_EXPONENT: i32 = -60;
/// Scores are below 2 to this power.
const MAX_SCORE_EXPONENT: i32 = 50;
/// Vertices read at once.
pub(crate) const AT_ONCE: usize = 1 << 14;

/// The exponents of signals of one precision.
#[derive(Debug, Clone, Copy)]
pub struct Exponents {
    /// The least exponent of a normal number.
    pub(crate) min_normal: i32,
    /// The greatest exponent of a normal number.
    pub(crate) max_normal: i32,
    /// The least exponent of a scale: a signal times a weight must still be a normal number.
    pub(crate) min_scale: i32,
}

/// Calls `each(first, sums)` with the sums of the outgoing weights of all vertices with edges.
pub(crate) fn for_each(
    graph: &Graph,
    mut each: impl FnMut(u64, &[f64]) -> Result<()>,
) -> Result<()> {
    let connected = graph.connected() as usize;
    let mut sums = vec![0.0; AT_ONCE.min(connected)];
    for start in (0..connected).step_by(AT_ONCE) {
        let part = &mut sums[..AT_ONCE.min(connected - start)];
        graph.strengths(start as u64, part)?;
        each(start as u64, part)?;
    }
    Ok(())
}

/// Refuses the sums of the vertices from `start` on if one of them is not finite.
pub(crate) fn require_finite(graph: &Graph, start: u64, sums: &[f64]) -> Result<()> {
    let Some(at) = sums.iter().position(|sum| !sum.is_finite()) else { return Ok(()) };
    let problem = format!(
        "the weights of the edges that leave vertex {} add up to more than {:e}, the largest \
         64-bit float; divide all weights by the same number, which changes no result",
        shown(graph, start + at as u64)?,
        f64::MAX
    );
    Err(brimful_graph::Error::input(graph.path(), problem).into())
}

/// A power of two that brings the weights of a graph to about 1 at most; 1 if they are not used.
pub(crate) fn scale_of_weights(graph: &Graph, weighted: bool) -> f64 {
    let range = graph.description().weights.filter(|_| weighted);
    range.map_or(1.0, |range| scale_below(range.max))
}

/// A power of two that brings weights of at most `greatest` to about 1 at most, so that their sums
/// neither overflow nor vanish.
pub(crate) fn scale_below(greatest: f64) -> f64 {
    // A power of two changes only the exponent of a weight. The limits keep the result a normal
    // number, although exponents of f64 go from -1074 to 1023.
    let exponent =
        if greatest > 0.0 { greatest.log2().floor().clamp(-1000.0, 1000.0) as i64 } else { 0 };
    f64::from_bits(((1023 - exponent) as u64) << 52)
}

/// The power of two by which signals are multiplied: 1 unless weights are extreme.
///
/// # Errors
/// [`brimful_graph::Error::Input`] for weights that cannot be shared: negative weights, sums that
/// overflow, and sums that lie too far apart.
pub(crate) fn scale(
    request: &Request,
    graph: &Graph,
    exponents: Exponents,
    job: &Job,
) -> Result<f64> {
    // A run with weights on a graph without weights is refused when it begins.
    if !request.weighted || !graph.description().weighted {
        return Ok(1.0);
    }
    request.refuse_negative_weights(graph, job)?;
    let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
    for_each(graph, |start, sums| {
        require_finite(graph, start, sums)?;
        let positive = sums.iter().copied().filter(|sum| *sum > 0.0);
        (least, greatest) =
            positive.fold((least, greatest), |(a, b), sum| (a.min(sum), b.max(sum)));
        Ok(())
    })?;
    if greatest == 0.0 {
        return Ok(1.0);
    }
    exponent(least, greatest, exponents).map(|exponent| 2_f64.powi(exponent)).ok_or_else(|| {
        let advice = match request.narrow {
            true => "use --precision f64",
            false => "bring them closer together",
        };
        let problem = format!(
            "the weights of the edges that leave a vertex add up to between {least:e} and \
             {greatest:e}, too far apart or too far from 1 to be ranked in this precision; {advice}"
        );
        brimful_graph::Error::input(graph.path(), problem).into()
    })
}

/// The exponent nearest to 0 with which the signals of all sums in this range are normal numbers;
/// `None` if there is none.
fn exponent(least: f64, greatest: f64, exponents: Exponents) -> Option<i32> {
    let exponent_of = |sum: f64| sum.log2().floor() as i32;
    let lowest = exponents.min_normal - MIN_SCORE_EXPONENT;
    let highest = exponents.max_normal - MAX_SCORE_EXPONENT;
    let min = (lowest + exponent_of(greatest) + 1).max(exponents.min_scale);
    let max = (highest + exponent_of(least)).min(highest);
    (min <= max).then(|| 0.clamp(min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    const F64: Exponents = Exponents { min_normal: -1022, max_normal: 1023, min_scale: -500 };
    const F32: Exponents = Exponents { min_normal: -126, max_normal: 127, min_scale: -40 };

    #[test]
    fn usual_weights_are_not_scaled() {
        for exponents in [F64, F32] {
            assert_eq!(exponent(1e-9, 1e12, exponents), Some(0));
        }
    }

    #[test]
    fn signals_of_extreme_weights_are_normal_numbers() {
        for (least, greatest) in [(5e-324, 5e-324), (5e-324, 1.0), (1.0, f64::MAX), (1e-310, 1e200)]
        {
            let scale = 2_f64.powi(exponent(least, greatest, F64).unwrap());
            let largest = 2_f64.powi(MAX_SCORE_EXPONENT) * scale / least;
            let smallest = 2_f64.powi(MIN_SCORE_EXPONENT) * scale / greatest;
            assert!(largest.is_normal() && smallest.is_normal(), "{least:e} {greatest:e}");
        }
        assert_eq!(exponent(5e-324, f64::MAX, F64), None);
        assert_eq!(exponent(1e-40, 1.0, F32), None);
        assert_eq!(exponent(1e-30, 1e10, F32), Some(-23));
    }
}

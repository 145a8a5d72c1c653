//! PageRank by power steps.
//!
//! Returns one score per vertex. Two variants, never mixed:
//! - *normalized* (LDBC Graphalytics; Brin and Page 1998 with the mass of sinks spread evenly): scores
//!   sum to 1; start 1/|V|; score = (1-d)/|V| + d * (sum of in-signals + mass of sinks / |V|). Stops at
//!   an L1 change of at most the tolerance.
//! - *unnormalized* (Signal/Collect's; *Making Signal/Collect Scale*, section 4): start 1-d; score = (1-d) +
//!   d * sum; sinks keep what they have. Stops at an L1 change per vertex of at most the tolerance.
//!
//! State: the score, f64. Signal: score / out-degree (with weights: score / sum of outgoing weights,
//! times the weight of the edge), f64, or f32 for `--precision f32`: each signal then carries a
//! relative rounding error of at most 2^-24, and so does, to first order, each score; sums and scores
//! stay f64. One pass over the edges a superstep, O(|V| + |E|).

use brimful_engine::{Aggregate, Globals, Mode, Program, Vertex};
use brimful_graph::Index;
use bytemuck::Pod;

/// Which PageRank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Scores sum to 1.
    Normalized,
    /// Scores sum to at most |V|.
    Unnormalized,
}

impl Variant {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normalized => "normalized",
            Self::Unnormalized => "unnormalized",
        }
    }
}

/// The precision of a signal.
pub trait Precision: Pod + Send + Sync + PartialEq {
    /// Rounds to this precision.
    fn from_f64(value: f64) -> Self;
    /// Widens, exactly.
    fn to_f64(self) -> f64;
}

impl Precision for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

impl Precision for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

/// PageRank with signals of type `S`.
#[derive(Debug, Clone, Copy)]
pub struct PageRank<S> {
    variant: Variant,
    damping: f64,
    tolerance: f64,
    precision: std::marker::PhantomData<S>,
}

impl<S: Precision> PageRank<S> {
    /// `damping` in [0, 1]; `tolerance` at least 0, where 0 never stops early.
    ///
    /// # Errors
    /// A sentence, if a parameter is out of range.
    pub fn new(variant: Variant, damping: f64, tolerance: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&damping) {
            return Err(format!("damping must be between 0 and 1, not {damping}"));
        }
        if tolerance.is_nan() || tolerance < 0.0 {
            return Err(format!("tolerance must be at least 0, not {tolerance}"));
        }
        Ok(Self { variant, damping, tolerance, precision: std::marker::PhantomData })
    }
}

/// Where the aggregate keeps what.
const SINKS: usize = 0;
const CHANGE: usize = 1;

impl<S: Precision> Program for PageRank<S> {
    type State = f64;
    type Signal = S;
    type Sum = f64;

    const MODE: Mode = Mode::Full;
    const NEEDS_DEGREES: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In]
    }

    fn initial(&self, _: Vertex, globals: &Globals) -> f64 {
        match self.variant {
            Variant::Normalized => 1.0 / globals.vertices as f64,
            Variant::Unnormalized => 1.0 - self.damping,
        }
    }

    #[inline]
    fn signal(&self, vertex: Vertex, score: f64) -> S {
        // A sink has nobody to signal; its score is in the aggregate.
        S::from_f64(if vertex.strength == 0.0 { 0.0 } else { score / vertex.strength })
    }

    fn silence(&self) -> S {
        S::from_f64(0.0)
    }

    fn identity(&self) -> f64 {
        0.0
    }

    #[inline]
    fn combine(&self, sum: f64, signal: S, weight: f64) -> f64 {
        sum + signal.to_f64() * weight
    }

    #[inline]
    fn merge(&self, earlier: f64, later: f64) -> f64 {
        earlier + later
    }

    #[inline]
    fn collect(&self, _: Vertex, _: f64, sum: f64, globals: &Globals) -> f64 {
        match self.variant {
            Variant::Normalized => {
                let n = globals.vertices as f64;
                (1.0 - self.damping) / n + self.damping * (sum + globals.aggregate[SINKS] / n)
            }
            Variant::Unnormalized => (1.0 - self.damping) + self.damping * sum,
        }
    }

    fn changed(&self, old: f64, new: f64) -> bool {
        old != new
    }

    #[inline]
    fn aggregate(&self, vertex: Vertex, old: f64, new: f64) -> Aggregate {
        let mut part = Aggregate::default();
        part[SINKS] = if vertex.strength == 0.0 { new } else { 0.0 };
        part[CHANGE] = (new - old).abs();
        part
    }

    fn converged(&self, globals: &Globals) -> bool {
        let change = match self.variant {
            Variant::Normalized => globals.aggregate[CHANGE],
            Variant::Unnormalized => globals.aggregate[CHANGE] / globals.vertices as f64,
        };
        self.tolerance > 0.0 && change <= self.tolerance
    }
}

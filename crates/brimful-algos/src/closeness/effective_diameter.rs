//! The effective diameter: the distance within which a share of all pairs lies.
//!
//! Returns one row (`quantile`, `distance` and `pairs`: float64): the estimated number of ordered
//! pairs of different vertices with a path, and the distance within which the share `quantile` of
//! them lies, between two whole distances by linear interpolation (Leskovec, Kleinberg, Faloutsos
//! 2005, "Graphs over time", section 3.2). Without pairs the distance is 0.
//!
//! Method: the sum of the sizes of the balls of [`super`] after each superstep (HyperANF; Boldi,
//! Rosa, Vigna 2011). Supersteps and memory are those of `harmonic`.

use std::sync::{Arc, Mutex, PoisonError};

use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::table::Kind;
use brimful_engine::{Globals, Mode, Program, RowColumn, RowWriter, Sum, Vertex, run};
use brimful_graph::Graph;
use brimful_store::Resources;

use super::{Ball, HyperBall, REGISTER_BITS, Union, WithRegisters, by_bits};
use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

const COLUMNS: &[RowColumn] =
    &[("quantile", Kind::Float), ("distance", Kind::Float), ("pairs", Kind::Float)];

const QUANTILE: ParameterInfo = ParameterInfo {
    name: "quantile",
    values: Accepts::Number(0.9),
    meaning: "share of the pairs, from 0 to 1",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "effective_diameter",
    computes: "distance that a share of all pairs with a path does not exceed, estimated \
               (HyperANF)",
    column: "distance",
    takes: Takes::NOTHING,
    parameters: &[QUANTILE, REGISTER_BITS],
    run: Run::Rows(COLUMNS, |request, graph, resources| {
        by_bits(request, Counted { graph, resources })
    }),
    plan,
};

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let forecast = by_bits(planner.request, planner)?;
    Ok(Forecast { result_bytes: RowWriter::MINIMUM_BYTES, ..forecast })
}

/// HyperBall that also records how many vertices have entered all balls in each superstep.
struct Neighborhood<const M: usize> {
    balls: HyperBall<M>,
    /// The number of vertices entered in each superstep.
    entered: Mutex<Vec<f64>>,
}

impl<const M: usize> Program for Neighborhood<M> {
    type State = Ball<M>;
    type Combiner = Union<M>;
    /// Vertices that have entered balls.
    type Aggregate = Sum;
    const MODE: Mode = HyperBall::<M>::MODE;
    const KEEPS_SILENCE: bool = HyperBall::<M>::KEEPS_SILENCE;
    const NEEDS_EXTERNAL: bool = HyperBall::<M>::NEEDS_EXTERNAL;

    fn initial(&self, vertex: Vertex, globals: &Globals<Sum>) -> Ball<M> {
        self.balls.initial(vertex, &without_aggregate(globals))
    }

    fn signal(&self, vertex: Vertex, ball: Ball<M>) -> [u8; M] {
        self.balls.signal(vertex, ball)
    }

    fn collect(
        &self,
        vertex: Vertex,
        ball: Ball<M>,
        sum: [u8; M],
        globals: &Globals<Sum>,
    ) -> Ball<M> {
        self.balls.collect(vertex, ball, sum, &without_aggregate(globals))
    }

    fn aggregate(&self, _: Vertex, old: Ball<M>, new: Ball<M>) -> Sum {
        Sum(new.sums().others - old.sums().others)
    }

    fn converged(&self, globals: &Globals<Sum>) -> bool {
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        entered.resize(globals.superstep as usize, 0.0);
        if let Some(last) = entered.last_mut() {
            *last = globals.aggregate.0;
        }
        false
    }
}

fn without_aggregate(globals: &Globals<Sum>) -> Globals<()> {
    let Globals { vertices, superstep, round, .. } = *globals;
    Globals { vertices, superstep, round, aggregate: () }
}

/// The distance within which the share `quantile` of pairs lies; `entered` has the numbers of pairs
/// at distance 1, 2, ...
fn distance_of(quantile: f64, entered: &[f64]) -> f64 {
    let mut left = quantile * entered.iter().sum::<f64>();
    for (before, pairs) in (0_u32..).zip(entered) {
        if left <= *pairs {
            return f64::from(before) + if *pairs > 0.0 { left / pairs } else { 0.0 };
        }
        left -= pairs;
    }
    // Reached only because of rounding.
    entered.iter().rposition(|pairs| *pairs > 0.0).map_or(0.0, |last| last as f64 + 1.0)
}

/// A run.
struct Counted<'r> {
    graph: &'r Arc<Graph>,
    resources: &'r Resources,
}

impl WithRegisters for Counted<'_> {
    type Output = FinishedRows;

    fn with<const M: usize>(self, request: &Request) -> Result<FinishedRows> {
        let Self { graph, resources } = self;
        request.refuse_max_supersteps()?;
        let quantile = QUANTILE.number(request)?;
        if !(0.0..=1.0).contains(&quantile) {
            return Err(Error::Usage(format!("quantile must be from 0 to 1, not {quantile}")));
        }
        let program = Neighborhood::<M> { balls: HyperBall, entered: Mutex::default() };
        let stats = run(&program, graph, &request.options(u64::MAX), resources)?.stats;
        let entered = program.entered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let bytes = RowWriter::MINIMUM_BYTES;
        let mut rows = RowWriter::new(graph, COLUMNS, bytes, &resources.job);
        let row = [quantile, distance_of(quantile, &entered), entered.iter().sum()];
        rows.push(&row.map(f64::to_bits))?;
        Ok(FinishedRows { table: rows.finish()?, stats, variant: "hyperanf" })
    }
}

#[cfg(test)]
mod tests {
    use super::distance_of;

    #[test]
    fn distances_lie_between_whole_ones() {
        assert_eq!(distance_of(0.9, &[6.0, 2.0, 2.0]), 2.5);
        assert_eq!(distance_of(0.3, &[6.0, 2.0, 2.0]), 0.5);
        assert_eq!(distance_of(1.0, &[6.0, 2.0, 2.0]), 3.0);
        assert_eq!(distance_of(0.6, &[6.0, 4.0, 0.0]), 1.0);
        assert_eq!(distance_of(0.9, &[]), 0.0);
        assert_eq!(distance_of(0.9, &[0.0]), 0.0);
    }
}

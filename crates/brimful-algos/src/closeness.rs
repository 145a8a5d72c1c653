//! Closeness and harmonic centrality of all vertices, estimated by counting balls (HyperBall).
//!
//! Let d(u) be the number of edges on the shortest path from u to a vertex, r the number of other
//! vertices with such a path, and n the number of vertices. The values of a vertex are:
//! - `closeness`: r / (sum of d(u)) * r / (n - 1), or 0 if no path leads to the vertex
//!   (`closeness`, float64; Wasserman and Faust 1994; as NetworkX);
//! - `harmonic`: the sum of 1 / d(u) (`harmonic`, float64; Marchiori and Latora 2000).
//!
//! Method (Boldi and Vigna 2013, "In-core computation of geometric centralities with HyperBall"):
//! the ball of a vertex, the vertices within a distance t, is the union of the balls within t - 1
//! of the vertex and its predecessors. A ball is a HyperLogLog counter of m = 2^b registers
//! (Flajolet, Fusy, Gandouet, Meunier 2007), whose union takes the greater value of each register.
//! Its size is estimated without a correction table (Ertl 2017, "New cardinality estimation
//! algorithms for HyperLogLog sketches", section 3). The standard error of a size is 1.04 /
//! sqrt(m), relative: 0.13, 0.065 and 0.033 for b = 6, 8 and 10. The sum of 1 / d(u) is a sum of
//! sizes with positive factors, so its relative error is at most the greatest of these. The sum of
//! d(u) is a sum of differences of sizes.
//!
//! The hash is splitmix64 of the offset of the external id, so results depend on the graph alone.
//! State: m registers of a byte, and three sums in f64. Signal: the registers. The number of
//! supersteps is one more than the length of the longest shortest path. With a limit of k
//! supersteps, values count only paths of at most k edges. A superstep reads only segments with
//! balls that grew. Memory: 3 m + 24 bytes a vertex; in smaller budgets they are paged.

pub(crate) mod effective_diameter;

use std::sync::Arc;

use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Combiner, Globals, Mode, Program, Values, Vertex, run};
use brimful_graph::Graph;
use brimful_graph::random::splitmix64;
use brimful_store::Resources;
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{Finished, Request};
use crate::{Error, Result};

/// Passes over all edges, for each superstep on a wide graph: NY takes 179 in 671 supersteps.
const WIDE_PASSES: f64 = 0.27;
/// The memory traffic, for each byte of a counter, that takes as long as estimating its count: 85
/// ns for 64 bytes with two threads.
const COUNTER_TRAFFIC: u64 = 48;
/// The same for a counter along an unpacked edge, of one thread alone: 40 ns for 64 bytes.
const UNPACKED_TRAFFIC: u64 = 17;

const TAKES: Takes = Takes { cluster: true, checkpoints: true, ..Takes::NOTHING };

const REGISTER_BITS: ParameterInfo = ParameterInfo {
    name: "register_bits",
    values: Accepts::Count(6),
    meaning: "6, 8 or 10: logarithm of the bytes of a counter; standard errors 13, 6.5 and 3.3 %",
};

/// The registry entry of closeness.
pub(crate) const CLOSENESS: Info = Info {
    name: "closeness",
    computes: "closeness centrality, estimated (HyperBall): inverse mean distance from the \
               vertices with a path to it, times their share",
    column: "closeness",
    takes: TAKES,
    parameters: &[REGISTER_BITS],
    run: Run::Vertices(|request, graph, resources| {
        let others = graph.vertices().saturating_sub(1) as f64;
        by_bits(request, Scored { graph, resources, score: move |sums| closeness(sums, others) })
    }),
    plan: |planner| by_bits(planner.request, planner),
};

/// The registry entry of harmonic centrality.
pub(crate) const HARMONIC: Info = Info {
    name: "harmonic",
    computes: "harmonic centrality, estimated (HyperBall): sum of the inverse distances from all \
               other vertices",
    column: "harmonic",
    takes: TAKES,
    parameters: &[REGISTER_BITS],
    run: Run::Vertices(|request, graph, resources| {
        by_bits(request, Scored { graph, resources, score: |sums: Sums| sums.inverses })
    }),
    plan: |planner| by_bits(planner.request, planner),
};

/// Sums over the other vertices with a path to a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// The number of these vertices.
    pub others: f64,
    /// The sum of their distances.
    pub distances: f64,
    /// The sum of the inverses of their distances.
    pub inverses: f64,
}

/// Closeness by Wasserman and Faust; `others` is the number of all other vertices of the graph.
fn closeness(sums: Sums, others: f64) -> f64 {
    // Distances are 0 only without a path.
    if sums.distances == 0.0 { 0.0 } else { sums.others / sums.distances * sums.others / others }
}

/// The ball of a vertex.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct Ball<const M: usize> {
    registers: [u8; M],
    others: f64,
    distances: f64,
    inverses: f64,
}

impl<const M: usize> Ball<M> {
    /// The sums over the vertices in the ball.
    pub fn sums(self) -> Sums {
        Sums { others: self.others, distances: self.distances, inverses: self.inverses }
    }
}

/// The union of counters; an empty counter is no signal.
#[derive(Debug, Clone, Copy)]
pub struct Union<const M: usize>;

impl<const M: usize> Combiner for Union<M> {
    type Signal = [u8; M];
    type Sum = [u8; M];
    const IDEMPOTENT: bool = true;
    const IDENTITY: [u8; M] = [0; M];
    const SILENCE: [u8; M] = [0; M];

    #[inline]
    fn combine(mut sum: [u8; M], signal: [u8; M]) -> [u8; M] {
        sum.iter_mut().zip(signal).for_each(|(most, register)| *most = register.max(*most));
        sum
    }

    #[inline]
    fn merge(earlier: [u8; M], later: [u8; M]) -> [u8; M] {
        Self::combine(earlier, later)
    }
}

/// The program, with counters of `M` registers; `M` is a power of two.
#[derive(Debug, Clone, Copy)]
pub struct HyperBall<const M: usize>;

impl<const M: usize> HyperBall<M> {
    /// The counter that holds only the vertex with this offset.
    fn counter(id_offset: u64) -> [u8; M] {
        let hash = splitmix64(id_offset);
        let bits = M.ilog2();
        let mut registers = [0; M];
        // The lower bits choose the register; its value is the position of the first 1 in the
        // others.
        let rank = (hash >> bits | 1 << (u64::BITS - bits)).trailing_zeros() + 1;
        registers[hash as usize % M] = rank as u8;
        registers
    }

    /// The estimated number of vertices in a counter.
    fn size(registers: &[u8; M]) -> f64 {
        let (mut zeros, mut sum) = (0_u32, 0.0);
        for register in registers {
            zeros += u32::from(*register == 0);
            // Adds 2^-register for registers other than 0; `sigma` accounts for the zeros.
            sum += if *register == 0 { 0.0 } else { power(-i64::from(*register)) };
        }
        let m = M as f64;
        m * m / (2.0 * std::f64::consts::LN_2) / (m * sigma(f64::from(zeros) / m) + sum)
    }
}

/// 2 to the power of `exponent`, which must be in the range of normal numbers.
fn power(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Ertl's sigma: x plus the sum over k from 1 on of x^(2^k) 2^(k-1); infinite for 1.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut sum, mut factor) = (x, 1.0);
    loop {
        x *= x;
        let before = sum;
        sum += x * factor;
        factor *= 2.0;
        if sum == before {
            return sum;
        }
    }
}

impl<const M: usize> Program for HyperBall<M> {
    type State = Ball<M>;
    type Combiner = Union<M>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;
    const NEEDS_EXTERNAL: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> Ball<M> {
        Ball { registers: Self::counter(vertex.external), ..Ball::zeroed() }
    }

    fn signal(&self, _: Vertex, ball: Ball<M>) -> [u8; M] {
        ball.registers
    }

    fn collect(&self, _: Vertex, ball: Ball<M>, sum: [u8; M], globals: &Globals<()>) -> Ball<M> {
        let before = ball.registers;
        let registers = Union::combine(before, sum);
        if registers == before {
            return ball;
        }
        let distance = (globals.superstep + 1) as f64;
        // The vertex itself is in its ball, and does not count.
        let others = (Self::size(&registers) - 1.0).max(ball.others);
        let more = others - ball.others;
        Ball {
            registers,
            others,
            distances: ball.distances + more * distance,
            inverses: ball.inverses + more / distance,
        }
    }
}

/// A task that is generic over the number of registers.
trait WithRegisters {
    type Output;
    fn with<const M: usize>(self, request: &Request) -> Result<Self::Output>;
}

fn by_bits<W: WithRegisters>(request: &Request, purpose: W) -> Result<W::Output> {
    match REGISTER_BITS.count(request)? {
        6 => purpose.with::<64>(request),
        8 => purpose.with::<256>(request),
        10 => purpose.with::<1024>(request),
        other => Err(Error::Usage(format!("register_bits must be 6, 8 or 10, not {other}"))),
    }
}

impl WithRegisters for &Planner<'_> {
    type Output = Forecast;

    fn with<const M: usize>(self, _: &Request) -> Result<Forecast> {
        // R-MAT of 2^20 vertices takes 9 supersteps; the balls of most vertices grow in five.
        let steps = self.spreading(Steps::about(9, 5.0))?;
        // On roads, too, the balls of many vertices grow in each superstep.
        let passes = if steps.wide { WIDE_PASSES * steps.supersteps as f64 } else { steps.passes };
        let forecast = self.program(&HyperBall::<M>, Steps { passes, ..steps })?;
        // On roads, one thread follows unpacked edges, if these fit, while the others wait.
        let is_unpacked =
            steps.wide && !self.request.is_divided() && self.limit() >= forecast.in_memory_bytes;
        let work = self.of_scan(|setting| {
            let along = UNPACKED_TRAFFIC * setting.workers as u64 * setting.extent.edges();
            let counted = COUNTER_TRAFFIC * setting.extent.vertices;
            M as u64 * (counted + if is_unpacked { along } else { 0 })
        });
        Ok(Forecast { traffic_bytes: forecast.traffic_bytes + work, ..forecast })
    }
}

/// A run, with the score of a vertex.
struct Scored<'r, F> {
    graph: &'r Arc<Graph>,
    resources: &'r Resources,
    score: F,
}

impl<F: Fn(Sums) -> f64 + Send + Sync + 'static> WithRegisters for Scored<'_, F> {
    type Output = Finished;

    fn with<const M: usize>(self, request: &Request) -> Result<Finished> {
        let Self { graph, resources, score } = self;
        let output = run(&HyperBall::<M>, graph, &request.options(u64::MAX), resources)?;
        let column = if request.algorithm == CLOSENESS.name { CLOSENESS } else { HARMONIC }.column;
        let values = Values::floats(
            output.states,
            move |ball: Ball<M>| Some(score(ball.sums())),
            |_| Some(0.0),
        );
        Finished::new(graph, column, values.without_nulls(), output.stats, "hyperball")
    }
}

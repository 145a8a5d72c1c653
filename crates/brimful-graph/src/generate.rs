//! Graphs generated from a seed, part by part, so that any thread can make any part again.
//!
//! Invariant: an edge depends only on the parameters, the seed and its own number. Only integer
//! arithmetic and `libm` are used, so a graph is the same on every platform.

mod models;

use brimful_store::wording::counted;

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource};
use crate::error::{Error, Result};
use crate::generate::models::{Pairs, Shuffle, mesh_targets, sample, small_world_targets};
use crate::random::{Random, choose, permute};

/// A kind of graph and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with a = 0.57, b = c = 0.19, d = 0.05 and permuted
    /// ids: 2^scale vertices and `edge_factor` times as many edges, including parallel edges and
    /// self-loops.
    Rmat {
        /// Binary logarithm of the number of vertices.
        scale: u32,
        /// Edges per vertex.
        edge_factor: u64,
    },
    /// Out-degrees round(e^(mu + sigma * gaussian)), at most n - 1; targets are distinct, without
    /// self-loops. (Pregel 2010, section 6; the thesis's table 4.1 with mu = 4, sigma = 1.3.)
    LogNormal {
        /// Number of vertices.
        vertices: u64,
        /// Mean of the logarithm of the degree.
        mu: f64,
        /// Standard deviation of the logarithm of the degree.
        sigma: f64,
    },
    /// 0 -> 1 -> ... -> n-1.
    Chain {
        /// Number of vertices.
        vertices: u64,
    },
    /// A chain closed by n-1 -> 0.
    Ring {
        /// Number of vertices.
        vertices: u64,
    },
    /// Every other vertex -> 0.
    Star {
        /// Number of vertices.
        vertices: u64,
    },
    /// Every vertex is joined to its right and its lower neighbor.
    Grid {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        columns: u64,
        /// True to join the last row and column to the first.
        torus: bool,
    },
    /// Vertex n is joined to i earlier vertices, with i uniform in [0, 80) (at most n) and the
    /// vertices distinct and uniform; undirected. (Algorithm 1 of InfiniMem's paper of 2014,
    /// adapted to a workable process.) About 39.5 edges per vertex.
    Mesh {
        /// Number of vertices.
        vertices: u64,
    },
    /// A ring in which every vertex is joined to its `neighbors` nearest vertices; then each edge's
    /// far end moves to any other vertex with probability `rewire`; undirected. (Watts and Strogatz
    /// 1998.)
    ///
    /// The targets that one vertex draws are distinct; a pair that two vertices draw is a parallel
    /// edge. About `rewire * neighbors^2 / 2` parallel edges are expected, whatever the number of
    /// vertices.
    WattsStrogatz {
        /// Number of vertices.
        vertices: u64,
        /// Neighbors on the ring, an even number.
        neighbors: u64,
        /// Probability that an edge moves.
        rewire: f64,
    },
    /// Edges drawn from all pairs of distinct vertices. (Erdos and Renyi 1959; Gilbert 1959.)
    ErdosRenyi {
        /// Number of vertices.
        vertices: u64,
        /// The number of pairs drawn.
        amount: Amount,
        /// True: pairs have no order. False: both orders are different pairs.
        undirected: bool,
    },
}

/// The number of pairs of vertices that a random graph joins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// This number of distinct pairs: G(n, m).
    Edges(u64),
    /// Each pair with this probability: G(n, p).
    Probability(f64),
}

impl Kind {
    /// True if edges of this kind of graph are always undirected.
    pub fn is_undirected(self) -> bool {
        match self {
            Self::Grid { .. } | Self::Mesh { .. } | Self::WattsStrogatz { .. } => true,
            Self::ErdosRenyi { undirected, .. } => undirected,
            _ => false,
        }
    }
}

/// A graph to be generated.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    kind: Kind,
    seed: u64,
}

/// Vertices per part of a log-normal graph: about 65,000 edges at a mean degree of 127.
const LOG_NORMAL_PART: u64 = 512;
/// Vertices per part of a mesh: about 40,000 edges.
const MESH_PART: u64 = 1024;
/// The maximum number of neighbors in a small world, which bounds the memory for one vertex.
const MAX_NEIGHBORS: u64 = 1 << 20;
const MAX_EDGES: &str = "a random graph has at most 2^48 edges";

impl Generator {
    /// A generator of `kind` with `seed`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the size is out of range.
    pub fn new(kind: Kind, seed: u64) -> Result<Self> {
        let usage = |problem: &str| Err(Error::Usage(problem.to_owned()));
        match kind {
            Kind::Rmat { scale, .. } if !(1..=40).contains(&scale) => {
                usage("scale must be between 1 and 40")
            }
            Kind::Rmat { scale, edge_factor }
                if edge_factor.checked_mul(1 << scale).is_none_or(|e| e >> 48 != 0) =>
            {
                usage("an R-MAT graph has at most 2^48 edges")
            }
            Kind::LogNormal { mu, sigma, .. }
                if !(mu.is_finite() && sigma.is_finite() && sigma >= 0.0) =>
            {
                usage("mu and sigma must be finite and sigma not negative")
            }
            Kind::LogNormal { vertices, .. }
            | Kind::Chain { vertices }
            | Kind::Ring { vertices }
            | Kind::Star { vertices }
            | Kind::Mesh { vertices }
            | Kind::WattsStrogatz { vertices, .. }
            | Kind::ErdosRenyi { vertices, .. }
                if !(1..=1 << 40).contains(&vertices) =>
            {
                usage("the number of vertices must be between 1 and 2^40")
            }
            Kind::Grid { rows, columns, .. }
                if !rows.checked_mul(columns).is_some_and(|n| (1..=1 << 40).contains(&n)) =>
            {
                usage("rows times columns must be between 1 and 2^40")
            }
            Kind::WattsStrogatz { vertices, neighbors, .. }
                if neighbors % 2 == 1 || neighbors >= vertices || neighbors > MAX_NEIGHBORS =>
            {
                usage(
                    "the number of neighbors must be even, less than the number of vertices, at \
                     most 2^20",
                )
            }
            Kind::WattsStrogatz { rewire: p, .. }
            | Kind::ErdosRenyi { amount: Amount::Probability(p), .. }
                if !(0.0..=1.0).contains(&p) =>
            {
                usage("a probability is between 0 and 1")
            }
            Kind::ErdosRenyi { vertices, amount, undirected } => {
                let pairs = Pairs { vertices, undirected }.count();
                match amount {
                    Amount::Edges(edges) if u128::from(edges) > pairs => usage(&format!(
                        "{} can have at most {}, one for each pair",
                        counted(vertices, "vertex"),
                        counted(pairs, "edge")
                    )),
                    Amount::Edges(edges) if edges >> 48 != 0 => usage(MAX_EDGES),
                    Amount::Probability(p) if pairs as f64 * p > (1_u64 << 48) as f64 => {
                        usage(MAX_EDGES)
                    }
                    _ => Ok(Self { kind, seed }),
                }
            }
            kind => Ok(Self { kind, seed }),
        }
    }

    /// Number of vertices, numbered from 0, including isolated ones.
    pub fn vertices(&self) -> u64 {
        match self.kind {
            Kind::Rmat { scale, .. } => 1 << scale,
            Kind::LogNormal { vertices, .. }
            | Kind::Chain { vertices }
            | Kind::Ring { vertices }
            | Kind::Star { vertices }
            | Kind::Mesh { vertices }
            | Kind::WattsStrogatz { vertices, .. }
            | Kind::ErdosRenyi { vertices, .. } => vertices,
            Kind::Grid { rows, columns, .. } => rows * columns,
        }
    }

    /// Number of edges; the expected number if it is random.
    pub fn edges(&self) -> u64 {
        let share = |share: f64, whole: u64| (share * whole as f64) as u64;
        match self.kind {
            Kind::Rmat { scale, edge_factor } => edge_factor.saturating_mul(1 << scale),
            Kind::LogNormal { vertices, mu, sigma } => {
                share(capped_mean(vertices, mu, sigma), vertices)
            }
            Kind::Chain { vertices } | Kind::Star { vertices } => vertices.saturating_sub(1),
            Kind::Ring { vertices } => vertices,
            Kind::Grid { rows, columns, torus } => {
                let both_ways = self.vertices().saturating_mul(2);
                let open_rows = if is_closed(columns, torus) { 0 } else { rows };
                let open_columns = if is_closed(rows, torus) { 0 } else { columns };
                both_ways.saturating_sub(open_rows.saturating_add(open_columns))
            }
            Kind::Mesh { vertices } => share(39.5, vertices),
            Kind::WattsStrogatz { vertices, neighbors, .. } => {
                vertices.saturating_mul(neighbors / 2)
            }
            Kind::ErdosRenyi { amount: Amount::Edges(edges), .. } => edges,
            Kind::ErdosRenyi { vertices, amount: Amount::Probability(p), undirected } => {
                let pairs = Pairs { vertices, undirected }.count();
                (p * pairs as f64) as u64
            }
        }
    }

    /// The number of units that edges are made from, and the number of units in a part.
    fn units(&self) -> (u64, u64) {
        match self.kind {
            Kind::Rmat { scale, edge_factor } => (edge_factor << scale, BATCH_EDGES as u64),
            Kind::LogNormal { vertices, .. } => (vertices, LOG_NORMAL_PART),
            Kind::Mesh { vertices } => (vertices, MESH_PART),
            Kind::WattsStrogatz { vertices, neighbors, .. } => {
                (vertices, (BATCH_EDGES as u64 / neighbors.max(2)).max(1))
            }
            Kind::ErdosRenyi { amount: Amount::Edges(edges), .. } => (edges, BATCH_EDGES as u64),
            Kind::ErdosRenyi { vertices, amount: Amount::Probability(p), undirected } => {
                let pairs = Pairs { vertices, undirected }.count();
                (pairs.div_ceil(pairs_per_part(p, pairs)) as u64, 1)
            }
            _ => (self.vertices(), BATCH_EDGES as u64 / 2),
        }
    }

    fn random(&self, unit: u64) -> Random {
        Random::of(self.seed, unit)
    }

    fn rmat_edge(&self, edge: u64, scale: u32) -> (u64, u64) {
        // Each level takes 16 random bits, so quadrant thresholds are in 65,536ths.
        const A: u64 = 37_355;
        const AB: u64 = A + 12_452;
        const ABC: u64 = AB + 12_452;
        let mut random = self.random(edge);
        let (mut source, mut target, mut bits) = (0, 0, 0);
        for level in 0..scale {
            if level % 4 == 0 {
                bits = random.next();
            }
            let r = bits & 0xFFFF;
            bits >>= 16;
            source = source << 1 | u64::from(r >= AB);
            target = target << 1 | (u64::from(r >= A) ^ u64::from(r >= AB) ^ u64::from(r >= ABC));
        }
        (permute(source, scale), permute(target, scale))
    }

    fn log_normal_targets(
        &self,
        vertex: u64,
        vertices: u64,
        mu: f64,
        sigma: f64,
        targets: &mut Vec<u64>,
    ) {
        let mut random = self.random(vertex);
        let others = vertices - 1;
        let degree = libm::round(libm::exp(mu + sigma * random.gaussian()));
        // The cast saturates; the cap lets the draw of distinct targets end.
        choose(&mut random, targets, (degree as u64).min(others), others);
        // Targets are drawn from the other vertices, numbered without this one.
        targets.iter_mut().for_each(|t| *t += u64::from(*t >= vertex));
    }
}

/// The mean of log-normal degrees that are capped at `vertices`.
fn capped_mean(vertices: u64, mu: f64, sigma: f64) -> f64 {
    let cap = vertices as f64;
    // The formula divides by the spread; a tiny spread replaces 0.
    let spread = sigma.abs().max(1e-9);
    let normal = |x: f64| (1.0 + libm::erf(x / std::f64::consts::SQRT_2)) / 2.0;
    let at = (libm::log(cap.max(1.0)) - mu) / spread;
    let below = libm::exp(mu + spread * spread / 2.0) * normal(at - spread);
    below.min(cap) + cap * (1.0 - normal(at))
}

impl EdgeSource for Generator {
    fn parts(&self) -> usize {
        let (units, per_part) = self.units();
        units.div_ceil(per_part) as usize
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        batch.clear();
        let (units, per_part) = self.units();
        let start = part as u64 * per_part;
        let range = start..units.min(start + per_part);
        let mut push = |source, target| {
            batch.sources.push(source);
            batch.targets.push(target);
        };
        match self.kind {
            Kind::Rmat { scale, .. } => range.for_each(|edge| {
                let (source, target) = self.rmat_edge(edge, scale);
                push(source, target);
            }),
            Kind::LogNormal { vertices, mu, sigma } => draw(range, push, |vertex, targets| {
                self.log_normal_targets(vertex, vertices, mu, sigma, targets);
            }),
            Kind::Chain { vertices } => {
                range.filter(|v| v + 1 < vertices).for_each(|v| push(v, v + 1))
            }
            Kind::Ring { vertices } => range.for_each(|v| push(v, (v + 1) % vertices)),
            Kind::Star { .. } => range.filter(|v| *v > 0).for_each(|v| push(v, 0)),
            Kind::Grid { rows, columns, torus } => {
                range.for_each(|v| grid_edges(v, (rows, columns), torus, &mut push))
            }
            Kind::Mesh { .. } => draw(range, push, |vertex, targets| {
                mesh_targets(self.random(vertex), vertex, targets);
            }),
            Kind::WattsStrogatz { vertices, neighbors, rewire } => {
                let half = neighbors / 2;
                draw(range, push, |vertex, targets| {
                    let random = self.random(vertex);
                    small_world_targets(random, vertex, vertices, half, rewire, targets);
                })
            }
            Kind::ErdosRenyi { vertices, amount: Amount::Edges(_), undirected } => {
                let pairs = Pairs { vertices, undirected };
                let shuffle = Shuffle::new(pairs.count(), self.seed);
                for edge in range {
                    let (source, target) = pairs.pair(shuffle.at(u128::from(edge)));
                    push(source, target);
                }
            }
            Kind::ErdosRenyi { vertices, amount: Amount::Probability(p), undirected } => {
                let pairs = Pairs { vertices, undirected };
                let (count, width) = (pairs.count(), pairs_per_part(p, pairs.count()));
                for unit in range {
                    let first = u128::from(unit) * width;
                    sample(self.random(unit), first..count.min(first + width), p, |index| {
                        let (source, target) = pairs.pair(index);
                        push(source, target);
                    });
                }
            }
        }
        Ok(())
    }
}

/// Calls `push` with the edges of `sources` to the targets that `targets_of` draws for each.
fn draw(
    sources: std::ops::Range<u64>,
    mut push: impl FnMut(u64, u64),
    mut targets_of: impl FnMut(u64, &mut Vec<u64>),
) {
    let mut targets = Vec::new();
    for source in sources {
        targets_of(source, &mut targets);
        targets.iter().for_each(|&target| push(source, target));
    }
}

/// True if the last of `size` vertices in a row or column of a grid is joined to the first.
fn is_closed(size: u64, torus: bool) -> bool {
    // In a torus of size one or two, the edge around it would be repeated or a self-loop.
    torus && size > 2
}

/// Calls `push` with the edges of `vertex` in a grid to its right and its lower neighbor.
fn grid_edges(
    vertex: u64,
    (rows, columns): (u64, u64),
    torus: bool,
    push: &mut impl FnMut(u64, u64),
) {
    let (row, column) = (vertex / columns, vertex % columns);
    if column + 1 < columns {
        push(vertex, vertex + 1);
    } else if is_closed(columns, torus) {
        push(vertex, row * columns);
    }
    if row + 1 < rows {
        push(vertex, vertex + columns);
    } else if is_closed(rows, torus) {
        push(vertex, column);
    }
}

/// The number of pairs with about half a batch of expected edges; at most all pairs.
fn pairs_per_part(probability: f64, pairs: u128) -> u128 {
    // The cast saturates if the probability is 0.
    let width = libm::ceil(BATCH_EDGES as f64 / 2.0 / probability) as u128;
    width.clamp(1, pairs.max(1))
}

#[cfg(test)]
mod tests;

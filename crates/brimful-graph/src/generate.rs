//! Graphs made from a seed, part by part, so that any part can be made again by any thread.
//!
//! Invariant: an edge depends on the parameters, the seed and its own number alone; only integer
//! arithmetic and `libm`, so the same graph on every platform.

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource};
use crate::error::{Error, Result};

/// A kind of graph and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with a = .57, b = c = .19, d = .05 and ids permuted:
    /// 2^scale vertices, `edge_factor` times as many edges, multi-edges and self-loops kept.
    Rmat {
        /// Binary logarithm of the number of vertices.
        scale: u32,
        /// Edges per vertex.
        edge_factor: u64,
    },
    /// Out-degrees round(e^(mu + sigma * gaussian)), at most n - 1; targets distinct, no self-loop.
    /// (Pregel 2010, section 6; the thesis's table 4.1 with mu = 4, sigma = 1.3.)
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
    /// Every vertex joined to its right and lower neighbour.
    Grid {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        columns: u64,
        /// Joins the last row and column to the first.
        torus: bool,
    },
}

/// A graph to be made.
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    kind: Kind,
    seed: u64,
}

/// Vertices per part of a log-normal graph: about 65,000 edges at a mean degree of 127.
const LOG_NORMAL_PART: u64 = 512;

impl Generator {
    /// A generator.
    ///
    /// # Errors
    /// [`Error::Usage`] if the size is out of range.
    pub fn new(kind: Kind, seed: u64) -> Result<Self> {
        let usage = |what: &str| Err(Error::Usage(what.to_owned()));
        match kind {
            Kind::Rmat { scale, .. } if !(1..=40).contains(&scale) => usage("scale must be between 1 and 40"),
            Kind::Rmat { scale, edge_factor }
                if edge_factor.checked_mul(1 << scale).is_none_or(|e| e >> 48 != 0) =>
            {
                usage("an R-MAT graph has at most 2^48 edges")
            }
            Kind::LogNormal { mu, sigma, .. } if !(mu.is_finite() && sigma.is_finite() && sigma >= 0.0) => {
                usage("mu and sigma must be finite and sigma not negative")
            }
            Kind::LogNormal { vertices, .. }
            | Kind::Chain { vertices }
            | Kind::Ring { vertices }
            | Kind::Star { vertices }
                if !(1..=1 << 40).contains(&vertices) =>
            {
                usage("the number of vertices must be between 1 and 2^40")
            }
            Kind::Grid { rows, columns, .. }
                if !rows.checked_mul(columns).is_some_and(|n| (1..=1 << 40).contains(&n)) =>
            {
                usage("rows times columns must be between 1 and 2^40")
            }
            kind => Ok(Self { kind, seed }),
        }
    }

    /// Number of vertices; they are numbered from 0, isolated ones included.
    pub fn vertices(&self) -> u64 {
        match self.kind {
            Kind::Rmat { scale, .. } => 1 << scale,
            Kind::LogNormal { vertices, .. }
            | Kind::Chain { vertices }
            | Kind::Ring { vertices }
            | Kind::Star { vertices } => vertices,
            Kind::Grid { rows, columns, .. } => rows * columns,
        }
    }

    /// Numbered things that edges are made from, and how many of them make a part.
    fn units(&self) -> (u64, u64) {
        match self.kind {
            Kind::Rmat { scale, edge_factor } => (edge_factor << scale, BATCH_EDGES as u64),
            Kind::LogNormal { vertices, .. } => (vertices, LOG_NORMAL_PART),
            _ => (self.vertices(), BATCH_EDGES as u64 / 2),
        }
    }

    fn random(&self, unit: u64) -> Random {
        Random(mix(self.seed ^ 0x6272_696D_6675_6C00).wrapping_add(mix(unit.wrapping_add(GOLDEN))))
    }

    fn rmat_edge(&self, edge: u64, scale: u32) -> (u64, u64) {
        // 16 random bits a level: quadrant thresholds in 65,536ths.
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

    fn log_normal_targets(&self, vertex: u64, vertices: u64, mu: f64, sigma: f64, targets: &mut Vec<u64>) {
        targets.clear();
        let mut random = self.random(vertex);
        let others = vertices - 1;
        let degree = libm::round(libm::exp(mu + sigma * random.gaussian()));
        // The cast saturates, and the cap keeps the draw below from never ending.
        let degree = (degree as u64).min(others);
        let leave_out = degree > others / 2;
        let count = if leave_out { others - degree } else { degree } as usize;
        while targets.len() < count {
            targets.extend((targets.len()..count).map(|_| random.below(others)));
            targets.sort_unstable();
            targets.dedup();
        }
        if leave_out {
            let mut left_out = std::mem::take(targets).into_iter().peekable();
            targets.extend((0..others).filter(|t| left_out.next_if_eq(t).is_none()));
        }
        // Drawn among the others, numbered without the vertex itself.
        targets.iter_mut().for_each(|t| *t += u64::from(*t >= vertex));
    }
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
            Kind::LogNormal { vertices, mu, sigma } => {
                let mut targets = Vec::new();
                for vertex in range {
                    self.log_normal_targets(vertex, vertices, mu, sigma, &mut targets);
                    targets.iter().for_each(|&target| push(vertex, target));
                }
            }
            Kind::Chain { vertices } => range.filter(|v| v + 1 < vertices).for_each(|v| push(v, v + 1)),
            Kind::Ring { vertices } => range.for_each(|v| push(v, (v + 1) % vertices)),
            Kind::Star { .. } => range.filter(|v| *v > 0).for_each(|v| push(v, 0)),
            Kind::Grid { rows, columns, torus } => {
                for v in range {
                    let (row, column) = (v / columns, v % columns);
                    // A torus of one or two would only repeat an edge or make a loop.
                    if column + 1 < columns {
                        push(v, v + 1);
                    } else if torus && columns > 2 {
                        push(v, row * columns);
                    }
                    if row + 1 < rows {
                        push(v, v + columns);
                    } else if torus && rows > 2 {
                        push(v, column);
                    }
                }
            }
        }
        Ok(())
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A bijection of `bits`-bit numbers, so that hubs are not the low ids.
fn permute(x: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let half = bits.div_ceil(2);
    let x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(GOLDEN) & mask;
    let x = (x ^ x >> half).wrapping_mul(0xA5A3_5646_90F1_2C17) & mask;
    x ^ x >> half
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`; the bias is below bound / 2^64.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A standard normal number (Box and Muller 1958).
    fn gaussian(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        // In (0, 1], so that the logarithm is finite.
        let radius = ((self.next() >> 11) + 1) as f64 * UNIT;
        let angle = (self.next() >> 11) as f64 * UNIT;
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(kind: Kind) -> Vec<(u64, u64)> {
        let generator = Generator::new(kind, 0).unwrap();
        let mut batch = EdgeBatch::default();
        let mut out = Vec::new();
        for part in 0..generator.parts() {
            generator.read_part(part, &mut batch).unwrap();
            out.extend(batch.sources.iter().copied().zip(batch.targets.iter().copied()));
        }
        out
    }

    #[test]
    fn small_shapes() {
        assert_eq!(edges(Kind::Chain { vertices: 3 }), [(0, 1), (1, 2)]);
        assert_eq!(edges(Kind::Chain { vertices: 1 }), []);
        assert_eq!(edges(Kind::Ring { vertices: 3 }), [(0, 1), (1, 2), (2, 0)]);
        assert_eq!(edges(Kind::Star { vertices: 3 }), [(1, 0), (2, 0)]);
        assert_eq!(edges(Kind::Grid { rows: 2, columns: 2, torus: true }), [(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(edges(Kind::Grid { rows: 5, columns: 5, torus: true }).len(), 50);
    }

    #[test]
    fn rmat_is_pinned_and_shaped() {
        let all = edges(Kind::Rmat { scale: 10, edge_factor: 16 });
        assert_eq!(all.len(), 16 << 10);
        assert!(all.iter().all(|&(s, t)| s < 1024 && t < 1024));
        // Pinned: a change here changes every graph that anybody generated.
        let sum = all.iter().fold(0_u64, |sum, &(s, t)| mix(sum ^ s << 32 ^ t));
        assert_eq!(sum, RMAT_10_16, "{sum:#x}");
        let hub = (0..1024).map(|v| all.iter().filter(|e| e.0 == v).count()).max().unwrap();
        assert!(hub > 150, "R-MAT is skewed; the largest out-degree here is {hub}");
    }
    const RMAT_10_16: u64 = 0x7E7C_5A04_EC53_55F9;

    #[test]
    fn log_normal_has_the_thesis_mean_and_distinct_targets() {
        let all = edges(Kind::LogNormal { vertices: 20_000, mu: 4.0, sigma: 1.3 });
        let mean = all.len() as f64 / 20_000.0;
        assert!((115.0..140.0).contains(&mean), "mean degree {mean}, expected about 127.1");
        assert!(all.iter().all(|(s, t)| s != t));
        assert!(all.windows(2).all(|w| w[0] < w[1]), "targets are distinct");
        let sum = all.iter().fold(0_u64, |sum, &(s, t)| mix(sum ^ s << 32 ^ t));
        assert_eq!(sum, LOG_NORMAL_20000, "{sum:#x}");
    }
    const LOG_NORMAL_20000: u64 = 0x29C0_8889_8734_558B;

    #[test]
    fn log_normal_degrees_are_capped() {
        let all = edges(Kind::LogNormal { vertices: 4, mu: 50.0, sigma: 1.0 });
        assert_eq!(all.len(), 12);
        assert_eq!(edges(Kind::LogNormal { vertices: 1, mu: 4.0, sigma: 1.3 }), []);
    }

    #[test]
    fn permutations_are_bijections() {
        for bits in [1, 2, 3, 10, 13] {
            let mut seen: Vec<u64> = (0..1 << bits).map(|x| permute(x, bits)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..1 << bits));
        }
    }
}

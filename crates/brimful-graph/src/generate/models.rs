//! Random graphs whose edges can be drawn in any part, independently of other parts.
//!
//! Invariant: a draw depends only on the generator's numbers for one vertex, edge or part.

use brimful_store::splitmix::mix;

use crate::random::{Random, choose, fill_distinct};

/// A mesh joins every vertex to fewer earlier vertices than this.
const MESH_DEGREE: u64 = 80;

/// The earlier vertices to which `vertex` of a mesh is joined, ascending.
pub(super) fn mesh_targets(mut random: Random, vertex: u64, targets: &mut Vec<u64>) {
    let count = random.below(MESH_DEGREE).min(vertex);
    choose(&mut random, targets, count, vertex);
}

/// The vertices to which `vertex` of a small world is joined: the next `half` on the ring, each
/// replaced with probability `rewire` by any other vertex; distinct, ascending.
pub(super) fn small_world_targets(
    mut random: Random,
    vertex: u64,
    vertices: u64,
    half: u64,
    rewire: f64,
    targets: &mut Vec<u64>,
) {
    targets.clear();
    targets.extend(
        (1..=half).filter(|_| !random.happens(rewire)).map(|step| (vertex + step) % vertices),
    );
    fill_distinct(targets, half as usize, || {
        let other = random.below(vertices - 1);
        other + u64::from(other >= vertex)
    });
}

/// The pairs of distinct vertices, numbered from 0: all ordered pairs, or all unordered ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    pub(super) vertices: u64,
    pub(super) undirected: bool,
}

impl Pairs {
    /// The number of pairs.
    pub(super) fn count(self) -> u128 {
        let n = u128::from(self.vertices);
        (n * (n - 1)) >> u32::from(self.undirected)
    }

    /// Pair number `index`: row d joins every vertex to the vertex d steps further on the ring.
    /// Unordered pairs are the first half of the ordered pairs in this numbering.
    pub(super) fn pair(self, index: u128) -> (u64, u64) {
        let n = u128::from(self.vertices);
        let (source, step) = (index % n, index / n + 1);
        (source as u64, ((source + step) % n) as u64)
    }
}

/// A keyed bijection of the numbers below `count`: a Feistel network on the smallest enclosing
/// square, repeated while the result is outside (Black and Rogaway 2002, *Ciphers with arbitrary
/// finite domains*, methods 2 and 3).
#[derive(Debug, Clone, Copy)]
pub(super) struct Shuffle {
    count: u128,
    side: u64,
    seed: u64,
}

impl Shuffle {
    const ROUNDS: u64 = 6;

    pub(super) fn new(count: u128, seed: u64) -> Self {
        let root = count.isqrt();
        let side = root + u128::from(root * root < count);
        Self { count, side: side as u64, seed: mix(seed ^ 0x5348_5546_464C_4500) }
    }

    pub(super) fn at(&self, index: u128) -> u128 {
        let side = u128::from(self.side);
        let mut number = index;
        loop {
            let (mut left, mut right) = ((number / side) as u64, (number % side) as u64);
            for round in 0..Self::ROUNDS {
                let noise = mix(self
                    .seed
                    .wrapping_add(mix(right.wrapping_mul(Self::ROUNDS).wrapping_add(round))));
                let noise = ((u128::from(noise) * side) >> 64) as u64;
                (left, right) = (right, (left + noise) % self.side);
            }
            number = u128::from(left) * side + u128::from(right);
            if number < self.count {
                return number;
            }
        }
    }
}

/// Calls `take` with numbers of `range`, each chosen with the same `probability`, ascending. The
/// gaps between them are geometric (Batagelj and Brandes 2005, *Efficient generation of large
/// random networks*).
pub(super) fn sample(
    mut random: Random,
    range: std::ops::Range<u128>,
    probability: f64,
    mut take: impl FnMut(u128),
) {
    let scale = libm::log1p(-probability);
    let mut next = range.start;
    loop {
        // The cast saturates, far beyond any range.
        let gap = libm::floor(libm::log(random.positive_unit()) / scale) as u128;
        next = next.saturating_add(gap);
        if next >= range.end {
            return;
        }
        take(next);
        next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_one_number() {
        for vertices in 1..9 {
            for undirected in [false, true] {
                let pairs = Pairs { vertices, undirected };
                let mut all: Vec<_> = (0..pairs.count()).map(|index| pairs.pair(index)).collect();
                if undirected {
                    all.iter_mut()
                        .for_each(|pair| *pair = (pair.0.min(pair.1), pair.0.max(pair.1)));
                }
                all.sort_unstable();
                let expected = (0..vertices).flat_map(|s| (0..vertices).map(move |t| (s, t)));
                let expected = expected.filter(|(s, t)| if undirected { s < t } else { s != t });
                assert_eq!(all, expected.collect::<Vec<_>>(), "{vertices}");
            }
        }
    }

    #[test]
    fn a_shuffle_is_a_bijection() {
        for count in [1, 2, 3, 10, 16, 17, 1000] {
            let shuffle = Shuffle::new(count, 3);
            let mut all: Vec<_> = (0..count).map(|index| shuffle.at(index)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_sample_has_its_probability() {
        for probability in [0.001, 0.5, 0.999] {
            let mut taken = 0_u32;
            sample(Random::of(5, 5), 7..1_000_007, probability, |number| {
                assert!((7..1_000_007).contains(&number));
                taken += 1;
            });
            let deviation = (1e6 * probability * (1.0 - probability)).sqrt();
            assert!(
                (f64::from(taken) - 1e6 * probability).abs() < 5.0 * deviation,
                "{probability}: {taken}"
            );
        }
        let mut all = Vec::new();
        sample(Random::of(5, 5), 3..6, 1.0, |number| all.push(number));
        assert_eq!(all, [3, 4, 5]);
    }
}

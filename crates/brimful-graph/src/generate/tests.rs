//! Tests every kind of graph against its definition, and against the same graph made in other
//! parts.

use super::*;
use brimful_store::splitmix::mix;

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
    assert_eq!(
        edges(Kind::Grid { rows: 2, columns: 2, torus: true }),
        [(0, 1), (0, 2), (1, 3), (2, 3)]
    );
    assert_eq!(edges(Kind::Grid { rows: 5, columns: 5, torus: true }).len(), 50);
}

#[test]
fn as_many_edges_as_are_foreseen() {
    let vertices = 3000;
    for kind in [
        Kind::Rmat { scale: 10, edge_factor: 7 },
        Kind::LogNormal { vertices, mu: 2.0, sigma: 1.0 },
        Kind::LogNormal { vertices, mu: 4.0, sigma: 4.0 },
        Kind::LogNormal { vertices, mu: 60.0, sigma: 1.0 },
        Kind::LogNormal { vertices, mu: 3.0, sigma: 0.0 },
        Kind::Chain { vertices },
        Kind::Ring { vertices },
        Kind::Star { vertices },
        Kind::Grid { rows: 30, columns: 100, torus: true },
        Kind::Grid { rows: 2, columns: 2, torus: true },
        Kind::Grid { rows: 1, columns: 5, torus: true },
        Kind::Grid { rows: 2, columns: 7, torus: true },
        Kind::Grid { rows: 1, columns: 3000, torus: false },
        Kind::Mesh { vertices },
        Kind::WattsStrogatz { vertices, neighbors: 6, rewire: 0.1 },
        Kind::ErdosRenyi { vertices, amount: Amount::Edges(5000), undirected: true },
        Kind::ErdosRenyi { vertices, amount: Amount::Probability(0.01), undirected: true },
        Kind::ErdosRenyi { vertices, amount: Amount::Probability(0.01), undirected: false },
    ] {
        let (foreseen, made) =
            (Generator::new(kind, 0).unwrap().edges() as f64, edges(kind).len() as f64);
        assert!((foreseen / made - 1.0).abs() < 0.1, "{kind:?}: {foreseen} foreseen, {made} made");
    }
}

#[test]
fn rmat_is_pinned_and_shaped() {
    let all = edges(Kind::Rmat { scale: 10, edge_factor: 16 });
    assert_eq!(all.len(), 16 << 10);
    assert!(all.iter().all(|&(s, t)| s < 1024 && t < 1024));
    // Pinned, because a change here changes every generated graph.
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
fn checksum(all: &[(u64, u64)]) -> u64 {
    all.iter().fold(0_u64, |sum, &(s, t)| mix(sum ^ s << 32 ^ t))
}

#[test]
fn a_mesh_joins_earlier_vertices_and_is_pinned() {
    let all = edges(Kind::Mesh { vertices: 20_000 });
    assert!(all.windows(2).all(|w| w[0] < w[1]) && all.iter().all(|(s, t)| t < s));
    // The mean of 0..80 is 39.5, its deviation 23.1; the first 80 vertices have fewer targets.
    let mean = all.len() as f64 / 20_000.0;
    assert!((mean - 39.5).abs() < 5.0 * 23.1 / 20_000_f64.sqrt() + 0.1, "{mean}");
    let mut out = vec![0_u64; 20_000];
    all.iter().for_each(|&(s, _)| out[s as usize] += 1);
    assert_eq!(out.iter().max(), Some(&79));
    // All degrees are equally likely: chi-squared with 79 degrees of freedom.
    let mut degrees = [0_f64; 80];
    out[80..].iter().for_each(|&degree| degrees[degree as usize] += 1.0);
    let expected = 19_920.0 / 80.0;
    let chi: f64 = degrees.iter().map(|count| (count - expected).powi(2) / expected).sum();
    assert!(chi < 140.0, "{chi}");
    // Targets are uniform among earlier vertices: for late vertices, half of them lie in the lower
    // half.
    let late: Vec<_> = all.iter().filter(|(s, _)| *s >= 10_000).collect();
    let low = late.iter().filter(|(s, t)| 2 * t < *s).count() as f64 / late.len() as f64;
    assert!((low - 0.5).abs() < 0.01, "{low}");
    assert_eq!(checksum(&all), MESH_20000, "{:#x}", checksum(&all));
}
const MESH_20000: u64 = 0x20FE_D332_AD21_3FA6;

/// Mean over vertices of the fraction of pairs of neighbors that are joined.
fn clustering(all: &[(u64, u64)], vertices: usize) -> f64 {
    let mut neighbors = vec![std::collections::BTreeSet::new(); vertices];
    for &(s, t) in all {
        neighbors[s as usize].insert(t);
        neighbors[t as usize].insert(s);
    }
    let share = |own: &std::collections::BTreeSet<u64>| {
        let joined = |a: &u64| own.iter().filter(|&b| neighbors[*a as usize].contains(b)).count();
        let pairs = own.len() * own.len().saturating_sub(1);
        own.iter().map(joined).sum::<usize>() as f64 / pairs.max(1) as f64
    };
    neighbors.iter().map(share).sum::<f64>() / vertices as f64
}

#[test]
fn small_worlds_lose_clustering_as_they_are_rewired_and_are_pinned() {
    let world = |rewire| edges(Kind::WattsStrogatz { vertices: 4_000, neighbors: 10, rewire });
    for rewire in [0.0, 0.1, 1.0] {
        let all = world(rewire);
        assert_eq!(all.len(), 4_000 * 5);
        assert!(all.iter().all(|(s, t)| s != t) && all.windows(2).all(|w| w[0].0 <= w[1].0));
        let mut distinct: Vec<_> = all.iter().map(|&(s, t)| (s.min(t), s.max(t))).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(all.len() - distinct.len() <= 100, "{}", all.len() - distinct.len());
        // C(p) = C(0) (1 - p)^3 with C(0) = 3 (k - 2) / (4 (k - 1)) (Barrat and Weigt 2000).
        let expected = 2.0 / 3.0 * (1.0 - rewire).powi(3);
        let found = clustering(&all, 4_000);
        assert!((found - expected).abs() < 0.02, "{rewire}: {found}, expected {expected}");
        let kept =
            all.iter().filter(|(s, t)| (t + 4_000 - s) % 4_000 <= 5).count() as f64 / 20_000.0;
        assert!((kept - (1.0 - rewire)).abs() < 0.015, "{rewire}: {kept}");
    }
    assert_eq!(checksum(&world(0.1)), SMALL_WORLD_4000, "{:#x}", checksum(&world(0.1)));
}
const SMALL_WORLD_4000: u64 = 0xE9FF_3D04_819B_0F3A;

#[test]
fn random_graphs_have_distinct_edges_binomial_degrees_and_are_pinned() {
    for undirected in [false, true] {
        for amount in [Amount::Edges(60_000), Amount::Probability(0.015)] {
            let mut all = edges(Kind::ErdosRenyi { vertices: 2_000, amount, undirected });
            let pairs = if undirected { 1_999_000.0 } else { 3_998_000.0 };
            let expected = match amount {
                Amount::Edges(edges) => edges as f64,
                Amount::Probability(p) => pairs * p,
            };
            let deviation = if amount == Amount::Edges(60_000) { 0.0 } else { expected.sqrt() };
            assert!((all.len() as f64 - expected).abs() <= 4.0 * deviation, "{}", all.len());
            let pinned = checksum(&all);
            let index = usize::from(undirected) * 2 + usize::from(deviation > 0.0);
            assert_eq!(pinned, RANDOM_2000[index], "{index}: {pinned:#x}");
            let mut degrees = vec![0_f64; 2_000];
            for (s, t) in &mut all {
                assert!(s != t && *s < 2_000 && *t < 2_000);
                if undirected && s > t {
                    std::mem::swap(s, t);
                }
                degrees[*s as usize] += 1.0;
                degrees[*t as usize] += 1.0;
            }
            let mean = 2.0 * all.len() as f64 / 2_000.0;
            let variance = degrees.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 2_000.0;
            assert!((variance / mean - 1.0).abs() < 0.15, "mean {mean}, variance {variance}");
            let found = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), found, "edges are distinct");
        }
    }
    let empty = Amount::Probability(0.0);
    assert_eq!(edges(Kind::ErdosRenyi { vertices: 9, amount: empty, undirected: true }), []);
    assert_eq!(
        edges(Kind::ErdosRenyi { vertices: 1, amount: Amount::Edges(0), undirected: true }),
        []
    );
    let complete = Amount::Probability(1.0);
    assert_eq!(
        edges(Kind::ErdosRenyi { vertices: 9, amount: complete, undirected: true }).len(),
        36
    );
}
const RANDOM_2000: [u64; 4] =
    [0xEB48_E3B5_AD33_DC98, 0x064F_1F81_0124_0B61, 0xB80E_1BE9_4F2A_03DC, 0x7C39_ED68_B0E8_5A4E];

#[test]
fn impossible_random_graphs_are_refused() {
    let refused = [
        Kind::Mesh { vertices: 0 },
        Kind::WattsStrogatz { vertices: 10, neighbors: 3, rewire: 0.5 },
        Kind::WattsStrogatz { vertices: 10, neighbors: 10, rewire: 0.5 },
        Kind::WattsStrogatz { vertices: 10, neighbors: 4, rewire: f64::NAN },
        Kind::ErdosRenyi { vertices: 4, amount: Amount::Edges(7), undirected: true },
        Kind::ErdosRenyi { vertices: 4, amount: Amount::Edges(13), undirected: false },
        Kind::ErdosRenyi { vertices: 4, amount: Amount::Probability(-0.1), undirected: false },
        Kind::ErdosRenyi { vertices: 1 << 40, amount: Amount::Probability(0.5), undirected: false },
    ];
    for kind in refused {
        assert!(matches!(Generator::new(kind, 0), Err(Error::Usage(_))), "{kind:?}");
    }
    Generator::new(
        Kind::ErdosRenyi { vertices: 4, amount: Amount::Edges(12), undirected: false },
        0,
    )
    .unwrap();
}

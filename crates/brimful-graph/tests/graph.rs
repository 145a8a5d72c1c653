//! Import, verify, export and generate, end to end on small graphs.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

#[path = "graph/distributed.rs"]
mod distributed;
#[path = "graph/divided.rs"]
mod divided;
#[path = "graph/faults.rs"]
mod faults;
#[path = "graph/formats.rs"]
mod formats;
#[path = "graph/left_out.rs"]
mod left_out;
#[path = "graph/lookups.rs"]
mod lookups;
#[path = "graph/names.rs"]
mod names;
#[path = "graph/order.rs"]
mod order;
#[path = "graph/parsed.rs"]
mod parsed;
#[path = "graph/probe.rs"]
mod probe;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_graph::build::import::{ImportOptions, ImportReport, Input, build_reverse, import};
use brimful_graph::build::weights::Weights;
use brimful_graph::edges::{EdgeBatch, EdgeSource};
use brimful_graph::export::{self, EdgeReader, ExportOptions};
use brimful_graph::generate::{Amount, Generator, Kind};
use brimful_graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful_graph::read::lookup::{Direction, Lookup};
use brimful_graph::read::shards::Geometry;
use brimful_graph::read::verify;
use brimful_graph::{Error, Graph, Index};
use brimful_store::{Budget, Error as StoreError, Job, Resources};

const SMALL: Geometry =
    Geometry { interval_bits: 3, window_edges: 40, segment_edges: 16, unit_bytes: 200 };

fn resources(threads: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn import_text(folder: &Path, text: &str, options: &ImportOptions) -> (Graph, ImportReport) {
    let input = write(folder, "edges.txt", text);
    let out = folder.join("g.brimful");
    let resources = resources(2, 1 << 30);
    let report = import(Input::EdgeList(vec![input]), &out, options, &resources).unwrap();
    let graph = Graph::open(&out, resources.job.traffic()).unwrap();
    verify::verify(&graph, &Job::new()).unwrap();
    (graph, report)
}

/// The out-neighbors of a vertex, from the graph opened again.
fn neighbors(graph: &Graph, number: i128) -> Vec<i128> {
    let lookup = Lookup::new(Arc::new(Graph::open(graph.path(), &Arc::default()).unwrap()));
    let found =
        lookup.neighbors(lookup.find(&number.into()).unwrap(), Direction::Out, false).unwrap();
    found.ids.into_iter().map(|bits| graph.id_type().number(bits)).collect()
}

/// All edges, with their multiplicity and weight bits.
fn edges(graph: Graph) -> BTreeMap<(i128, i128, u64), usize> {
    let id_type = graph.id_type();
    let mut reader = EdgeReader::new(Arc::new(graph));
    let (mut batch, mut out) = (EdgeBatch::default(), BTreeMap::new());
    while reader.next(&mut batch).unwrap() {
        for at in 0..batch.len() {
            let key = (
                id_type.number(batch.sources[at]),
                id_type.number(batch.targets[at]),
                batch.weight(at).to_bits(),
            );
            *out.entry(key).or_default() += 1;
        }
    }
    out
}

fn export_as(graph: &Arc<Graph>, out: &Path, options: &ExportOptions) -> Result<u64, Error> {
    let resources = resources(2, export::minimum_bytes(options, 2));
    Ok(export::write(graph, out, options, &resources)?.edges)
}

fn random_text(seed: u64, ids: &[i128], count: usize, weighted: bool) -> String {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut text = String::from(if weighted { "source target weight\n" } else { "# random\n" });
    for _ in 0..count {
        let (s, t) = (ids[next() as usize % ids.len()], ids[next() as usize % ids.len()]);
        match weighted {
            true => text += &format!("{s} {t} {}\n", (next() % 7) as f64 / 4.0),
            false => text += &format!("{s}\t{t}\n"),
        }
    }
    text
}

fn expected(text: &str) -> BTreeMap<(i128, i128, u64), usize> {
    let mut out = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', 's'])) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let weight: f64 = fields.get(2).map_or(1.0, |w| w.parse().unwrap());
        let key = (fields[0].parse().unwrap(), fields[1].parse().unwrap(), weight.to_bits());
        *out.entry(key).or_default() += 1;
    }
    out
}

#[test]
fn an_import_replaces_a_graph_or_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("g.brimful");
    let replace = |text: &str, replace: bool| {
        let input = Input::EdgeList(vec![write(folder.path(), "edges.txt", text)]);
        let options = ImportOptions { replace, ..ImportOptions::default() };
        import(input, &out, &options, &resources(2, 1 << 30))
    };
    let edges_of = || Graph::open(&out, &Arc::default()).unwrap().description().edges;
    replace("1 2\n", true).unwrap();
    assert!(matches!(replace("1 2\n", false), Err(Error::Store(StoreError::Exists { .. }))));
    replace("1 2\n2 3\n", true).unwrap();
    assert_eq!(edges_of(), 2);
    assert!(replace("1 2\n2 3\n3 x\n", true).is_err());
    assert_eq!(edges_of(), 2);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["edges.txt", "g.brimful"]);
}

#[test]
fn what_goes_in_comes_out_for_dense_and_sparse_ids() {
    let dense: Vec<i128> = (0..50).collect();
    let shifted: Vec<i128> = (0..50).map(|i| 1_000_000 + i * 977).collect();
    let sparse: Vec<i128> = (0..50).map(|i| i * i * 88_172_645_463_325_252 % (1 << 63)).collect();
    let negative: Vec<i128> = (0..50).map(|i| i * 12_345_678_901 - 300_000_000_000).collect();
    let huge: Vec<i128> = (0..50).map(|i| (1 << 64) - 1 - i * 40_000_000_000_000).collect();
    for (ids, sorted_path) in
        [(dense, false), (shifted, false), (sparse, true), (negative, true), (huge, true)]
    {
        for weighted in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let text = random_text(7, &ids, 700, weighted);
            let options = ImportOptions { geometry: SMALL, reverse: true, ..Default::default() };
            let (graph, report) = import_text(folder.path(), &text, &options);
            let wanted = expected(&text);
            let pairs: BTreeMap<(i128, i128), usize> =
                wanted.iter().fold(BTreeMap::new(), |mut sum, ((s, t, _), n)| {
                    *sum.entry((*s, *t)).or_default() += n;
                    sum
                });
            let loops: usize = pairs.iter().filter(|((s, t), _)| s == t).map(|(_, n)| n).sum();
            let counts = report.description.counts;
            assert_eq!(report.description.edges, 700);
            assert_eq!(counts.lines, 701);
            assert_eq!(counts.self_loops, loops as u64);
            assert_eq!(counts.duplicates, 700 - pairs.len() as u64);
            assert_eq!(report.phases.iter().any(|(name, _)| *name == "rank ids"), sorted_path);
            for &(s, _) in pairs.keys() {
                let degree: usize =
                    pairs.iter().filter(|((source, _), _)| *source == s).map(|(_, n)| n).sum();
                assert_eq!(neighbors(&graph, s).len(), degree);
            }
            let absent = (0..).find(|id| !ids.contains(id)).unwrap();
            let refused = graph.find(absent).unwrap_err().to_string();
            assert_eq!(refused, format!("the graph has no vertex {absent}"));
            let refused = graph.find_name("7").unwrap_err().to_string();
            assert_eq!(refused, "the graph has no vertex \"7\"; its ids are integers");
            assert_eq!(edges(graph), wanted);
        }
    }
}

/// The bytes of every file of a graph.
fn bytes_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .collect()
}

#[test]
fn the_same_input_gives_the_same_bytes_at_any_thread_count_and_budget() {
    let minimum = brimful_graph::build::import::minimum_bytes(4, true, false);
    for ids in
        [(0..3000).collect::<Vec<i128>>(), (0..3000).map(|i| i * 5_000_000_000 - 7).collect()]
    {
        for weighted in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let input = write(folder.path(), "edges.txt", random_text(3, &ids, 200_000, weighted));
            let options = ImportOptions { geometry: SMALL, reverse: true, ..Default::default() };
            let mut first = None;
            for (threads, budget) in [(1, minimum), (2, 1 << 28), (4, minimum), (3, 1 << 30)] {
                let out = folder.path().join(format!("{threads}.brimful"));
                let input = Input::EdgeList(vec![input.clone()]);
                import(input, &out, &options, &resources(threads, budget)).unwrap();
                let bytes = bytes_of(&out);
                assert!(first.get_or_insert_with(|| bytes.clone()) == &bytes, "{threads} threads");
                std::fs::remove_dir_all(out).unwrap();
            }
        }
    }
}

#[test]
fn generated_graphs_have_the_same_bytes_at_any_thread_count_and_budget() {
    let kinds = [
        Kind::Rmat { scale: 12, edge_factor: 30 },
        Kind::LogNormal { vertices: 1500, mu: 4.0, sigma: 1.3 },
        Kind::Grid { rows: 90, columns: 31, torus: true },
        Kind::Mesh { vertices: 5_000 },
        Kind::WattsStrogatz { vertices: 30_000, neighbors: 8, rewire: 0.3 },
        Kind::ErdosRenyi { vertices: 3_000, amount: Amount::Edges(150_000), undirected: false },
        Kind::ErdosRenyi { vertices: 3_000, amount: Amount::Probability(0.04), undirected: true },
    ];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        let generator = Generator::new(kind, 42).unwrap();
        let mut first = None;
        for (threads, budget) in [(1, 60 << 20), (4, 1 << 30)] {
            let out = folder.path().join(format!("{threads}.brimful"));
            let input = Input::Numbered(&generator, generator.vertices());
            import(input, &out, &ImportOptions::default(), &resources(threads, budget)).unwrap();
            let bytes = bytes_of(&out);
            assert!(first.get_or_insert_with(|| bytes.clone()) == &bytes, "{kind:?}");
        }
    }
}

#[test]
fn an_index_built_later_equals_one_built_at_import() {
    let folder = tempfile::tempdir().unwrap();
    let input = write(
        folder.path(),
        "edges.txt",
        random_text(5, &(0..4000).collect::<Vec<_>>(), 9000, true),
    );
    let (early, late) = (folder.path().join("early.brimful"), folder.path().join("late.brimful"));
    let resources = resources(2, 1 << 30);
    for (out, reverse) in [(&early, true), (&late, false)] {
        let options = ImportOptions { reverse, ..Default::default() };
        import(Input::EdgeList(vec![input.clone()]), out, &options, &resources).unwrap();
    }
    let graph = Graph::open(&late, resources.job.traffic()).unwrap();
    assert!(graph.shards(Index::Reverse).is_none());
    build_reverse(&graph, &resources).unwrap();
    assert_eq!(bytes_of(&late)["reverse.shards"], bytes_of(&early)["reverse.shards"]);
    let graph = Graph::open(&late, resources.job.traffic()).unwrap();
    assert!(graph.shards(Index::Reverse).is_some());
    verify::verify(&graph, &Job::new()).unwrap();
}

#[test]
fn the_first_bad_line_is_named_whatever_the_timing() {
    let folder = tempfile::tempdir().unwrap();
    // Enough lines for several chunks, with two errors in different chunks.
    let mut text = "123456 234567\n".repeat(400_000);
    text.insert_str(14 * 300_000, "1 x\n");
    text.insert_str(14 * 150_000, "7 8 9\n");
    let input = write(folder.path(), "edges.txt", text);
    for threads in [1, 2, 4] {
        let out = folder.path().join("g.brimful");
        let input = Input::EdgeList(vec![input.clone()]);
        let error = import(input, &out, &ImportOptions::default(), &resources(threads, 1 << 28))
            .unwrap_err();
        let Error::Parse { line, column, found, .. } = error else { panic!("{error}") };
        assert_eq!((line, column, found.as_str()), (150_001, 5, "\"9\""));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }
}

#[test]
fn parts_of_a_generator_can_be_read_in_any_order() {
    let generator = Generator::new(Kind::Rmat { scale: 14, edge_factor: 9 }, 1).unwrap();
    let read = |part| {
        let mut batch = EdgeBatch::default();
        generator.read_part(part, &mut batch).unwrap();
        batch.sources
    };
    assert!(generator.parts() > 2);
    let forward: Vec<_> = (0..generator.parts()).map(read).collect();
    let mut backward: Vec<_> = (0..generator.parts()).rev().map(read).collect();
    backward.reverse();
    assert_eq!(forward, backward);
}

#[test]
fn policies_give_the_same_bytes_at_any_thread_count_and_budget() {
    let minimum = brimful_graph::build::import::minimum_bytes(4, true, true);
    let ids: Vec<i128> = (0..40).collect();
    for (duplicates, weights, weighted) in [
        (Duplicates::Sum, Weights::Input, false),
        (Duplicates::Min, Weights::Input, true),
        (Duplicates::Drop, Weights::Hash, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let input = write(folder.path(), "edges.txt", random_text(3, &ids, 100_000, weighted));
        let options = ImportOptions {
            geometry: SMALL,
            reverse: true,
            policy: Policy { duplicates, self_loops: SelfLoops::Drop },
            weights,
            ..Default::default()
        };
        let mut first = None;
        for (threads, budget) in [(1, minimum), (4, 1 << 28)] {
            let out = folder.path().join(format!("{threads}.brimful"));
            let resources = resources(threads, budget);
            let report =
                import(Input::EdgeList(vec![input.clone()]), &out, &options, &resources).unwrap();
            let counts = report.description.counts;
            assert_eq!(counts.self_loops, counts.self_loops_dropped);
            let dropped = counts.self_loops_dropped + counts.duplicates_dropped;
            assert_eq!(report.description.edges, 100_000 - dropped);
            assert_eq!(report.description.edges, 40 * 39, "every pair occurs");
            assert!(report.description.weighted && report.description.weights.is_some());
            verify::verify(&Graph::open(&out, resources.job.traffic()).unwrap(), &Job::new())
                .unwrap();
            let bytes = bytes_of(&out);
            assert!(first.get_or_insert_with(|| bytes.clone()) == &bytes, "{duplicates:?}");
        }
    }
}

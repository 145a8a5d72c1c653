//! The internal order is the same on every path of an import; external order is restored from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_graph::build::import::{
    EdgeStream, ImportOptions, Input, Listed, import, minimum_bytes,
};
use brimful_graph::edges::{EdgeBatch, VertexList};
use brimful_graph::export::{self, EdgeReader, ExportOptions, Format};
use brimful_graph::ids::external::IdType;
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::policy::{Policy, SelfLoops};
use brimful_graph::order::choice::OrderName;
use brimful_graph::read::external_order::ExternalOrder;
use brimful_graph::read::lookup::{Direction, Lookup};
use brimful_graph::read::shards::Geometry;
use brimful_graph::read::verify;
use brimful_graph::{Error, Graph};
use brimful_store::{Budget, ErrorKind, Job, Resources};

const SMALL: Geometry =
    Geometry { interval_bits: 9, window_edges: 3000, segment_edges: 1000, unit_bytes: 4000 };

type Edges = Vec<(i64, i64)>;

fn resources(threads: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// Edges in which few vertices have most ends: the fourth power of a uniform distribution; `id`
/// gives the ids.
fn skewed(vertices: u64, edges: u64, id: impl Fn(u64) -> i64) -> Edges {
    let even = |i: u64| {
        ((i ^ 0x5DEE_CE66).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24) as f64
            / f64::from(2.0_f32.powi(40))
    };
    let end = |i| id((even(i).powi(4) * vertices as f64) as u64);
    (0..edges).map(|i| (end(2 * i), end(2 * i + 1))).collect()
}

fn text_of(folder: &Path, edges: &Edges) -> PathBuf {
    let path = folder.join("edges.txt");
    std::fs::write(&path, edges.iter().map(|(s, t)| format!("{s} {t}\n")).collect::<String>())
        .unwrap();
    path
}

fn pairs_of(folder: &Path, edges: &Edges) -> PathBuf {
    let path = folder.join("edges.u32");
    let ends = edges.iter().flat_map(|(s, t)| [*s as u32, *t as u32]);
    std::fs::write(&path, ends.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    path
}

fn make(folder: &Path, edges: &Edges, options: &ImportOptions) -> Graph {
    let out = folder.join("g.brimful");
    let input = Input::EdgeList(vec![text_of(folder, edges)]);
    import(input, &out, options, &resources(2, 1 << 28)).unwrap();
    let graph = Graph::open(&out, &Arc::default()).unwrap();
    verify::verify(&graph, &Job::new()).unwrap();
    graph
}

/// Bytes of the files that depend on the order.
fn bytes_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let names =
        std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let shaped = names.filter(|name| !name.starts_with("manifest") && name != "current");
    shaped.map(|name| (name.clone(), std::fs::read(path.join(name)).unwrap())).collect()
}

/// All vertices in external order, as (internal id, number), read in small batches.
fn external_order(graph: &Graph, batch: usize) -> Vec<(u64, i128)> {
    let mut order = ExternalOrder::new(graph);
    let (mut vertices, mut ids) = (Vec::new(), Vec::new());
    loop {
        let before = ids.len();
        order.next_batch(batch, &mut vertices, &mut ids).unwrap();
        assert!(ids.len() - before <= batch && ids.len() == vertices.len());
        if ids.len() == before {
            return vertices
                .into_iter()
                .zip(ids.iter().map(|id| graph.id_type().number(*id)))
                .collect();
        }
    }
}

/// The out-neighbors of a vertex, from the graph opened again.
fn neighbors(graph: &Graph, number: i128) -> Vec<i128> {
    let lookup = Lookup::new(Arc::new(Graph::open(graph.path(), &Arc::default()).unwrap()));
    let found =
        lookup.neighbors(lookup.find(&number.into()).unwrap(), Direction::Out, false).unwrap();
    found.ids.into_iter().map(|bits| graph.id_type().number(bits)).collect()
}

#[test]
fn the_same_edges_give_the_same_bytes_in_memory_or_sorted_from_text_or_pairs() {
    let edges = skewed(20_000, 100_000, |v| (v * 7919 % 20_000) as i64);
    for (undirected, vertices) in [(false, Some(30_000)), (true, None)] {
        let folder = tempfile::tempdir().unwrap();
        let (text, pairs) = (text_of(folder.path(), &edges), pairs_of(folder.path(), &edges));
        let mut first = None;
        for threads in 1..=4 {
            let minimum = minimum_bytes(threads, true, false);
            for (number, budget) in [minimum, minimum + (9 << 20), 1 << 30].into_iter().enumerate()
            {
                let sort_ids = (number + threads) % 2 == 0;
                let input = match (number + threads) % 3 {
                    0 => Input::Pairs(vec![pairs.clone()]),
                    _ => Input::EdgeList(vec![text.clone()]),
                };
                let options = ImportOptions {
                    undirected,
                    vertices,
                    reverse: true,
                    sort_ids,
                    geometry: SMALL,
                    ..Default::default()
                };
                let out = folder.path().join("g.brimful");
                let done = import(input, &out, &options, &resources(threads, budget)).unwrap();
                assert_eq!(done.phases.iter().any(|(name, _)| *name == "rank ids"), sort_ids);
                let order = done.description.order;
                assert_eq!(order.name, OrderName::Degree);
                assert!(order.runs.len() > 3, "{order:?}");
                let found = (order.runs, done.description.connected, bytes_of(&out));
                assert!(found.2.contains_key("ids"));
                assert!(first.get_or_insert_with(|| found.clone()) == &found, "{threads} {number}");
                std::fs::remove_dir_all(out).unwrap();
            }
        }
    }
}

/// Edges and vertices as an input in memory.
struct Given {
    edges: EdgeBatch,
    vertices: Vec<u64>,
}

impl EdgeStream for Given {
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool, Error> {
        *batch = std::mem::take(&mut self.edges);
        Ok(!batch.is_empty())
    }

    fn name(&self) -> &Path {
        Path::new("given")
    }

    fn weighted(&self) -> bool {
        false
    }

    fn id_type(&self) -> Result<IdType, Error> {
        Ok(IdType::Int64)
    }

    fn listed(&mut self) -> Option<Listed> {
        Some(Box::new(VertexList::new(std::mem::take(&mut self.vertices))))
    }
}

#[test]
fn a_header_a_list_and_a_stream_declare_the_same_vertices_in_the_same_order() {
    const VERTICES: u64 = 25_000;
    // Ids begin at 1; one vertex in 10 has a self-loop, and some of these have no other edge.
    let mut edges = skewed(20_000, 60_000, |v| (v * 7919 % 20_000) as i64 + 1);
    edges.extend((0..500).map(|i| (i * 50 + 1, i * 50 + 1)));
    let folder = tempfile::tempdir().unwrap();
    let lines = |separator: char| {
        edges.iter().map(|(s, t)| format!("{s}{separator}{t}\n")).collect::<String>()
    };
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let jlg = file("g.jlg", format!("{VERTICES},{},d,g\n{}", edges.len(), lines(',')));
    let banner = "%%MatrixMarket matrix coordinate pattern general";
    let mtx =
        file("g.mtx", format!("{banner}\n{VERTICES} {VERTICES} {}\n{}", edges.len(), lines(' ')));
    // The list is unordered, and some ids are repeated.
    let listed: Vec<u64> = (0..30_000).map(|i| i * 7919 % VERTICES + 1).collect();
    file("g.v", listed.iter().map(|id| format!("{id}\n")).collect());
    let graphalytics = file("g.e", lines(' '));
    let ends = |end: fn(&(i64, i64)) -> i64| edges.iter().map(|edge| end(edge) as u64).collect();
    let batch =
        EdgeBatch { sources: ends(|e| e.0), targets: ends(|e| e.1), ..EdgeBatch::default() };
    for drop in [false, true] {
        let self_loops = if drop { SelfLoops::Drop } else { SelfLoops::Keep };
        let mut first = None;
        for number in 0..16 {
            let (threads, sort_ids) = (1 + number / 4 % 3, number / 4 % 2 == 0);
            let mut given = Given { edges: batch.clone(), vertices: listed.clone() };
            let input = match number % 4 {
                0 => Input::Text(TextFormat::Jlg, vec![jlg.clone()]),
                1 => Input::Text(TextFormat::Mtx, vec![mtx.clone()]),
                2 => Input::Graphalytics(vec![graphalytics.clone()]),
                _ => Input::Stream(&mut given),
            };
            let policy = Policy { self_loops, ..Policy::default() };
            let options = ImportOptions { sort_ids, policy, geometry: SMALL, ..Default::default() };
            let out = folder.path().join("g.brimful");
            let done =
                import(input, &out, &options, &resources(threads, 1 << 28)).unwrap().description;
            assert_eq!((done.order.name, done.vertices), (OrderName::Degree, VERTICES));
            assert_eq!(done.counts.self_loops_dropped > 0, drop);
            let graph = Graph::open(&out, &Arc::default()).unwrap();
            verify::verify(&graph, &Job::new()).unwrap();
            let looped = graph.find(24_951).unwrap();
            assert_eq!(looped < graph.connected(), !drop, "a vertex with nothing but a self-loop");
            let found = (done.order.runs, done.connected, bytes_of(&out));
            assert!(first.get_or_insert_with(|| found.clone()) == &found, "{number}");
            std::fs::remove_dir_all(out).unwrap();
        }
    }
}

#[test]
fn listed_vertices_may_be_far_from_the_edges() {
    for far in [70_000, i64::MAX] {
        for edges in [vec![(1, 2), (2, 9)], vec![]] {
            let folder = tempfile::tempdir().unwrap();
            let ends =
                |end: fn(&(i64, i64)) -> i64| edges.iter().map(|edge| end(edge) as u64).collect();
            let batch = EdgeBatch {
                sources: ends(|e| e.0),
                targets: ends(|e| e.1),
                ..EdgeBatch::default()
            };
            let mut given = Given { edges: batch, vertices: vec![9, far.cast_unsigned()] };
            let out = folder.path().join("g.brimful");
            let input = Input::Stream(&mut given);
            import(input, &out, &ImportOptions::default(), &resources(2, 1 << 28)).unwrap();
            let graph = Graph::open(&out, &Arc::default()).unwrap();
            assert_eq!(
                (graph.vertices(), graph.find(far.into()).unwrap()),
                (2 + edges.len() as u64, 1 + edges.len() as u64)
            );
            assert_eq!(neighbors(&graph, far.into()), []);
        }
    }
}

#[test]
fn an_order_of_neighbors_is_kept_both_ways() {
    let edges: Edges = (0..40_000).flat_map(|i| [(i, i + 1), (i, i + 200)]).collect();
    for sort_ids in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let options = ImportOptions { sort_ids, ..Default::default() };
        let graph = make(folder.path(), &edges, &options);
        assert_eq!(graph.description().order.name, OrderName::External);
        assert_eq!(graph.description().order.runs, [0]);
        assert_eq!(graph.description().ids.first, Some(0));
        assert!(!graph.path().join("ids").exists());
        assert_eq!(graph.find(40_199).unwrap(), 40_199);
    }
}

#[test]
fn every_vertex_is_found_and_comes_once_in_external_order() {
    type Id = fn(u64) -> i64;
    let ids: [Id; 3] =
        [|v| v as i64 * 3, |v| v as i64 * 7_000_000_019 - 40_000_000_000_000, |v| v as i64];
    for id in ids {
        let folder = tempfile::tempdir().unwrap();
        let edges = skewed(9000, 80_000, id);
        let options = ImportOptions { vertices: Some(500), geometry: SMALL, ..Default::default() };
        let graph = make(folder.path(), &edges, &options);
        let ends: BTreeSet<i128> = edges.iter().flat_map(|&(s, t)| [s.into(), t.into()]).collect();
        let all: BTreeSet<i128> = ends.iter().copied().chain(0..500).collect();
        assert_eq!((graph.connected(), graph.vertices()), (ends.len() as u64, all.len() as u64));
        let found = external_order(&graph, 77);
        assert!(found.iter().map(|(_, id)| id).eq(&all));
        assert_eq!(external_order(&graph, 1 << 20), found);
        let mut internal: Vec<u64> = found.iter().map(|(vertex, _)| *vertex).collect();
        internal.sort_unstable();
        assert!(internal.into_iter().eq(0..graph.vertices()));
        for &(vertex, id) in &found {
            assert_eq!(graph.find(id).unwrap(), vertex);
            assert_eq!(vertex < graph.connected(), ends.contains(&id));
        }
        let absent = (0..).find(|id| !all.contains(id)).unwrap();
        assert!(matches!(graph.find(absent), Err(Error::NoSuchVertex { .. })));
        let key = |id: &i128| graph.id_type().order_key(graph.id_type().bits(*id).unwrap());
        let bounds = (key(all.first().unwrap()), key(all.last().unwrap()));
        assert_eq!(graph.key_bounds().unwrap(), Some(bounds));
        let mut degrees = vec![1; graph.vertices() as usize];
        graph.degrees(0, &mut degrees).unwrap();
        assert_eq!(degrees.iter().sum::<u64>(), 80_000);
        assert!(degrees[graph.connected() as usize..].iter().all(|degree| *degree == 0));
    }
}

#[test]
fn hubs_come_first_within_classes_ids_ascend_and_isolated_vertices_are_last() {
    let folder = tempfile::tempdir().unwrap();
    let mut edges = skewed(20_000, 150_000, |v| (v * 7919 % 20_000) as i64 + 100);
    // A hub with an edge to each of the 20,000 ids.
    edges.extend((0..20_000).map(|i| (9_000, 100 + i * 31 % 20_000)));
    let options = ImportOptions { vertices: Some(100), ..Default::default() };
    let graph = make(folder.path(), &edges, &options);
    let order = &graph.description().order;
    assert_eq!((order.name, graph.vertices() - graph.connected()), (OrderName::Degree, 100));
    assert!(order.runs.len() >= 5 && order.runs.last() == Some(&graph.connected()), "{order:?}");
    assert!(graph.find(9_000).unwrap() < order.runs[1]);
    assert!((0..100).all(|i| graph.find(i).unwrap() == graph.connected() + i as u64));
    let internal: BTreeMap<i128, u64> =
        external_order(&graph, 1000).into_iter().map(|(vertex, id)| (id, vertex)).collect();
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    for id in edges.into_iter().flat_map(|(s, t)| [s, t]) {
        *ends.entry(internal[&id.into()]).or_default() += 1.0;
    }
    let mean = |run: std::ops::Range<u64>| {
        ends.range(run.clone()).map(|(_, degree)| degree).sum::<f64>()
            / (run.end - run.start) as f64
    };
    let means: Vec<f64> = graph.runs().map(mean).collect();
    assert!(means.is_sorted_by(|a, b| *a > *b), "{means:?}");
    assert_eq!(means.last(), Some(&0.0));
    assert!(neighbors(&graph, 9_000).len() >= 20_000);
    assert_eq!(neighbors(&graph, 5), []);
}

#[test]
fn a_graph_of_isolated_vertices_alone_works() {
    let folder = tempfile::tempdir().unwrap();
    let options = ImportOptions { vertices: Some(70_000), ..Default::default() };
    for sort_ids in [false, true] {
        let options = ImportOptions { sort_ids, ..options.clone() };
        let graph = make(folder.path(), &Edges::new(), &options);
        assert_eq!((graph.vertices(), graph.connected(), graph.intervals()), (70_000, 0, 0));
        assert_eq!(graph.description().order.runs, [0]);
        assert_eq!(graph.find(69_999).unwrap(), 69_999);
        assert_eq!(external_order(&graph, 1000).len(), 70_000);
        std::fs::remove_dir_all(graph.path()).unwrap();
    }
}

/// All edges, with their multiplicity.
fn edges_of(graph: &Arc<Graph>) -> BTreeMap<(i128, i128), usize> {
    let id_type = graph.id_type();
    let mut reader = EdgeReader::new(Arc::clone(graph));
    let (mut batch, mut out) = (EdgeBatch::default(), BTreeMap::new());
    while reader.next(&mut batch).unwrap() {
        for (s, t) in batch.sources.iter().zip(&batch.targets) {
            *out.entry((id_type.number(*s), id_type.number(*t))).or_default() += 1;
        }
    }
    out
}

#[test]
fn an_export_in_degree_order_imports_again() {
    for undirected in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let edges = skewed(3000, 60_000, |v| (v * 7919 % 3000) as i64 * 2 + 1);
        let options = ImportOptions { undirected, geometry: SMALL, ..Default::default() };
        let graph = Arc::new(make(folder.path(), &edges, &options));
        assert_eq!(graph.description().order.name, OrderName::Degree);
        let mut wanted = BTreeMap::new();
        for &(s, t) in &edges {
            let (s, t) = if undirected { (s.min(t), s.max(t)) } else { (s, t) };
            *wanted.entry((i128::from(s), i128::from(t))).or_default() += 1;
        }
        assert_eq!(edges_of(&graph), wanted);
        let out = folder.path().join("out.u32");
        let pairs = ExportOptions { lossy: true, ..ExportOptions::new(Format::U32Pairs) };
        export::write(&graph, &out, &pairs, &resources(2, 1 << 28)).unwrap();
        let again = folder.path().join("again.brimful");
        import(Input::Pairs(vec![out]), &again, &options, &resources(2, 1 << 28)).unwrap();
        let again = Arc::new(Graph::open(&again, &Arc::default()).unwrap());
        assert_eq!(edges_of(&again), wanted);
    }
}

#[test]
fn a_manifest_whose_runs_do_not_cover_the_vertices_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = ImportOptions { vertices: Some(9000), ..Default::default() };
    let graph = make(folder.path(), &skewed(3000, 60_000, |v| v as i64), &options);
    let description = graph.description().clone();
    let refused = |change: &dyn Fn(&mut brimful_graph::read::description::Description)| {
        let mut changed = description.clone();
        change(&mut changed);
        let payload = serde_json::to_vec(&changed).unwrap();
        let folder = brimful_store::DiskFolder::new(graph.path());
        let number = std::fs::read_dir(graph.path()).unwrap().count() as u64 + 100;
        brimful_store::manifest::publish(&folder, number, &payload, &Arc::default()).unwrap();
        Graph::open(graph.path(), &Arc::default()).is_err_and(|e| e.kind() == ErrorKind::Corrupt)
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|d| d.order.runs[0] = 1));
    assert!(refused(&|d| d.order.runs.clear()));
    assert!(refused(&|d| d.order.runs.swap(0, 1)));
    assert!(refused(&|d| d.order.runs.push(9000)));
    assert!(refused(&|d| d.connected = 9001));
    assert!(refused(&|d| {
        d.order.runs.pop();
    }));
    assert!(refused(&|d| d.order.runs = (0..9).collect()));
    // Paths to the graph's own files that lead out of the graph's folder.
    let name = graph.path().file_name().unwrap().to_str().unwrap().to_owned();
    for name in [format!("../{name}/in"), "".into(), "..".into(), "./in".into()] {
        assert!(refused(&|d| d.forward.layers[0].name.clone_from(&name)), "{name}");
    }
}

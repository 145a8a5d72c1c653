//! Graphs whose files are damaged, exchanged or forged: each is refused with a typed error, or
//! gives the answer of the undamaged graph, and none takes more memory than its files justify.
//! Nothing panics.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

#[path = "hostile/damage.rs"]
mod damage;
#[path = "hostile/forged.rs"]
mod forged;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_engine::plan::extent::Extent;
use brimful_engine::traverse::adjacency::Adjacency;
use brimful_engine::{Add, Error, Globals, Min, Mode, Program, RunOptions, Vertex, run};
use brimful_graph::build::import::{ImportOptions, Input, import_in};
use brimful_graph::edges::EdgeBatch;
use brimful_graph::export::{EdgeReader, each_isolated};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::read::external_order::ExternalOrder;
use brimful_graph::read::name_cursor::{Labels, NameCursor};
use brimful_graph::read::shards::Geometry;
use brimful_graph::read::verify;
use brimful_graph::{Graph, Index};
use brimful_store::fault::FaultFolder;
use brimful_store::{Budget, Job, Resources, checksum};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Few edges in many segments.
const SMALL: Geometry =
    Geometry { interval_bits: 3, window_edges: 40, segment_edges: 16, unit_bytes: 200 };
/// Memory that a reader may take beyond twice that of the undamaged graph: messages, and tables of
/// a few entries.
const SLACK_BYTES: usize = 256 << 10;

/// The most bytes that a run may take.
const BUDGET: usize = 64 << 20;

/// The heap is counted for the whole process: one test at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True in `make nightly`.
fn is_nightly() -> bool {
    std::env::var("BRIMFUL_MATRIX").is_ok_and(|matrix| matrix == "all")
}

/// All files of a folder.
type Files = BTreeMap<String, Vec<u8>>;

/// PageRank without refinements.
struct Rank;

impl Program for Rank {
    type State = f64;
    type Combiner = Add<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Full;

    fn needs_degrees(&self) -> bool {
        true
    }

    fn initial(&self, _: Vertex, _: &Globals<()>) -> f64 {
        1.0
    }
    fn signal(&self, vertex: Vertex, score: f64) -> f64 {
        if vertex.degree == 0 { 0.0 } else { score / vertex.degree as f64 }
    }
    fn collect(&self, _: Vertex, _: f64, sum: f64, _: &Globals<()>) -> f64 {
        0.15 + 0.85 * sum
    }
}

/// Shortest paths from the vertex with internal id 0.
struct Distances;

impl Program for Distances {
    type State = f64;
    type Combiner = Min<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const KEEPS_SILENCE: bool = true;

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> f64 {
        if vertex.id == 0 { 0.0 } else { f64::INFINITY }
    }
    fn signal(&self, _: Vertex, distance: f64) -> f64 {
        distance
    }
    fn along(&self, distance: f64, weight: f64) -> f64 {
        distance + weight
    }
    fn collect(&self, _: Vertex, distance: f64, least: f64, _: &Globals<()>) -> f64 {
        distance.min(least)
    }
}

/// The bits of all states, and the external ids that they belong to.
fn states<P: Program<State = f64>>(
    program: &P,
    graph: &Graph,
    resources: &Resources,
) -> Result<Vec<u64>, Error> {
    let weighted = graph.description().weighted;
    let options = RunOptions { max_supersteps: 4, weighted, ..RunOptions::default() };
    let output = run(program, graph, &options, resources)?;
    let mut states = vec![0.0; output.states.len()];
    output.states.read(0, &mut states)?;
    let mut ids = vec![0; states.len()];
    graph.external_ids(0, &mut ids)?;
    Ok(states.into_iter().map(f64::to_bits).chain(ids).collect())
}

/// The complete output of an export, in its order: edges, and the ids of all vertices.
fn exported(graph: &Arc<Graph>) -> brimful_graph::Result<Vec<u64>> {
    let (mut reader, mut batch, mut out) =
        (EdgeReader::new(Arc::clone(graph)), EdgeBatch::default(), vec![]);
    let (mut names, named) = (NameCursor::default(), graph.longest_name().is_some());
    let mut take = |ids: &[u64]| -> brimful_graph::Result<()> {
        let all: Vec<Option<u64>> = ids.iter().copied().map(Some).collect();
        let mut start = 0;
        while named && start < ids.len() {
            let (rows, labels) = names.rows(graph, &[&all[start..]])?;
            out.extend(labels.iter().flat_map(Labels::iter).map(|name| checksum(name.as_bytes())));
            start += rows;
        }
        out.extend(ids);
        Ok(())
    };
    while reader.next(&mut batch)? {
        take(&batch.sources)?;
        take(&batch.targets)?;
    }
    each_isolated(graph, &mut take)?;
    let mut order = ExternalOrder::new(Arc::clone(graph));
    loop {
        let (mut vertices, mut ids) = (Vec::new(), Vec::new());
        order.next_batch(16, &mut vertices, &mut ids)?;
        if ids.is_empty() {
            return Ok(out);
        }
        take(&ids)?;
    }
}

/// All edges, unpacked: the targets and weights of each source.
fn unpacked(graph: &Graph, resources: &Resources) -> Result<Vec<u64>, Error> {
    let weighted = graph.description().weighted;
    let extent = Extent::of(graph, &[Index::In], weighted);
    let bytes = Adjacency::memory_bytes(&extent).unwrap_or(u64::MAX);
    let _memory = resources.budget.reserve(bytes, "for unpacked edges")?;
    let shards = vec![Arc::clone(graph.forward())];
    let edges = Adjacency::of(graph, shards, (weighted, true), resources)?;
    let mut out = Vec::new();
    for source in 0..graph.connected() as usize {
        edges.each(source, |target, weight| out.extend([target as u64, weight.to_bits()]));
    }
    Ok(out)
}

/// The results of two programs, an export and the unpacked edges of a graph.
type Answers = [Result<Vec<u64>, Error>; 4];

fn answers(graph: &Arc<Graph>, resources: &Resources) -> Answers {
    [
        states(&Rank, graph, resources),
        states(&Distances, graph, resources),
        exported(graph).map_err(Error::from),
        unpacked(graph, resources),
    ]
}

/// The result of `work`, and the peak of the heap in bytes.
fn with_peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let result = work();
    (result, HEAP.peak_usage().saturating_sub(before))
}

/// A graph and its known properties.
struct Case {
    name: &'static str,
    files: Files,
    answers: [Vec<u64>; 4],
    peak_bytes: usize,
    resources: Resources,
}

impl Case {
    fn new(name: &'static str, input: Input<'_>, options: &ImportOptions) -> Self {
        let resources =
            Resources::new(Budget::new(BUDGET as u64, 0), Arc::new(Job::new()), Some(2)).unwrap();
        let folder = FaultFolder::new();
        import_in(&folder, input, options, &resources).unwrap();
        let (answers, peak_bytes) = with_peak(|| {
            let graph = Arc::new(Graph::open_folder(&folder, resources.job.traffic()).unwrap());
            verify::verify(&graph, &resources.job).unwrap();
            answers(&graph, &resources).map(Result::unwrap)
        });
        Self { name, files: folder.files(), answers, peak_bytes, resources }
    }

    /// The most bytes that a graph with files of these sizes may take.
    fn enough(&self) -> usize {
        2 * self.peak_bytes + SLACK_BYTES
    }

    /// Opens, verifies and runs a graph of `files`, in at most `most` bytes.
    fn examine(&self, files: &Files, problem: &str, most: usize) -> Examined {
        let folder = FaultFolder::of(files);
        let (examined, peak_bytes) = with_peak(|| {
            let graph = Arc::new(Graph::open_folder(&folder, self.resources.job.traffic())?);
            let verified = verify::verify(&graph, &self.resources.job).map(drop);
            Ok((verified, answers(&graph, &self.resources)))
        });
        assert!(
            peak_bytes <= most,
            "{}: {problem}: {peak_bytes} bytes at once, {most} are enough",
            self.name
        );
        examined
    }
}

/// The error of opening the graph; else the result of `verify`, and the answers.
type Examined = Result<(brimful_graph::Result<()>, Answers), brimful_graph::Error>;

fn text(
    folder: &Path,
    name: &str,
    header: &str,
    edges: impl Iterator<Item = String>,
) -> Input<'static> {
    let path = folder.join(name);
    let lines = std::iter::once(header.to_owned()).chain(edges);
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    Input::EdgeList(vec![path])
}

/// Small graphs of every kind.
fn cases() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let pairs = || (0..60_u64).map(|i| (i * i % 23, i * 7 % 19));
    let small = ImportOptions { geometry: SMALL, ..ImportOptions::default() };
    let indexed = ImportOptions { reverse: true, ..small.clone() };
    let sparse = text(
        folder.path(),
        "sparse",
        "source target weight",
        pairs().map(|(s, t)| format!("{} {} {}.5", s * s * 88_172_645_463, t << 40, s % 4)),
    );
    let strings = text(
        folder.path(),
        "strings",
        "source target",
        pairs().map(|(s, t)| format!("vertex-{s} vertex-{}", t * 1000)),
    );
    let plain =
        text(folder.path(), "plain", "source target", pairs().map(|(s, t)| format!("{s} {t}")));
    let isolated = ImportOptions { undirected: true, vertices: Some(70), ..small.clone() };
    let grid = Generator::new(Kind::Grid { rows: 100, columns: 40, torus: false }, 1).unwrap();
    vec![
        Case::new("sparse ids, weights, both indexes", sparse, &indexed),
        Case::new("string ids", strings, &small),
        Case::new("undirected with isolated vertices", plain, &isolated),
        Case::new(
            "compressed segments",
            Input::Numbered(&grid, grid.vertices()),
            &ImportOptions::default(),
        ),
    ]
}

#[test]
fn the_cases_are_of_the_kinds_that_they_claim() {
    let _turn = turn();
    let cases = cases();
    let graphs = cases
        .iter()
        .map(|case| Graph::open_folder(&FaultFolder::of(&case.files), &Arc::default()).unwrap());
    let graphs: Vec<Graph> = graphs.collect();
    assert!(graphs[0].description().weighted && cases[0].files.contains_key("reverse.weights"));
    assert!(cases[0].files.contains_key("ids") && cases[1].files.contains_key("names"));
    assert!(!graphs[2].description().directed && graphs[2].vertices() > graphs[2].connected());
    let shards = graphs[3].shards(brimful_graph::Index::In).unwrap();
    assert!(shards.packings().keys().any(|packing| packing.compressed), "{:?}", shards.packings());
    assert!(
        graphs.iter().take(3).all(|graph| graph
            .shards(brimful_graph::Index::In)
            .unwrap()
            .segments()
            .len()
            > 3)
    );
}

//! Programs of which few vertices signal: against different algorithms, and the same bits through the dense
//! and the sparse door, at one to four threads and three budgets; all numeric programs likewise in all layouts.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use brimful_algos::bfs::{Levels, Parents};
use brimful_algos::connected_components::propagation::ConnectedComponents;
use brimful_algos::count_paths::ShortestPathCounts;
use brimful_algos::degrees::Degrees;
use brimful_algos::delta_pagerank::DeltaPageRank;
use brimful_algos::hits::HubsAndAuthorities;
use brimful_algos::kcore::CoreNumbers;
use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_algos::scc::{LeastAndCount, StrongComponents};
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::combiner::check_laws;
use brimful_engine::table::Column;
use brimful_engine::{Door, Layout, Program, Reason, RunOptions, run};
use brimful_graph::Graph;
use brimful_graph::edges::{EdgeBatch, EdgeSource};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::import::{ImportOptions, Input, build_reverse, import};
use brimful_graph::random::splitmix64;
use brimful_graph::shards::Geometry;
use brimful_graph::weights::{Weights, hash};
use brimful_store::{Budget, Error as StoreError, ErrorKind, Job, Resources};

/// Several windows in a shard, several segments in a window, several blocks in a segment.
const SMALL: Geometry = Geometry { interval_bits: 5, window_edges: 700, segment_edges: 600, unit_bytes: 900 };

fn resources(threads: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// A graph with the edges it was made of; ids are 0 to n - 1, weights are hashed.
struct Case {
    graph: Arc<Graph>,
    /// For each vertex its targets and weights.
    out: Vec<Vec<(usize, f64)>>,
}

fn case(folder: &Path, kind: Kind, undirected: bool) -> Case {
    let generator = Generator::new(kind, 5).unwrap();
    let weights = Weights::Hash;
    let options = ImportOptions { geometry: SMALL, undirected, weights, ..Default::default() };
    let path = folder.join("g.brimful");
    let resources = resources(2, 1 << 28);
    import(Input::Numbered(&generator, generator.vertices()), &path, &options, &resources).unwrap();
    let graph = Graph::open(&path, resources.job.traffic()).unwrap();
    let mut out = vec![Vec::new(); graph.vertices() as usize];
    let mut batch = EdgeBatch::default();
    for part in 0..generator.parts() {
        generator.read_part(part, &mut batch).unwrap();
        for (&source, &target) in batch.sources.iter().zip(&batch.targets) {
            let weight = hash(source, target);
            out[source as usize].push((target as usize, weight));
            if undirected && source != target {
                out[target as usize].push((source as usize, weight));
            }
        }
    }
    Case { graph: Arc::new(graph), out }
}

/// A directed graph of these edges.
fn case_of(folder: &Path, edges: &[(usize, usize)], vertices: usize) -> Case {
    let (input, path) = (folder.join("e.txt"), folder.join("of.brimful"));
    let lines: Vec<String> = edges.iter().map(|(source, target)| format!("{source} {target}\n")).collect();
    std::fs::write(&input, lines.concat()).unwrap();
    let options = ImportOptions { geometry: SMALL, vertices: Some(vertices as u64), ..Default::default() };
    let resources = resources(2, 1 << 28);
    import(Input::EdgeList(vec![input]), &path, &options, &resources).unwrap();
    let mut out = vec![Vec::new(); vertices];
    edges.iter().for_each(|&(source, target)| out[source].push((target, 1.0)));
    Case { graph: Arc::new(Graph::open(&path, resources.job.traffic()).unwrap()), out }
}

/// One case, by number.
fn cases(folder: &Path, number: usize) -> Case {
    let cases = [
        (Kind::Rmat { scale: 9, edge_factor: 14 }, false),
        (Kind::Rmat { scale: 8, edge_factor: 3 }, true),
        (Kind::Chain { vertices: 300 }, false),
        (Kind::Grid { rows: 20, columns: 17, torus: false }, true),
        (Kind::Star { vertices: 400 }, true),
    ];
    let (kind, undirected) = cases[number];
    case(folder, kind, undirected)
}
const CASES: usize = 5;

fn levels(case: &Case, source: usize) -> Vec<Option<u64>> {
    let mut level = vec![None; case.out.len()];
    level[source] = Some(0);
    let mut queue = VecDeque::from([source]);
    while let Some(vertex) = queue.pop_front() {
        for &(target, _) in &case.out[vertex] {
            if level[target].is_none() {
                level[target] = level[vertex].map(|level: u64| level + 1);
                queue.push_back(target);
            }
        }
    }
    level
}

/// Dijkstra; weights are whole numbers, so that sums are exact.
fn distances(case: &Case, source: usize) -> Vec<Option<u64>> {
    let mut distance = vec![None; case.out.len()];
    let mut heap = BinaryHeap::from([(Reverse(0), source)]);
    while let Some((Reverse(length), vertex)) = heap.pop() {
        if distance[vertex].is_some() {
            continue;
        }
        distance[vertex] = Some(length);
        heap.extend(
            case.out[vertex].iter().map(|&(target, weight)| (Reverse(length + weight as u64), target)),
        );
    }
    distance
}

/// Numbers of shortest paths, level by level.
fn path_counts(case: &Case, source: usize) -> Vec<u64> {
    let level = levels(case, source);
    let mut order: Vec<usize> = (0..level.len()).filter(|vertex| level[*vertex].is_some()).collect();
    order.sort_by_key(|vertex| level[*vertex]);
    let mut counts = vec![0; level.len()];
    counts[source] = 1;
    for vertex in order {
        for &(target, _) in &case.out[vertex] {
            if level[target] == level[vertex].map(|level| level + 1) {
                counts[target] += counts[vertex];
            }
        }
    }
    counts
}

/// The value column of a request, by external id; nothing for null.
fn column(case: &Case, request: &Request) -> Vec<Option<u64>> {
    let finished = run_request(request, &case.graph, &resources(2, 1 << 28)).unwrap();
    let (ids, column) = finished.table.rows().next_batch(usize::MAX).unwrap().unwrap();
    assert!(ids.into_iter().eq(0..case.out.len() as u64));
    match column {
        Column::Float(values) => values.into_iter().map(|value| value.map(|value| value as u64)).collect(),
        Column::Integer(values) => values.into_iter().map(|value| value.map(i64::cast_unsigned)).collect(),
        Column::Unsigned(values) | Column::Ids(values) => values,
    }
}

fn request(algorithm: &str, source: usize) -> Request {
    Request { algorithm: algorithm.into(), source: Some((source as i128).into()), ..Default::default() }
}

#[test]
fn searches_from_a_vertex_agree_with_queues_and_heaps() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        for source in [0, 7, case.out.len() - 1] {
            let level = levels(&case, source);
            assert_eq!(column(&case, &request("bfs", source)), level, "case {number} from {source}");
            assert_eq!(column(&case, &request("sssp", source)), level);
            let weighted = Request { weighted: true, ..request("sssp", source) };
            assert_eq!(column(&case, &weighted), distances(&case, source), "case {number} from {source}");
            let counts = column(&case, &request("count_paths", source));
            assert!(counts.into_iter().map(Option::unwrap).eq(path_counts(&case, source)));

            let mut parents = request("bfs", source);
            parents.parameters.insert("values".into(), Parameter::Word("parent".into()));
            for (vertex, parent) in column(&case, &parents).into_iter().enumerate() {
                let leads = |from: &usize| {
                    level[*from].is_some_and(|near| Some(near + 1) == level[vertex])
                        && case.out[*from].iter().any(|(target, _)| *target == vertex)
                };
                let wanted = if vertex == source { Some(source) } else { (0..case.out.len()).find(leads) };
                assert_eq!(parent, wanted.map(|from| from as u64), "case {number}, {source} to {vertex}");
            }
        }
    }
}

#[test]
fn walks_are_counted_by_length_and_too_many_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 0);
    let mut wanted = vec![0_u64; case.out.len()];
    wanted[7] = 1;
    for length in 0..4 {
        let mut walks = request("count_paths", 7);
        walks.parameters.insert("length".into(), Parameter::Number(f64::from(length)));
        assert!(column(&case, &walks).into_iter().map(Option::unwrap).eq(wanted.iter().copied()));
        let mut next = vec![0; wanted.len()];
        for (vertex, targets) in case.out.iter().enumerate() {
            targets.iter().for_each(|(target, _)| next[*target] += wanted[vertex]);
        }
        wanted = next;
    }
    let mut walks = request("count_paths", 7);
    walks.parameters.insert("length".into(), Parameter::Number(40.0));
    let error = run_request(&walks, &case.graph, &resources(2, 1 << 28)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Program);
    assert!(error.to_string().contains("more than 2^64 - 2 paths"), "{error}");
}

#[test]
fn degrees_are_counted_in_each_direction() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        let (mut outgoing, mut incoming) = (vec![0; case.out.len()], vec![0; case.out.len()]);
        for (vertex, targets) in case.out.iter().enumerate() {
            outgoing[vertex] += targets.len() as u64;
            targets.iter().for_each(|(target, _)| incoming[*target] += 1);
        }
        let both = outgoing.iter().zip(&incoming).map(|(a, b)| a + b).collect();
        for (direction, wanted) in [("out", outgoing), ("in", incoming), ("both", both)] {
            let parameters = [("direction".to_owned(), Parameter::Word(direction.into()))].into();
            let request = Request { algorithm: "degrees".into(), parameters, ..Default::default() };
            assert!(column(&case, &request).into_iter().map(Option::unwrap).eq(wanted), "{direction}");
        }
    }
}

/// Core numbers, removing one vertex of least degree at a time.
fn core_numbers(case: &Case) -> Vec<u64> {
    let mut neighbours = vec![Vec::new(); case.out.len()];
    for (source, targets) in case.out.iter().enumerate() {
        for &(target, _) in targets.iter().filter(|(target, _)| *target != source) {
            neighbours[source].push(target);
            if case.graph.description().directed {
                neighbours[target].push(source);
            }
        }
    }
    let mut left: Vec<u64> = neighbours.iter().map(|targets| targets.len() as u64).collect();
    let (mut core, mut cores) = (0, vec![None; left.len()]);
    while let Some(next) = (0..left.len()).filter(|v| cores[*v].is_none()).min_by_key(|v| left[*v]) {
        core = left[next].max(core);
        cores[next] = Some(core);
        neighbours[next].iter().for_each(|target| left[*target] = left[*target].saturating_sub(1));
    }
    cores.into_iter().map(Option::unwrap).collect()
}

#[test]
fn core_numbers_agree_with_peeling_one_vertex_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let check = |case: &Case| {
        let request = Request { algorithm: "kcore".into(), ..Default::default() };
        assert!(column(case, &request).into_iter().map(Option::unwrap).eq(core_numbers(case)));
    };
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        check(&cases(folder.path(), number));
    }
    let clique =
        |size: usize, first: usize| (0..size).flat_map(move |a| (0..a).map(move |b| (first + a, first + b)));
    // Cores within cores, joined by an edge; self-loops, a pair of arcs, an isolated vertex.
    let loops = (0..9).map(|vertex| (vertex, vertex));
    let edges: Vec<_> =
        clique(7, 0).chain(clique(4, 7)).chain(loops).chain([(6, 7), (11, 12), (12, 11)]).collect();
    let case = case_of(folder.path(), &edges, 14);
    assert_eq!(core_numbers(&case), [6, 6, 6, 6, 6, 6, 6, 3, 3, 3, 3, 2, 2, 0]);
    check(&case);
    let empty = tempfile::tempdir().unwrap();
    check(&case_of(empty.path(), &[], 3));
}

#[test]
fn intervals_of_finished_vertices_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 0);
    let request = Request { algorithm: "kcore".into(), ..Default::default() };
    let stats = run_request(&request, &case.graph, &resources(2, 1 << 28)).unwrap().stats;
    let loops =
        case.out.iter().enumerate().map(|(v, targets)| targets.iter().filter(|(t, _)| *t == v).count());
    // Else every arc but a loop carries two signals each way.
    let all = 4 * (case.graph.description().arcs - loops.sum::<usize>() as u64);
    assert!(stats.signals < all * 9 / 10, "{} signals of {all}", stats.signals);
}

/// For each vertex the smallest of its component (Tarjan 1972, with a stack of its own).
fn strong_components(case: &Case) -> Vec<Option<u64>> {
    let n = case.out.len();
    let (mut number, mut low, mut name) = (vec![usize::MAX; n], vec![0; n], vec![None; n]);
    let (mut open, mut next) = (Vec::new(), 0);
    for root in 0..n {
        let mut path = if number[root] == usize::MAX { vec![(root, 0)] } else { Vec::new() };
        while let Some((vertex, edge)) = path.pop() {
            if edge == 0 {
                (number[vertex], low[vertex]) = (next, next);
                next += 1;
                open.push(vertex);
            }
            if let Some(&(target, _)) = case.out[vertex].get(edge) {
                path.push((vertex, edge + 1));
                if number[target] == usize::MAX {
                    path.push((target, 0));
                } else if name[target].is_none() {
                    low[vertex] = low[vertex].min(number[target]);
                }
                continue;
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[vertex]);
            }
            if low[vertex] == number[vertex] {
                let first = open.iter().rposition(|member| *member == vertex).unwrap();
                let members = open.split_off(first);
                let smallest = members.iter().min().map(|smallest| *smallest as u64);
                members.into_iter().for_each(|member| name[member] = smallest);
            }
        }
    }
    name
}

#[test]
fn strong_components_agree_with_tarjan() {
    let request = Request { algorithm: "scc".into(), ..Default::default() };
    let check = |case: &Case| assert_eq!(column(case, &request), strong_components(case));
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        check(&cases(folder.path(), number));
    }
    let kinds = [
        Kind::Ring { vertices: 90 },
        Kind::Rmat { scale: 9, edge_factor: 1 },
        Kind::Rmat { scale: 10, edge_factor: 2 },
    ];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        check(&case(folder.path(), kind, false));
    }
    // Pairs in a row, up, down, and shuffled; self-loops do not hold a vertex that is to be peeled.
    for step in [1, 99, 37] {
        let at = |place: usize| place * step % 100;
        let pairs = (0..50)
            .flat_map(|pair| [(2 * pair, 2 * pair + 1), (2 * pair + 1, 2 * pair), (2 * pair, 2 * pair)]);
        let between = (0..49).map(|pair| (2 * pair + 1, 2 * pair + 2));
        let edges: Vec<_> = pairs.chain(between).map(|(source, target)| (at(source), at(target))).collect();
        let folder = tempfile::tempdir().unwrap();
        let case = case_of(folder.path(), &edges, 103);
        check(&case);
        let stats = run_request(&request, &case.graph, &resources(2, 1 << 28)).unwrap().stats;
        assert!(stats.supersteps < 500, "{} supersteps", stats.supersteps);
    }
    let folder = tempfile::tempdir().unwrap();
    let chain: Vec<_> = (0..200).flat_map(|v| [(v, v + 1), (v, v)]).collect();
    check(&case_of(folder.path(), &chain, 201));
    let empty = tempfile::tempdir().unwrap();
    check(&case_of(empty.path(), &[], 3));
}

#[test]
fn components_of_ids_at_both_ends_of_64_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (input, path) = (folder.path().join("e.txt"), folder.path().join("g.brimful"));
    let (low, high) = (i64::MIN, i64::MAX);
    std::fs::write(&input, format!("{low} {high}\n{high} {low}\n{high} 5\n5 6\n6 5\n7 {high}\n")).unwrap();
    let resources = resources(2, 1 << 28);
    import(Input::EdgeList(vec![input]), &path, &ImportOptions::default(), &resources).unwrap();
    let graph = Arc::new(Graph::open(&path, resources.job.traffic()).unwrap());
    let request = Request { algorithm: "scc".into(), ..Default::default() };
    let table = run_request(&request, &graph, &resources).unwrap().table;
    let (_, column) = table.rows().next_batch(9).unwrap().unwrap();
    let Column::Ids(names) = column else { panic!("{column:?}") };
    let names: Vec<i128> = names.into_iter().map(|name| graph.id_type().number(name.unwrap())).collect();
    assert_eq!(names, [low.into(), 5, 5, 7, low.into()]);
}

#[test]
fn combiners_obey_their_laws() {
    check_laws::<LeastAndCount<u32>>(&[0, 1, 7, u32::MAX - 1]).unwrap();
    check_laws::<LeastAndCount<u64>>(&[0, 1, 7, u64::MAX - 1]).unwrap();
}

/// The smallest budget with which `attempt` works, by its own word.
fn smallest<T, E: Into<brimful_algos::Error>>(attempt: impl Fn(u64) -> Result<T, E>) -> u64 {
    let mut needed = 1;
    while let Err(error) = attempt(needed) {
        let error = error.into();
        let brimful_algos::Error::Store(StoreError::Budget { needed: more, .. }) = error else {
            panic!("{error}")
        };
        assert!(more > needed);
        needed = more;
    }
    needed
}

/// Bits of the states, supersteps, signals, and the supersteps that were sparse.
type Outcome = (Vec<u8>, u64, u64, u64);

fn outcome<P: Program>(
    program: &P,
    case: &Case,
    options: &RunOptions,
    threads: usize,
    budget: u64,
) -> brimful_engine::Result<Outcome> {
    let output = run(program, &case.graph, options, &resources(threads, budget))?;
    let mut states = bytemuck::zeroed_vec::<P::State>(output.states.len());
    output.states.read(0, &mut states).unwrap();
    let stats = output.stats;
    assert_eq!(stats.reason == Reason::NoChange, options.max_supersteps == u64::MAX);
    Ok((bytemuck::cast_slice(&states).to_vec(), stats.supersteps, stats.signals, stats.sparse_supersteps))
}

/// Runs `program` through every door, with one to four threads, in three budgets.
fn check_doors<P: Program>(program: &P, case: &Case, weighted: bool) {
    let options = |door| RunOptions { weighted, door, ..Default::default() };
    let wanted = outcome(program, case, &options(Door::Dense), 1, 1 << 28).unwrap();
    assert_eq!(wanted.3, 0);
    for threads in 1..=4 {
        let needed = smallest(|budget| outcome(program, case, &options(Door::Auto), threads, budget));
        for budget in [needed, needed + needed / 2, 1 << 28] {
            for door in [Door::Auto, Door::Dense, Door::Sparse] {
                let found = outcome(program, case, &options(door), threads, budget).unwrap();
                assert!(found.0 == wanted.0, "{door:?}, {threads} threads, {budget} bytes");
                assert_eq!((found.1, found.2), (wanted.1, wanted.2));
                // With room to spare, frontiers of small graphs are all small.
                match door {
                    Door::Dense => assert_eq!(found.3, 0),
                    Door::Sparse if budget == 1 << 28 => assert_eq!(found.3, wanted.1),
                    Door::Sparse | Door::Auto => {}
                }
            }
        }
    }
}

#[test]
fn doors_threads_and_budgets_give_the_same_bits() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let (source, connected) = (case.graph.find(7).unwrap(), case.graph.connected());
        check_doors(&Levels { source }, &case, false);
        check_doors(&Parents { source }, &case, false);
        check_doors(&ShortestPaths { source }, &case, true);
        check_doors(&ShortestPathCounts { source }, &case, false);
        check_doors(&ConnectedComponents::<u32>::new(), &case, false);
        check_doors(&StrongComponents::<u32>::new(), &case, false);
        check_doors(&StrongComponents::<u64>::new(), &case, false);
        check_doors(&CoreNumbers, &case, false);
        check_doors(&DeltaPageRank::<f64>::new(0.85, None, connected).unwrap(), &case, true);
        check_doors(&DeltaPageRank::<f32>::new(0.85, Some(source), connected).unwrap(), &case, false);
    }
}

/// Runs `program` in every layout, with one to three threads, in three budgets.
fn check_layouts<P: Program>(program: &P, case: &Case, weighted: bool, max_supersteps: u64) {
    let options = |layout| RunOptions { weighted, layout, max_supersteps, ..Default::default() };
    let wanted = outcome(program, case, &options(Layout::Shards), 1, 1 << 28).unwrap();
    for layout in [Layout::Decoupled, Layout::Coupled] {
        for threads in 1..=3 {
            let run = |budget| outcome(program, case, &options(layout), threads, budget);
            let needed = smallest(run);
            for budget in [needed, needed + needed / 8, 1 << 28] {
                let found = run(budget).unwrap();
                assert!(found.0 == wanted.0, "{layout:?}, {threads} threads, {budget} bytes");
                assert_eq!((found.1, found.2, found.3), (wanted.1, wanted.2, 0));
            }
        }
    }
}

#[test]
fn layouts_threads_and_budgets_give_the_same_bits() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let (source, connected) = (case.graph.find(7).unwrap(), case.graph.connected());
        check_layouts(&Levels { source }, &case, false, u64::MAX);
        check_layouts(&Parents { source }, &case, false, u64::MAX);
        check_layouts(&ShortestPaths { source }, &case, true, u64::MAX);
        check_layouts(&ShortestPathCounts { source }, &case, false, u64::MAX);
        check_layouts(&ConnectedComponents::<u32>::new(), &case, false, u64::MAX);
        check_layouts(&StrongComponents::<u64>::new(), &case, false, u64::MAX);
        check_layouts(&CoreNumbers, &case, false, u64::MAX);
        let delta = DeltaPageRank::<f64>::new(0.85, None, connected).unwrap();
        check_layouts(&delta, &case, true, u64::MAX);
        for weighted in [false, true] {
            let ranks = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
            check_layouts(&ranks, &case, weighted, 9);
            check_layouts(&HubsAndAuthorities::new(0.0).unwrap(), &case, weighted, 9);
        }
        check_layouts(&PageRank::<f32>::new(Variant::Unnormalized, 0.85, 0.0).unwrap(), &case, false, 9);
        check_layouts(&Degrees { outgoing: true }, &case, false, 1);
    }
}

#[test]
fn a_coupled_record_is_read_and_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 0);
    let (arcs, vertices) = (case.graph.description().arcs, case.graph.connected());
    let moved = |layout, supersteps| {
        let options = RunOptions { layout, max_supersteps: supersteps, ..Default::default() };
        let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 0.0).unwrap();
        let stats = run(&program, &case.graph, &options, &resources(2, 1 << 28)).unwrap().stats;
        (stats.moved.bytes_read(), stats.moved.bytes_written())
    };
    let per_superstep = |layout| {
        let (few, many) = (moved(layout, 3), moved(layout, 5));
        ((many.0 - few.0) / 2, (many.1 - few.1) / 2)
    };
    assert_eq!(per_superstep(Layout::Shards), (0, 0));
    let (read, written) = per_superstep(Layout::Decoupled);
    // The number of edges for each part of each vertex, and 4 bytes an edge; all else is in memory.
    assert!(read >= 4 * (arcs + vertices) && written == 0, "{read} {written}");
    assert_eq!(per_superstep(Layout::Coupled), (read + 8 * vertices, read + 8 * vertices));
}

#[test]
fn what_has_no_choice_of_layout_refuses_one() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 1);
    let ask = |algorithm: &str, method: Option<&str>| {
        let parameters =
            method.map(|m| ("method".to_owned(), Parameter::Word(m.into()))).into_iter().collect();
        let request = Request {
            algorithm: algorithm.into(),
            layout: Layout::Coupled,
            parameters,
            ..Default::default()
        };
        run_request(&request, &case.graph, &resources(2, 1 << 28)).map(|finished| finished.variant)
    };
    for algorithm in ["color", "label_propagation", "clustering", "triangles"] {
        let error = ask(algorithm, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let part = format!("{algorithm} takes no layout but shards");
        assert!(error.to_string().starts_with(&part), "{error}");
    }
    assert_eq!(ask("connected_components", Some("union_find")).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(ask("connected_components", None).unwrap(), "propagation");
}

#[test]
fn a_run_ends_at_its_limits_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 2);
    let source = case.graph.find(0).unwrap();
    let reason = |options: &RunOptions| {
        let output = run(&Levels { source }, &case.graph, options, &resources(2, 1 << 28)).unwrap();
        (output.stats.supersteps, output.stats.reason)
    };
    let limited =
        |max_supersteps, max_seconds| RunOptions { max_supersteps, max_seconds, ..Default::default() };
    assert_eq!(reason(&limited(10, None)), (10, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(0, None)), (0, Reason::MaxSupersteps));
    assert_eq!(reason(&limited(u64::MAX, Some(0.0))), (1, Reason::MaxSeconds));
    assert_eq!(reason(&limited(u64::MAX, Some(1e9))).1, Reason::NoChange);
    // A score of 1, the default where a state changed, does not exceed 1.
    let deaf = RunOptions { signal_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let deaf = RunOptions { collect_threshold: Some(1.0), ..Default::default() };
    assert_eq!(reason(&deaf), (1, Reason::NoChange));
    let nonsense = RunOptions { signal_threshold: Some(f64::NAN), ..Default::default() };
    let error = run(&Levels { source }, &case.graph, &nonsense, &resources(2, 1 << 28)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// Label propagation straight from its definition.
fn propagated(case: &Case, undirected: bool, supersteps: u64) -> Vec<u64> {
    let mut around = vec![Vec::new(); case.out.len()];
    for (vertex, targets) in case.out.iter().enumerate() {
        for (target, _) in targets {
            around[vertex].push(*target);
            if !undirected {
                around[*target].push(vertex);
            }
        }
    }
    let mut labels: Vec<u64> = (0..case.out.len() as u64).collect();
    for _ in 0..supersteps {
        let gather = |(vertex, neighbours): (usize, &Vec<usize>)| {
            let mut counts = std::collections::BTreeMap::<u64, usize>::new();
            neighbours.iter().for_each(|neighbour| *counts.entry(labels[*neighbour]).or_default() += 1);
            let best = counts.into_iter().max_by_key(|(label, count)| (*count, Reverse(*label)));
            best.map_or(labels[vertex], |(label, _)| label)
        };
        labels = around.iter().enumerate().map(gather).collect();
    }
    labels
}

#[test]
fn label_propagation_agrees_with_its_definition_at_any_budget() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let undirected = !case.graph.description().directed;
        for supersteps in [0, 1, 5] {
            let request = Request {
                algorithm: "label_propagation".into(),
                max_supersteps: Some(supersteps),
                ..Default::default()
            };
            let wanted = propagated(&case, undirected, supersteps);
            for threads in 1..=3 {
                let run = |budget| run_request(&request, &case.graph, &resources(threads, budget));
                let needed = smallest(run);
                for budget in [needed, needed + 3000, 1 << 28] {
                    let table = run(budget).unwrap().table;
                    let (_, column) = table.rows().next_batch(usize::MAX).unwrap().unwrap();
                    let Column::Ids(labels) = column else { panic!("labels are ids") };
                    let labels = labels.into_iter().map(Option::unwrap);
                    assert!(
                        labels.eq(wanted.iter().copied()),
                        "case {number}, {threads} threads, {budget} bytes"
                    );
                }
            }
        }
    }
}

/// Colours of one vertex after the other, in the order that the algorithm's header names.
fn first_fit(case: &Case) -> Vec<u64> {
    let mut around = vec![Vec::new(); case.out.len()];
    for (source, targets) in case.out.iter().enumerate() {
        for &(target, _) in targets.iter().filter(|(target, _)| *target != source) {
            around[source].push(target);
            around[target].push(source);
        }
    }
    let priority = |vertex: &usize| {
        // Each edge of an undirected graph is in `out` in both directions already.
        let degree = around[*vertex].len() / if case.graph.description().directed { 1 } else { 2 };
        (u64::BITS - (degree as u64).leading_zeros(), splitmix64(*vertex as u64))
    };
    let mut order: Vec<usize> = (0..around.len()).collect();
    order.sort_by_key(|vertex| Reverse(priority(vertex)));
    let mut colors = vec![None; around.len()];
    for vertex in order {
        let taken: Vec<u64> = around[vertex].iter().filter_map(|other| colors[*other]).collect();
        colors[vertex] = (0..).find(|color| !taken.contains(color));
    }
    colors.into_iter().map(Option::unwrap).collect()
}

#[test]
fn colors_are_those_of_first_fit_at_any_budget() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let request = Request { algorithm: "color".into(), ..Default::default() };
        let wanted = first_fit(&case);
        for (source, targets) in case.out.iter().enumerate() {
            assert!(targets.iter().all(|(target, _)| *target == source || wanted[*target] != wanted[source]));
        }
        for threads in 1..=3 {
            let run = |budget| run_request(&request, &case.graph, &resources(threads, budget));
            let needed = smallest(run);
            for budget in [needed, needed + 3000, 1 << 28] {
                let finished = run(budget).unwrap();
                assert_eq!(finished.stats.reason, Reason::NoChange);
                let (_, column) = finished.table.rows().next_batch(usize::MAX).unwrap().unwrap();
                let Column::Unsigned(colors) = column else { panic!("colours are numbers") };
                let colors = colors.into_iter().map(Option::unwrap);
                assert!(
                    colors.eq(wanted.iter().copied()),
                    "case {number}, {threads} threads, {budget} bytes"
                );
            }
        }
    }
}

#[test]
fn settled_vertices_are_not_gathered_again() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 4);
    let request = Request { algorithm: "color".into(), ..Default::default() };
    let run = |budget| run_request(&request, &case.graph, &resources(2, budget));
    let stats = run(1 << 28).unwrap().stats;
    // A star: degrees, then all, the centre first, for all lists are made together.
    let arcs = case.graph.description().arcs;
    assert_eq!((stats.supersteps, stats.signals), (2, 2 * arcs));
    // With little memory leaves wait, but not those whose lists are made with that of the centre.
    let stats = run(smallest(run)).unwrap().stats;
    assert_eq!(stats.supersteps, 3);
    assert!(stats.signals < 3 * arcs);
}

#[test]
fn triangles_and_clustering_agree_with_all_pairs_of_neighbours() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        let n = case.out.len();
        let mut arc = vec![vec![false; n]; n];
        for (vertex, targets) in case.out.iter().enumerate() {
            targets.iter().filter(|(target, _)| *target != vertex).for_each(|(t, _)| arc[vertex][*t] = true);
        }
        for threads in 1..=3 {
            let run = |algorithm: &str| {
                let request = Request { algorithm: algorithm.into(), ..Default::default() };
                let table = run_request(&request, &case.graph, &resources(threads, 1 << 28)).unwrap().table;
                table.rows().next_batch(usize::MAX).unwrap().unwrap().1
            };
            let (Column::Integer(triangles), Column::Float(coefficients)) =
                (run("triangles"), run("clustering"))
            else {
                panic!("numbers")
            };
            for vertex in 0..n {
                let around: Vec<usize> = (0..n).filter(|u| arc[vertex][*u] || arc[*u][vertex]).collect();
                let pairs = || around.iter().flat_map(|u| around.iter().map(move |w| (*u, *w)));
                let joined = pairs().filter(|(u, w)| u < w && (arc[*u][*w] || arc[*w][*u])).count();
                let arcs = pairs().filter(|(u, w)| arc[*u][*w]).count();
                let possible = around.len() * around.len().saturating_sub(1);
                let wanted = if possible == 0 { 0.0 } else { arcs as f64 / possible as f64 };
                assert_eq!(triangles[vertex], Some(joined as i64), "case {number}, vertex {vertex}");
                assert_eq!(coefficients[vertex], Some(wanted), "case {number}, vertex {vertex}");
            }
        }
    }
}

/// The states of `program`, and edge visits.
fn states<P: Program>(
    program: &P,
    case: &Case,
    options: &RunOptions,
    threads: usize,
    budget: u64,
) -> brimful_engine::Result<(Vec<P::State>, u64)> {
    let output = run(program, &case.graph, options, &resources(threads, budget))?;
    assert!(output.stats.converged(), "{:?}", output.stats.reason);
    let mut states = bytemuck::zeroed_vec::<P::State>(output.states.len());
    output.states.read(0, &mut states).unwrap();
    Ok((states, output.stats.edges_visited))
}

fn asynchronous(weighted: bool) -> RunOptions {
    RunOptions { weighted, asynchronous: true, ..Default::default() }
}

/// Runs `program` in both modes; edge visits of both. An asynchronous run needs no order of threads either.
fn check_modes<P: Program>(program: &P, case: &Case, weighted: bool) -> (u64, u64) {
    let synchronous = RunOptions { weighted, ..Default::default() };
    let (wanted, before) = states(program, case, &synchronous, 2, 1 << 28).unwrap();
    let mut visits = Vec::new();
    for threads in 1..=3 {
        let Err(brimful_engine::Error::Store(StoreError::Budget { needed, .. })) =
            states(program, case, &asynchronous(weighted), threads, 1)
        else {
            panic!("a byte is not enough")
        };
        for budget in [needed, 1 << 28] {
            let (found, edges) = states(program, case, &asynchronous(weighted), threads, budget).unwrap();
            let bytes = |states: &[P::State]| bytemuck::cast_slice::<_, u8>(states).to_vec();
            assert!(bytes(&found) == bytes(&wanted), "{threads} threads, {budget} bytes");
            visits.push(edges);
        }
    }
    assert!(visits.iter().all(|edges| *edges == visits[0]), "{visits:?}");
    (before, visits[0])
}

#[test]
fn asynchronous_runs_reach_the_same_fixpoint() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let source = case.graph.find(7).unwrap();
        check_modes(&ShortestPaths { source }, &case, true);
        check_modes(&ShortestPaths { source }, &case, false);
        check_modes(&ConnectedComponents::<u32>::new(), &case, false);
        let asynchronous = Request { asynchronous: true, ..request("bfs", 7) };
        assert_eq!(column(&case, &asynchronous), levels(&case, 7));
    }
}

#[test]
fn asynchronous_runs_visit_fewer_edges() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), Kind::Rmat { scale: 14, edge_factor: 8 }, false);
    build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
    let (synchronous, asynchronous_visits) = check_modes(&ConnectedComponents::<u32>::new(), &case, false);
    assert!(asynchronous_visits < synchronous, "components: {asynchronous_visits} of {synchronous}");
    for variant in [Variant::Normalized, Variant::Unnormalized] {
        let program = PageRank::<f64>::new(variant, 0.85, 1e-11).unwrap();
        let ranks = |options: &RunOptions| states(&program, &case, options, 2, 1 << 28).unwrap();
        let (wanted, synchronous) = ranks(&RunOptions::default());
        let (found, asynchronous_visits) = ranks(&asynchronous(false));
        // Each is within d/(1-d) times the tolerance of the limit, in L1.
        let scale = if variant == Variant::Normalized { 1.0 } else { case.out.len() as f64 };
        let apart: f64 = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).sum();
        assert!(apart <= 2.0 * 0.85 / 0.15 * 1e-11 * scale, "{variant:?}: {apart}");
        assert!(
            asynchronous_visits < synchronous,
            "{variant:?}: {asynchronous_visits} visits, synchronously {synchronous}"
        );
    }
}

#[test]
fn what_must_be_synchronous_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 1);
    let word = |name: &str, word: &str| (name.to_owned(), Parameter::Word(word.into()));
    let with = |algorithm: &str, parameters: Vec<(String, Parameter)>| Request {
        algorithm: algorithm.into(),
        asynchronous: true,
        parameters: parameters.into_iter().collect(),
        ..Default::default()
    };
    let parents = Request { source: Some(0_i128.into()), ..with("bfs", vec![word("values", "parent")]) };
    for (request, part) in [
        (with("kcore", vec![]), "kcore takes no asynchronous mode"),
        (with("label_propagation", vec![]), "takes no asynchronous mode"),
        (
            with("connected_components", vec![word("method", "union_find")]),
            "union_find has no asynchronous mode",
        ),
        (with("pagerank", vec![word("method", "delta")]), "it has no asynchronous mode"),
        (parents, "it has no asynchronous mode"),
    ] {
        let error = run_request(&request, &case.graph, &resources(2, 1 << 28)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn few_blocks_of_a_unit_on_disk_are_read_alone_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.brimful");
    let generator = Generator::new(Kind::Rmat { scale: 16, edge_factor: 16 }, 5).unwrap();
    let vertices = generator.vertices();
    let wide = resources(2, 1 << 28);
    import(Input::Numbered(&generator, vertices), &path, &ImportOptions::default(), &wide).unwrap();
    let graph = Graph::open(&path, wide.job.traffic()).unwrap();
    let shards = graph.shards(brimful_graph::Index::In).unwrap();
    let unit = shards.file().entries()[0];
    let (file, all) = (shards.file().path().to_owned(), graph.connected());
    let mut degrees = vec![0; all as usize];
    graph.degrees(0, &mut degrees).unwrap();
    let source = degrees.iter().position(|degree| *degree == 1).unwrap() as u64;
    drop(graph);
    let search = |door, budget| {
        let resources = resources(1, budget);
        let graph = Graph::open(&path, resources.job.traffic()).unwrap();
        let options = RunOptions { door, max_supersteps: 1, ..Default::default() };
        let output = run(&Levels { source }, &graph, &options, &resources)?;
        let mut levels = vec![0; all as usize];
        output.states.read(0, &mut levels).unwrap();
        let read = output.stats.moved.bytes_read();
        Ok::<_, brimful_engine::Error>((levels, output.stats.sparse_supersteps, read))
    };
    let (wanted, _, read) = search(Door::Dense, 1 << 28).unwrap();
    assert!(read >= unit.len, "the unit is read whole");
    // From the smallest budget on: first supersteps are dense, then sparse, then the unit stays in memory.
    let budgets = (1..200).map(|step| step << 17);
    let budget = budgets.into_iter().find(|budget| {
        search(Door::Sparse, *budget).is_ok_and(|(levels, sparse, read)| {
            assert!(levels == wanted);
            sparse == 1 && read < unit.len / 2
        })
    });
    let budget = budget.expect("a budget in which blocks are read alone");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[unit.offset as usize..][..unit.len as usize].iter_mut().for_each(|byte| *byte ^= 16);
    std::fs::write(&file, bytes).unwrap();
    let error = search(Door::Sparse, budget).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("a block of edges fails its checksum"), "{error}");
}

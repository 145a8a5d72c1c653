//! Programs over neighbor lists, compared with plain recomputation in memory: the same bits with
//! states in memory or on disk, at any number of threads, on random multigraphs with self-loops,
//! parallel edges and weights.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use brimful_engine::{
    Aggregate, Count, Gather, Gathered, Globals, Greatest, Least, Neighbors, Reason, Result,
    RunOptions, Sum, TraversalMode, Vertex, gather,
};
use brimful_graph::build::import::{ImportOptions, Input, build_reverse, import};
use brimful_graph::random::splitmix64;
use brimful_graph::read::shards::Geometry;
use brimful_graph::{Graph, Index};
use brimful_store::{Budget, Content, Error as StoreError, ErrorKind, Job, Resources};

/// Several segments in a window, several windows in a shard.
const SMALL: Geometry =
    Geometry { interval_bits: 4, window_edges: 90, segment_edges: 30, unit_bytes: 300 };
const VERTICES: u64 = 700;

fn resources(threads: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// A graph and its arcs: source, target, weight, in internal ids.
struct Case {
    graph: Graph,
    arcs: Vec<(u64, u64, f64)>,
}

/// Random edges, every third from a small set that repeats; the last vertices have none.
fn case(folder: &Path, seed: u64, edges: u64, undirected: bool) -> Case {
    let edge = |at: u64| {
        let random = splitmix64(seed.wrapping_add(at));
        // The square gives some vertices many edges.
        let end = |bits: u64| (bits % 977) * (bits % 977) % (VERTICES - 9);
        match at % 3 {
            0 => (random % 5, random % 7, 0.5),
            _ => (end(random >> 8), (random >> 40) % (VERTICES - 9), (random % 50) as f64 * 0.1),
        }
    };
    let edges: Vec<_> = (0..edges).map(edge).collect();
    let lines: Vec<String> =
        edges.iter().map(|(s, t, weight)| format!("{s} {t} {weight}\n")).collect();
    let (text, path) = (folder.join("e.txt"), folder.join("g.brimful"));
    std::fs::write(&text, format!("source target weight\n{}", lines.concat())).unwrap();
    let options = ImportOptions {
        geometry: SMALL,
        undirected,
        vertices: Some(VERTICES),
        ..Default::default()
    };
    let resources = resources(2, 1 << 28);
    import(Input::EdgeList(vec![text]), &path, &options, &resources).unwrap();
    let graph = Graph::open(&path, resources.job.traffic()).unwrap();
    build_reverse(&graph, &resources).unwrap();
    let graph = Graph::open(graph.path(), resources.job.traffic()).unwrap();
    let mut arcs = Vec::new();
    for (source, target, weight) in edges {
        let (source, target) =
            (graph.find(source.into()).unwrap(), graph.find(target.into()).unwrap());
        arcs.push((source, target, weight));
        if undirected && source != target {
            arcs.push((target, source, weight));
        }
    }
    Case { graph, arcs }
}

impl Case {
    /// For each vertex its list: neighbors and weights, index after index, ascending.
    fn lists(&self, indexes: &[Index]) -> Vec<Vec<(u64, f64)>> {
        let mut lists = vec![Vec::new(); self.graph.connected() as usize];
        let mut indexes = indexes.to_vec();
        if !self.graph.description().directed {
            indexes.truncate(1);
        }
        for index in indexes {
            let mut arcs = self.arcs.clone();
            if index == Index::Reverse {
                arcs.iter_mut().for_each(|arc| *arc = (arc.1, arc.0, arc.2));
            }
            arcs.sort_by_key(|(source, _, weight)| (*source, weight.to_bits()));
            arcs.iter().for_each(|(source, target, weight)| {
                lists[*target as usize].push((*source, *weight))
            });
        }
        lists
    }
}

/// Mixes all inputs of a program, in order.
struct Mixer {
    indexes: &'static [Index],
    /// The run converges after so many supersteps.
    enough: u64,
}

type Mixed = (Sum, Count, Greatest, Least);

fn mix(sum: u64, next: u64) -> u64 {
    splitmix64(sum ^ next.rotate_left(17))
}

impl Gather for Mixer {
    type State = u64;
    type Buffers = Vec<u64>;
    type Aggregate = Mixed;
    const NEEDS_DEGREES: bool = true;
    const NEEDS_EXTERNAL: bool = true;
    const BUFFER_BYTES: u64 = 24;

    fn indexes(&self) -> &'static [Index] {
        self.indexes
    }
    fn initial(&self, vertex: Vertex) -> u64 {
        mix(mix(vertex.external, vertex.degree), vertex.strength.to_bits())
    }
    fn gather(
        &self,
        vertex: Vertex,
        state: u64,
        neighbors: Neighbors<'_, u64>,
        globals: &Globals<Mixed>,
        seen: &mut Vec<u64>,
    ) -> u64 {
        seen.clear();
        seen.extend([
            vertex.id,
            state,
            vertex.degree,
            vertex.strength.to_bits(),
            neighbors.len() as u64,
        ]);
        let (sum, count, greatest, least) = globals.aggregate;
        seen.extend([
            globals.vertices,
            globals.superstep,
            sum.0.to_bits(),
            count.0,
            greatest.0.to_bits(),
            least.0.to_bits(),
        ]);
        seen.extend(
            neighbors.weighted().flat_map(|(id, weight, state)| [id, weight.to_bits(), state]),
        );
        assert!(neighbors.iter().eq(neighbors.weighted().map(|(id, _, state)| (id, state))));
        seen.iter().copied().fold(0, mix)
    }
    fn aggregate(&self, vertex: Vertex, old: u64, new: u64) -> Mixed {
        let number = (new % 1000) as f64 * 0.1 + vertex.strength;
        (Sum(number), Count(u64::from(old != new)), Greatest(number), Least(number))
    }
    fn converged(&self, globals: &Globals<Mixed>) -> bool {
        globals.superstep == self.enough
    }
}

/// States and aggregate of [`Mixer`], computed from its definition.
fn mixed(case: &Case, program: &Mixer, weighted: bool) -> (Vec<u64>, Mixed) {
    let lists = case.lists(program.indexes);
    let vertex = |at: usize| {
        let (mut degree, mut strength) = ([0], [0.0]);
        case.graph.degrees(at as u64, &mut degree).unwrap();
        let out = || case.arcs.iter().filter(|arc| arc.0 == at as u64);
        assert_eq!(degree[0], out().count() as u64);
        strength[0] = degree[0] as f64;
        if weighted {
            case.graph.strengths(at as u64, &mut strength).unwrap();
            assert!((strength[0] - out().map(|arc| arc.2).sum::<f64>()).abs() < 1e-9);
        }
        Vertex { id: at as u64, degree: degree[0], strength: strength[0], external: 0 }
    };
    let vertices: Vec<Vertex> = (0..lists.len()).map(vertex).collect();
    let aggregate = |old: &[u64], new: &[u64]| {
        let part = |at: usize| program.aggregate(vertices[at], old[at], new[at]);
        let starts = (0..new.len()).step_by(1 << SMALL.interval_bits);
        let interval = |start: usize| {
            let end = new.len().min(start + (1 << SMALL.interval_bits));
            (start..end).map(part).fold(Mixed::NOTHING, Aggregate::merge)
        };
        starts.map(interval).fold(Mixed::NOTHING, Aggregate::merge)
    };
    let initial = |vertex: &Vertex| {
        let mut external = [0];
        case.graph.external_ids(vertex.id, &mut external).unwrap();
        program.initial(Vertex { external: external[0], ..*vertex })
    };
    let mut states: Vec<u64> = vertices.iter().map(initial).collect();
    let mut globals = Globals {
        vertices: case.graph.vertices(),
        superstep: 0,
        round: 0,
        aggregate: aggregate(&states, &states),
    };
    while globals.superstep < program.enough {
        let gather = |(at, list): (usize, &Vec<(u64, f64)>)| {
            let Vertex { id, degree, strength, .. } = vertices[at];
            let mut seen = vec![id, states[at], degree, strength.to_bits(), list.len() as u64];
            let (sum, count, greatest, least) = globals.aggregate;
            seen.extend([globals.vertices, globals.superstep]);
            seen.extend([sum.0.to_bits(), count.0, greatest.0.to_bits(), least.0.to_bits()]);
            for (id, weight) in list {
                let weight = if weighted { *weight } else { 1.0 };
                seen.extend([*id, weight.to_bits(), states[*id as usize]]);
            }
            seen.into_iter().fold(0, mix)
        };
        let next: Vec<u64> = lists.iter().enumerate().map(gather).collect();
        globals.aggregate = aggregate(&states, &next);
        globals.superstep += 1;
        states = next;
    }
    (states, globals.aggregate)
}

fn states<G: Gather>(output: &Gathered<G::State, G::Aggregate>) -> Vec<G::State> {
    let mut out = bytemuck::zeroed_vec(output.states.len());
    output.states.read(0, &mut out).unwrap();
    out
}

/// The smallest budget with which `attempt` works, as named by a refusal.
fn smallest<T>(attempt: impl Fn(u64) -> Result<T>) -> u64 {
    match attempt(1).err() {
        Some(brimful_engine::Error::Store(StoreError::Budget { needed, .. })) => needed,
        other => panic!("a byte is not enough: {other:?}"),
    }
}

/// Runs `program` at one to four threads and budgets from the smallest on; all results must be
/// `wanted`.
fn check<G: Gather>(
    program: &G,
    case: &Case,
    options: &RunOptions,
    wanted: impl Fn(&Gathered<G::State, G::Aggregate>) -> bool,
) {
    for threads in 1..=4 {
        let run = |budget| gather(program, &case.graph, options, &resources(threads, budget));
        let needed = smallest(run);
        assert_eq!(smallest(|_| run(needed - 1)), needed, "a byte less is refused for the same");
        let mut resident = Vec::new();
        for more in [0, 1, 500, 3000, 9000, 14_000, 20_000, 40_000, 1 << 28] {
            let output = run(needed + more).unwrap();
            assert!(wanted(&output), "{threads} threads, {needed} + {more} bytes");
            assert_eq!(
                output.states.is_resident(),
                output.stats.moved.written(Content::States) == 0
            );
            resident.push(output.states.is_resident());
        }
        assert!(resident.is_sorted() && resident[8], "{threads} threads: {resident:?}");
        // The needs of more threads exceed the states of so small a graph.
        assert!(threads > 2 || !resident[0], "{threads} threads: {resident:?}");
    }
}

#[test]
fn lists_weights_degrees_and_aggregates_are_those_of_the_definition() {
    const BOTH: &[Index] = &[Index::In, Index::Reverse];
    for (seed, edges, undirected, indexes) in [
        (1, 4000, false, BOTH),
        (2, 1500, true, BOTH),
        (3, 2500, false, &[Index::In]),
        (4, 2500, false, &[Index::Reverse]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), seed, edges, undirected);
        assert!(case.graph.connected() < case.graph.vertices());
        let program = Mixer { indexes, enough: 3 };
        for weighted in [false, true] {
            let wanted = mixed(&case, &program, weighted);
            let options = RunOptions { weighted, ..Default::default() };
            check(&program, &case, &options, |output| {
                assert_eq!((output.stats.supersteps, output.stats.reason), (3, Reason::Converged));
                states::<Mixer>(output) == wanted.0 && output.aggregate == wanted.1
            });
        }
    }
}

/// Mixes the states of neighbors, in order.
struct StateMixer<const IDS: bool>;

impl<const IDS: bool> Gather for StateMixer<IDS> {
    type State = u64;
    type Buffers = ();
    type Aggregate = ();
    const NEEDS_EXTERNAL: bool = true;
    const READS_IDS: bool = IDS;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }
    fn initial(&self, vertex: Vertex) -> u64 {
        mix(7, vertex.external)
    }
    fn gather(
        &self,
        _: Vertex,
        state: u64,
        neighbors: Neighbors<'_, u64>,
        _: &Globals<()>,
        (): &mut (),
    ) -> u64 {
        assert_eq!(neighbors.states().count(), neighbors.len());
        neighbors.states().fold(state, mix)
    }
}

#[test]
fn lists_without_ids_have_the_same_states() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), 6, 4000, false);
    for weighted in [false, true] {
        let options = RunOptions { weighted, max_supersteps: 3, ..Default::default() };
        let wanted = gather(&StateMixer::<true>, &case.graph, &options, &resources(1, 1 << 28));
        let wanted = states::<StateMixer<true>>(&wanted.unwrap());
        check(&StateMixer::<false>, &case, &options, |output| {
            states::<StateMixer<false>>(output) == wanted
        });
    }
}

/// True for vertices that the vertex 0 reaches.
struct Reached<const GLOBALS: bool>;

impl<const GLOBALS: bool> Gather for Reached<GLOBALS> {
    type State = u8;
    type Buffers = ();
    type Aggregate = ();
    const NEEDS_EXTERNAL: bool = true;
    const READS_GLOBALS: bool = GLOBALS;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In]
    }
    fn initial(&self, vertex: Vertex) -> u8 {
        u8::from(vertex.external == 0)
    }
    fn gather(
        &self,
        _: Vertex,
        state: u8,
        neighbors: Neighbors<'_, u8>,
        _: &Globals<()>,
        (): &mut (),
    ) -> u8 {
        let mut copies = Vec::new();
        neighbors.copy_states(&mut copies);
        assert!(copies.iter().copied().eq(neighbors.states()));
        copies.into_iter().fold(state, u8::max)
    }
}

#[test]
fn vertices_far_from_a_change_are_not_gathered() {
    const CHAIN: u64 = 50;
    let folder = tempfile::tempdir().unwrap();
    let (text, path) = (folder.path().join("e.txt"), folder.path().join("g.brimful"));
    // A chain, and many edges that the vertex 0 does not reach.
    let mut lines: Vec<_> = (0..CHAIN).map(|at| format!("{at} {}\n", at + 1)).collect();
    let end = |bits: u64| 1000 + bits % 90;
    lines.extend(
        (0..30_000).map(splitmix64).map(|number| format!("{} {}\n", end(number), end(number >> 9))),
    );
    std::fs::write(&text, lines.concat()).unwrap();
    let options = ImportOptions { geometry: SMALL, ..Default::default() };
    import(Input::EdgeList(vec![text]), &path, &options, &resources(2, 1 << 28)).unwrap();
    let graph = Graph::open(&path, Job::new().traffic()).unwrap();
    let edges = CHAIN + 30_000;
    for max_supersteps in [1, 2, 20, u64::MAX] {
        let options = RunOptions { max_supersteps, ..Default::default() };
        let all = gather(&Reached::<true>, &graph, &options, &resources(1, 1 << 28)).unwrap();
        assert_eq!(all.stats.edges_visited, all.stats.supersteps * edges);
        assert_eq!(all.stats.supersteps, max_supersteps.min(CHAIN + 1));
        let wanted = states::<Reached<true>>(&all);
        assert_eq!(
            wanted.iter().map(|state| u64::from(*state)).sum::<u64>(),
            1 + all.stats.supersteps.min(CHAIN)
        );
        let run = |budget, threads| {
            let resources = resources(threads, budget);
            let output = gather(&Reached::<false>, &graph, &options, &resources)?;
            assert_eq!(states::<Reached<false>>(&output), wanted);
            assert_eq!(output.stats.supersteps, all.stats.supersteps);
            assert_eq!(output.stats.signals, all.stats.signals);
            Ok(output.stats.edges_visited)
        };
        let least = smallest(|budget| run(budget, 1));
        assert_eq!(run(least, 1).unwrap(), all.stats.edges_visited);
        // With enough memory all vertices gather once; then a vertex that changed and the next one,
        // which the last of the chain has not.
        let last = u64::from(all.stats.supersteps > CHAIN);
        let near = 2 * (all.stats.supersteps - 1) - last;
        for threads in 1..=3 {
            assert_eq!(run(1 << 28, threads).unwrap(), edges + near);
        }
    }
}

/// First-fit colors, in the order of hashes. State: the color or none, and the offset of the id.
struct FirstFit;

const NONE: u64 = u64::MAX;

impl Gather for FirstFit {
    type State = [u64; 2];
    type Buffers = ();
    type Aggregate = ();
    const NEEDS_EXTERNAL: bool = true;
    const SETTLES: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }
    fn initial(&self, vertex: Vertex) -> [u64; 2] {
        [NONE, vertex.external]
    }
    fn settled(&self, state: [u64; 2]) -> bool {
        state[0] != NONE
    }
    fn urgency(&self, state: [u64; 2]) -> u128 {
        splitmix64(state[1]).into()
    }
    fn gather(
        &self,
        vertex: Vertex,
        state: [u64; 2],
        neighbors: Neighbors<'_, [u64; 2]>,
        _: &Globals<()>,
        (): &mut (),
    ) -> [u64; 2] {
        let others = || neighbors.iter().filter(|(id, _)| *id != vertex.id).map(|(_, state)| state);
        if others().any(|other| !self.settled(other) && self.urgency(other) > self.urgency(state)) {
            return state;
        }
        let free = |color: &u64| others().all(|other| other[0] != *color);
        [(0..).find(free).unwrap_or(NONE), state[1]]
    }
}

#[test]
fn programs_that_settle_come_to_the_same_states_in_fewer_supersteps_with_more_memory() {
    for (seed, undirected) in [(5, false), (6, true)] {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), seed, 2500, undirected);
        let lists = case.lists(FirstFit.indexes());
        let mut place = vec![0; lists.len()];
        case.graph.external_ids(0, &mut place).unwrap();
        let mut order: Vec<usize> = (0..lists.len()).collect();
        order.sort_by_key(|vertex| Reverse(splitmix64(place[*vertex])));
        let mut colors = vec![NONE; lists.len()];
        for vertex in order {
            let others = || lists[vertex].iter().filter(|(id, _)| *id != vertex as u64);
            let free = |color: &u64| others().all(|(id, _)| colors[*id as usize] != *color);
            colors[vertex] = (0..).find(free).unwrap();
        }
        check(&FirstFit, &case, &RunOptions::default(), |output| {
            assert_eq!(output.stats.reason, Reason::NoChange);
            states::<FirstFit>(output).iter().map(|state| state[0]).eq(colors.iter().copied())
        });
        let run = |budget| {
            let stats =
                gather(&FirstFit, &case.graph, &RunOptions::default(), &resources(2, budget));
            stats.unwrap().stats
        };
        let needed = smallest(|budget| {
            gather(&FirstFit, &case.graph, &RunOptions::default(), &resources(2, budget))
        });
        // If all lists are made together, one superstep is enough.
        let (little, much) = (run(needed), run(1 << 28));
        assert_eq!(much.supersteps, 1);
        assert!(little.supersteps > 2 && little.edges_visited > much.edges_visited);
    }
}

#[test]
fn programs_that_settle_take_few_supersteps_in_little_memory() {
    for (seed, undirected) in [(8, false), (9, true)] {
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), seed, 60_000, undirected);
        let run = |threads: usize, budget: u64| {
            gather(&FirstFit, &case.graph, &RunOptions::default(), &resources(threads, budget))
        };
        let wanted = states::<FirstFit>(&run(2, 1 << 28).unwrap());
        let mut most = 0;
        for threads in [1, 3] {
            let needed = smallest(|budget| run(threads, budget));
            // This budget holds all states in memory.
            let resident = needed + case.graph.connected() * (16 + 4);
            for budget in (resident..needed + (2 << 20)).step_by(1 << 16) {
                let output = run(threads, budget).unwrap();
                assert_eq!(
                    states::<FirstFit>(&output),
                    wanted,
                    "{threads} threads, {budget} bytes"
                );
                most = most.max(output.stats.supersteps);
            }
        }
        // One superstep for all vertices, then one for each time that memory fills with lists.
        assert!((3..=40).contains(&most), "{most} supersteps");
    }
}

#[test]
fn a_run_ends_at_its_limits_and_refuses_what_makes_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), 7, 800, false);
    let program = Mixer { indexes: &[Index::In], enough: u64::MAX };
    let run = |options: &RunOptions| gather(&program, &case.graph, options, &resources(2, 1 << 28));
    let end = |max_supersteps, max_seconds| {
        let stats =
            run(&RunOptions { max_supersteps, max_seconds, ..Default::default() }).unwrap().stats;
        (stats.supersteps, stats.reason)
    };
    assert_eq!(end(4, None), (4, Reason::MaxSupersteps));
    assert_eq!(end(0, None), (0, Reason::MaxSupersteps));
    assert_eq!(end(u64::MAX, Some(0.0)), (1, Reason::MaxSeconds));
    assert_eq!(end(3, Some(1e9)), (3, Reason::MaxSupersteps));
    let refused = [
        (
            RunOptions { signal_threshold: Some(0.1), ..Default::default() },
            "a signal threshold does",
        ),
        (
            RunOptions { collect_threshold: Some(0.1), ..Default::default() },
            "a collect threshold does",
        ),
        (
            RunOptions { traversal: TraversalMode::Sparse, ..Default::default() },
            "the choice of a traversal does",
        ),
        (RunOptions { asynchronous: true, ..Default::default() }, "the asynchronous mode does"),
    ];
    for (options, message) in refused {
        let error = run(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(message), "{error}");
    }
    let limited = RunOptions { max_supersteps: 9, ..Default::default() };
    let error = gather(&FirstFit, &case.graph, &limited, &resources(2, 1 << 28)).unwrap_err();
    assert!(error.to_string().contains("--max-supersteps does not apply"), "{error}");
}

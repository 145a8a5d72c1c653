//! Results of programs compared with those of different algorithms.

use brimful_algos::betweenness::AddEach;
use brimful_algos::bipartite::Smallest;
use brimful_algos::closeness::Union;
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_algos::scc::LeastAndCount;
use brimful_engine::result::table::Column;
use brimful_engine::vertex::combiner::check_laws;
use brimful_graph::Graph;
use brimful_graph::build::import::{ImportOptions, Input, import};
use brimful_graph::generate::Kind;
use brimful_store::ErrorKind;
use std::sync::Arc;

use super::references::{core_numbers, distances, levels, path_counts, strong_components};
use super::{CASES, Case, case, case_of, cases, column, request, request_from};
use crate::resources;

/// A request for an algorithm by one of its methods.
fn by(algorithm: &str, method: &str) -> Request {
    let parameters = [("method".to_owned(), Parameter::Word(method.into()))].into();
    Request { algorithm: algorithm.into(), parameters, ..Default::default() }
}

#[test]
fn searches_from_a_vertex_agree_with_queues_and_heaps() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        let last = case.out.len() - 1;
        for sources in [vec![0], vec![7], vec![last], vec![last, 0, 7], vec![7, last / 2, 7]] {
            let named = format!("case {number} from {sources:?}");
            let request = |algorithm| request_from(algorithm, &sources);
            let level = levels(&case, &sources);
            assert_eq!(column(&case, &request("bfs")), level, "{named}");
            assert_eq!(
                column(&case, &Request { asynchronous: true, ..request("bfs") }),
                level,
                "{named}"
            );
            assert_eq!(column(&case, &request("sssp")), level);
            let weighted = Request { weighted: true, ..request("sssp") };
            assert_eq!(column(&case, &weighted), distances(&case, &sources), "{named}");
            let counts = column(&case, &request("count_paths"));
            assert!(
                counts.into_iter().map(Option::unwrap).eq(path_counts(&case, &sources)),
                "{named}"
            );

            let mut parents = request("bfs");
            parents.parameters.insert("values".into(), Parameter::Word("parent".into()));
            for (vertex, parent) in column(&case, &parents).into_iter().enumerate() {
                let leads = |from: &usize| {
                    level[*from].is_some_and(|near| Some(near + 1) == level[vertex])
                        && case.out[*from].iter().any(|(target, _)| *target == vertex)
                };
                let is_source = sources.contains(&vertex);
                let wanted = if is_source { Some(vertex) } else { (0..case.out.len()).find(leads) };
                assert_eq!(parent, wanted.map(|from| from as u64), "{named}, to {vertex}");
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
            assert!(
                column(&case, &request).into_iter().map(Option::unwrap).eq(wanted),
                "{direction}"
            );
        }
    }
}

#[test]
fn core_numbers_agree_with_peeling_one_vertex_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let check = |case: &Case| {
        for method in ["auto", "peeling", "rounds"] {
            let cores = column(case, &by("kcore", method));
            assert!(cores.into_iter().map(Option::unwrap).eq(core_numbers(case)), "{method}");
        }
    };
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        check(&cases(folder.path(), number));
    }
    let clique = |size: usize, first: usize| {
        (0..size).flat_map(move |a| (0..a).map(move |b| (first + a, first + b)))
    };
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
    let (request, resources) = (by("kcore", "rounds"), resources(2, 1 << 28));
    let stats = run_request(&request, &case.graph, &resources).unwrap().stats;
    let loops = case
        .out
        .iter()
        .enumerate()
        .map(|(v, targets)| targets.iter().filter(|(t, _)| *t == v).count());
    // Otherwise every arc but a loop carries two signals each way.
    let all = 4 * (case.graph.description().arcs - loops.sum::<usize>() as u64);
    assert!(stats.signals < all * 9 / 10, "{} signals of {all}", stats.signals);
}

#[test]
fn strong_components_agree_with_tarjan() {
    let check = |case: &Case| {
        for method in ["auto", "search", "coloring"] {
            assert_eq!(column(case, &by("scc", method)), strong_components(case), "{method}");
        }
    };
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
    // Pairs in a row: ascending, descending and shuffled. Self-loops do not stop peeling.
    for step in [1, 99, 37] {
        let at = |place: usize| place * step % 100;
        let pairs = (0..50).flat_map(|pair| {
            [(2 * pair, 2 * pair + 1), (2 * pair + 1, 2 * pair), (2 * pair, 2 * pair)]
        });
        let between = (0..49).map(|pair| (2 * pair + 1, 2 * pair + 2));
        let edges: Vec<_> =
            pairs.chain(between).map(|(source, target)| (at(source), at(target))).collect();
        let folder = tempfile::tempdir().unwrap();
        let case = case_of(folder.path(), &edges, 103);
        check(&case);
        let stats =
            run_request(&by("scc", "coloring"), &case.graph, &resources(2, 1 << 28)).unwrap().stats;
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
    std::fs::write(&input, format!("{low} {high}\n{high} {low}\n{high} 5\n5 6\n6 5\n7 {high}\n"))
        .unwrap();
    let resources = resources(2, 1 << 28);
    import(Input::EdgeList(vec![input]), &path, &ImportOptions::default(), &resources).unwrap();
    let graph = Arc::new(Graph::open(&path, resources.job.traffic()).unwrap());
    let request = Request { algorithm: "scc".into(), ..Default::default() };
    let table = run_request(&request, &graph, &resources).unwrap().table;
    let (_, column) = table.rows().next_batch(9).unwrap().unwrap();
    let Column::Ids(names) = column else { panic!("{column:?}") };
    let names: Vec<i128> =
        names.into_iter().map(|name| graph.id_type().number(name.unwrap())).collect();
    assert_eq!(names, [low.into(), 5, 5, 7, low.into()]);
}

#[test]
fn combiners_obey_their_laws() {
    check_laws::<LeastAndCount<u32>>(&[0, 1, 7, u32::MAX - 1]).unwrap();
    check_laws::<LeastAndCount<u64>>(&[0, 1, 7, u64::MAX - 1]).unwrap();
    check_laws::<AddEach>(&[[0.0; 8], [0.5; 8], [-3.0, 1.0, 0.0, 2.0, 0.0, 8.0, 0.0, 1.0]])
        .unwrap();
    check_laws::<Smallest<u32>>(&[[0, 7], [3, 2], [u32::MAX, 1], [u32::MAX; 2]]).unwrap();
    check_laws::<Union<4>>(&[[0; 4], [0, 3, 0, 1], [2, 1, 0, 0]]).unwrap();
}

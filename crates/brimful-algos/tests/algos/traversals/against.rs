//! Results of programs compared with those of different algorithms.

use brimful_algos::bipartite::Smallest;
use brimful_algos::closeness::Union;
use brimful_algos::registry::{Parameter, Request, run_request};
use brimful_algos::scc::LeastAndCount;
use brimful_engine::AddEach;
use brimful_engine::vertex::combiner::check_laws;

use super::references::{distances, levels};
use super::{CASES, cases, column, request};
use crate::resources;

#[test]
fn searches_agree_with_queues_and_heaps() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        let last = case.out.len() - 1;
        for sources in [vec![7], vec![last, 0, 7]] {
            let level = levels(&case, &sources);
            assert_eq!(column(&case, &request("bfs", &sources)), level, "{number}, {sources:?}");
            let weighted = Request { weighted: true, ..request("sssp", &sources) };
            let distance = distances(&case, &sources);
            assert_eq!(column(&case, &weighted), distance, "{number}, {sources:?}");
        }
    }
}

#[test]
fn intervals_of_finished_vertices_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 0);
    let parameters = [("method".to_owned(), Parameter::Word("rounds".into()))].into();
    let request = Request { parameters, ..request("kcore", &[]) };
    let stats = run_request(&request, &case.graph, &resources(2, 1 << 28)).unwrap().stats;
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
fn combiners_obey_their_laws() {
    check_laws::<LeastAndCount<u32>>(&[0, 1, 7, u32::MAX - 1]).unwrap();
    check_laws::<LeastAndCount<u64>>(&[0, 1, 7, u64::MAX - 1]).unwrap();
    check_laws::<AddEach<8>>(&[[0.0; 8], [0.5; 8], [-3.0, 1.0, 0.0, 2.0, 0.0, 8.0, 0.0, 1.0]])
        .unwrap();
    check_laws::<Smallest<u32>>(&[[0, 7], [3, 2], [u32::MAX, 1], [u32::MAX; 2]]).unwrap();
    check_laws::<Union<4>>(&[[0; 4], [0, 3, 0, 1], [2, 1, 0, 0]]).unwrap();
}

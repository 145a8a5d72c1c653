//! Programs over neighbor lists compared with their definitions.

use brimful_algos::registry::{Request, run_request};
use brimful_engine::checkpoint::CheckpointOptions;
use brimful_engine::result::table::Column;
use brimful_graph::build::import::build_reverse;

use super::references::propagated;
use super::{CASES, cases};
use crate::{resources, smallest, threads};

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
            for threads in threads(1..=3) {
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

#[test]
fn settled_vertices_are_not_gathered_again() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases(folder.path(), 4);
    // With checkpoints a run has supersteps.
    let checkpoints = Some(CheckpointOptions::new(folder.path().join("checkpoints")));
    let request = Request { algorithm: "color".into(), checkpoints, ..Default::default() };
    let run = |budget| run_request(&request, &case.graph, &resources(2, budget));
    let stats = run(1 << 28).unwrap().stats;
    // A star: a superstep for degrees, then one for all, the center first, as all lists are made
    // together.
    let arcs = case.graph.description().arcs;
    assert_eq!((stats.supersteps, stats.signals), (2, 2 * arcs));
    // With little memory, first the center and some leaves, then the others; each list is still
    // made once.
    let stats = run(smallest(run)).unwrap().stats;
    assert!(stats.supersteps > 2);
    assert_eq!(stats.signals, 2 * arcs);
}

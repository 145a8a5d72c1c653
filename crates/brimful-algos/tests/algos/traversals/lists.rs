//! Programs over neighbor lists compared with their definitions.

use brimful_algos::registry::{Request, run_request};
use brimful_engine::Reason;
use brimful_engine::result::table::Column;
use brimful_graph::build::import::build_reverse;

use super::references::{first_fit, propagated};
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
fn colors_are_those_of_first_fit_at_any_budget() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        build_reverse(&case.graph, &resources(2, 1 << 28)).unwrap();
        let request = Request { algorithm: "color".into(), ..Default::default() };
        let wanted = first_fit(&case);
        for (source, targets) in case.out.iter().enumerate() {
            assert!(
                targets
                    .iter()
                    .all(|(target, _)| *target == source || wanted[*target] != wanted[source])
            );
        }
        for threads in threads(1..=3) {
            let run = |budget| run_request(&request, &case.graph, &resources(threads, budget));
            let needed = smallest(run);
            for budget in [needed, needed + 3000, 1 << 28] {
                let finished = run(budget).unwrap();
                assert_eq!(finished.stats.reason, Reason::NoChange);
                let (_, column) = finished.table.rows().next_batch(usize::MAX).unwrap().unwrap();
                let Column::Unsigned(colors) = column else { panic!("colors are numbers") };
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

#[test]
fn triangles_and_clustering_agree_with_all_pairs_of_neighbors() {
    for number in 0..CASES {
        let folder = tempfile::tempdir().unwrap();
        let case = cases(folder.path(), number);
        let n = case.out.len();
        let mut arc = vec![vec![false; n]; n];
        for (vertex, targets) in case.out.iter().enumerate() {
            targets
                .iter()
                .filter(|(target, _)| *target != vertex)
                .for_each(|(t, _)| arc[vertex][*t] = true);
        }
        for threads in threads(1..=3) {
            let run = |algorithm: &str| {
                let request = Request { algorithm: algorithm.into(), ..Default::default() };
                let table =
                    run_request(&request, &case.graph, &resources(threads, 1 << 28)).unwrap().table;
                table.rows().next_batch(usize::MAX).unwrap().unwrap().1
            };
            let (Column::Integer(triangles), Column::Float(coefficients)) =
                (run("triangles"), run("clustering"))
            else {
                panic!("numbers")
            };
            for vertex in 0..n {
                let around: Vec<usize> =
                    (0..n).filter(|u| arc[vertex][*u] || arc[*u][vertex]).collect();
                let pairs = || around.iter().flat_map(|u| around.iter().map(move |w| (*u, *w)));
                let joined = pairs().filter(|(u, w)| u < w && (arc[*u][*w] || arc[*w][*u])).count();
                let arcs = pairs().filter(|(u, w)| arc[*u][*w]).count();
                let possible = around.len() * around.len().saturating_sub(1);
                let wanted = if possible == 0 { 0.0 } else { arcs as f64 / possible as f64 };
                assert_eq!(
                    triangles[vertex],
                    Some(joined as i64),
                    "case {number}, vertex {vertex}"
                );
                assert_eq!(coefficients[vertex], Some(wanted), "case {number}, vertex {vertex}");
            }
        }
    }
}

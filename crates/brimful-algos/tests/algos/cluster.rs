//! Runs divided among several processes, here threads: the same results as one process.

use std::sync::Arc;
use std::time::Duration;

use brimful_algos::registry::{Finished, Parameter, Request, run_request};
use brimful_algos::{Error, Result};
use brimful_engine::checkpoint::{CheckpointOptions, Every};
use brimful_engine::{Error as EngineError, Stats};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_store::ErrorKind;

use crate::checkpoints::{request, sourced};
use crate::processes::Hub;
use crate::{LARGE, TINY, resources, reversed, smallest};

/// Runs a request in `count` processes and a driver; the result of the driver. Process 0 is
/// lost at call `last`.
fn shared(request: &Request, graph: &Arc<Graph>, count: usize, last: u64) -> Result<Finished> {
    within(LARGE, request, graph, count, last)
}

/// [`shared`] within a budget for each process.
fn within(
    budget: u64,
    request: &Request,
    graph: &Arc<Graph>,
    count: usize,
    last: u64,
) -> Result<Finished> {
    let hub = Arc::new(Hub::default());
    let run = |index: Option<usize>| {
        let communicator = hub.communicator(count, index, count % 2 == 1, last);
        let request = Request { communicator: Some(communicator), ..request.clone() };
        // A process that is lost or fails takes the others with it.
        let result = run_request(&request, graph, &resources(1 + count % 2, budget));
        if !matches!(result, Ok(_) | Err(Error::Engine(EngineError::ProcessDone(_)))) {
            hub.fail();
        }
        result
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..count).map(|index| scope.spawn(move || run(Some(index)))).collect();
        let of_driver = run(None);
        for worker in workers {
            match worker.join().unwrap() {
                Ok(_) => panic!("a worker has no result"),
                // It may be done before another one is lost.
                Err(Error::Engine(EngineError::ProcessDone(_))) => {}
                Err(_) => assert!(of_driver.is_err()),
            }
        }
        of_driver
    })
}

/// Requests for programs of every mode.
fn requests() -> Vec<Request> {
    let pagerank = request("pagerank", &[]);
    vec![
        pagerank.clone(),
        Request { weighted: true, narrow: true, ..sourced(pagerank) },
        request("pagerank", &[("method", "delta")]),
        request("hits", &[]),
        request("connected_components", &[]),
        request("connected_components", &[("method", "propagation")]),
        Request { weighted: true, ..sourced(request("sssp", &[])) },
        sourced(request("bfs", &[])),
        Request { max_supersteps: Some(3), ..sourced(request("bfs", &[("values", "parent")])) },
        sourced(request("count_paths", &[])),
        request("scc", &[]),
        request("kcore", &[]),
        request("degrees", &[("direction", "both")]),
        request("closeness", &[("register_bits", "6")]),
        request("label_propagation", &[]),
        Request { max_supersteps: Some(4), ..request("label_propagation", &[]) },
    ]
}

fn bits(finished: &Finished) -> String {
    let mut rows = finished.table.rows();
    let (ids, column) = rows.next_batch(usize::MAX).unwrap().unwrap();
    format!("{ids:?} {column:?}")
}

fn figures(stats: &Stats) -> (u64, u64, u64) {
    (stats.supersteps, stats.signals, stats.resumed_from.unwrap_or_default())
}

/// The request as one process runs it: not by a method that works on the whole graph at once.
fn alone(request: &Request) -> Request {
    let method = match request.algorithm.as_str() {
        "connected_components" => "propagation",
        "scc" => "coloring",
        "kcore" => "rounds",
        _ => return request.clone(),
    };
    let mut request = request.clone();
    request.parameters.insert("method".into(), Parameter::Word(method.into()));
    request
}

#[test]
fn any_number_of_processes_gives_the_same_bits() {
    let cases = [
        (Kind::Rmat { scale: 9, edge_factor: 14 }, false),
        (Kind::Rmat { scale: 8, edge_factor: 3 }, true),
        (Kind::Chain { vertices: 300 }, false),
        (Kind::Star { vertices: 40 }, true),
    ];
    for (kind, undirected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let graph = reversed(folder.path(), kind, TINY, undirected);
        for request in requests() {
            let one = run_request(&alone(&request), &graph, &resources(2, LARGE)).unwrap();
            for count in [1, 2, 3, 5] {
                let many = shared(&request, &graph, count, u64::MAX).unwrap();
                let name = &request.algorithm;
                assert!(bits(&many) == bits(&one), "{name} of {kind:?} in {count}");
                assert_eq!(figures(&many.stats), figures(&one.stats), "{name} {kind:?} {count}");
                assert_eq!(many.stats.reason, one.stats.reason, "{name} of {kind:?} in {count}");
            }
        }
    }
}

/// The number of supersteps of these depends on the part of a process.
#[test]
fn programs_that_settle_end_in_the_same_states() {
    let cases =
        [(Kind::Rmat { scale: 9, edge_factor: 14 }, false), (Kind::Star { vertices: 40 }, true)];
    for (kind, undirected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let graph = reversed(folder.path(), kind, TINY, undirected);
        for request in [request("color", &[]), request("maximal_independent_set", &[])] {
            let one = run_request(&request, &graph, &resources(2, LARGE)).unwrap();
            for count in [1, 2, 3, 5] {
                let many = shared(&request, &graph, count, u64::MAX).unwrap();
                let name = &request.algorithm;
                assert!(bits(&many) == bits(&one), "{name} of {kind:?} in {count}");
            }
        }
    }
}

/// In the smallest budget that works, states are on disk.
#[test]
fn neighbor_lists_are_divided_in_any_budget() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Rmat { scale: 9, edge_factor: 14 }, TINY, false);
    for request in [request("label_propagation", &[]), request("color", &[])] {
        let one = run_request(&request, &graph, &resources(2, LARGE)).unwrap();
        for count in [1, 2, 3, 5] {
            let least = smallest(|budget| within(budget, &request, &graph, count, u64::MAX));
            for budget in [least, least + (least >> 3), 2 * least] {
                let many = within(budget, &request, &graph, count, u64::MAX).unwrap();
                let name = &request.algorithm;
                assert!(bits(&many) == bits(&one), "{name} in {count} of {budget} bytes");
            }
        }
    }
}

#[test]
fn a_run_that_loses_a_process_resumes_in_any_number_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Rmat { scale: 9, edge_factor: 4 }, TINY, false);
    for request in requests() {
        let one = run_request(&alone(&request), &graph, &resources(2, LARGE)).unwrap();
        if one.stats.supersteps < 3 {
            continue;
        }
        let checkpoints = folder.path().join("checkpoints");
        let every = Some(Every::Supersteps(1));
        let options = CheckpointOptions { every, ..CheckpointOptions::new(&checkpoints) };
        let begun = Request { checkpoints: Some(options.clone()), ..request.clone() };
        // The first turn, then in each superstep a turn and the gathering of states and signals.
        let error = shared(&begun, &graph, 3, 6).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let resumed = Request {
            checkpoints: Some(CheckpointOptions { resume: true, ..options }),
            ..request.clone()
        };
        let many = shared(&resumed, &graph, 2, u64::MAX).unwrap();
        assert!(many.stats.resumed_from.is_some(), "{}", request.algorithm);
        assert!(bits(&many) == bits(&one), "{}", request.algorithm);
        assert_eq!(many.stats.signals, one.stats.signals, "{}", request.algorithm);
        brimful_engine::checkpoint::discard(&checkpoints).unwrap();
    }
}

#[test]
fn what_a_cluster_does_not_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let graph = reversed(folder.path(), Kind::Chain { vertices: 40 }, TINY, false);
    let refused = |request: &Request| {
        let error = shared(request, &graph, 1, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        error.to_string()
    };
    let triangles = refused(&request("triangles", &[]));
    assert!(triangles.contains("--cluster does not apply to triangles"), "{triangles}");
    let union_find = refused(&request("connected_components", &[("method", "union_find")]));
    assert!(union_find.contains("union_find has no"), "{union_find}");
    let asynchronous = Request { asynchronous: true, ..request("pagerank", &[]) };
    assert!(refused(&asynchronous).contains("use --mode sync"));
    let every = Some(Every::Time(Duration::from_secs(1)));
    let options = CheckpointOptions { every, ..CheckpointOptions::new(folder.path().join("c")) };
    let by_time = Request { checkpoints: Some(options), ..request("pagerank", &[]) };
    assert!(refused(&by_time).contains("in supersteps, not in seconds"));
    let by_time = Request { algorithm: "label_propagation".into(), ..by_time };
    assert!(refused(&by_time).contains("in supersteps, not in seconds"));
}

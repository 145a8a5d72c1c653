//! Checkpoints: a resumed run ends with the result of an uninterrupted run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brimful_algos::registry::{Finished, Parameter, Request, StoreChoice, algorithms, run_request};
use brimful_algos::{Error, Result};
use brimful_engine::checkpoint::{CheckpointOptions, Every, newest_superstep};

use brimful_engine::{Reason, Stats};
use brimful_execution::{ListLocation, Partitioning};
use brimful_graph::generate::Kind;
use brimful_graph::ids::external::ExternalId;
use brimful_store::{ErrorKind, Job};

use crate::{LARGE, SMALL, resources, reversed, smallest};

pub(crate) fn request(algorithm: &str, parameters: &[(&str, &str)]) -> Request {
    let parameter = |(name, value): &(&str, &str)| {
        let value =
            value.parse().map_or_else(|_| Parameter::Word((*value).to_owned()), Parameter::Number);
        ((*name).to_owned(), value)
    };
    Request {
        algorithm: algorithm.to_owned(),
        parameters: parameters.iter().map(parameter).collect(),
        ..Default::default()
    }
}

pub(crate) fn sourced(request: Request) -> Request {
    Request { sources: vec![ExternalId::Number(3), ExternalId::Number(9)], ..request }
}

/// Requests for every program with supersteps, in all modes.
fn requests() -> Vec<Request> {
    let pagerank = request("pagerank", &[]);
    let components = request("connected_components", &[("method", "propagation")]);
    let sssp = Request { weighted: true, ..sourced(request("sssp", &[])) };
    vec![
        pagerank.clone(),
        Request { narrow: true, ..pagerank.clone() },
        Request { weighted: true, ..sourced(pagerank.clone()) },
        Request { asynchronous: true, ..pagerank.clone() },
        request("pagerank", &[("method", "delta"), ("variant", "unnormalized")]),
        Request { source_weights: vec![2.0, 0.5], ..sourced(pagerank.clone()) },
        request("hits", &[]),
        request("eigenvector", &[]),
        request("katz", &[("alpha", "1e-3")]),
        request("harmonic", &[]),
        components.clone(),
        Request { asynchronous: true, ..components },
        sssp.clone(),
        Request { asynchronous: true, ..sssp },
        request("scc", &[("method", "coloring")]),
        request("kcore", &[("method", "rounds")]),
        request("bipartite", &[("method", "propagation")]),
        sourced(request("bfs", &[])),
        sourced(request("bfs", &[("values", "parent")])),
        sourced(request("count_paths", &[])),
        request("label_propagation", &[]),
    ]
}

/// The request with checkpoints after every superstep; two are kept.
fn with_checkpoints(request: &Request, folder: &Path) -> Request {
    let every = Some(Every::Supersteps(1));
    Request {
        checkpoints: Some(CheckpointOptions { every, ..CheckpointOptions::new(folder) }),
        ..request.clone()
    }
}

/// The request, resumed.
fn resumed(request: &Request, folder: &Path) -> Request {
    Request {
        checkpoints: Some(CheckpointOptions { resume: true, ..CheckpointOptions::new(folder) }),
        ..request.clone()
    }
}

/// The request until superstep `end`, at which it has a checkpoint; few runs wait for the disk
/// after every superstep.
fn saved_at(request: &Request, end: u64, folder: &Path) -> Request {
    let every = Some(Every::Supersteps(if end > 2 { end } else { 1 }));
    let checkpoints = Some(CheckpointOptions { every, ..CheckpointOptions::new(folder) });
    until(Request { checkpoints, ..request.clone() }, end)
}

fn until(request: Request, superstep: u64) -> Request {
    Request { max_supersteps: Some(superstep), ..request }
}

/// The result as text, with exact floats.
fn rows(finished: &Finished, folder: &Path) -> Vec<u8> {
    let out = folder.join("rows.csv");
    finished.table.write_csv(&out, true, &Job::new()).unwrap();
    std::fs::read(out).unwrap()
}

fn ended_by(result: Result<Finished>) -> Error {
    result.err().unwrap()
}

#[test]
fn a_resumed_run_ends_as_the_undisturbed_one() {
    let kinds =
        [Kind::Rmat { scale: 8, edge_factor: 7 }, Kind::Grid { rows: 6, columns: 9, torus: false }];
    for (number, kind) in kinds.into_iter().enumerate() {
        let temporary = tempfile::tempdir().unwrap();
        let graph = reversed(temporary.path(), kind, SMALL, false);
        for (place, request) in requests().into_iter().enumerate() {
            let name = format!("graph {number}, request {place}: {request:?}");
            let run = |request: &Request, threads: usize, budget: u64| {
                run_request(request, &graph, &resources(threads, budget))
                    .unwrap_or_else(|error| panic!("{name}: {error}"))
            };
            let whole = run(&request, 2, LARGE);
            let (expected, supersteps) = (rows(&whole, temporary.path()), whole.stats.supersteps);
            assert!(supersteps > 1, "{name}");
            let least = smallest(|budget| run_request(&request, &graph, &resources(3, budget)));
            let mut ends = vec![1, 2, supersteps / 2, supersteps - 1];
            ends.dedup();
            for end in ends.into_iter().filter(|end| (1..supersteps).contains(end)) {
                let folder = temporary.path().join(format!("{number}-{place}-{end}"));
                let part = run(&saved_at(&request, end, &folder), 1, LARGE);
                assert_eq!(
                    (part.stats.reason, part.stats.resumed_from),
                    (Reason::MaxSupersteps, None),
                    "{name}"
                );
                assert_eq!(newest_superstep(&folder).unwrap(), Some(end), "{name}");
                let rest = run(&resumed(&request, &folder), 2, LARGE);
                assert!(
                    rows(&rest, temporary.path()) == expected,
                    "{name}: from superstep {end} on"
                );
                assert_eq!(rest.stats.resumed_from, Some(end), "{name}");
                // Edges visited depend on the traversal, which depends on the units already read.
                let figures = |finished: &Finished| {
                    (finished.stats.supersteps, finished.stats.reason, finished.stats.signals)
                };
                assert_eq!(figures(&rest), figures(&whole), "{name}: from superstep {end} on");
                assert_eq!(
                    rest.stats.durations.listed().len() as u64,
                    supersteps.min(1000),
                    "{name}"
                );
                if request.asynchronous {
                    continue;
                }
                // With any memory and number of threads.
                let tight = run(&resumed(&request, &folder), 3, least + (1 << 14));
                assert!(
                    rows(&tight, temporary.path()) == expected,
                    "{name}: from superstep {end} on in {least}"
                );
            }
        }
    }
}

/// The request with vertices in the store `url`.
fn in_store(request: &Request, url: &str) -> Request {
    let lists = ListLocation::Memory;
    let store = StoreChoice {
        url: url.to_owned(),
        schemes: Arc::default(),
        serializer: None,
        cache: None,
        lists,
        partitioning: Partitioning::default(),
        schedule: None,
    };
    Request { store: Some(store), ..request.clone() }
}

/// Whether two results are equal; floats, whose sums are added in the order of the store, to nine
/// decimal places.
fn are_equal(left: &[u8], right: &[u8]) -> bool {
    let lines = |rows: &[u8]| -> Vec<String> {
        String::from_utf8(rows.to_vec()).unwrap().lines().map(str::to_owned).collect()
    };
    let cells = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
    let is_near =
        |(left, right): (String, String)| match (left.parse::<f64>(), right.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
            _ => left == right,
        };
    let (left, right) = (lines(left), lines(right));
    left.len() == right.len()
        && left.iter().zip(&right).all(|(a, b)| cells(a).into_iter().zip(cells(b)).all(is_near))
}

#[test]
fn a_run_in_a_store_goes_on_too() {
    let temporary = tempfile::tempdir().unwrap();
    let graph = reversed(temporary.path(), Kind::Rmat { scale: 8, edge_factor: 3 }, SMALL, false);
    let takes_stores = |request: &Request| {
        let info = algorithms().find(|info| info.name == request.algorithm).unwrap();
        info.takes.stores && !request.asynchronous
    };
    for (place, request) in requests().into_iter().filter(takes_stores).enumerate() {
        for (kind, store) in ["memory", "bytes", "file:"].into_iter().enumerate() {
            let mut folders =
                (0..).map(|run| temporary.path().join(format!("{place}-{kind}-{run}")));
            let mut folder = || folders.next().unwrap();
            // A store keeps its vertices, so each run gets a new one.
            let mut fresh = || match store {
                "file:" => in_store(&request, &format!("file:{}", folder().display())),
                _ => in_store(&request, store),
            };
            // With one thread, increments are compared with the tolerance in a fixed order.
            let threads = if request.algorithm == "pagerank" { 1 } else { 2 };
            let run = |request: Request| {
                run_request(&request, &graph, &resources(threads, LARGE))
                    .unwrap_or_else(|error| panic!("{request:?}: {error}"))
            };
            let whole = run(fresh());
            let (expected, supersteps) = (rows(&whole, temporary.path()), whole.stats.supersteps);
            for end in [1, supersteps - 1] {
                let checkpoints =
                    temporary.path().join(format!("{place}-{kind}-{end}-checkpoints"));
                let part = run(saved_at(&fresh(), end, &checkpoints));
                assert_eq!(part.stats.reason, Reason::MaxSupersteps, "{request:?}");
                let rest = run(resumed(&fresh(), &checkpoints));
                let rows = rows(&rest, temporary.path());
                assert!(are_equal(&rows, &expected), "{request:?} in {store} from {end} on");
                let figures = |stats: &Stats| (stats.supersteps, stats.signals, stats.reason);
                assert_eq!(figures(&rest.stats), figures(&whole.stats), "{request:?}");
                assert_eq!(rest.stats.resumed_from, Some(end), "{request:?}");
                // Another store may resume; shards may not.
                run(resumed(&in_store(&request, "bytes"), &checkpoints));
                let error =
                    run_request(&resumed(&request, &checkpoints), &graph, &resources(1, LARGE));
                assert!(ended_by(error).to_string().contains("vertices in a store"));
            }
        }
    }
}

#[test]
fn states_on_disk_are_checkpointed_too() {
    let temporary = tempfile::tempdir().unwrap();
    let graph = reversed(temporary.path(), Kind::Rmat { scale: 8, edge_factor: 7 }, SMALL, false);
    for (place, request) in
        requests().into_iter().filter(|request| !request.asynchronous).enumerate()
    {
        let needed = smallest(|budget| run_request(&request, &graph, &resources(1, budget)));
        let folder = temporary.path().join(place.to_string());
        let tight = || resources(1, needed);
        let expected = rows(&run_request(&request, &graph, &tight()).unwrap(), temporary.path());
        run_request(&until(with_checkpoints(&request, &folder), 2), &graph, &tight()).unwrap();
        let rest = run_request(&resumed(&request, &folder), &graph, &tight()).unwrap();
        assert!(rows(&rest, temporary.path()) == expected, "{request:?}");
        assert_eq!(rest.stats.resumed_from, Some(2));
    }
}

#[test]
fn colouring_goes_on_from_its_last_superstep() {
    let temporary = tempfile::tempdir().unwrap();
    let graph = reversed(temporary.path(), Kind::Rmat { scale: 9, edge_factor: 14 }, SMALL, false);
    let (request, folder) = (request("color", &[]), temporary.path().join("checkpoints"));
    let whole =
        run_request(&with_checkpoints(&request, &folder), &graph, &resources(2, LARGE)).unwrap();
    let rest = run_request(&resumed(&request, &folder), &graph, &resources(1, LARGE)).unwrap();
    assert!(whole.stats.supersteps > 1);
    assert_eq!(rest.stats.resumed_from, Some(whole.stats.supersteps - 1));
    assert!(rows(&rest, temporary.path()) == rows(&whole, temporary.path()));
}

#[test]
fn a_run_says_what_becomes_of_checkpoints() {
    let temporary = tempfile::tempdir().unwrap();
    let graph = reversed(temporary.path(), Kind::Rmat { scale: 7, edge_factor: 7 }, SMALL, false);
    let (request, folder) = (request("pagerank", &[]), temporary.path().join("checkpoints"));
    let run = |request: &Request| {
        let resources = resources(2, LARGE);
        let finished = run_request(request, &graph, &resources);
        (finished, resources.job.take_said().join("\n"))
    };
    let (finished, said) = run(&request);
    let expected = rows(&finished.unwrap(), temporary.path());
    assert_eq!(said, "");
    let (finished, said) = run(&until(resumed(&request, &folder), 2));
    assert_eq!(finished.unwrap().stats.resumed_from, None);
    assert!(said.contains("there is no checkpoint in"), "{said}");
    let (_, said) = run(&until(with_checkpoints(&request, &folder), 4));
    assert_eq!(said, "");
    let (_, said) = run(&until(with_checkpoints(&request, &folder), 5));
    assert!(said.contains("starts from the beginning and replaces"), "{said}");
    // The newest checkpoint is damaged: the run uses the one before it, and logs that.
    let damage = |number: u64| {
        let path = folder.join(format!("arrays-{number}"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    damage(9);
    let (finished, said) = run(&resumed(&request, &folder));
    let finished = finished.unwrap();
    assert_eq!(finished.stats.resumed_from, Some(4));
    assert!(rows(&finished, temporary.path()) == expected);
    assert!(said.contains("superstep 4") && said.contains("arrays-9 is corrupt"), "{said}");
    damage(8);
    let (finished, _) = run(&resumed(&request, &folder));
    let error = ended_by(finished);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("arrays-9") && error.to_string().contains("from the beginning"),
        "{error}"
    );
}

#[test]
fn checkpoints_are_made_when_they_are_due() {
    let temporary = tempfile::tempdir().unwrap();
    let graph = reversed(temporary.path(), Kind::Rmat { scale: 7, edge_factor: 7 }, SMALL, false);
    let folder = temporary.path().join("checkpoints");
    let newest = |every: Every, until: u64| {
        let checkpoints =
            CheckpointOptions { every: Some(every), ..CheckpointOptions::new(&folder) };
        let request = Request {
            max_supersteps: Some(until),
            tolerance: Some(0.0),
            checkpoints: Some(checkpoints),
            ..request("pagerank", &[])
        };
        let stats = run_request(&request, &graph, &resources(2, LARGE)).unwrap().stats;
        assert!(stats.phases.iter().any(|(phase, _)| *phase == "checkpoints"));
        newest_superstep(&folder).unwrap()
    };
    assert_eq!(newest(Every::Supersteps(5), 4), None);
    assert_eq!(newest(Every::Time(Duration::from_secs(1000)), 4), None);
    assert_eq!(newest(Every::Supersteps(5), 14), Some(10));
    assert_eq!(newest(Every::Time(Duration::ZERO), 7), Some(7));
}

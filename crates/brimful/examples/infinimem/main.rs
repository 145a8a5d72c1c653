//! Graph programs on Box and Bag, as in "Size Oblivious Programming with InfiniMem" (Koduru, Gupta,
//! Neamtiu 2015).
//!
//! `infinimem GRAPH PROGRAM in_memory|decoupled|coupled FOLDER BUDGET_BYTES` runs a program in
//! memory, or on collections in FOLDER, and prints one JSON object; `bench/infinimem.py` runs it.
//! Each program stands three times in its file:
//!
//! - *in memory*: a `Vec` of states and one of edge lists;
//! - *decoupled*: a Box of states and a Bag of edge lists. States of neighbors are read one by
//!   one;
//! - *coupled*: a Bag of vertices with their edges. A neighbor's edges come with its state.
//!
//! The fourth representation, shards, is that of `brimful run`.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

mod coloring;
mod components;
mod disk;
mod input;
mod pagerank;
mod paths;
mod sssp;

use std::path::Path;
use std::sync::Arc;

use brimful::graph::Graph;
use brimful::store::{Budget, Job, Resources};

use disk::{Disk, Kind};
use input::Input;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Where paths begin: the vertex of most edges, as graphs are ordered.
const SOURCE: u32 = 0;

/// A program: its name, and its three functions.
struct Program {
    name: &'static str,
    in_memory: fn(&Input) -> Result<Vec<f64>>,
    decoupled: fn(&Input, &Disk<'_>) -> Result<Vec<f64>>,
    coupled: fn(&Input, &Disk<'_>) -> Result<Vec<f64>>,
}

macro_rules! programs {
    ($($name:ident),*) => {
        [$(Program {
            name: stringify!($name),
            in_memory: $name::in_memory,
            decoupled: $name::decoupled,
            coupled: $name::coupled,
        }),*]
    };
}

const PROGRAMS: [Program; 5] = programs![pagerank, components, coloring, paths, sssp];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, program, representation, folder, budget] = arguments.as_slice() else {
        return Err(
            "usage: infinimem GRAPH PROGRAM in_memory|decoupled|coupled FOLDER BUDGET_BYTES".into(),
        );
    };
    let budget = Budget::new(budget.parse()?, 0);
    let resources = Arc::new(Resources::new(budget, Arc::new(Job::new()), Some(1))?);
    let input = Input::new(&Arc::new(Graph::open(Path::new(graph), resources.job.traffic())?))?;
    let disk = Disk::new(Path::new(folder), &resources);
    let found = PROGRAMS.iter().find(|candidate| candidate.name == program);
    let program = found.ok_or_else(|| format!("there is no program {program}"))?;
    let answer = match representation.as_str() {
        "in_memory" => (program.in_memory)(&input)?,
        "decoupled" => (program.decoupled)(&input, &disk)?,
        "coupled" => (program.coupled)(&input, &disk)?,
        other => return Err(format!("there is no representation {other}").into()),
    };
    let (seconds, moved) = input.since_loaded();
    let operations = Kind::ALL.map(|(kind, name)| {
        let (count, took) = disk.meter.of(kind);
        (name.to_owned(), serde_json::json!({ "count": count, "seconds": took.as_secs_f64() }))
    });
    let figures = serde_json::json!({
        "source": input.external.get(SOURCE as usize),
        "seconds": seconds,
        "sum": answer.iter().filter(|value| value.is_finite()).sum::<f64>(),
        "operations": operations.into_iter().collect::<serde_json::Map<_, _>>(),
        "reads": moved.reads().count,
        "writes": moved.writes().count,
        "read_seconds": moved.reads().seconds(),
        "write_seconds": moved.writes().seconds(),
        "bytes_read": moved.bytes_read(),
        "bytes_written": moved.bytes_written(),
    });
    println!("{figures}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

    use brimful::algos::registry::{Parameter, Request, run_request};
    use brimful::engine::result::table::Value;
    use brimful::graph::build::import::{ImportOptions, Input as Imported, import};
    use brimful::graph::build::weights::Weights;
    use brimful::graph::generate::{Generator, Kind as Generated};

    use super::*;

    /// What `brimful run` does, over shards.
    fn shards(program: &str, source: u64) -> Request {
        let named = |algorithm: &str| Request { algorithm: algorithm.into(), ..Default::default() };
        let from_source =
            |algorithm| Request { sources: vec![i128::from(source).into()], ..named(algorithm) };
        match program {
            "pagerank" => Request {
                parameters: [("variant".into(), Parameter::Word("unnormalized".into()))].into(),
                tolerance: Some(0.0),
                max_supersteps: Some(pagerank::SUPERSTEPS as u64),
                ..named("pagerank")
            },
            "components" => named("connected_components"),
            "coloring" => named("color"),
            "paths" => from_source("count_paths"),
            "sssp" => Request { weighted: true, ..from_source("sssp") },
            other => panic!("there is no program {other}"),
        }
    }

    fn number(value: Value) -> f64 {
        match value {
            Value::Float(value) => value,
            Value::Integer(value) | Value::Id(value) => value as f64,
            Value::Null => f64::INFINITY,
        }
    }

    /// All representations of a program have the same answer, which is that of a run over shards.
    fn check(name: &str) {
        let folder = tempfile::tempdir().unwrap();
        let ample = Resources::new(Budget::new(1 << 28, 0), Arc::new(Job::new()), Some(2)).unwrap();
        let path = folder.path().join("g.brimful");
        let generator = Generator::new(Generated::Rmat { scale: 14, edge_factor: 2 }, 3).unwrap();
        let options =
            ImportOptions { undirected: true, weights: Weights::Hash, ..Default::default() };
        let edges = Imported::Numbered(&generator, generator.vertices());
        import(edges, &path, &options, &ample).unwrap();
        let graph = Arc::new(Graph::open(&path, ample.job.traffic()).unwrap());
        let input = Input::new(&graph).unwrap();
        let Program { in_memory, decoupled, coupled, .. } =
            PROGRAMS.into_iter().find(|program| program.name == name).unwrap();
        let expected = in_memory(&input).unwrap();
        for (representation, run) in [("decoupled", decoupled), ("coupled", coupled)] {
            let place = tempfile::tempdir().unwrap();
            // Less than the collections have, so that they are read and written while they are
            // worked on.
            let tight = Budget::new(400 << 10, 0);
            let resources = Arc::new(Resources::new(tight, Arc::new(Job::new()), Some(1)).unwrap());
            let disk = Disk::new(place.path(), &resources);
            let found = run(&input, &disk).unwrap();
            assert!(found == expected, "{representation}");
            let count = |kind| disk.meter.of(kind).0;
            assert!(count(Kind::VertexRead) > 0 && count(Kind::VertexBatchRead) > 1);
            assert!(count(Kind::VertexBatchWrite) <= count(Kind::VertexBatchRead));
            let batches =
                if representation == "coupled" { 0 } else { count(Kind::VertexBatchRead) };
            assert_eq!(count(Kind::EdgeBatchRead), batches);
            assert!(resources.job.traffic().bytes_read() > 0, "{representation}");
        }
        let request = shards(name, input.external[SOURCE as usize]);
        let table = run_request(&request, &graph, &ample).unwrap().table;
        for (vertex, expected) in expected.into_iter().enumerate() {
            let found = number(table.value_at(vertex as u64).unwrap());
            // Sums of floats depend on their order.
            let slack = if name == "pagerank" { 1e-12 * expected } else { 0.0 };
            assert!(
                found == expected || (found - expected).abs() <= slack,
                "{found}, not {expected}"
            );
        }
    }

    #[test]
    fn pageranks_agree() {
        check("pagerank");
    }

    #[test]
    fn components_agree() {
        check("components");
    }

    #[test]
    fn colorings_agree() {
        check("coloring");
    }

    #[test]
    fn path_counts_agree() {
        check("paths");
    }

    #[test]
    fn shortest_paths_agree() {
        check("sssp");
    }
}

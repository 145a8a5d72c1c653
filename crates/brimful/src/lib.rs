//! Graphs and collections larger than memory, in a memory budget that you set.
//!
//! An example that defines a program and runs it:
//!
//! ```
//! use std::sync::Arc;
//! use brimful::engine::{Globals, Min, Mode, Program, RunOptions, Vertex, run};
//! use brimful::graph::Graph;
//! use brimful::graph::generate::{Generator, Kind};
//! use brimful::graph::build::import::{ImportOptions, Input, import};
//! use brimful::store::{Budget, Job, Resources};
//!
//! /// Length of the shortest path from one vertex.
//! struct Distances { source: u64 }
//!
//! impl Program for Distances {
//!     type State = f64;
//!     type Combiner = Min<f64>;
//!     type Aggregate = ();
//!     const MODE: Mode = Mode::Idempotent;
//!
//!     fn initial(&self, vertex: Vertex, _: &Globals<()>) -> f64 {
//!         if vertex.id == self.source { 0.0 } else { f64::INFINITY }
//!     }
//!     fn signal(&self, _: Vertex, distance: f64) -> f64 { distance }
//!     fn along(&self, distance: f64, weight: f64) -> f64 { distance + weight }
//!     fn collect(&self, _: Vertex, distance: f64, least: f64, _: &Globals<()>) -> f64 {
//!         distance.min(least)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("ring.brimful");
//! // 200 MiB, none of them in use yet; one thread per core.
//! let resources = Resources::new(Budget::new(200 << 20, 0), Arc::new(Job::new()), None)?;
//! let ring = Generator::new(Kind::Ring { vertices: 5 }, 0)?;
//! import(Input::Numbered(&ring, ring.vertices()), &path, &ImportOptions::default(), &resources)?;
//!
//! let graph = Graph::open(&path, resources.job.traffic())?;
//! let source = graph.find(2)?;
//! let output = run(&Distances { source }, &graph, &RunOptions::default(), &resources)?;
//! let mut distances = [0.0; 5];
//! output.states.read(0, &mut distances)?;
//! for (vertex, distance) in [0.0, 1.0, 2.0, 3.0, 4.0].into_iter().enumerate() {
//!     assert_eq!(distances[graph.find((vertex as i128 + 2) % 5)? as usize], distance);
//! }
//! # Ok(())
//! # }
//! ```

pub use brimful_algos as algos;
pub use brimful_collections as collections;
pub use brimful_engine as engine;
pub use brimful_execution as execution;
pub use brimful_graph as graph;
pub use brimful_store as store;
pub use brimful_vertices as vertices;

/// The Rust examples in the documents, run as doctests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/collections.md")]
    struct Collections;
}

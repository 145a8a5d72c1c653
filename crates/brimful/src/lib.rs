//! Graphs and collections larger than memory, in a memory budget that you set.
//!
//! ```
//! use std::sync::Arc;
//! use brimful::algos::pagerank::{PageRank, Variant};
//! use brimful::engine::{RunOptions, run};
//! use brimful::graph::generate::{Generator, Kind};
//! use brimful::graph::import::{ImportOptions, Input, import};
//! use brimful::graph::Graph;
//! use brimful::store::{Budget, Job, Resources};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("ring.brimful");
//! // 200 MiB in all, of which nothing is spoken for; one thread per core.
//! let resources = Resources::new(Budget::new(200 << 20, 0), Arc::new(Job::new()), None)?;
//! let ring = Generator::new(Kind::Ring { vertices: 5 }, 0)?;
//! import(Input::Numbered(&ring, ring.vertices()), &path, &ImportOptions::default(), &resources)?;
//!
//! let graph = Graph::open(&path, resources.job.traffic())?;
//! let program = PageRank::<f64>::new(Variant::Normalized, 0.85, 1e-6)?;
//! let options = RunOptions { max_supersteps: 100, weighted: false, scratch: None };
//! let output = run(&program, &graph, &options, &resources)?;
//! let mut scores = [0.0; 5];
//! output.states.read(0, &mut scores)?;
//! assert!(scores.iter().all(|score| (score - 0.2).abs() < 1e-12));
//! # Ok(())
//! # }
//! ```

pub use brimful_algos as algos;
pub use brimful_collections as collections;
pub use brimful_engine as engine;
pub use brimful_graph as graph;
pub use brimful_store as store;

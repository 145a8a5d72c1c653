//! What needs no large graph to be seen of large ones: sources of 8 bytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use brimful_graph::generate::{Generator, Kind};
use brimful_graph::import::{ImportOptions, Input, import};
use brimful_graph::shards::Geometry;
use brimful_graph::{Graph, Index};
use brimful_store::{Budget, DiskFolder, ErrorKind, Job, Resources, StoreFile};

use super::{Records, Room, Shape, Walk};
use crate::combiner::Add;
use crate::error::Result;
use crate::program::{Globals, Mode, Program, Vertex};
use crate::residency::Resident;

/// Sums of what sources signal.
struct Sums;

impl Program for Sums {
    type State = f64;
    type Combiner = Add<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Full;

    fn initial(&self, _: Vertex, _: &Globals<()>) -> f64 {
        0.0
    }
    fn signal(&self, _: Vertex, state: f64) -> f64 {
        state
    }
    fn collect(&self, _: Vertex, _: f64, sum: f64, _: &Globals<()>) -> f64 {
        sum
    }
}

/// Sums of all vertices, and bytes of the records, where a source takes `source` bytes.
fn sums(graph: &Graph, source: usize, signals: &[f64], resources: &Resources) -> Result<(Vec<f64>, u64)> {
    let files = Resident::spread(vec![Arc::clone(graph.shards(Index::In).unwrap())], false, 0);
    let file = StoreFile::scratch(&DiskFolder::new(graph.path()), resources.job.traffic())?;
    let shape = Shape { state: 0, weighted: false, source };
    let records = Records::build(graph, &files, file, shape, (300, 1 << 20), resources)?;
    let window = 1 << graph.description().interval_bits;
    let (walked, combined) = (vec![true], AtomicU64::new(0));
    let walk = Walk { program: &Sums, records: &records, walked, signals, window, combined };
    let (mut out, mut room) = (Vec::new(), Room::default());
    for interval in 0..graph.intervals() as usize {
        out.extend_from_slice(walk.sums(interval, &mut room)?);
    }
    Ok((out, records.file.len()?))
}

fn graph(folder: &Path, resources: &Resources) -> Graph {
    let geometry = Geometry { interval_bits: 5, window_edges: 400, segment_edges: 150, unit_bytes: 600 };
    let generator = Generator::new(Kind::Rmat { scale: 9, edge_factor: 8 }, 3).unwrap();
    let path = folder.join("g.brimful");
    let options = ImportOptions { geometry, ..Default::default() };
    import(Input::Numbered(&generator, generator.vertices()), &path, &options, resources).unwrap();
    Graph::open(&path, resources.job.traffic()).unwrap()
}

#[test]
fn wide_sources_give_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let resources = Resources::new(Budget::new(1 << 28, 0), Arc::new(Job::new()), Some(2)).unwrap();
    let graph = graph(folder.path(), &resources);
    let signals: Vec<f64> = (0..graph.connected()).map(|id| 1.0 / (id + 3) as f64).collect();
    let (narrow, narrow_bytes) = sums(&graph, 4, &signals, &resources).unwrap();
    let (wide, wide_bytes) = sums(&graph, 8, &signals, &resources).unwrap();
    assert_eq!(narrow.len() as u64, graph.connected());
    assert!(narrow == wide && narrow.iter().sum::<f64>() > 0.0);
    assert_eq!(wide_bytes - narrow_bytes, 4 * graph.description().arcs);
    let error = sums(&graph, 4, &signals[..10], &resources).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

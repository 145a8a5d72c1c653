//! Builds the reverse index of a graph that was imported without it.
//!
//! Invariant: a new manifest publishes the index when it is complete and durable; until then the
//! graph is unchanged.

use std::time::Instant;

use brimful_store::external::FolderLock;
use brimful_store::file::remove_if_present;
use brimful_store::{Error as StoreError, Folder, Resources, manifest};

use super::forecast::forecast_index;
use super::sort::{EdgeLocation, MappedEdges};
use super::{IdMap, Import, ImportOptions, minimum_bytes};
use crate::build::sizes::Sizes;
use crate::error::{Error, Result};
use crate::read::degree_counter::DegreeCounter;
use crate::read::description::{Layer, Shards};
use crate::read::graph::Graph;
use crate::read::index::Index;
use crate::read::shard_edges::ShardEdges;
use crate::read::shards::{Geometry, file_names};

/// Builds the reverse shards of an existing graph and publishes them. Returns the seconds of the
/// build; does nothing if the shards exist.
///
/// # Errors
/// [`Error::MissingIndex`] if the graph is not writable, [`Error::Replaced`] if it was removed.
pub fn build_reverse(graph: &Graph, resources: &Resources) -> Result<f64> {
    if graph.shards(Index::Reverse).is_some() {
        return Ok(0.0);
    }
    let _lock = FolderLock::wait(graph.path(), &resources.job).map_err(|error| match error {
        error if error.is_unwritable() => {
            Error::MissingIndex { path: graph.path().into(), index: Index::Reverse.name() }
        }
        error if error.is_missing() => Error::Replaced { path: graph.path().into() },
        error => error.into(),
    })?;
    build_reverse_alone(graph, resources)
}

/// The smallest budget of [`build_reverse`], in bytes; 0 if the shards exist.
pub fn reverse_minimum_bytes(graph: &Graph, workers: usize) -> u64 {
    match graph.shards(Index::Reverse) {
        Some(_) => 0,
        None => minimum_bytes(workers, graph.description().weighted, false),
    }
}

/// [`build_reverse`] in any folder. The caller ensures that nothing else changes the graph
/// meanwhile.
pub fn build_reverse_alone(graph: &Graph, resources: &Resources) -> Result<f64> {
    let begin = Instant::now();
    let done = || Ok(begin.elapsed().as_secs_f64());
    let (folder, weighted) = (graph.folder(), graph.description().weighted);
    let minimum = minimum_bytes(resources.workers(), weighted, false);
    let memory = resources.budget.reserve_all(minimum, "to build an index")?;
    // Since this graph was opened, another process may have built and published the index.
    let latest = graph.reopened()?;
    if latest.shards(Index::Reverse).is_some() {
        graph.adopt_reverse(&latest);
        return done();
    }
    remove_unfinished(folder, Index::Reverse)?;
    let sizes = Sizes {
        vertices: graph.connected(),
        edges: graph.description().arcs,
        undirected: false,
        weighted,
        reverse: false,
        bytes_per_edge: None,
    };
    let bytes = graph.description().forward.layers[0].bytes;
    let foreseen = forecast_index(&sizes, bytes, resources.budget.limit(), resources.workers());
    let needed = foreseen.min_disk_bytes();
    // The folder knows its free space; it need not be in the file system.
    let free = folder
        .free_bytes()
        .map_err(|e| StoreError::io(folder.path(), "find the free space of", e))?;
    if free < needed {
        let path = folder.path().join(Index::Reverse.name());
        return Err(StoreError::NoSpace { path, needed, free }.into());
    }
    let geometry =
        Geometry { interval_bits: graph.description().interval_bits, ..Geometry::default() };
    let options = ImportOptions { geometry, ..ImportOptions::default() };
    let mut import = Import {
        folder,
        options: &options,
        undirected: false,
        rejections: Vec::new(),
        input: graph.path().into(),
        positions: false,
        resources,
        spare: memory.bytes() - minimum,
        phases: Vec::new(),
        phase_start: Instant::now(),
    };
    let (source, map) = (
        ShardEdges::new(latest.forward()),
        IdMap::Consecutive { first: 0, count: graph.connected() },
    );
    let (source, ends) = (&source, graph.connected());
    let edges = MappedEdges {
        location: EdgeLocation::Here(source),
        map: &map,
        ends,
        weighted,
        targets: &[],
    };
    let built = import.sort_index(Index::Reverse, &edges, &mut DegreeCounter::default())?;
    let mut description = latest.description().clone();
    let layer = Layer { name: Index::Reverse.name().into(), arcs: built.arcs, bytes: built.bytes };
    description.reverse = Some(Shards { layers: [layer] });
    let number = graph.reopened()?.manifest_number() + 1;
    Graph::publish(folder, number, &mut description, resources.job.traffic())?;
    manifest::sweep(folder, number)?;
    graph.adopt_reverse(&graph.reopened()?);
    done()
}

/// Removes the files that a killed build of an index left; the manifest does not name them.
fn remove_unfinished(folder: &dyn Folder, index: Index) -> Result<()> {
    let mut names = file_names(index.name()).into_iter();
    Ok(names.try_for_each(|name| remove_if_present(folder, &name))?)
}

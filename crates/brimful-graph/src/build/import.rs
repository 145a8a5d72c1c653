//! Import: from any input to a graph directory, streaming, within the budget.
//!
//! The first pass, the *scan*, finds the ids; it copies the edges to a spool if the input can be
//! read only once. Then the internal order is chosen and the ids are written in it. A second pass
//! maps ids to internal ids and sorts edges into shards. Invariant: the graph appears under its
//! name complete, or not at all; its bytes depend on the input alone.

pub mod forecast;
mod ids;
mod joins;
mod left_out;
mod numbered;
mod reverse;
mod sort;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use brimful_store::external::PartialFolder;
use brimful_store::{Folder, Job, Moved, Resources, sorter};

use crate::build::records::WeightedPair;
use crate::build::shards::{Built, encoding_bytes};
use crate::build::weights::{Hashed, Weights};
use crate::error::{Error, Result};
use crate::input::columns::ColumnChoice;
use crate::input::decompress;
pub use crate::input::formats::parser::OnError;
pub use crate::input::id_choice::IdChoice;
use crate::input::policy::Policy;
use crate::input::scan::{Edges, Reader, ScanSummary, reading_bytes};
pub use crate::input::source::Input;
pub use crate::input::stream::{EdgeStream, Listed, Rejection};
use crate::order::bitmap::IdBitmap;
use crate::order::choice;
use crate::read::description::{Counts, Description, FORMAT, Ids, Layer, Order, Shards};
use crate::read::graph::Graph;
use crate::read::index::Index;
use crate::read::shards::Geometry;
use ids::IdMap;
pub(crate) use ids::{OrderedIds, write_ids};
use left_out::LeftOut;
pub use reverse::{build_reverse, build_reverse_alone, reverse_minimum_bytes};
use sort::{EdgeLocation, Indexed, MappedEdges};

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Store every edge in both directions.
    pub undirected: bool,
    /// Store every edge only in its written direction, whatever the format declares.
    pub directed: bool,
    /// The treatment of lines that are not edges.
    pub on_error: OnError,
    /// The choice of id type.
    pub ids: IdChoice,
    /// The choice of edge columns.
    pub columns: ColumnChoice,
    /// Declares the vertices 0 to n - 1.
    pub vertices: Option<u64>,
    /// Build the reverse shards too.
    pub reverse: bool,
    /// The policy for self-loops and duplicates.
    pub policy: Policy,
    /// The origin of weights.
    pub weights: Weights,
    /// Rank ids by sorting even if a bitmap would fit: slower, with less memory, and the same
    /// graph.
    pub sort_ids: bool,
    /// A text that the manifest stores.
    pub origin: Option<String>,
    /// Replace the graph at the output path, if there is one.
    pub replace: bool,
    /// The geometry of shards.
    pub geometry: Geometry,
}

impl ImportOptions {
    /// The direction of all edges, `true`: directed; `None`: the one that the input states.
    pub(crate) fn direction(&self) -> Option<bool> {
        (self.directed || self.undirected).then_some(self.directed)
    }

    /// The smallest budget, in bytes besides the process, for an input that may have weights and
    /// whose edges may have input positions (those of a generator have none).
    pub fn minimum_bytes(
        &self,
        workers: usize,
        may_have_weights: bool,
        has_positions: bool,
    ) -> u64 {
        let weighted =
            may_have_weights || self.weights == Weights::Hash || self.policy.weighted(false);
        minimum_bytes(workers, weighted, has_positions && self.policy.leaves_out())
    }
}

/// The result of an import.
#[derive(Debug, Clone)]
pub struct ImportReport {
    /// The manifest that was written.
    pub description: Description,
    /// Total seconds.
    pub seconds: f64,
    /// Seconds by phase, in order.
    pub phases: Vec<(&'static str, f64)>,
    /// Bytes of the graph's files.
    pub bytes_on_disk: u64,
    /// The maximum bytes of temporary disk space in use at once, besides the graph's files.
    pub scratch_bytes: u64,
    /// Bytes read from and written to files, except text inputs.
    pub moved: Moved,
    /// The lines that are not edges and were left out, by reason.
    pub rejections: Vec<Rejection>,
    /// The edges that the policy left out, by reason, if their input positions are known.
    pub left_out: Vec<Rejection>,
}

/// Bytes for ids in any import.
const IDS_BYTES: u64 = IdBitmap::BASE_BYTES * 6;

/// The smallest budget of an import, in bytes besides the process. `positions`: true if the import
/// may leave edges out.
pub fn minimum_bytes(workers: usize, weighted: bool, positions: bool) -> u64 {
    // Sparse ids need two sorters at the same time.
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    let ids = IDS_BYTES + choice::memory_bytes(workers);
    reading_bytes(workers, positions) + encoding_bytes(workers, weighted, positions) + ids + sorters
}

/// Bytes that the decoders of `files` need beyond the minimum of an import.
///
/// # Errors
/// I/O errors.
pub fn decoding_bytes(workers: usize, files: &[PathBuf], job: &Arc<Job>) -> Result<u64> {
    // A decoder has the memory of two sorters, and half of the bytes that a larger budget adds.
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    files.iter().try_fold(0, |max, file| {
        let decoder = decompress::decoder_bytes(file, job)?;
        Ok(decoder.saturating_sub(sorters).saturating_mul(2).max(max))
    })
}

/// The part of the minimum that is free while an index is sorted: the order already exists, and
/// reading edges ends before packing.
fn index_bytes(workers: usize, weighted: bool, positions: bool) -> u64 {
    let (reading, packing) =
        (reading_bytes(workers, positions), encoding_bytes(workers, weighted, positions));
    choice::memory_bytes(workers) + reading.min(packing)
}

/// Imports `input` as the new graph directory `out`. After a crash there is the old graph, if one
/// is to be replaced, or the new one, or none.
pub fn import(
    input: Input<'_>,
    out: &Path,
    options: &ImportOptions,
    resources: &Resources,
) -> Result<ImportReport> {
    let begin = Instant::now();
    let partial =
        if options.replace { PartialFolder::replace(out) } else { PartialFolder::create(out) }?;
    let report = import_in(partial.folder(), input, options, resources)?;
    resources.job.check()?;
    partial.publish()?;
    let report = ImportReport { seconds: begin.elapsed().as_secs_f64(), ..report };
    report.log();
    Ok(report)
}

/// [`import`] into any folder, which must be empty. The graph is durable, except for the folder's
/// own name. After an error or a crash, discard the folder.
pub fn import_in(
    folder: &dyn Folder,
    mut input: Input<'_>,
    options: &ImportOptions,
    resources: &Resources,
) -> Result<ImportReport> {
    let (begin, moved_before) = (Instant::now(), resources.job.traffic().moved());
    // Text may have weights.
    let may_have_weights = !matches!(input, Input::Pairs(_) | Input::Numbered(..));
    // Edges of a generator have no position that a message could name.
    let has_positions = !matches!(input, Input::Numbered(..));
    let positions = has_positions && options.policy.leaves_out();
    let minimum = options.minimum_bytes(resources.workers(), may_have_weights, has_positions);
    let decoding = decoding_bytes(resources.workers(), input.files(), &resources.job)?;
    let memory =
        resources.budget.reserve_all(minimum.saturating_add(decoding), "to build a graph")?;
    if options.directed && options.undirected {
        return Err(Error::Usage("a graph is directed or undirected, not both".into()));
    }
    let mut import = Import {
        folder,
        options,
        undirected: options.undirected,
        rejections: Vec::new(),
        input: input.name(),
        positions,
        resources,
        spare: memory.bytes() - minimum,
        phases: Vec::new(),
        phase_start: Instant::now(),
    };
    let (mut description, left_out) = import.build(&mut input)?;
    let (phases, rejections) = (import.phases, import.rejections);
    Graph::publish(folder, 1, &mut description, resources.job.traffic())?;
    let graph = Graph::open_folder(folder, resources.job.traffic())?;
    let (bytes_on_disk, left_out) = (graph.bytes_on_disk()?, left_out.report(&graph)?);
    let (seconds, moved) =
        (begin.elapsed().as_secs_f64(), resources.job.traffic().moved() - moved_before);
    let scratch_bytes = resources.job.traffic().max_scratch();
    Ok(ImportReport {
        description,
        seconds,
        phases,
        bytes_on_disk,
        scratch_bytes,
        moved,
        rejections,
        left_out,
    })
}

impl ImportReport {
    /// Logs the result of the import.
    fn log(&self) {
        self.moved.log();
        tracing::info!(
            vertices = self.description.vertices,
            edges = self.description.edges,
            seconds = self.seconds,
            bytes_on_disk = self.bytes_on_disk,
            "import"
        );
    }
}

struct Import<'a> {
    folder: &'a dyn Folder,
    options: &'a ImportOptions,
    /// True if edges are undirected, by the options or the format.
    undirected: bool,
    rejections: Vec<Rejection>,
    /// The input's name in messages.
    input: PathBuf,
    /// True if the first edges that the policy leaves out must be located in the input.
    positions: bool,
    resources: &'a Resources,
    /// The budget beyond the minimum, to be divided.
    spare: u64,
    phases: Vec<(&'static str, f64)>,
    /// The start of the current phase.
    phase_start: Instant,
}

impl Import<'_> {
    fn build(&mut self, input: &mut Input<'_>) -> Result<(Description, LeftOut)> {
        let half = self.spare / 2;
        let reader = Reader {
            folder: self.folder,
            resources: self.resources,
            declared: self.options.vertices.unwrap_or(0),
            directed: self.options.direction(),
            policy: self.options.policy,
            positions: self.positions,
            hashes_weights: self.options.weights == Weights::Hash,
            ids: self.options.ids,
            columns: &self.options.columns,
            on_error: self.options.on_error,
            bitmap_bytes: if self.options.sort_ids { 0 } else { IDS_BYTES + half },
            // The share of the sorters, which is not in use yet.
            decoder_bytes: self.sorter_bytes(IDS_BYTES + half),
        };
        let (source, mut seen) = reader.read(input)?;
        self.end_phase("read");
        self.undirected |= seen.undirected && !self.options.directed;
        self.rejections = std::mem::take(&mut seen.rejections);
        if seen.edges == 0 && seen.declared.is_none() {
            let problem = "it contains no edges; `--vertices N` makes a graph without edges";
            return Err(Error::input(&self.input, problem));
        }
        let hashed = self.options.weights == Weights::Hash;
        seen.weighted |= hashed;
        let sampled = std::mem::take(&mut seen.sampled);
        // For ends of edges that are internal ids already.
        let same = IdMap::Consecutive { first: 0, count: u64::MAX };
        let (own, joined);
        let (location, map, ids) = match (source, seen.ranks.take()) {
            (Edges::Distributed(distributed), Some(ranks)) => {
                let (map, ids) = self.order(ranks, seen.id_type, sampled)?;
                (EdgeLocation::Distributed { edges: distributed, hashed }, map, ids)
            }
            (Edges::Distributed(distributed), None) => {
                self.check_declared(&seen.declared)?;
                let ids = self.order_numbered(distributed, &seen, sampled)?;
                // The edges have their weights already.
                (EdgeLocation::Distributed { edges: distributed, hashed: false }, same, ids)
            }
            (Edges::Here(source), Some(ranks)) => {
                own = Hashed { source, is_hashed: hashed };
                let (map, ids) = self.order(ranks, seen.id_type, sampled)?;
                (EdgeLocation::Here(&own), map, ids)
            }
            (Edges::Here(source), None) => {
                self.check_declared(&seen.declared)?;
                own = Hashed { source, is_hashed: hashed };
                let (edges, ids) = self.order_joined(&own, &seen, sampled)?;
                joined = edges;
                (EdgeLocation::Here(&joined), same, ids)
            }
        };
        // The policy `Sum` gives weights to edges that have none.
        seen.weighted = self.options.policy.weighted(seen.weighted);
        let connected = ids.tally.connected();
        // Dropped self-loops may belong to vertices without another edge.
        let drops = self.options.policy.drops_self_loops();
        let edges = MappedEdges {
            location,
            map: &map,
            ends: if drops { ids.tally.vertices() } else { connected },
            weighted: seen.weighted,
            targets: &ids.targets,
        };
        let indexed = self.sort_mapped(&edges, ids.tally)?;
        let left_out = LeftOut {
            inputs: std::mem::take(&mut seen.inputs),
            self_loop: seen.first_self_loop,
            duplicate: indexed.forward.applied.first_duplicate,
        };
        if let Some(claim) = seen.claim.take().filter(|_| self.options.vertices.is_none()) {
            claim.check(ids.tally.vertices())?;
        }
        Ok((self.finish(&seen, &ids, indexed), left_out))
    }

    fn end_phase(&mut self, name: &'static str) {
        let seconds = self.phase_start.elapsed().as_secs_f64();
        tracing::info!(phase = name, seconds, "phase");
        self.phases.push((name, seconds));
        self.phase_start = Instant::now();
    }

    fn finish(&self, seen: &ScanSummary, ids: &OrderedIds, indexed: Indexed) -> Description {
        let Indexed { forward, longest_lists, reverse } = indexed;
        let geometry = self.options.geometry;
        let applied = forward.applied;
        let layers = |index: Index, built: Built| Shards {
            layers: [Layer { name: index.name().into(), arcs: built.arcs, bytes: built.bytes }],
        };
        Description {
            format: FORMAT,
            created_by: concat!("brimful ", env!("CARGO_PKG_VERSION")).into(),
            vertices: ids.tally.vertices(),
            connected: ids.tally.connected(),
            edges: seen.edges - applied.self_loops_dropped - applied.duplicates_dropped,
            arcs: forward.arcs,
            directed: !self.undirected,
            weighted: seen.weighted,
            weights: forward.weights,
            longest_lists: Some(longest_lists),
            order: Order { name: ids.name, runs: ids.tally.runs() },
            ids: Ids { id_type: seen.id_type, first: ids.first },
            interval_bits: geometry.interval_bits,
            counts: Counts {
                lines: seen.lines,
                self_loops: seen.self_loops,
                duplicates: applied.duplicates,
                rejected: seen.rejected,
                self_loops_dropped: applied.self_loops_dropped,
                duplicates_dropped: applied.duplicates_dropped,
            },
            forward: layers(Index::In, forward),
            reverse: reverse.map(|reverse| layers(Index::Reverse, reverse)),
            seals: BTreeMap::new(),
            tables: BTreeMap::new(),
            columns: seen.columns.clone(),
            origin: self.options.origin.clone(),
        }
    }
}

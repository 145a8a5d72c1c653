//! Import: from any input to a graph directory, streaming, within the budget.
//!
//! One pass learns which ids there are (the *census*), keeping the edges in a spool where the input
//! cannot be read twice. Then the internal order is chosen and the ids are written in it; a second pass
//! maps ids to internal ids and sorts edges into shards. Invariant: the graph
//! appears under its name complete, or not at all; its bytes depend on the input alone.

mod reverse;

use std::path::{Path, PathBuf};
use std::time::Instant;

use brimful_store::external::{PartialFolder, free_bytes};
use brimful_store::sealed::Kind;
use brimful_store::{DiskFolder, Folder, Resources, manifest, sorter};

use crate::ascending::AscendingWriter;
use crate::bitmap::IdBitmap;
use crate::build::{Built, ShardSortWriter, ShardSorter, encoding_bytes};
use crate::census::{Declared, Reader, Seen, each_part, reading_bytes};
pub use crate::census::{EdgeStream, Input, Listed};
use crate::choice::{self, Sampled};
use crate::classes::{InInternalOrder, Tally, changed};
use crate::degrees::{self, DegreeCounter};
use crate::description::{Counts, Description, FORMAT, Ids, Layer, Order, OrderName, Shards};
use crate::edges::{EdgeBatch, EdgeSource, SpooledEdges};
use crate::error::{Error, Result};
pub use crate::formats::parser::{OnError, Rejection};
use crate::graph::{Graph, IDS, Index};
use crate::ids::IdType;
use crate::joins;
pub use crate::names::IdChoice;
use crate::policy::Policy;
use crate::positions::IdPositions;
use crate::records::{EdgeRecord, KeyLayout, Pair, WeightedKey, WeightedPair};
use crate::shards::{Geometry, ShardFile};
use crate::weights::{Hashed, Weights};
pub use reverse::build_reverse;

/// What the user chose.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Store every edge in both directions.
    pub undirected: bool,
    /// Store every edge in the direction it is written, whatever the format says.
    pub directed: bool,
    /// What happens to lines that are no edges.
    pub on_error: OnError,
    /// What ids are.
    pub ids: IdChoice,
    /// Declares the vertices 0 to n - 1.
    pub vertices: Option<u64>,
    /// Build the reverse shards too.
    pub reverse: bool,
    /// What becomes of self-loops and duplicates.
    pub policy: Policy,
    /// Where weights come from.
    pub weights: Weights,
    /// Rank ids by sorting also where a bitmap would hold them: slower, in less memory, the same graph.
    pub sort_ids: bool,
    /// Kept in the manifest.
    pub origin: Option<String>,
    /// How shards are cut.
    pub geometry: Geometry,
}

/// What an import did.
#[derive(Debug, Clone)]
pub struct ImportReport {
    /// The manifest written.
    pub description: Description,
    /// Seconds in all.
    pub seconds: f64,
    /// Seconds by phase, in order.
    pub phases: Vec<(&'static str, f64)>,
    /// Bytes of the graph's files.
    pub bytes_on_disk: u64,
    /// What was left out, by reason.
    pub rejections: Vec<Rejection>,
}

/// Bytes for the ids that an import always has.
const IDS_BYTES: u64 = IdBitmap::BASE_BYTES * 6;

/// Smallest budget, in bytes beside the process's own, in which an import works.
pub fn minimum_bytes(workers: usize, weighted: bool) -> u64 {
    // Sparse ids need two sorters at once.
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    let ids = IDS_BYTES + choice::memory_bytes(workers);
    reading_bytes(workers) + encoding_bytes(workers, weighted) + ids + sorters
}

/// Imports `input` as the new graph directory `out`.
pub fn import(
    mut input: Input<'_>,
    out: &Path,
    options: &ImportOptions,
    resources: &Resources,
) -> Result<ImportReport> {
    let begin = Instant::now();
    // Text may turn out to have weights.
    let may_have_weights = !matches!(input, Input::Pairs(_) | Input::Numbered(..))
        || options.weights == Weights::Hash
        || options.policy.weighted(false);
    let minimum = minimum_bytes(resources.workers(), may_have_weights);
    resources.budget.require(minimum, "to build a graph")?;
    let memory = resources.budget.reserve(resources.budget.limit(), "to build a graph")?;
    if options.directed && options.undirected {
        return Err(Error::Usage("a graph is directed or undirected, not both".into()));
    }
    let partial = PartialFolder::create(out)?;
    let mut import = Import {
        folder: partial.folder(),
        options,
        undirected: options.undirected,
        rejections: Vec::new(),
        resources,
        spare: memory.bytes() - minimum,
        phases: Vec::new(),
        since: Instant::now(),
    };
    let description = import.run(&mut input)?;
    let (phases, rejections) = (import.phases, import.rejections);
    let payload = serde_json::to_vec_pretty(&description).map_err(|e| Error::Usage(e.to_string()))?;
    manifest::publish(partial.folder(), 1, &payload, resources.job.traffic())?;
    let bytes_on_disk = Graph::open_folder(partial.folder(), resources.job.traffic())?.bytes_on_disk()?;
    resources.job.check()?;
    partial.publish()?;
    Ok(ImportReport {
        description,
        seconds: begin.elapsed().as_secs_f64(),
        phases,
        bytes_on_disk,
        rejections,
    })
}

struct Import<'a> {
    folder: &'a DiskFolder,
    options: &'a ImportOptions,
    /// As the options or the format say.
    undirected: bool,
    rejections: Vec<Rejection>,
    resources: &'a Resources,
    /// Budget beyond the minimum, to be shared out.
    spare: u64,
    phases: Vec<(&'static str, f64)>,
    since: Instant,
}

/// How ids become internal ids while edges are read again.
enum IdMap {
    /// Internal id = id - first.
    Consecutive {
        first: u64,
    },
    Positions(IdPositions),
}

impl IdMap {
    /// Replaces ids by their internal ids; false if there is another among them.
    #[inline]
    fn map(&self, ids: &mut [u64]) -> bool {
        match self {
            Self::Consecutive { first } => {
                ids.iter_mut().for_each(|id| *id = id.wrapping_sub(*first));
                true
            }
            Self::Positions(positions) => positions.map(ids),
        }
    }

    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Consecutive { .. } => 0,
            Self::Positions(positions) => positions.memory_bytes(),
        }
    }
}

/// Ids whose internal order was chosen and written.
pub(crate) struct OrderedIds {
    pub(crate) name: OrderName,
    pub(crate) tally: Tally,
    /// The bits of the first id if the ids are consecutive; else they are in a file.
    pub(crate) first: Option<u64>,
}

/// Writes the file of ids unless they are consecutive; then returns the bits of the first.
pub(crate) fn write_ids(
    folder: &DiskFolder,
    order: &dyn InInternalOrder,
    resources: &Resources,
) -> Result<Option<u64>> {
    let first = order.consecutive_from()?;
    if first.is_none() {
        let mut file = AscendingWriter::create(folder, IDS, Kind::Ids, resources.job.traffic())?;
        order.for_each_id(&mut |id| {
            if file.len() % CHECK_EVERY == 0 {
                resources.job.check()?;
            }
            file.push(id)?;
            Ok(true)
        })?;
        file.finish()?;
    }
    Ok(first)
}

/// Edges whose ends are mapped together.
const MAPPED_AT_ONCE: usize = 128;

/// Ids written between two looks at whether the work was cancelled.
const CHECK_EVERY: u64 = 1 << 16;

/// Bytes on disk, most of them for a while, of a vertex that is declared and in no bitmap.
const DECLARED_BYTES: u64 = 8 + 1 + 8;

/// Shards and degrees written.
struct Indexed {
    forward: Built,
    reverse: Option<Built>,
}

impl Import<'_> {
    fn run(&mut self, input: &mut Input<'_>) -> Result<Description> {
        let name = name_of(input);
        let half = self.spare / 2;
        let reader = Reader {
            folder: self.folder,
            resources: self.resources,
            declared: self.options.vertices.unwrap_or(0),
            directed: self.options.directed,
            undirected: self.options.undirected,
            drops_self_loops: self.options.policy.drops_self_loops(),
            hashes_weights: self.options.weights == Weights::Hash,
            ids: self.options.ids,
            on_error: self.options.on_error,
            bitmap_bytes: if self.options.sort_ids { 0 } else { IDS_BYTES + half },
            // The sorters' share, which is not in use yet.
            decoder_bytes: self.sorter_bytes(IDS_BYTES + half),
        };
        let (source, mut seen) = reader.read(input)?;
        self.end_phase("read");
        self.undirected |= seen.undirected && !self.options.directed;
        self.rejections = std::mem::take(&mut seen.rejections);
        if seen.edges == 0 && seen.declared.is_none() {
            let what = "there is no edge in it; `--vertices N` makes a graph without edges";
            return Err(Error::input(name, what));
        }
        // Weights are made of external ids.
        let hashed = Hashed(&*source);
        let source: &dyn EdgeSource = match self.options.weights {
            Weights::Input => &*source,
            Weights::Hash => &hashed,
        };
        seen.weighted |= self.options.weights == Weights::Hash;
        let sampled = std::mem::take(&mut seen.sampled);
        let joined;
        let (source, map, ids) = match seen.bitmap.take() {
            Some(bitmap) => {
                let (map, ids) = self.order(bitmap, seen.id_type, sampled)?;
                (source, map, ids)
            }
            None => {
                self.check_declared(name, &seen.declared)?;
                let (edges, ids) = self.order_joined(source, &seen, sampled)?;
                joined = edges;
                (&joined as &dyn EdgeSource, IdMap::Consecutive { first: 0 }, ids)
            }
        };
        // Sums of edges without weights are weights.
        seen.weighted = self.options.policy.weighted(seen.weighted);
        let indexed = self.sort_mapped(source, &map, ids.tally, seen.weighted)?;
        Ok(self.finish(&seen, &ids, indexed))
    }

    /// Chooses the order of ids that a bitmap holds, and writes them.
    fn order(&mut self, bitmap: IdBitmap, id_type: IdType, sampled: Sampled) -> Result<(IdMap, OrderedIds)> {
        let mut positions = bitmap.into_positions();
        let name = match positions.tally().has_classes() {
            true => sampled.cheaper(id_type, |order| {
                let positions = &positions;
                move |id| {
                    let position = match order {
                        OrderName::Degree => positions.internal(id),
                        OrderName::External => positions.external(id),
                    };
                    position.ok_or_else(changed)
                }
            })?,
            // The orders are one and the same.
            false => OrderName::External,
        };
        if name == OrderName::External {
            positions.flatten();
        }
        let tally = positions.tally();
        let first = write_ids(self.folder, &positions, self.resources)?;
        let map = match first {
            Some(first) => IdMap::Consecutive { first },
            None => IdMap::Positions(positions),
        };
        self.end_phase("order");
        Ok((map, OrderedIds { name, tally, first }))
    }

    /// Chooses the order of ids that no bitmap holds, writes them and maps the edges.
    fn order_joined(
        &mut self,
        source: &dyn EdgeSource,
        seen: &Seen,
        sampled: Sampled,
    ) -> Result<(SpooledEdges, OrderedIds)> {
        let spec = joins::Spec {
            folder: self.folder,
            id_type: seen.id_type,
            declared: &seen.declared,
            drops_self_loops: self.options.policy.drops_self_loops(),
            bytes: self.sorter_bytes(0) / 2,
            resources: self.resources,
        };
        let joined = match seen.weighted {
            true => joins::order_edges::<WeightedPair>(&spec, source, sampled),
            false => joins::order_edges::<Pair>(&spec, source, sampled),
        };
        self.end_phase("rank ids");
        joined
    }

    /// Refuses vertices that this disk cannot hold, before anything is written for each of them.
    fn check_declared(&self, name: PathBuf, declared: &Declared) -> Result<()> {
        let (vertices, free) = (declared.numbered(), free_bytes(self.folder.path())?);
        if vertices.saturating_mul(DECLARED_BYTES) > free {
            let what = format!(
                "{vertices} vertices are declared, for which the disk has no room ({DECLARED_BYTES} bytes each, {free} are \
                 free); correct the header or --vertices, or use another disk"
            );
            return Err(Error::input(name, what));
        }
        Ok(())
    }

    fn end_phase(&mut self, name: &'static str) {
        self.phases.push((name, self.since.elapsed().as_secs_f64()));
        self.since = Instant::now();
    }

    /// Second pass: edges by internal id, into the shards asked for, and degrees.
    fn sort_mapped(
        &mut self,
        source: &dyn EdgeSource,
        map: &IdMap,
        tally: Tally,
        weighted: bool,
    ) -> Result<Indexed> {
        let connected = tally.connected();
        // Self-loops that go may be of vertices that have no other edge.
        let ends = if self.options.policy.drops_self_loops() { tally.vertices() } else { connected };
        let counted = connected.min(self.spare / 4 / degrees::bytes_per_vertex(weighted));
        let mut degrees = DegreeCounter::new(0..counted, weighted);
        let forward = self.sort_index(Index::In, source, map, ends, weighted, &mut degrees)?;
        self.write_degrees(map, connected, weighted, degrees)?;
        let mut reverse = None;
        if self.options.reverse && !self.undirected {
            let mut none = DegreeCounter::default();
            reverse = Some(self.sort_index(Index::Reverse, source, map, ends, weighted, &mut none)?);
        }
        Ok(Indexed { forward, reverse })
    }

    fn write_degrees(
        &mut self,
        map: &IdMap,
        connected: u64,
        weighted: bool,
        first: DegreeCounter,
    ) -> Result<()> {
        let bits = self.options.geometry.interval_bits;
        let traffic = self.resources.job.traffic();
        let shards = ShardFile::open(self.folder, Index::In.name(), connected, weighted, bits, traffic)?;
        // The first degrees are written and dropped before others are counted.
        let bytes = self.sorter_bytes(map.memory_bytes());
        let resources = self.resources;
        degrees::write(self.folder, &shards, connected, first, weighted, bytes, resources)?;
        self.end_phase("count degrees");
        Ok(())
    }

    fn sort_index(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        ends: u64,
        weighted: bool,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let layout = KeyLayout::new(ends, self.options.geometry.interval_bits);
        match (layout.is_narrow(), weighted) {
            (true, false) => self.sort_as::<u64>(index, source, map, layout, degrees),
            (true, true) => self.sort_as::<WeightedKey>(index, source, map, layout, degrees),
            (false, false) => self.sort_as::<Pair>(index, source, map, layout, degrees),
            (false, true) => self.sort_as::<WeightedPair>(index, source, map, layout, degrees),
        }
    }

    /// What sorting may use beside ids that take `ids_bytes`: its share of the minimum and the rest.
    fn sorter_bytes(&self, ids_bytes: u64) -> u64 {
        let minimum = 2 * sorter::minimum_bytes(self.resources.workers(), size_of::<WeightedPair>());
        (minimum + self.spare).saturating_sub(ids_bytes.saturating_sub(IDS_BYTES)).max(minimum)
    }

    fn sort_as<R: EdgeRecord>(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        layout: KeyLayout,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let job = &self.resources.job;
        job.begin("sort", source.parts() as u64);
        let counting = (degrees.degrees.len() + degrees.strengths.len()) as u64 * 8;
        let bytes = self.sorter_bytes(map.memory_bytes() + counting);
        let workers = self.resources.workers();
        let sorter = ShardSorter::<R>::new(
            self.folder,
            layout,
            self.options.geometry,
            self.undirected,
            bytes,
            workers,
            job,
        )?;
        let push_all = |writer: &mut ShardSortWriter<'_, '_, R>, batch: &EdgeBatch| {
            let (mut sources, mut targets) = ([0; MAPPED_AT_ONCE], [0; MAPPED_AT_ONCE]);
            for start in (0..batch.len()).step_by(MAPPED_AT_ONCE) {
                let range = start..batch.len().min(start + MAPPED_AT_ONCE);
                let (sources, targets) = (&mut sources[..range.len()], &mut targets[..range.len()]);
                sources.copy_from_slice(&batch.sources[range.clone()]);
                targets.copy_from_slice(&batch.targets[range.clone()]);
                if !(map.map(sources) && map.map(targets)) {
                    // Every id was seen in the first pass.
                    return Err(changed());
                }
                for (at, (&s, &t)) in range.zip(sources.iter().zip(&*targets)) {
                    let (s, t) = if index == Index::In { (s, t) } else { (t, s) };
                    writer.push(s, t, batch.weight(at))?;
                }
            }
            job.advance(1);
            Ok(())
        };
        each_part(source, self.resources, || Ok(sorter.writer()), push_all, ShardSortWriter::finish)?;
        self.end_phase("sort");
        let built = sorter.write(self.folder, index.name(), self.options.policy, degrees, self.resources)?;
        self.end_phase("write shards");
        Ok(built)
    }

    fn finish(&self, seen: &Seen, ids: &OrderedIds, indexed: Indexed) -> Description {
        let Indexed { forward, reverse } = indexed;
        let geometry = self.options.geometry;
        let applied = forward.applied;
        let layers = |index: Index, built: Built| Shards {
            layers: vec![Layer { name: index.name().into(), arcs: built.arcs, bytes: built.bytes }],
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
            forward: Some(layers(Index::In, forward)),
            reverse: reverse.map(|reverse| layers(Index::Reverse, reverse)),
            origin: self.options.origin.clone(),
        }
    }
}

/// What messages call an input.
fn name_of(input: &Input<'_>) -> PathBuf {
    match input {
        Input::EdgeList(files) | Input::Pairs(files) | Input::Text(_, files) | Input::Graphalytics(files) => {
            files.first().cloned().unwrap_or_default()
        }
        Input::WebGraph(path) => path.clone(),
        Input::Stream(stream) => stream.name().into(),
        Input::Numbered(..) => "(generator)".into(),
    }
}

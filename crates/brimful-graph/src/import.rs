//! Import: from any input to a graph directory, streaming, within the budget.
//!
//! One pass learns which ids there are (the *census*), keeping the edges in a spool where the input
//! cannot be read twice. A second maps ids to ranks and sorts edges into shards. Invariant: the graph
//! appears under its name complete, or not at all; its bytes depend on the input alone.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use brimful_store::array::ArrayWriter;
use brimful_store::external::{FolderLock, PartialFolder};
use brimful_store::sealed::Kind;
use brimful_store::{DiskFolder, Error as StoreError, Folder, Resources, manifest, sorter};

use crate::build::{Built, ShardSortWriter, ShardSorter, encoding_bytes};
use crate::census::{Census, Reader, Seen, each_part, reading_bytes};
pub use crate::census::{EdgeStream, Input};
use crate::degrees::{self, DegreeCounter};
use crate::description::{Counts, Description, FORMAT, Ids, Layer, Order, Shards};
use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::{Error, Result};
use crate::graph::{self, Graph, IDS, Index};
use crate::ids::{IdBitmap, IdRanks, IdType};
use crate::joins;
use crate::policy::Policy;
use crate::records::{EdgeRecord, KeyLayout, Pair, WeightedKey, WeightedPair};
use crate::shards::{Geometry, ShardFile};
use crate::weights::{Hashed, Weights};

/// What the user chose.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Store every edge in both directions.
    pub undirected: bool,
    /// Declares the vertices 0 to n - 1.
    pub vertices: Option<u64>,
    /// Build the reverse shards too.
    pub reverse: bool,
    /// What becomes of self-loops and duplicates.
    pub policy: Policy,
    /// Where weights come from.
    pub weights: Weights,
    /// External ids, as their bits, of vertices that exist whether an edge names them or not.
    pub declared: Vec<u64>,
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
}

/// Smallest budget, in bytes beside the process's own, in which an import works.
pub fn minimum_bytes(workers: usize, weighted: bool) -> u64 {
    // Sparse ids need two sorters at once.
    let sorters = 2 * sorter::minimum_bytes(workers, size_of::<WeightedPair>());
    reading_bytes(workers) + encoding_bytes(weighted) + IdBitmap::BASE_BYTES * 4 + sorters
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
    let partial = PartialFolder::create(out)?;
    let mut import = Import {
        folder: partial.folder(),
        options,
        resources,
        spare: memory.bytes() - minimum,
        phases: Vec::new(),
        since: Instant::now(),
    };
    let description = import.run(&mut input)?;
    let phases = import.phases;
    let payload = serde_json::to_vec_pretty(&description).map_err(|e| Error::Usage(e.to_string()))?;
    manifest::publish(partial.folder(), 1, &payload, resources.job.traffic())?;
    let bytes_on_disk = Graph::open_folder(partial.folder(), resources.job.traffic())?.bytes_on_disk()?;
    resources.job.check()?;
    partial.publish()?;
    Ok(ImportReport { description, seconds: begin.elapsed().as_secs_f64(), phases, bytes_on_disk })
}

struct Import<'a> {
    folder: &'a DiskFolder,
    options: &'a ImportOptions,
    resources: &'a Resources,
    /// Budget beyond the minimum, to be shared out.
    spare: u64,
    phases: Vec<(&'static str, f64)>,
    since: Instant,
}

/// How external ids become ranks while edges are read again.
pub(crate) enum IdMap {
    /// Rank = id - first.
    Consecutive {
        first: u64,
    },
    Ranks(IdRanks),
}

impl IdMap {
    #[inline]
    fn rank(&self, id: u64) -> Option<u64> {
        match self {
            Self::Consecutive { first } => Some(id.wrapping_sub(*first)),
            Self::Ranks(ranks) => ranks.rank(id),
        }
    }

    fn memory_bytes(&self) -> u64 {
        match self {
            Self::Consecutive { .. } => 0,
            Self::Ranks(ranks) => ranks.memory_bytes(),
        }
    }
}

/// Shards and degrees written.
struct Indexed {
    vertices: u64,
    degree_bytes: u32,
    forward: Built,
    reverse: Option<Built>,
}

impl Import<'_> {
    fn run(&mut self, input: &mut Input<'_>) -> Result<Description> {
        if let Input::Numbered(source, vertices) = input {
            let (hashed, vertices) = (Hashed(*source), *vertices);
            let weighted = self.options.weights == Weights::Hash;
            let source = if weighted { &hashed } else { *source };
            let census = Census::new(None);
            let map = IdMap::Consecutive { first: 0 };
            let indexed = self.sort_mapped(source, &map, vertices, weighted, Some(&census))?;
            let mut seen = census.into_seen(IdType::Int64, weighted, 0);
            seen.lines = seen.edges;
            return self.finish(&seen, Some(0), indexed);
        }
        let reader = Reader {
            folder: self.folder,
            resources: self.resources,
            declared: self.options.vertices,
            declared_ids: &self.options.declared,
            bitmap_bytes: IdBitmap::BASE_BYTES * 4 + self.spare / 4,
            // The sorters' share, which is not in use yet.
            decoder_bytes: self.sorter_bytes(self.spare / 4),
        };
        let (source, mut seen) = reader.read(input)?;
        self.end_phase("read");
        let declared = self.options.vertices.unwrap_or(0) > 0 || !self.options.declared.is_empty();
        if seen.edges == 0 && !declared {
            return Err(no_edges(input));
        }
        let hashed = Hashed(&*source);
        let source: &dyn EdgeSource = match self.options.weights {
            Weights::Input => &*source,
            Weights::Hash => &hashed,
        };
        seen.weighted |= self.options.weights == Weights::Hash;
        let Some(bitmap) = seen.bitmap.take().filter(|bitmap| !bitmap.gave_up()) else {
            let indexed = self.sort_joined(source, &seen)?;
            return self.finish(&seen, None, indexed);
        };
        let ranks = bitmap.into_ranks();
        let (vertices, first) = (ranks.len(), ranks.consecutive_from());
        let map = match first {
            Some(first) => IdMap::Consecutive { first },
            None => {
                self.write_ids(&ranks)?;
                IdMap::Ranks(ranks)
            }
        };
        let indexed = self.sort_mapped(source, &map, vertices, seen.weighted, None)?;
        drop(map);
        self.finish(&seen, first, indexed)
    }

    fn end_phase(&mut self, name: &'static str) {
        self.phases.push((name, self.since.elapsed().as_secs_f64()));
        self.since = Instant::now();
    }

    fn write_ids(&self, ranks: &IdRanks) -> Result<()> {
        let mut file = ArrayWriter::create(self.folder, IDS, Kind::Ids, self.resources.job.traffic())?;
        for id in ranks.iter() {
            file.push(id)?;
        }
        file.finish()?;
        Ok(())
    }

    /// Second pass: edges by rank, into the shards asked for, and degrees.
    fn sort_mapped(
        &mut self,
        source: &dyn EdgeSource,
        map: &IdMap,
        vertices: u64,
        weighted: bool,
        census: Option<&Census>,
    ) -> Result<Indexed> {
        let stored_weighted = self.options.policy.weighted(weighted);
        let counted = vertices.min(self.spare / 4 / degrees::bytes_per_vertex(stored_weighted));
        let mut degrees = DegreeCounter::new(0..counted, stored_weighted);
        let forward = self.sort_index(Index::In, source, map, vertices, weighted, census, &mut degrees)?;
        let degree_bytes = if forward.arcs < 1 << 32 { 4 } else { 8 };
        self.write_degrees(map, vertices, stored_weighted, degree_bytes, degrees)?;
        let mut reverse = None;
        if self.options.reverse && !self.options.undirected {
            let mut none = DegreeCounter::default();
            reverse =
                Some(self.sort_index(Index::Reverse, source, map, vertices, weighted, None, &mut none)?);
        }
        Ok(Indexed { vertices, degree_bytes, forward, reverse })
    }

    fn write_degrees(
        &mut self,
        map: &IdMap,
        vertices: u64,
        weighted: bool,
        degree_bytes: u32,
        first: DegreeCounter,
    ) -> Result<()> {
        let bits = self.options.geometry.interval_bits;
        let traffic = self.resources.job.traffic();
        let shards = ShardFile::open(self.folder, shard_file(Index::In), vertices, bits, traffic)?;
        // The first degrees are written and dropped before others are counted.
        let bytes = self.sorter_bytes(map.memory_bytes());
        let resources = self.resources;
        degrees::write(self.folder, &shards, vertices, degree_bytes, first, weighted, bytes, resources)?;
        self.end_phase("count degrees");
        Ok(())
    }

    fn sort_index(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        vertices: u64,
        weighted: bool,
        census: Option<&Census>,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let layout = KeyLayout::new(vertices, self.options.geometry.interval_bits);
        match (layout.is_narrow(), weighted) {
            (true, false) => self.sort_as::<u64>(index, source, map, layout, census, degrees),
            (true, true) => self.sort_as::<WeightedKey>(index, source, map, layout, census, degrees),
            (false, false) => self.sort_as::<Pair>(index, source, map, layout, census, degrees),
            (false, true) => self.sort_as::<WeightedPair>(index, source, map, layout, census, degrees),
        }
    }

    /// What sorting may use beside ids that take `ids_bytes`: its share of the minimum and the rest.
    fn sorter_bytes(&self, ids_bytes: u64) -> u64 {
        let minimum = 2 * sorter::minimum_bytes(self.resources.workers(), size_of::<WeightedPair>());
        (minimum + self.spare).saturating_sub(ids_bytes.saturating_sub(IdBitmap::BASE_BYTES * 4)).max(minimum)
    }

    fn sort_as<R: EdgeRecord>(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        layout: KeyLayout,
        census: Option<&Census>,
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
            self.options.undirected,
            bytes,
            workers,
            job,
        )?;
        let push_all = |writer: &mut ShardSortWriter<'_, '_, R>, batch: &EdgeBatch| {
            if let Some(census) = census {
                census.add(batch);
            }
            for at in 0..batch.len() {
                let (Some(s), Some(t)) = (map.rank(batch.sources[at]), map.rank(batch.targets[at])) else {
                    // Every id was ranked in the first pass.
                    return Err(Error::input("(input)", "it changed while it was read; import it again"));
                };
                let (s, t) = if index == Index::In { (s, t) } else { (t, s) };
                writer.push(s, t, batch.weight(at))?;
            }
            job.advance(1);
            Ok(())
        };
        each_part(source, self.resources, || Ok(sorter.writer()), push_all, ShardSortWriter::finish)?;
        self.end_phase("sort");
        let built =
            sorter.write(self.folder, shard_file(index), self.options.policy, degrees, self.resources)?;
        self.end_phase("write shards");
        Ok(built)
    }

    /// Second pass for ids that no bitmap holds.
    fn sort_joined(&mut self, source: &dyn EdgeSource, seen: &Seen) -> Result<Indexed> {
        let half = self.sorter_bytes(0) / 2;
        let spec = joins::Spec {
            folder: self.folder,
            id_type: seen.id_type,
            declared: self.options.vertices.unwrap_or(0),
            declared_ids: &self.options.declared,
            bytes: half,
            resources: self.resources,
        };
        let joined = match seen.weighted {
            true => joins::rank_edges::<WeightedPair>(&spec, source)?,
            false => joins::rank_edges::<Pair>(&spec, source)?,
        };
        self.end_phase("rank ids");
        let map = IdMap::Consecutive { first: 0 };
        self.sort_mapped(&joined.edges, &map, joined.vertices, seen.weighted, None)
    }

    fn finish(&self, seen: &Seen, first: Option<u64>, indexed: Indexed) -> Result<Description> {
        let Indexed { vertices, degree_bytes, forward, reverse } = indexed;
        let geometry = self.options.geometry;
        let applied = forward.applied;
        let layers = |index: Index, built: Built| Shards {
            layers: vec![Layer { file: shard_file(index).into(), arcs: built.arcs, bytes: built.bytes }],
        };
        Ok(Description {
            format: FORMAT,
            created_by: concat!("brimful ", env!("CARGO_PKG_VERSION")).into(),
            vertices,
            edges: seen.edges - applied.self_loops_dropped - applied.duplicates_dropped,
            arcs: forward.arcs,
            directed: !self.options.undirected,
            weighted: self.options.policy.weighted(seen.weighted),
            weights: applied.weights,
            order: Order::External,
            ids: Ids { id_type: seen.id_type, first },
            interval_bits: geometry.interval_bits,
            degree_bytes,
            counts: Counts {
                lines: seen.lines,
                self_loops: seen.self_loops,
                duplicates: applied.duplicates,
                rejected: 0,
                self_loops_dropped: applied.self_loops_dropped,
                duplicates_dropped: applied.duplicates_dropped,
            },
            forward: Some(layers(Index::In, forward)),
            reverse: reverse.map(|reverse| layers(Index::Reverse, reverse)),
            origin: self.options.origin.clone(),
        })
    }
}

/// Name of the file that holds an index.
pub(crate) fn shard_file(index: Index) -> &'static str {
    match index {
        Index::In => "in.shards",
        Index::Reverse => "reverse.shards",
    }
}

fn no_edges(input: &Input<'_>) -> Error {
    let path = match input {
        Input::EdgeList(files) | Input::Pairs(files) => files.first().cloned().unwrap_or_default(),
        Input::Stream(stream) => stream.name().into(),
        Input::Numbered(..) => "(generator)".into(),
    };
    Error::input(path, "there is no edge in it; `--vertices N` makes a graph without edges")
}

/// Builds the reverse shards of an existing graph and publishes them. Returns the seconds it took;
/// nothing happens if they are there.
///
/// # Errors
/// [`Error::MissingIndex`] if the graph cannot be written to.
pub fn build_reverse(graph: &Graph, resources: &Resources) -> Result<f64> {
    let begin = Instant::now();
    let done = || Ok(begin.elapsed().as_secs_f64());
    if graph.shards(Index::Reverse).is_some() {
        return Ok(0.0);
    }
    let weighted = graph.description().weighted;
    let minimum = minimum_bytes(resources.workers(), weighted);
    resources.budget.require(minimum, "to build an index")?;
    let memory = resources.budget.reserve(resources.budget.limit(), "to build an index")?;
    let _lock = FolderLock::take(graph.path()).map_err(|error| match error {
        StoreError::Io { ref source, .. }
            if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
        {
            Error::MissingIndex { path: graph.path().into(), index: Index::Reverse.name() }
        }
        error => error.into(),
    })?;
    // Another process may have built it, and published a manifest, since this graph was opened.
    let latest = Graph::open(graph.path(), graph.traffic())?;
    let Some(forward) = latest.shards(Index::In).filter(|_| latest.shards(Index::Reverse).is_none()) else {
        graph.adopt_reverse(&latest);
        return done();
    };
    let folder = DiskFolder::new(graph.path());
    remove_unfinished(graph, Index::Reverse)?;
    let geometry = Geometry { interval_bits: graph.description().interval_bits, ..Geometry::default() };
    let options = ImportOptions { geometry, ..ImportOptions::default() };
    let mut import = Import {
        folder: &folder,
        options: &options,
        resources,
        spare: memory.bytes() - minimum,
        phases: Vec::new(),
        since: Instant::now(),
    };
    let (source, map) = (graph::ShardEdges::new(forward), IdMap::Consecutive { first: 0 });
    let (vertices, mut none) = (graph.vertices(), DegreeCounter::default());
    let built = import.sort_index(Index::Reverse, &source, &map, vertices, weighted, None, &mut none)?;
    let mut description = latest.description().clone();
    let layer = Layer { file: shard_file(Index::Reverse).into(), arcs: built.arcs, bytes: built.bytes };
    description.reverse = Some(Shards { layers: vec![layer] });
    let payload = serde_json::to_vec_pretty(&description).map_err(|e| Error::Usage(e.to_string()))?;
    let number = latest.manifest_number() + 1;
    manifest::publish(&folder, number, &payload, resources.job.traffic())?;
    manifest::sweep(&folder, number)?;
    graph.adopt_reverse(&Graph::open(graph.path(), graph.traffic())?);
    done()
}

/// Removes the file of an index that a killed build left: the manifest does not name it.
fn remove_unfinished(graph: &Graph, index: Index) -> Result<()> {
    let folder = DiskFolder::new(graph.path());
    match folder.remove(shard_file(index)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(brimful_store::Error::io(graph.path().join(shard_file(index)), "remove the unfinished", e)
                .into())
        }
        _ => Ok(()),
    }
}

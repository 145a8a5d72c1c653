//! A graph directory open for reading.
//!
//! Invariant: opening checks every file that the manifest names (header, table and exact cover);
//! blocks are verified when they are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use brimful_store::array::ArrayFile;
use brimful_store::sealed::{Kind, SealedFile};
use brimful_store::wording::counted;
use brimful_store::{DiskFolder, Error as StoreError, Folder, Job, StoreFile, Traffic, manifest};

use crate::codec::WeightType;
use crate::error::{Error, Result};
use crate::ids::ascending::{AscendingFile, BLOCK_NUMBERS};
use crate::ids::external::IdType;
use crate::ids::names::NameFile;
use crate::ids::offsets::IdOffsets;
use crate::input::columns::Columns;
use crate::read::description::{Description, Shards};
use crate::read::index::Index;
use crate::read::segment_reader::SegmentReader;
use crate::read::shards::ShardFile;

/// The file of external ids.
pub(crate) const IDS: &str = "ids";
/// The file of out-degrees.
pub(crate) const DEGREES: &str = "degrees";
/// The file of outgoing weight sums.
pub(crate) const STRENGTHS: &str = "strengths";

/// An open graph.
#[derive(Debug)]
pub struct Graph {
    path: PathBuf,
    folder: Arc<dyn Folder>,
    description: Description,
    manifest_number: u64,
    ids: Option<AscendingFile>,
    names: Option<NameFile>,
    /// Running sums of out-degrees.
    degrees: AscendingFile,
    strengths: Option<ArrayFile<f64>>,
    forward: Arc<ShardFile>,
    /// Set when the graph is opened, or when the index is built while it is open.
    reverse: OnceLock<Arc<ShardFile>>,
    /// Bytes of the manifest and of the pointer to it.
    manifest_bytes: u64,
    traffic: Arc<Traffic>,
}

impl Graph {
    /// Opens the graph directory at `path`; reads are counted in `traffic`.
    ///
    /// # Errors
    /// [`Error::NotAGraph`] if the path is missing or holds something else; corruption and newer
    /// versions, with the file.
    pub fn open(path: &Path, traffic: &Arc<Traffic>) -> Result<Self> {
        let folder = DiskFolder::new(path);
        let names = folder.list().map_err(|e| Error::NotAGraph {
            path: path.into(),
            problem: match e.kind() {
                std::io::ErrorKind::NotFound => "there is no file or folder of that name".into(),
                std::io::ErrorKind::NotADirectory => "it is a file; import it first".into(),
                _ => e.to_string(),
            },
        })?;
        if !names.iter().any(|name| name == "current") {
            let problem = "the folder has no `current` file; it was not made by `brimful import`, \
                           or its file was removed";
            return Err(Error::NotAGraph { path: path.into(), problem: problem.into() });
        }
        Self::open_folder(&folder, traffic)
    }

    /// Opens the graph in `folder`, whatever its implementation.
    ///
    /// # Errors
    /// Corruption and newer versions, with the file.
    pub fn open_folder(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Self> {
        loop {
            let current = manifest::current(folder, traffic).ok();
            return match Self::open_files(folder, traffic) {
                Err(Error::Store(StoreError::Io { path, source, .. }))
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    // A change of the graph removes the files of the previous manifest.
                    if manifest::current(folder, traffic).ok() != current {
                        continue;
                    }
                    // `current` and the manifest name these files, so a missing file is corruption.
                    Err(StoreError::corrupt(path, 0, "the file is missing").into())
                }
                opened => opened,
            };
        }
    }

    fn open_files(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Self> {
        let (number, payload) = manifest::read(folder, traffic)?;
        let description = Description::parse(folder.path(), number, &payload)?;
        let mut graph = Self::of_files(folder, description, traffic)?;
        graph.check_seals()?;
        graph.manifest_number = number;
        for name in [manifest::CURRENT.to_owned(), manifest::name(number)] {
            graph.manifest_bytes += StoreFile::open(folder, &name, traffic)?.len()?;
        }
        Ok(graph)
    }

    /// Opens the files that `description` names.
    fn of_files(
        folder: &dyn Folder,
        description: Description,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let connected = description.connected;
        let ids = match description.ids.first {
            Some(_) => None,
            None => {
                Some(AscendingFile::open(folder, IDS, Kind::Ids, description.vertices, traffic)?)
            }
        };
        let names = match description.ids.id_type {
            IdType::String => Some(NameFile::open(folder, description.vertices, traffic)?),
            _ => None,
        };
        let degrees = AscendingFile::open(folder, DEGREES, Kind::Degrees, connected, traffic)?;
        let strengths = match description.weighted {
            true => Some(ArrayFile::open(folder, STRENGTHS, Kind::Strengths, connected, traffic)?),
            false => None,
        };
        let open = |shards: &Shards| -> Result<Arc<ShardFile>> {
            let [layer] = &shards.layers;
            let (weighted, bits) = (description.weighted, description.interval_bits);
            let shards = ShardFile::open(folder, &layer.name, connected, weighted, bits, traffic)?;
            let found = (shards.edges(), shards.len_bytes()?);
            if found != (layer.arcs, layer.bytes) {
                let problem = format!(
                    "expected {} in {}, found {} in {}",
                    counted(layer.arcs, "arc"),
                    counted(layer.bytes, "byte"),
                    found.0,
                    found.1
                );
                return Err(StoreError::corrupt(shards.file().path(), 0, problem).into());
            }
            Ok(Arc::new(shards))
        };
        for table in description.tables.values() {
            table.check(folder, traffic)?;
        }
        let forward = open(&description.forward)?;
        let reverse = description.reverse.as_ref().map(open).transpose()?;
        let reverse = reverse.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self {
            path: folder.path().to_path_buf(),
            folder: folder.shared(),
            description,
            manifest_number: 0,
            ids,
            names,
            degrees,
            strengths,
            forward,
            reverse,
            manifest_bytes: 0,
            traffic: Arc::clone(traffic),
        })
    }

    /// Publishes manifest `number`: `description` in the newest format, with the seals of the files
    /// in `folder`.
    pub(crate) fn publish(
        folder: &dyn Folder,
        number: u64,
        description: &mut Description,
        traffic: &Arc<Traffic>,
    ) -> Result<()> {
        description.format = description.written_format();
        description.seals = Self::of_files(folder, description.clone(), traffic)?.seals().collect();
        let payload = serde_json::to_vec_pretty(&description)
            .map_err(|e| StoreError::Internal(e.to_string()))?;
        Ok(manifest::publish(folder, number, &payload, traffic)?)
    }

    /// The seals of all files except the manifest, by name.
    fn seals(&self) -> impl Iterator<Item = (String, u64)> {
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shards = [Some(&self.forward), self.reverse.get()].into_iter().flatten();
        let files =
            self.sealed_files().into_iter().map(move |file| (name(file.path()), file.seal()));
        files.chain(shards.map(|shards| shards.directory_seal()))
    }

    fn check_seals(&self) -> Result<()> {
        if self.description.format < 2 {
            return Ok(());
        }
        let seals: BTreeMap<_, _> = self.seals().collect();
        let other =
            seals.iter().find(|(name, seal)| self.description.seals.get(*name) != Some(*seal));
        match other {
            Some((name, _)) => {
                let problem = "it is intact, but not the file that the manifest names";
                Err(StoreError::corrupt(self.path.join(name), 56, problem).into())
            }
            None => Ok(()),
        }
    }

    /// The path of the graph.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that holds the files.
    pub fn folder(&self) -> &dyn Folder {
        &*self.folder
    }

    /// The counters of bytes read from this graph's files.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// The contents of the manifest.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Refuses a graph without edge weights.
    ///
    /// # Errors
    /// [`Error::Usage`] with the `remedy`, and with the columns that the import ignored, one of
    /// which may be the weights.
    pub fn require_weights(&self, remedy: &str) -> Result<()> {
        if self.description.weighted {
            return Ok(());
        }
        let mut problem = format!("{} has no edge weights; {remedy}", self.path.display());
        if let Some(names) = self.description.columns.as_ref().and_then(Columns::ignored_names) {
            problem += &format!(
                "; the import ignored {names}, and --weight of an import takes one as weights"
            );
        }
        Err(Error::Usage(problem))
    }

    /// Opens the graph again in its present state on disk, which may have another index.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the path holds a different graph or none; corruption.
    pub(crate) fn reopened(&self) -> Result<Self> {
        let replaced = || Error::Replaced { path: self.path.clone() };
        match Self::open_files(&*self.folder, &self.traffic) {
            Ok(newer) if newer.fingerprint() == self.fingerprint() => Ok(newer),
            Ok(_) => Err(replaced()),
            Err(Error::Store(error)) if error.is_missing() => Err(replaced()),
            Err(error) => Err(error),
        }
    }

    /// Takes over the reverse index of `newer`, which is the same graph opened again.
    pub(crate) fn adopt_reverse(&self, newer: &Self) {
        if let Some(reverse) = newer.reverse.get() {
            // Another thread may have set it already; the index is the same.
            let _ = self.reverse.set(Arc::clone(reverse));
        }
    }

    pub(crate) fn manifest_number(&self) -> u64 {
        self.manifest_number
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u64 {
        self.description.vertices
    }

    /// Number of vertices with edges. Their internal ids are below this number; other vertices have
    /// no state, no degree and no place in shards.
    pub fn connected(&self) -> u64 {
        self.description.connected
    }

    /// Number of intervals; they cover the vertices with edges.
    pub fn intervals(&self) -> u64 {
        self.connected().div_ceil(1 << self.description.interval_bits)
    }

    /// The runs of the internal order: ranges of internal ids within which external ids ascend.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = &self.description.order.runs;
        let ends = starts.iter().copied().skip(1).chain([self.vertices()]);
        starts.iter().copied().zip(ends).map(|(start, end)| start..end)
    }

    /// Order keys of the smallest and the largest external id; `None` without vertices. Reads two
    /// blocks per run.
    pub fn key_bounds(&self) -> Result<Option<(u64, u64)>> {
        let mut bounds: Option<(u64, u64)> = None;
        for run in self.runs().filter(|run| !run.is_empty()) {
            let (mut first, mut last) = ([0], [0]);
            self.external_ids(run.start, &mut first)?;
            self.external_ids(run.end - 1, &mut last)?;
            let (low, high) =
                (self.id_type().order_key(first[0]), self.id_type().order_key(last[0]));
            bounds = Some(bounds.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
        }
        Ok(bounds)
    }

    /// The offsets of external ids from the smallest one. Reads two blocks per run.
    pub fn id_offsets(&self) -> Result<IdOffsets> {
        let smallest = self.key_bounds()?.map_or(0, |(smallest, _)| smallest);
        Ok(IdOffsets::new(self.id_type(), smallest))
    }

    /// The offset of the largest external id from the smallest one; 0 without vertices.
    pub fn largest_id_offset(&self) -> Result<u64> {
        Ok(self.key_bounds()?.map_or(0, |(smallest, largest)| largest - smallest))
    }

    /// The shards of [`Index::In`], which every graph has.
    pub fn forward(&self) -> &Arc<ShardFile> {
        &self.forward
    }

    /// The shards of `index`, or `None` if they are not built. An undirected graph is its own
    /// reverse.
    pub fn shards(&self, index: Index) -> Option<&Arc<ShardFile>> {
        match index {
            Index::Reverse if self.description.directed => self.reverse.get(),
            _ => Some(&self.forward),
        }
    }

    /// The type of the external ids.
    pub fn id_type(&self) -> IdType {
        self.description.ids.id_type
    }

    /// True if external ids follow one another, so that they are computed and not read.
    pub fn has_consecutive_ids(&self) -> bool {
        self.ids.is_none()
    }

    /// Fills `out` with the bits of the external ids of the vertices from `start` on.
    pub fn external_ids(&self, start: u64, out: &mut [u64]) -> Result<()> {
        match (&self.ids, self.description.ids.first) {
            (Some(file), _) => Ok(file.read(start, out)?),
            (None, first) => {
                let first = first.unwrap_or_default().wrapping_add(start);
                (0_u64..).zip(out).for_each(|(index, id)| *id = first.wrapping_add(index));
                Ok(())
            }
        }
    }

    /// Fills `out` with the offsets of the external ids of the vertices from `start` on.
    pub fn external_offsets(&self, offsets: IdOffsets, start: u64, out: &mut [u64]) -> Result<()> {
        self.external_ids(start, out)?;
        out.iter_mut().for_each(|id| *id = offsets.of(*id));
        Ok(())
    }

    /// The offset of the external id of a vertex.
    pub fn external_offset(&self, offsets: IdOffsets, vertex: u64) -> Result<u64> {
        let mut offset = [0];
        self.external_offsets(offsets, vertex, &mut offset)?;
        Ok(offset[0])
    }

    /// The internal id of the vertex with external id `number`.
    ///
    /// # Errors
    /// [`Error::NoSuchVertex`].
    pub fn find(&self, number: i128) -> Result<u64> {
        let bits = self.id_type().bits(number).filter(|_| self.names.is_none());
        let found = bits.map_or(Ok(None), |bits| self.find_bits(bits))?;
        found.ok_or_else(|| Error::no_such_vertex(&number.into(), self.id_type()))
    }

    /// The internal id of the vertex whose external id has these bits, or `None`.
    pub(crate) fn find_bits(&self, bits: u64) -> Result<Option<u64>> {
        let Some(file) = &self.ids else {
            let rank = bits.wrapping_sub(self.description.ids.first.unwrap_or_default());
            return Ok((rank < self.vertices()).then_some(rank));
        };
        file.find(bits)
    }

    /// The file of external ids; `None` if they are consecutive.
    pub(crate) fn ids_file(&self) -> Option<&AscendingFile> {
        self.ids.as_ref()
    }

    /// The file of running sums of out-degrees.
    pub(crate) fn degree_sums(&self) -> &AscendingFile {
        &self.degrees
    }

    /// The file of names; `None` unless ids are strings.
    pub(crate) fn names(&self) -> Option<&NameFile> {
        self.names.as_ref()
    }

    /// The number of vertices with edges among the `count` vertices from `start` on. They come
    /// first.
    fn connected_of(&self, start: u64, count: usize) -> usize {
        self.connected().saturating_sub(start).min(count as u64) as usize
    }

    /// Fills `out` with the out-degrees of the vertices from `start` on.
    pub fn degrees(&self, start: u64, out: &mut [u64]) -> Result<()> {
        let (out, isolated) = out.split_at_mut(self.connected_of(start, out.len()));
        isolated.fill(0);
        if out.is_empty() {
            return Ok(());
        }
        self.degrees.read(start, out)?;
        let mut before = [0];
        if start > 0 {
            self.degrees.read(start - 1, &mut before)?;
        }
        let [mut before] = before;
        for sum in out {
            // Sums ascend within a block. Between blocks only `verify` checks it, so a difference
            // may wrap.
            *sum = sum.wrapping_sub(std::mem::replace(&mut before, *sum));
        }
        Ok(())
    }

    /// The out-degrees of the first `count` vertices, read a window at a time.
    pub fn degrees_of_first(&self, count: u64) -> impl Iterator<Item = Result<u64>> {
        let mut window = Vec::new();
        (0..count).map(move |vertex| {
            let at = vertex as usize % BLOCK_NUMBERS;
            if at == 0 {
                window.resize((count - vertex).min(BLOCK_NUMBERS as u64) as usize, 0);
                self.degrees(vertex, &mut window)?;
            }
            Ok(window[at])
        })
    }

    /// Fills `out` with the sums of outgoing weights of the vertices from `start` on.
    ///
    /// # Errors
    /// [`Error::Usage`] if the graph has no edge weights.
    pub fn strengths(&self, start: u64, out: &mut [f64]) -> Result<()> {
        let Some(file) = &self.strengths else {
            return self.require_weights("import it with a weight column");
        };
        let (out, isolated) = out.split_at_mut(self.connected_of(start, out.len()));
        isolated.fill(0.0);
        if out.is_empty() { Ok(()) } else { Ok(file.read(start, out)?) }
    }

    /// A checksum of vertices, edges and weights in their internal order. Copies of a graph have
    /// the same one, whatever indexes they have.
    pub fn fingerprint(&self) -> u64 {
        let Description { vertices, directed, ids, interval_bits, .. } = &self.description;
        // Checkpoints and kept stores hold the checksum of this text, which must never change.
        let mut bytes = format!("{vertices} {directed} {ids:?} {interval_bits}").into_bytes();
        for entry in self.files_without_indexes().into_iter().flat_map(SealedFile::entries) {
            bytes.extend_from_slice(&entry.len.to_le_bytes());
            bytes.extend_from_slice(&entry.checksum.to_le_bytes());
        }
        brimful_store::checksum(&bytes)
    }

    /// The first edge that `wanted` accepts, among shards whose weights are stored in one of
    /// `types`: source and target by internal id, and weight. Reads one unit at a time.
    ///
    /// # Errors
    /// Errors of reading and of `wanted`.
    pub fn find_edge(
        &self,
        types: &[WeightType],
        job: &Job,
        mut wanted: impl FnMut(u64, u64, f64) -> Result<bool>,
    ) -> Result<Option<(u64, u64, f64)>> {
        let shards = &self.forward;
        let (mut reader, mut found) = (SegmentReader::default(), Ok(None));
        for (index, segment) in shards.segments().iter().enumerate() {
            job.check()?;
            if !types.contains(&segment.weight_type) {
                continue;
            }
            reader.for_each_edge(shards, index, |source, target, weight| {
                if matches!(found, Ok(None)) {
                    found = wanted(source, target, weight)
                        .map(|is| is.then_some((source, target, weight)));
                }
            })?;
            if !matches!(found, Ok(None)) {
                return found;
            }
        }
        Ok(None)
    }

    /// The sealed files of the graph, by name, for verification and sizes.
    pub(crate) fn sealed_files(&self) -> Vec<&SealedFile> {
        let mut files = self.files_without_indexes();
        files.extend(self.reverse.get().into_iter().flat_map(|s| s.files().map(|file| &**file)));
        files
    }

    /// The sealed files that every copy of the graph has: all except the indexes.
    fn files_without_indexes(&self) -> Vec<&SealedFile> {
        let mut files = Vec::new();
        files.extend(self.ids.as_ref().map(AscendingFile::sealed));
        files.extend(self.names.as_ref().map(NameFile::sealed));
        files.push(self.degrees.sealed());
        files.extend(self.strengths.as_ref().map(ArrayFile::sealed));
        files.extend(self.forward.files().map(|file| &**file));
        files
    }

    /// Bytes of all files on disk.
    pub fn bytes_on_disk(&self) -> Result<u64> {
        let shards = [Some(&self.forward), self.reverse.get()].into_iter().flatten();
        let mut sum =
            self.manifest_bytes + shards.map(|shards| shards.directory_bytes()).sum::<u64>();
        for file in self.sealed_files() {
            sum += file.len()?;
        }
        Ok(sum + self.description.tables.values().map(|table| table.bytes).sum::<u64>())
    }
}

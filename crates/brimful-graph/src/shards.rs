//! Shards: all edges into one target interval, sorted by (source, target), cut into segments.
//!
//! The geometry depends on the edges alone, never on budget or threads. A shard of many edges is
//! cut into *windows* at source boundaries: the engine sums each window on its own and adds the sums
//! in window order, so that the result does not depend on who summed what. Segments cut windows
//! further, each packed by the codec that suits it. Segments are read in *units* of about 4 MiB; a file of
//! weights and a file of block starts have the same units, for readers that want them. Invariant: no
//! segment crosses a window, a shard or a unit; segments cover their unit exactly.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brimful_store::file::Traffic;
use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::{DiskFolder, Error as StoreError, Folder};

use crate::codec::{Code, DIRECTORY_ROW, Keys, Packing, Unpack, WeightType, Weights, plain_bytes};
use crate::error::Result;

/// How shards are cut. Tests use small numbers; graphs on disk have the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bits of a target within its interval.
    pub interval_bits: u32,
    /// Edges after which a window ends at the next source.
    pub window_edges: u64,
    /// Most edges of a segment.
    pub segment_edges: u32,
    /// Bytes after which a unit is full.
    pub unit_bytes: usize,
}

impl Default for Geometry {
    /// 2^16 accumulators of 8 bytes stay in a second-level cache beside what streams through it (measured
    /// against 2^17 to 2^19: docs/adr/0003); a unit is what a disk reads at full speed.
    fn default() -> Self {
        Self { interval_bits: 16, window_edges: 1 << 23, segment_edges: 1 << 16, unit_bytes: 4 << 20 }
    }
}

/// What the segment table says of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The target interval.
    pub interval: u64,
    /// Source of the first edge.
    pub first_source: u64,
    /// Source of the last edge.
    pub last_source: u64,
    /// The window within the shard, from 0.
    pub window: u32,
    /// Number of edges.
    pub edges: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes in the unit.
    pub stored: u32,
    /// Bytes of the codec, before compression.
    pub plain: u32,
    /// How edges are packed.
    pub packing: Packing,
    /// How weights are stored.
    pub weight_type: WeightType,
    /// True if it begins a unit.
    pub begins_unit: bool,
}

const TABLE_ROW: usize = 48;

impl Segment {
    fn encode(&self) -> [u8; TABLE_ROW] {
        let mut out = [0; TABLE_ROW];
        out[0..8].copy_from_slice(&self.interval.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_source.to_le_bytes());
        out[16..24].copy_from_slice(&self.last_source.to_le_bytes());
        out[24..28].copy_from_slice(&self.window.to_le_bytes());
        out[28..32].copy_from_slice(&self.edges.to_le_bytes());
        out[32..36].copy_from_slice(&self.blocks.to_le_bytes());
        out[36..40].copy_from_slice(&self.stored.to_le_bytes());
        out[40..44].copy_from_slice(&self.plain.to_le_bytes());
        out[44..48].copy_from_slice(&[
            self.packing.to_byte(),
            self.weight_type as u8,
            u8::from(self.begins_unit),
            0,
        ]);
        out
    }

    fn decode(raw: &[u8; TABLE_ROW]) -> Result<Self, String> {
        let word = |at: usize| raw[at..at + 4].iter().rev().fold(0, |sum, &b| sum << 8 | u32::from(b));
        let long = |at: usize| raw[at..at + 8].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        let packing = Packing::from_byte(raw[44])
            .ok_or_else(|| format!("a segment uses codec {}, which this brimful does not know", raw[44]))?;
        let weight_type = WeightType::from_byte(raw[45]).ok_or_else(|| {
            format!("a segment has weights of type {}, which this brimful does not know", raw[45])
        })?;
        Ok(Self {
            interval: long(0),
            first_source: long(8),
            last_source: long(16),
            window: word(24),
            edges: word(28),
            blocks: word(32),
            stored: word(36),
            plain: word(40),
            packing,
            weight_type,
            begins_unit: raw[46] != 0,
        })
    }

    fn weight_bytes(&self) -> usize {
        self.edges as usize * self.weight_type.bytes()
    }
}

/// A segment ready to be written.
#[derive(Debug)]
pub struct PackedSegment {
    /// Its entry; `begins_unit` is set by the writer.
    pub entry: Segment,
    /// Stored bytes.
    pub bytes: Vec<u8>,
    /// Weights, in its weight type.
    pub weights: Vec<u8>,
    /// Block starts, as in the directory.
    pub directory: Vec<u8>,
}

/// Extension of the file of block starts.
const BLOCKS: &str = "blocks";

/// Names of the files of one index.
struct Names {
    shards: String,
    weights: String,
    blocks: String,
}

impl Names {
    fn new(name: &str) -> Self {
        Self {
            shards: format!("{name}.shards"),
            weights: format!("{name}.weights"),
            blocks: format!("{name}.{BLOCKS}"),
        }
    }
}

/// The files that the index `name` may consist of.
pub(crate) fn file_names(name: &str) -> [String; 3] {
    let Names { shards, weights, blocks } = Names::new(name);
    [shards, weights, blocks]
}

/// Writes the files of an index from segments in order of (interval, window, source).
pub struct ShardWriter {
    shards: SealedWriter,
    weights: Option<SealedWriter>,
    directory: SealedWriter,
    unit: Unit,
    unit_bytes: usize,
    table: Vec<u8>,
    last: Option<(u64, u32)>,
    edges: u64,
}

/// A unit being filled.
#[derive(Default)]
struct Unit {
    bytes: Vec<u8>,
    weights: Vec<u8>,
    directory: Vec<u8>,
    segments: usize,
}

impl ShardWriter {
    /// Begins the files of the index `name`.
    pub fn create(
        folder: &dyn Folder,
        name: &str,
        weighted: bool,
        geometry: Geometry,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let names = Names::new(name);
        let create = |name: &str, kind| SealedWriter::create(folder, name, kind, 0, traffic);
        Ok(Self {
            shards: create(&names.shards, Kind::Shards)?,
            weights: if weighted { Some(create(&names.weights, Kind::Weights)?) } else { None },
            directory: create(&names.blocks, Kind::Directory)?,
            unit: Unit::default(),
            unit_bytes: geometry.unit_bytes,
            table: Vec::new(),
            last: None,
            edges: 0,
        })
    }

    /// Adds a segment.
    pub fn append(&mut self, segment: &PackedSegment) -> Result<()> {
        let entry = segment.entry;
        let unit = &self.unit;
        let full = unit.bytes.len() + segment.bytes.len() > self.unit_bytes
            || unit.weights.len() + segment.weights.len() > self.unit_bytes;
        // A window of a shard that has several is read for itself.
        let alone = self.last.is_some_and(|(interval, window)| {
            (interval, window) != (entry.interval, entry.window) && (window > 0 || entry.window > 0)
        });
        if unit.segments > 0 && (full || alone) {
            self.write_unit()?;
        }
        let begins_unit = self.unit.segments == 0;
        self.table.extend_from_slice(&Segment { begins_unit, ..entry }.encode());
        self.unit.bytes.extend_from_slice(&segment.bytes);
        self.unit.weights.extend_from_slice(&segment.weights);
        self.unit.directory.extend_from_slice(&segment.directory);
        self.unit.segments += 1;
        self.last = Some((entry.interval, entry.window));
        self.edges += u64::from(entry.edges);
        Ok(())
    }

    fn write_unit(&mut self) -> Result<()> {
        let Unit { bytes, weights, directory, segments } = &mut self.unit;
        self.shards.append(bytes, &[])?;
        if let Some(file) = &mut self.weights {
            file.append(weights, &[])?;
        }
        self.directory.append(directory, &[])?;
        for part in [bytes, weights, directory] {
            part.clear();
        }
        *segments = 0;
        Ok(())
    }

    /// Makes the files durable. Returns their edges and their length in bytes.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        if self.unit.segments > 0 {
            self.write_unit()?;
        }
        // The table of segments is the last block.
        self.shards.append(&self.table, &[])?;
        let mut bytes = self.shards.finish()? + self.directory.finish()?;
        if let Some(weights) = self.weights {
            bytes += weights.finish()?;
        }
        Ok((self.edges, bytes))
    }
}

/// An index open for reading.
#[derive(Debug)]
pub struct ShardFile {
    shards: Arc<SealedFile>,
    weights: Option<Arc<SealedFile>>,
    /// Length of the file of block starts, which is open only while it is needed.
    directory_bytes: u64,
    segments: Vec<Segment>,
    places: Vec<Place>,
    interval_bits: u32,
}

/// Where a segment is.
#[derive(Debug, Clone, Copy)]
struct Place {
    unit: u32,
    /// In the unit's bytes, weights and directory.
    offset: u32,
    weights: u32,
    directory: u32,
}

impl ShardFile {
    /// Opens the index `name` of a graph with `vertices` vertices that have edges.
    ///
    /// # Errors
    /// Corruption if the segments are out of order, do not cover their units or name vertices that the
    /// graph does not have.
    pub fn open(
        folder: &dyn Folder,
        name: &str,
        vertices: u64,
        weighted: bool,
        interval_bits: u32,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let names = Names::new(name);
        let open = |name: &str, kind| -> Result<Arc<SealedFile>> {
            Ok(Arc::new(SealedFile::open(folder, name, kind, 0, traffic)?))
        };
        let shards = open(&names.shards, Kind::Shards)?;
        let weights = if weighted { Some(open(&names.weights, Kind::Weights)?) } else { None };
        let directory = open(&names.blocks, Kind::Directory)?;
        let Some(table) = shards.entries().len().checked_sub(1) else {
            return Err(StoreError::corrupt(shards.path(), 0, "there is no table of segments").into());
        };
        let mut raw = Buffer::new();
        shards.read_block(table, &mut raw)?;
        let corrupt = |what: &str| -> crate::Error { shards.corrupt(table, what).into() };
        let (rows, rest) = raw.bytes().as_chunks::<TABLE_ROW>();
        if !rest.is_empty() {
            return Err(corrupt("the table of segments is cut"));
        }
        let mut segments: Vec<Segment> = Vec::with_capacity(rows.len());
        for row in rows {
            let segment = Segment::decode(row).map_err(|what| corrupt(&what))?;
            if !follows(segments.last(), &segment) || !is_within(&segment, vertices, interval_bits) {
                return Err(corrupt("a segment contradicts its graph"));
            }
            segments.push(segment);
        }
        let lengths = |file: &SealedFile| file.entries().iter().map(|e| e.len).collect::<Vec<_>>();
        let units = lengths(&shards)[..table].to_vec();
        let weight_units = weights.as_ref().map_or_else(|| vec![0; table], |file| lengths(file));
        let places = place(&segments, &units, &weight_units, &lengths(&directory))
            .ok_or_else(|| corrupt("the segments do not cover their units"))?;
        let directory_bytes = directory.len()?;
        Ok(Self { shards, weights, directory_bytes, segments, places, interval_bits })
    }

    /// The segments in order of (interval, window, source).
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bits of a target within its interval.
    pub fn interval_bits(&self) -> u32 {
        self.interval_bits
    }

    /// The file whose block `u` is unit `u`; the last block is the table.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.shards
    }

    /// The file whose block `u` has the weights of unit `u`.
    pub fn weights_file(&self) -> Option<&Arc<SealedFile>> {
        self.weights.as_ref()
    }

    /// The files but for that of block starts, for verification and sizes.
    pub fn files(&self) -> impl Iterator<Item = &Arc<SealedFile>> {
        [Some(&self.shards), self.weights.as_ref()].into_iter().flatten()
    }

    /// Number of units.
    pub fn units(&self) -> usize {
        self.shards.entries().len() - 1
    }

    /// The unit of segment `index`.
    pub fn unit(&self, index: usize) -> usize {
        self.places[index].unit as usize
    }

    /// Opens the file of block starts, whose block `u` is that of unit `u`.
    pub fn open_directory(&self) -> Result<SealedFile> {
        let path = self.shards.path().with_extension(BLOCKS);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = DiskFolder::new(path.parent().unwrap_or(Path::new("")));
        Ok(SealedFile::open(&folder, &name, Kind::Directory, 0, &Arc::default())?)
    }

    /// Length of the file of block starts in bytes.
    pub fn directory_bytes(&self) -> u64 {
        self.directory_bytes
    }

    /// Length of all files in bytes.
    pub fn len_bytes(&self) -> Result<u64> {
        let mut bytes = self.directory_bytes;
        for file in self.files() {
            bytes += file.len()?;
        }
        Ok(bytes)
    }

    /// Number of edges.
    pub fn edges(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.edges)).sum()
    }

    /// Segments, edges and bytes by packing.
    pub fn packings(&self) -> BTreeMap<Packing, [u64; 3]> {
        let mut out = BTreeMap::<_, [u64; 3]>::new();
        for segment in &self.segments {
            let sums = out.entry(segment.packing).or_default();
            let parts = [1, u64::from(segment.edges), u64::from(segment.stored)];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        out
    }

    /// Edges of each shard that has any, in order.
    pub fn shard_edges(&self) -> impl Iterator<Item = u64> + '_ {
        let shards = self.segments.chunk_by(|a, b| a.interval == b.interval);
        shards.map(|shard| shard.iter().map(|segment| u64::from(segment.edges)).sum())
    }

    /// The most bytes that a compressed segment takes unpacked.
    pub fn largest_unpacked(&self) -> u64 {
        let unpacked = self.segments.iter().filter(|s| s.packing.compressed).map(|s| u64::from(s.plain));
        unpacked.max().unwrap_or(0)
    }

    /// Calls `batch(base, keys)` for the edges of segment `index` of the bytes of its unit: a source is
    /// `base + (key >> interval bits)`, a target within its interval the low bits.
    ///
    /// # Errors
    /// Corruption if the bytes are broken or `batch` refuses.
    #[inline]
    pub fn decode<C: Code>(
        &self,
        index: usize,
        unit: &[u8],
        unpack: Unpack,
        room: &mut Vec<u8>,
        mut batch: impl FnMut(u64, Keys<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let segment = &self.segments[index];
        let (first, plain) = (segment.first_source, self.plain(index, unit, room)?);
        let whole = C::decode(plain, segment.edges, self.interval_bits, unpack, |base, keys| {
            batch(first + base, keys)
        });
        if whole { Ok(()) } else { Err(self.contradiction(index)) }
    }

    /// The codec's bytes of segment `index` of the bytes of its unit, unpacked into `room` where they are
    /// compressed.
    pub fn plain<'b>(
        &self,
        index: usize,
        unit: &'b [u8],
        room: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StoreError> {
        let (segment, place) = (&self.segments[index], &self.places[index]);
        let stored = unit.get(place.offset as usize..).and_then(|rest| rest.get(..segment.stored as usize));
        stored
            .and_then(|stored| plain_bytes(segment.packing, stored, segment.plain as usize, room))
            .ok_or_else(|| self.contradiction(index))
    }

    /// The error of a segment whose bytes are not what the table says.
    pub fn contradiction(&self, index: usize) -> StoreError {
        self.shards.corrupt(self.unit(index), "a segment contradicts its entry in the table")
    }

    /// Where the block starts of segment `index` are in the directory of its unit.
    pub(crate) fn directory_range(&self, index: usize) -> std::ops::Range<usize> {
        let start = self.places[index].directory as usize;
        start..start + self.segments[index].blocks as usize * DIRECTORY_ROW
    }

    /// The weights of segment `index` in the weights of its unit.
    pub fn weights<'b>(&self, index: usize, unit: &'b [u8]) -> Result<Weights<'b>, StoreError> {
        let (segment, place) = (&self.segments[index], &self.places[index]);
        let bytes = unit.get(place.weights as usize..).and_then(|rest| rest.get(..segment.weight_bytes()));
        bytes.and_then(|bytes| Weights::new(bytes, segment.edges, segment.weight_type)).ok_or_else(|| {
            let file = self.weights.as_ref().unwrap_or(&self.shards);
            file.corrupt(self.unit(index), "a segment's weights contradict its entry in the table")
        })
    }
}

/// True if `next` may come after `last`.
fn follows(last: Option<&Segment>, next: &Segment) -> bool {
    let Some(last) = last else {
        return next.begins_unit && next.window == 0;
    };
    let same_shard = last.interval == next.interval;
    let order = (last.interval, last.window) <= (next.interval, next.window);
    order
        && (same_shard || next.window == 0)
        && (!same_shard || next.window - last.window <= 1 && last.last_source <= next.first_source)
}

fn is_within(segment: &Segment, vertices: u64, interval_bits: u32) -> bool {
    segment.first_source <= segment.last_source
        && segment.last_source < vertices
        && segment.last_source - segment.first_source < 1 << 32
        && segment.interval < vertices.div_ceil(1 << interval_bits)
        && segment.edges > 0
        && segment.blocks <= segment.edges
        // No codec takes more than 12 bytes an edge: a table cannot ask for memory beyond that.
        && u64::from(segment.plain) <= u64::from(segment.edges) * 12
        && (segment.packing.compressed || segment.plain == segment.stored)
}

/// Where each segment is; `None` unless segments cover all units exactly.
fn place(segments: &[Segment], units: &[u64], weights: &[u64], directory: &[u64]) -> Option<Vec<Place>> {
    if units.len() != weights.len() || units.len() != directory.len() {
        return None;
    }
    let mut places = Vec::with_capacity(segments.len());
    let mut ends = [0_u64; 3];
    let mut unit = 0;
    let whole = |unit: usize, ends: [u64; 3]| {
        [units.get(unit), weights.get(unit), directory.get(unit)]
            == [Some(&ends[0]), Some(&ends[1]), Some(&ends[2])]
    };
    for (index, segment) in segments.iter().enumerate() {
        if segment.begins_unit && index > 0 {
            if !whole(unit, ends) {
                return None;
            }
            unit += 1;
            ends = [0; 3];
        }
        let [offset, weights, directory] = ends.map(u32::try_from);
        let (offset, weights, directory) = (offset.ok()?, weights.ok()?, directory.ok()?);
        places.push(Place { unit: u32::try_from(unit).ok()?, offset, weights, directory });
        ends[0] += u64::from(segment.stored);
        ends[1] += segment.weight_bytes() as u64;
        ends[2] += u64::from(segment.blocks) * DIRECTORY_ROW as u64;
    }
    let read = if segments.is_empty() { 0 } else { unit + 1 };
    ((segments.is_empty() || whole(unit, ends)) && read == units.len()).then_some(places)
}

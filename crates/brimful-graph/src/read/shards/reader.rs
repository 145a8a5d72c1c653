//! An index open for reading: its table of segments, and the offsets of segments in their units.
//!
//! Invariant: before any segment is read, the table is checked against the graph and against the
//! lengths of all units.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use brimful_store::sealed::{Buffer, Kind, SealedFile};
use brimful_store::{Error as StoreError, Folder, Traffic};

use super::Names;
use super::segment::{Segment, TABLE_ROW};
use crate::codec::{BATCH, DIRECTORY_ROW, Keys, Packing, Unpack, Weights, plain_bytes};
use crate::error::{Error, Result};

/// An index open for reading.
#[derive(Debug)]
pub struct ShardFile {
    shards: Arc<SealedFile>,
    weights: Option<Arc<SealedFile>>,
    /// The folder, name and length in bytes of the file of block starts. The file is open only
    /// while it is in use.
    folder: Arc<dyn Folder>,
    traffic: Arc<Traffic>,
    directory_name: String,
    directory_bytes: u64,
    directory_seal: u64,
    segments: Vec<Segment>,
    offsets: Vec<SegmentOffsets>,
    interval_bits: u32,
    /// Number of vertices that have edges.
    vertices: u64,
}

/// The offsets of a segment.
#[derive(Debug, Clone, Copy)]
struct SegmentOffsets {
    unit: u32,
    /// Offset in the unit's bytes; then in its weights and its directory.
    offset: u32,
    weights: u32,
    directory: u32,
}

impl ShardFile {
    /// Opens the index `name` of a graph in which `vertices` vertices have edges.
    ///
    /// # Errors
    /// Corruption if segments are out of order, do not cover their units, or name unknown vertices.
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
            return Err(
                StoreError::corrupt(shards.path(), 0, "there is no table of segments").into()
            );
        };
        let mut raw = Buffer::new();
        shards.read_block(table, &mut raw)?;
        let corrupt = |problem: &str| -> crate::Error { shards.corrupt(table, problem).into() };
        let (rows, rest) = raw.bytes().as_chunks::<TABLE_ROW>();
        if !rest.is_empty() {
            return Err(corrupt("the table of segments is cut"));
        }
        let mut segments: Vec<Segment> = Vec::with_capacity(rows.len());
        for row in rows {
            let segment = Segment::decode(row).map_err(|problem| corrupt(&problem))?;
            if !follows(segments.last(), &segment) || !is_within(&segment, vertices, interval_bits)
            {
                return Err(corrupt("a segment contradicts its graph"));
            }
            segments.push(segment);
        }
        let lengths = |file: &SealedFile| file.entries().iter().map(|e| e.len).collect::<Vec<_>>();
        let units = lengths(&shards)[..table].to_vec();
        let weight_units = weights.as_ref().map_or_else(|| vec![0; table], |file| lengths(file));
        let offsets = offsets_of(&segments, &units, &weight_units, &lengths(&directory))
            .ok_or_else(|| corrupt("the segments do not cover their units"))?;
        let directory_bytes = directory.len()?;
        Ok(Self {
            shards,
            weights,
            folder: folder.shared(),
            traffic: Arc::clone(traffic),
            directory_name: names.blocks,
            directory_bytes,
            directory_seal: directory.seal(),
            segments,
            offsets,
            interval_bits,
            vertices,
        })
    }

    /// The segments in order of (interval, window, source).
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bits of a target within its interval.
    pub fn interval_bits(&self) -> u32 {
        self.interval_bits
    }

    /// Number of vertices that have edges; all sources and targets are below it.
    pub(crate) fn vertices(&self) -> u64 {
        self.vertices
    }

    /// The file of shards; its block `u` is unit `u`, its last block is the table.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.shards
    }

    /// The file of weights; its block `u` holds the weights of unit `u`.
    pub fn weights_file(&self) -> Option<&Arc<SealedFile>> {
        self.weights.as_ref()
    }

    /// All files except that of block starts, for verification and sizes.
    pub fn files(&self) -> impl Iterator<Item = &Arc<SealedFile>> {
        [Some(&self.shards), self.weights.as_ref()].into_iter().flatten()
    }

    /// Number of units.
    pub fn units(&self) -> usize {
        self.shards.entries().len() - 1
    }

    /// The unit of segment `index`.
    pub fn unit(&self, index: usize) -> usize {
        self.offsets[index].unit as usize
    }

    /// The range of segments in a unit.
    pub fn segments_of(&self, unit: usize) -> Range<usize> {
        let begin = self.offsets.partition_point(|at| (at.unit as usize) < unit);
        let length = self.offsets[begin..].partition_point(|at| at.unit as usize == unit);
        begin..begin + length
    }

    /// Opens the file of block starts; its block `u` belongs to unit `u`.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the folder now has a different file of this name, or none.
    pub fn open_directory(&self) -> Result<SealedFile> {
        let replaced = || Error::Replaced { path: self.folder.path().into() };
        let (name, kind) = (&self.directory_name, Kind::Directory);
        match SealedFile::open(&*self.folder, name, kind, 0, &self.traffic) {
            Ok(file) if file.seal() == self.directory_seal => Ok(file),
            Ok(_) => Err(replaced()),
            Err(error) if error.is_missing() => Err(replaced()),
            Err(error) => Err(error.into()),
        }
    }

    /// Length of the file of block starts in bytes.
    pub fn directory_bytes(&self) -> u64 {
        self.directory_bytes
    }

    /// Name and seal of the file of block starts.
    pub(crate) fn directory_seal(&self) -> (String, u64) {
        (self.directory_name.clone(), self.directory_seal)
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

    /// The segments of each non-empty shard, in order.
    pub fn shards(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut end = 0;
        self.segments.chunk_by(|a, b| a.interval == b.interval).map(move |shard| {
            end += shard.len();
            end - shard.len()..end
        })
    }

    /// Number of edges of each non-empty shard, in order.
    pub fn shard_edges(&self) -> impl Iterator<Item = u64> + '_ {
        let edges = |segment: &Segment| u64::from(segment.edges);
        self.shards().map(move |range| self.segments[range].iter().map(edges).sum())
    }

    /// The size of the largest compressed segment after unpacking, in bytes.
    pub fn largest_unpacked(&self) -> u64 {
        let unpacked =
            self.segments.iter().filter(|s| s.packing.compressed).map(|s| u64::from(s.plain));
        unpacked.max().unwrap_or(0)
    }

    /// Calls `batch(base, keys, weights)` for the edges of segment `index`.
    ///
    /// `unit` and `weights` are the bytes of its unit; without `weights`, all weights are 1. The
    /// source of a key is `base + (key >> interval bits)`; its low bits are the target within the
    /// interval. There are at least as many weights as keys.
    ///
    /// # Errors
    /// Corruption if the bytes are broken or `batch` refuses.
    #[inline]
    pub fn decode(
        &self,
        index: usize,
        unit: &[u8],
        weights: Option<&[u8]>,
        unpack: Unpack,
        buffer: &mut Vec<u8>,
        mut batch: impl FnMut(u64, Keys<'_>, &[f64; BATCH]) -> bool,
    ) -> Result<(), StoreError> {
        let segment = &self.segments[index];
        let (first_source, plain) = (segment.first_source, self.plain(index, unit, buffer)?);
        let mut packed = weights.map(|bytes| self.weights(index, bytes)).transpose()?;
        let mut values = [1.0; BATCH];
        let (codec, bits) = (segment.packing.codec, self.interval_bits);
        let is_sound = codec.decode(plain, segment.edges, bits, unpack, &mut |base, keys| {
            if let Some(packed) = &mut packed {
                packed.take(&mut values[..keys.len()]);
            }
            batch(first_source + base, keys, &values)
        });
        if is_sound { Ok(()) } else { Err(self.contradiction(index)) }
    }

    /// The codec's bytes of segment `index`, from the bytes of its unit; a compressed segment is
    /// unpacked into `buffer`.
    pub fn plain<'b>(
        &self,
        index: usize,
        unit: &'b [u8],
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StoreError> {
        let (segment, offsets) = (&self.segments[index], &self.offsets[index]);
        let stored = unit
            .get(offsets.offset as usize..)
            .and_then(|bytes| bytes.get(..segment.stored as usize));
        stored
            .and_then(|stored| plain_bytes(segment.packing, stored, segment.plain as usize, buffer))
            .ok_or_else(|| self.contradiction(index))
    }

    /// Reads `range` of the codec's bytes of segment `index`, which must not be compressed. The
    /// bytes are not verified.
    pub fn read_part(
        &self,
        index: usize,
        range: Range<u32>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let start = u64::from(self.offsets[index].offset);
        let range = start + u64::from(range.start)..start + u64::from(range.end);
        self.shards.read_part(self.unit(index), range, bytes)
    }

    /// The error of a segment whose bytes contradict the table.
    pub fn contradiction(&self, index: usize) -> StoreError {
        self.shards.corrupt(self.unit(index), "a segment contradicts its entry in the table")
    }

    /// The range of the block starts of segment `index` in the directory of its unit.
    pub(crate) fn directory_range(&self, index: usize) -> Range<usize> {
        let start = self.offsets[index].directory as usize;
        start..start + self.segments[index].blocks as usize * DIRECTORY_ROW
    }

    /// The weights of segment `index` in the weights of its unit.
    pub fn weights<'b>(&self, index: usize, unit: &'b [u8]) -> Result<Weights<'b>, StoreError> {
        let (segment, offsets) = (&self.segments[index], &self.offsets[index]);
        let bytes = unit
            .get(offsets.weights as usize..)
            .and_then(|bytes| bytes.get(..segment.weight_bytes()));
        bytes.and_then(|bytes| Weights::new(bytes, segment.edges, segment.weight_type)).ok_or_else(
            || {
                let file = self.weights.as_ref().unwrap_or(&self.shards);
                file.corrupt(
                    self.unit(index),
                    "a segment's weights contradict its entry in the table",
                )
            },
        )
    }
}

/// True if `next` is a valid successor of `last`.
fn follows(last: Option<&Segment>, next: &Segment) -> bool {
    let Some(last) = last else {
        return next.begins_unit && next.window == 0;
    };
    let same_shard = last.interval == next.interval;
    let ascends = (last.interval, last.window) <= (next.interval, next.window);
    ascends
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
        // Codecs take at most 12 bytes an edge; the check bounds the memory that a table can
        // request.
        && u64::from(segment.plain) <= u64::from(segment.edges) * 12
        && (segment.packing.compressed || segment.plain == segment.stored)
}

/// The offsets of all segments; `None` unless segments cover all units exactly.
fn offsets_of(
    segments: &[Segment],
    units: &[u64],
    weights: &[u64],
    directory: &[u64],
) -> Option<Vec<SegmentOffsets>> {
    if units.len() != weights.len() || units.len() != directory.len() {
        return None;
    }
    let mut offsets = Vec::with_capacity(segments.len());
    let mut ends = [0_u64; 3];
    let mut unit = 0;
    // True if the segments of a unit end where its columns end.
    let is_covered = |unit: usize, ends: [u64; 3]| {
        [units.get(unit), weights.get(unit), directory.get(unit)]
            == [Some(&ends[0]), Some(&ends[1]), Some(&ends[2])]
    };
    for (index, segment) in segments.iter().enumerate() {
        if segment.begins_unit && index > 0 {
            if !is_covered(unit, ends) {
                return None;
            }
            unit += 1;
            ends = [0; 3];
        }
        let [offset, weights, directory] = ends.map(u32::try_from);
        let (offset, weights, directory) = (offset.ok()?, weights.ok()?, directory.ok()?);
        offsets.push(SegmentOffsets {
            unit: u32::try_from(unit).ok()?,
            offset,
            weights,
            directory,
        });
        ends[0] += u64::from(segment.stored);
        ends[1] += segment.weight_bytes() as u64;
        ends[2] += u64::from(segment.blocks) * DIRECTORY_ROW as u64;
    }
    let used_units = if segments.is_empty() { 0 } else { unit + 1 };
    ((segments.is_empty() || is_covered(unit, ends)) && used_units == units.len())
        .then_some(offsets)
}

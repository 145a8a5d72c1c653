//! Shards: all edges into one target interval, sorted by (source, target), cut into segments.
//!
//! The geometry depends on the edges alone, never on budget or threads. A shard of many edges is
//! cut into *windows* at source boundaries: the engine sums each window on its own and adds the sums
//! in window order, so that the result does not depend on who summed what. Segments cut windows
//! further, into blocks of about 4 MiB. Invariant: no segment crosses a window or a shard.

use std::sync::Arc;

use brimful_store::file::Traffic;
use brimful_store::sealed::{Kind, SealedFile, SealedWriter};
use brimful_store::{Error as StoreError, Folder};

use crate::codec::{Codec, Packed, WeightType, WordsEncoder, decode_words};
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
}

impl Default for Geometry {
    /// 2^16 accumulators of 8 bytes stay in a second-level cache beside what streams through it (measured
    /// against 2^17 to 2^19: docs/adr/0003); 2^20 words are 4 MiB.
    fn default() -> Self {
        Self { interval_bits: 16, window_edges: 1 << 23, segment_edges: 1 << 20 }
    }
}

/// What the block table says of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The target interval.
    pub interval: u64,
    /// The window within the shard, from 0.
    pub window: u32,
    /// How edges are packed.
    pub codec: Codec,
    /// How weights are stored.
    pub weight_type: WeightType,
    /// Number of edges.
    pub edges: u32,
    /// Number of words, escapes included.
    pub words: u32,
    /// Source of the first edge: the base of the deltas.
    pub first_source: u64,
    /// Source of the last edge.
    pub last_source: u64,
}

const META_BYTES: usize = 40;

impl Segment {
    fn encode(&self) -> [u8; META_BYTES] {
        let mut out = [0; META_BYTES];
        out[0..8].copy_from_slice(&self.interval.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_source.to_le_bytes());
        out[16..24].copy_from_slice(&self.last_source.to_le_bytes());
        out[24..28].copy_from_slice(&self.window.to_le_bytes());
        out[28..32].copy_from_slice(&self.edges.to_le_bytes());
        out[32..36].copy_from_slice(&self.words.to_le_bytes());
        out[36] = self.codec as u8;
        out[37] = self.weight_type as u8;
        out
    }

    fn decode(raw: &[u8]) -> Result<Self, String> {
        let word = |at: usize| raw[at..at + 4].iter().rev().fold(0, |sum, &b| sum << 8 | u32::from(b));
        let long = |at: usize| raw[at..at + 8].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        let codec = Codec::from_byte(raw[36])
            .ok_or_else(|| format!("the segment uses codec {}, which this brimful does not know", raw[36]))?;
        let weight_type = WeightType::from_byte(raw[37]).ok_or_else(|| {
            format!("the segment has weights of type {}, which this brimful does not know", raw[37])
        })?;
        Ok(Self {
            interval: long(0),
            first_source: long(8),
            last_source: long(16),
            window: word(24),
            edges: word(28),
            words: word(32),
            codec,
            weight_type,
        })
    }
}

/// Writes a shard file from edges in order of (interval, source, target).
pub struct ShardWriter {
    file: SealedWriter,
    encoder: WordsEncoder,
    block: Vec<u8>,
    geometry: Geometry,
    interval: u64,
    window: u32,
    window_edges: u64,
    first_source: u64,
    last_source: u64,
    edges: u64,
}

impl ShardWriter {
    /// Begins the shard file `name`.
    pub fn create(
        folder: &dyn Folder,
        name: &str,
        geometry: Geometry,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        Ok(Self {
            file: SealedWriter::create(folder, name, Kind::Shards, META_BYTES, traffic)?,
            encoder: WordsEncoder::new(geometry.interval_bits),
            block: Vec::new(),
            geometry,
            interval: 0,
            window: 0,
            window_edges: 0,
            first_source: 0,
            last_source: 0,
            edges: 0,
        })
    }

    /// Adds an edge. Edges come in order of (target's interval, source, target).
    #[inline]
    pub fn push(&mut self, source: u64, target: u64, weight: Option<f64>) -> Result<()> {
        let interval = target >> self.geometry.interval_bits;
        let new_interval = interval != self.interval;
        let new_window = self.window_edges >= self.geometry.window_edges && source != self.last_source;
        if new_interval || new_window || self.encoder.edges() == self.geometry.segment_edges {
            self.cut(interval, new_interval, new_window)?;
        }
        if self.encoder.edges() == 0 {
            self.first_source = source;
        }
        let within = target & ((1 << self.geometry.interval_bits) - 1);
        self.encoder.push(source, within as u32, weight);
        self.last_source = source;
        self.window_edges += 1;
        Ok(())
    }

    #[cold]
    fn cut(&mut self, interval: u64, new_interval: bool, new_window: bool) -> Result<()> {
        self.write_segment()?;
        if new_interval {
            (self.interval, self.window, self.window_edges) = (interval, 0, 0);
        } else if new_window {
            (self.window, self.window_edges) = (self.window + 1, 0);
        }
        Ok(())
    }

    fn write_segment(&mut self) -> Result<()> {
        let edges = self.encoder.edges();
        if edges == 0 {
            return Ok(());
        }
        let (words, weight_type) = self.encoder.finish(&mut self.block);
        let segment = Segment {
            interval: self.interval,
            window: self.window,
            codec: Codec::Words32,
            weight_type,
            edges,
            words,
            first_source: self.first_source,
            last_source: self.last_source,
        };
        self.file.append(&self.block, &segment.encode())?;
        self.edges += u64::from(edges);
        Ok(())
    }

    /// Makes the file durable. Returns its edges and its length in bytes.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        self.write_segment()?;
        Ok((self.edges, self.file.finish()?))
    }
}

/// A shard file open for reading.
#[derive(Debug)]
pub struct ShardFile {
    file: Arc<SealedFile>,
    segments: Vec<Segment>,
    interval_bits: u32,
}

impl ShardFile {
    /// Opens the shard file `name` of a graph with `vertices` vertices.
    ///
    /// # Errors
    /// Corruption if the segments are out of order or name vertices that the graph does not have.
    pub fn open(
        folder: &dyn Folder,
        name: &str,
        vertices: u64,
        interval_bits: u32,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = SealedFile::open(folder, name, Kind::Shards, META_BYTES, traffic)?;
        let mut segments = Vec::with_capacity(file.entries().len());
        for index in 0..file.entries().len() {
            let segment = Segment::decode(file.meta(index)).map_err(|what| file.corrupt(index, what))?;
            let key = |s: &Segment| (s.interval, s.window, s.first_source);
            let ordered = segments.last().is_none_or(|last: &Segment| {
                key(last) <= key(&segment)
                    && (last.interval != segment.interval || last.last_source <= segment.first_source)
            });
            let within = segment.first_source <= segment.last_source
                && segment.last_source < vertices
                && segment.interval < vertices.div_ceil(1 << interval_bits);
            let length = file.entries()[index].len;
            let exact =
                u64::from(segment.words) * 4 + (segment.edges as usize * segment.weight_type.bytes()) as u64;
            if !ordered || !within || length != exact || segment.edges == 0 {
                return Err(file.corrupt(index, "the segment contradicts its graph").into());
            }
            segments.push(segment);
        }
        Ok(Self { file: Arc::new(file), segments, interval_bits })
    }

    /// The segments in order of (interval, window, source).
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The file, whose block `i` is segment `i`.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// Number of edges.
    pub fn edges(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.edges)).sum()
    }

    /// Segments of each codec in use.
    pub fn codecs(&self) -> Vec<(Codec, usize)> {
        vec![(Codec::Words32, self.segments.len())]
    }

    /// Arcs of the shard that has most.
    pub fn largest_shard(&self) -> u64 {
        let shards = self.segments.chunk_by(|a, b| a.interval == b.interval);
        shards.map(|shard| shard.iter().map(|s| u64::from(s.edges)).sum()).max().unwrap_or(0)
    }

    /// Splits the block of segment `index` into words and weights.
    pub fn packed<'b>(&self, index: usize, block: &'b [u8]) -> Result<Packed<'b>, StoreError> {
        let segment = &self.segments[index];
        Packed::split(block, segment.words, segment.edges, segment.weight_type)
            .ok_or_else(|| self.file.corrupt(index, "the segment's length is not what its edges need"))
    }

    /// Calls `edge(source, target, position)` for every edge of segment `index`, checking structure:
    /// order, ranges and counts.
    pub fn for_each_edge(
        &self,
        index: usize,
        block: &[u8],
        mut edge: impl FnMut(u64, u64, usize),
    ) -> Result<(), StoreError> {
        let segment = &self.segments[index];
        let base = segment.interval << self.interval_bits;
        let packed = self.packed(index, block)?;
        let mut last = (segment.first_source, 0);
        let mut count = 0;
        let whole = decode_words(packed.words, segment.first_source, self.interval_bits, |source, target| {
            let ordered = last <= (source, target) && source <= segment.last_source;
            last = (source, target);
            if ordered {
                edge(source, base + u64::from(target), count);
                count += 1;
            }
            ordered
        });
        if !whole || last.0 != segment.last_source || count != segment.edges as usize {
            return Err(self.file.corrupt(index, "the segment's edges contradict its entry in the table"));
        }
        Ok(())
    }
}

//! Edges on their way into a graph: batches, sources that are read in parts, and the spool that
//! turns a stream into a source.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::{Folder, Job, StoreFile};

use crate::error::Result;
use crate::input_position::UNKNOWN;

/// Edges in columns. Ids are the 64 bits of external ids, or internal ids.
#[derive(Debug, Default, Clone)]
pub struct EdgeBatch {
    /// Source of each edge.
    pub sources: Vec<u64>,
    /// Target of each edge.
    pub targets: Vec<u64>,
    /// Weight of each edge; empty if edges have none.
    pub weights: Vec<f64>,
    /// Input position of each edge; empty unless requested (see [`crate::input_position`]).
    pub positions: Vec<u64>,
}

/// Edges per batch: small enough for the cache, large enough to be written at once.
pub const BATCH_EDGES: usize = 1 << 16;

impl EdgeBatch {
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// True if there are no edges.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Appends the edges of another batch with the same columns.
    pub(crate) fn append(&mut self, other: &Self) {
        self.sources.extend_from_slice(&other.sources);
        self.targets.extend_from_slice(&other.targets);
        self.weights.extend_from_slice(&other.weights);
        self.positions.extend_from_slice(&other.positions);
    }

    /// Appends some edges of another batch with the same columns.
    pub(crate) fn append_range(&mut self, other: &Self, range: Range<usize>) {
        self.sources.extend_from_slice(&other.sources[range.clone()]);
        self.targets.extend_from_slice(&other.targets[range.clone()]);
        self.weights.extend_from_slice(other.weights.get(range.clone()).unwrap_or_default());
        self.positions.extend_from_slice(other.positions.get(range).unwrap_or_default());
    }

    /// Removes all edges and keeps the memory.
    pub fn clear(&mut self) {
        self.sources.clear();
        self.targets.clear();
        self.weights.clear();
        self.positions.clear();
    }

    /// Weight of edge `index`; 1 if edges have none.
    #[inline]
    pub fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }

    /// Numbers the edges of the batch, after `before` earlier ones, as their input positions.
    pub(crate) fn number(&mut self, before: u64) {
        self.positions.extend(before + 1..=before + self.len() as u64);
    }

    /// Input position of edge `index`; [`UNKNOWN`] if edges have none.
    #[inline]
    pub fn position(&self, index: usize) -> u64 {
        self.positions.get(index).copied().unwrap_or(UNKNOWN)
    }
}

/// A source of edges that many workers can read, part by part, more than once.
pub trait EdgeSource: Sync {
    /// Number of parts.
    fn parts(&self) -> usize;
    /// Replaces `batch` by the edges of part `part`.
    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()>;
}

impl<S: EdgeSource + ?Sized> EdgeSource for &S {
    fn parts(&self) -> usize {
        (**self).parts()
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        (**self).read_part(part, batch)
    }
}

/// Vertices as a source of edges; the vertices are the sources of the edges.
pub struct VertexList {
    ids: Vec<u64>,
}

impl VertexList {
    /// The vertices with these bits of ids.
    pub fn new(ids: Vec<u64>) -> Self {
        Self { ids }
    }
}

impl EdgeSource for VertexList {
    fn parts(&self) -> usize {
        self.ids.len().div_ceil(BATCH_EDGES)
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        let ids = self.ids.chunks(BATCH_EDGES).nth(part).unwrap_or_default();
        batch.clear();
        batch.sources.extend_from_slice(ids);
        batch.targets.extend_from_slice(ids);
        Ok(())
    }
}

/// The place and layout of a spooled batch.
#[derive(Debug, Clone, Copy)]
struct SpoolPart {
    offset: u64,
    edges: u32,
    /// Bytes per id and per position: 4 if all in the batch are below 2^32, else 8.
    id_bytes: u8,
    weighted: bool,
    positioned: bool,
}

/// Edges in a scratch file, in the order of their arrival, to be read again.
pub struct Spool {
    file: StoreFile,
    end: AtomicU64,
    parts: Mutex<Vec<SpoolPart>>,
}

impl Spool {
    /// An empty spool in `folder`.
    pub fn new(folder: &dyn Folder, job: &Job) -> Result<Self> {
        let file = StoreFile::scratch(folder, job.traffic())?;
        Ok(Self { file, end: AtomicU64::new(0), parts: Mutex::new(Vec::new()) })
    }

    /// Appends a batch; `buffer` is reused between calls.
    pub fn append(&self, batch: &EdgeBatch, buffer: &mut Vec<u8>) -> Result<()> {
        let columns = [&batch.sources, &batch.targets, &batch.positions];
        let all = columns.map(|ids| ids.iter().fold(0, |all, &id| all | id));
        let narrow = (all[0] | all[1] | all[2]) >> 32 == 0;
        buffer.clear();
        for ids in columns {
            if narrow {
                buffer.extend(ids.iter().flat_map(|&id| (id as u32).to_le_bytes()));
            } else {
                buffer.extend_from_slice(bytemuck::cast_slice(ids));
            }
        }
        buffer.extend_from_slice(bytemuck::cast_slice(&batch.weights));
        let offset = self.end.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(buffer, offset)?;
        let part = SpoolPart {
            offset,
            edges: batch.len() as u32,
            id_bytes: if narrow { 4 } else { 8 },
            weighted: !batch.weights.is_empty(),
            positioned: !batch.positions.is_empty(),
        };
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        Ok(())
    }

    /// Number of parts so far.
    pub(crate) fn parts(&self) -> usize {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Ends writing.
    pub fn into_source(self) -> SpooledEdges {
        SpooledEdges {
            file: self.file,
            parts: self.parts.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// The edges of a [`Spool`].
pub struct SpooledEdges {
    file: StoreFile,
    parts: Vec<SpoolPart>,
}

impl EdgeSource for SpooledEdges {
    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        let part = self.parts[part];
        let edges = part.edges as usize;
        let mut offset = part.offset;
        batch.clear();
        let columns = [&mut batch.sources, &mut batch.targets, &mut batch.positions];
        for ids in columns.into_iter().take(if part.positioned { 3 } else { 2 }) {
            ids.resize(edges, 0);
            if part.id_bytes == 4 {
                read_narrow(&self.file, offset, ids)?;
            } else {
                self.file.read_exact_at(bytemuck::cast_slice_mut(ids), offset)?;
            }
            offset += (edges * usize::from(part.id_bytes)) as u64;
        }
        if part.weighted {
            batch.weights.resize(edges, 0.0);
            self.file.read_exact_at(bytemuck::cast_slice_mut(&mut batch.weights), offset)?;
        }
        Ok(())
    }
}

/// Reads 32-bit ids into the first half of `ids`' own memory, then widens them from the end.
fn read_narrow(file: &StoreFile, offset: u64, ids: &mut [u64]) -> Result<()> {
    let count = ids.len();
    let halves: &mut [u32] = bytemuck::cast_slice_mut(ids);
    file.read_exact_at(bytemuck::cast_slice_mut(&mut halves[..count]), offset)?;
    for index in (0..count).rev() {
        let id = halves[index];
        halves[2 * index] = id;
        halves[2 * index + 1] = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_store::DiskFolder;

    #[test]
    fn what_is_spooled_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(&DiskFolder::new(folder.path()), &Job::new()).unwrap();
        let narrow = EdgeBatch {
            sources: vec![1, 2, u64::from(u32::MAX)],
            targets: vec![4, 5, 6],
            ..EdgeBatch::default()
        };
        let wide = EdgeBatch {
            sources: vec![1 << 40],
            targets: vec![u64::MAX],
            weights: vec![0.5],
            positions: vec![],
        };
        let positioned = EdgeBatch { positions: vec![3, 4, 9], ..narrow.clone() };
        let far = EdgeBatch {
            sources: vec![1],
            targets: vec![2],
            weights: vec![0.5],
            positions: vec![1 << 33],
        };
        let mut buffer = Vec::new();
        let batches = [narrow, wide, positioned, far];
        batches.iter().for_each(|batch| spool.append(batch, &mut buffer).unwrap());
        let source = spool.into_source();
        let mut batch = EdgeBatch::default();
        for (part, expected) in batches.iter().enumerate() {
            source.read_part(part, &mut batch).unwrap();
            assert_eq!(batch.sources, expected.sources);
            assert_eq!(batch.targets, expected.targets);
            assert_eq!(batch.weights, expected.weights);
            assert_eq!(batch.positions, expected.positions);
        }
    }
}

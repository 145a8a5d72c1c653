//! Residency: the units of an index that are pinned in memory, and the streaming of all others.
//!
//! The pinned set is fixed for a run and spread evenly over the shards, so that reading and
//! computing overlap throughout a superstep; in a cyclic scan, a cache with eviction would only
//! cause more reads. Invariant: a pinned unit stays packed, as on disk, and is verified when it is
//! loaded; a streamed one is verified at every use.

use std::ops::Range;
use std::sync::Arc;

use brimful_graph::read::shards::ShardFile;
use brimful_store::Result;
use brimful_store::pinned::PinnedBlock;
use brimful_store::read_ahead::{ReadAhead, ReadPool};
use brimful_store::sealed::{Buffer, SealedFile};

/// The units of one file.
struct Units {
    file: Arc<SealedFile>,
    /// `Some` for pinned units; filled at first use.
    pinned: Vec<Option<Arc<PinnedBlock>>>,
}

impl Units {
    fn in_memory(&self, unit: usize) -> Option<&Buffer> {
        self.pinned[unit].as_ref()?.get()
    }
}

/// An index, partly in memory: the units of its edges, and of its weights if the run uses them.
pub struct PinnedIndex {
    shards: Arc<ShardFile>,
    columns: Vec<Units>,
}

/// The files of an index that a run reads: edges, and weights if the run uses them.
pub(crate) fn columns(
    shards: &ShardFile,
    weighted: bool,
) -> impl Iterator<Item = &Arc<SealedFile>> {
    [Some(shards.file()), shards.weights_file().filter(|_| weighted)].into_iter().flatten()
}

/// Bytes of memory of each unit of `file`, a column of `shards`.
pub(crate) fn unit_bytes<'f>(
    shards: &ShardFile,
    file: &'f SealedFile,
) -> impl Iterator<Item = u64> + 'f {
    file.entries()[..shards.units()].iter().map(|entry| entry.len.next_multiple_of(8))
}

/// The segments of one interval: index and range within it.
pub(crate) type Shard = Vec<(usize, Range<usize>)>;

/// The segments of each of `count` intervals, in each of `indexes`.
pub(crate) fn segments_of_intervals<'s>(
    indexes: impl IntoIterator<Item = &'s Arc<ShardFile>>,
    count: usize,
) -> Vec<Shard> {
    let mut out = vec![Shard::new(); count];
    for (file, shards) in indexes.into_iter().enumerate() {
        for segments in shards.shards() {
            let interval = shards.segments()[segments.start].interval;
            out[interval as usize].push((file, segments));
        }
    }
    out
}

/// True if the edges of an interval are in windows. Each window of a file is then combined by
/// itself; otherwise one sum follows the segments of all files.
pub(crate) fn is_windowed(shard: &[(usize, Range<usize>)], files: &[PinnedIndex]) -> bool {
    shard.iter().any(|(file, range)| files[*file].shards().segments()[range.end - 1].window > 0)
}

/// The intervals of any graph.
pub(crate) const ALL_INTERVALS: Range<usize> = 0..usize::MAX;

/// The units with segments of the `owned` intervals.
fn owned_units(shards: &ShardFile, owned: &Range<usize>) -> Range<usize> {
    let segments = shards.segments();
    let before = |end| segments.partition_point(|segment| (segment.interval as usize) < end);
    match before(owned.start)..before(owned.end) {
        none if none.is_empty() => 0..0,
        some => shards.unit(some.start)..shards.unit(some.end - 1) + 1,
    }
}

impl PinnedIndex {
    /// Splits `bytes` of pinned memory over the edges into the `owned` intervals of all indexes,
    /// and within an index evenly.
    pub fn pin(
        indexes: Vec<Arc<ShardFile>>,
        weighted: bool,
        bytes: u64,
        owned: &Range<usize>,
    ) -> Vec<Self> {
        let length = |shards: &Arc<ShardFile>| {
            let owned = owned_units(shards, owned);
            columns(shards, weighted)
                .flat_map(|file| unit_bytes(shards, file).skip(owned.start).take(owned.len()))
                .sum::<u64>()
        };
        let total: u64 = indexes.iter().map(length).sum();
        let mut credit = 0_u128;
        let mut pin = |len: u64| {
            // Integer arithmetic: everything is pinned exactly when everything fits.
            credit += u128::from(len) * u128::from(bytes.min(total));
            let cost = u128::from(len) * u128::from(total);
            let pinned = cost > 0 && credit >= cost;
            credit -= if pinned { cost } else { 0 };
            pinned
        };
        let mut out = Vec::new();
        for shards in indexes {
            let owned = owned_units(&shards, owned);
            let mut units = |file: &Arc<SealedFile>| {
                let block = |(unit, len)| {
                    (owned.contains(&unit) && pin(len))
                        .then(|| Arc::new(PinnedBlock::new(file, unit)))
                };
                let pinned = unit_bytes(&shards, file).enumerate().map(block).collect();
                Units { file: Arc::clone(file), pinned }
            };
            let columns = columns(&shards, weighted).map(&mut units).collect();
            out.push(Self { shards, columns });
        }
        out
    }

    /// The index.
    pub fn shards(&self) -> &Arc<ShardFile> {
        &self.shards
    }

    /// The bytes of a unit, outside the announced order, of column 0 (edges) or 1 (weights). A unit
    /// that is not pinned is read into `spare`, unless `spare` already holds it.
    pub(crate) fn unit<'b>(
        &'b self,
        column: usize,
        unit: usize,
        spare: &'b mut Spare,
    ) -> Result<&'b [u8]> {
        let units = &self.columns[column];
        if let Some(block) = &units.pinned[unit] {
            let buffer = match block.get() {
                Some(buffer) => buffer,
                None => block.load()?,
            };
            return Ok(buffer.bytes());
        }
        if spare.unit != Some(unit) {
            spare.unit = None;
            units.file.read_block(unit, &mut spare.buffer)?;
            spare.unit = Some(unit);
        }
        Ok(spare.buffer.bytes())
    }

    /// True if everything is in memory.
    pub(crate) fn is_loaded(&self) -> bool {
        self.columns
            .iter()
            .all(|column| (0..column.pinned.len()).all(|unit| column.in_memory(unit).is_some()))
    }

    /// Bytes of a unit that are not in memory.
    pub(crate) fn unread_bytes(&self, unit: usize) -> u64 {
        let unread = self.columns.iter().filter(|column| column.in_memory(unit).is_none());
        unread.map(|column| column.file.entries()[unit].len).sum()
    }

    /// True if the unit of segment `index` is read at most once.
    pub fn is_pinned(&self, index: usize) -> bool {
        let unit = self.shards.unit(index);
        self.columns.iter().all(|column| column.pinned[unit].is_some())
    }
}

/// A unit that is not pinned, read outside the announced order.
#[derive(Default)]
pub(crate) struct Spare {
    unit: Option<usize>,
    buffer: Buffer,
}

/// The current unit: for each column the buffer that was read, `None` where it is pinned.
#[derive(Default)]
struct Current {
    unit: usize,
    buffers: Vec<Option<Buffer>>,
}

/// A unit that [`Feed::announce`] announced: for each column, whether a read is in flight.
pub struct Announced {
    unit: usize,
    reads: Vec<bool>,
}

/// One worker's access to units, in the order of their announcement.
pub struct Feed<'r> {
    residents: &'r [PinnedIndex],
    reads: ReadAhead<'r>,
    spare: Vec<Buffer>,
    /// For each index, the last announced unit, and the current one.
    announced: Vec<Option<usize>>,
    current: Vec<Current>,
}

impl<'r> Feed<'r> {
    /// A feed without announced units.
    pub fn new(residents: &'r [PinnedIndex], pool: &'r ReadPool) -> Self {
        Self {
            residents,
            reads: ReadAhead::new(pool),
            spare: Vec::new(),
            announced: vec![None; residents.len()],
            current: residents.iter().map(|_| Current::default()).collect(),
        }
    }

    /// Number of reads in flight.
    pub fn in_flight(&self) -> usize {
        self.reads.in_flight()
    }

    /// Announces the unit of a segment and starts the reads of columns that are not in memory.
    /// `None` if the last announced unit is the same.
    pub fn announce(&mut self, file: usize, segment: usize) -> Option<Announced> {
        let resident = &self.residents[file];
        let unit = resident.shards.unit(segment);
        if self.announced[file].replace(unit) == Some(unit) {
            return None;
        }
        let read = |column: &Units| {
            if column.in_memory(unit).is_some() {
                column.file.count_found(unit);
                return false;
            }
            match &column.pinned[unit] {
                Some(block) => self.reads.push_pinned(block),
                None => self.reads.push(&column.file, unit, self.spare.pop().unwrap_or_default()),
            }
            true
        };
        Some(Announced { unit, reads: resident.columns.iter().map(read).collect() })
    }

    /// Makes an announced unit the current one, after waiting for its reads.
    pub fn turn_to(&mut self, file: usize, announced: Announced) -> Result<()> {
        let Announced { unit, reads } = announced;
        let last = std::mem::take(&mut self.current[file]);
        self.spare.extend(last.buffers.into_iter().flatten());
        let mut take = |read: bool| if read { self.reads.take() } else { Ok(None) };
        let buffers = reads.into_iter().map(&mut take).collect::<Result<_>>()?;
        self.current[file] = Current { unit, buffers };
        Ok(())
    }

    /// The bytes of column `column` of the current unit; empty if there is no such column.
    pub fn bytes(&self, file: usize, column: usize) -> &[u8] {
        let current = &self.current[file];
        match current.buffers.get(column) {
            Some(Some(buffer)) => buffer.bytes(),
            Some(None) => self.residents[file].columns[column]
                .in_memory(current.unit)
                .map_or(&[], Buffer::bytes),
            None => &[],
        }
    }
}

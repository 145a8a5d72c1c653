//! The distinct ids of a graph with sparse ids, and the run of each, on disk.
//!
//! Both are sequences in ascending order of ids, written and read together. Invariant: memory is a
//! few windows, whatever the number of ids.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use brimful_store::sequence::{Sequence, SequenceReader, SequenceWriter};
use brimful_store::sorter::Sorter;
use brimful_store::{Folder, Job, Resources};

use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::order::classes::{ISOLATED, InInternalOrder, RUNS, Tally, changed, run_of};

/// Every id, once.
pub(crate) struct DistinctIds {
    id_type: IdType,
    keys: Sequence<u64>,
    runs: Sequence<u8>,
    /// The number of vertices in each run of the degree order.
    tally: Tally,
}

impl DistinctIds {
    /// Merges the ends of all edges, the ends of counted edges and the declared ids, all of them as
    /// order keys.
    pub(crate) fn new(
        ends: Sorter<'_, u64>,
        counted: Sorter<'_, u64>,
        declared: DeclaredKeys<'_>,
        id_type: IdType,
        folder: &dyn Folder,
        resources: &Resources,
    ) -> Result<Self> {
        let job = &*resources.job;
        job.begin("write ids", counted.len() + ends.len());
        let counts = count(counted, folder, resources)?;
        let (mut counts, mut last) = (counts.reader(), None);
        let mut writer = DistinctWriter::new(declared, folder, job)?;
        ends.merge(&resources.pool, |batch| {
            for &key in batch {
                if last == Some(key) {
                    continue;
                }
                // Every counted end is the end of an edge, so no count is skipped.
                let count = match counts.peek()? {
                    Some([counted, count]) if counted == key => {
                        counts.skip();
                        count as u8
                    }
                    _ => 0,
                };
                writer.push(key, run_of(count))?;
                last = Some(key);
            }
            job.advance(batch.len() as u64);
            Ok::<(), Error>(())
        })?;
        writer.finish(id_type)
    }

    /// The type of the ids.
    pub(crate) fn id_type(&self) -> IdType {
        self.id_type
    }

    /// The number of vertices in each run of the degree order.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Reads the internal ids of ascending ids; with `flat`, the classes form one run.
    pub(crate) fn cursor(&self, flat: bool) -> Cursor<'_> {
        let tally = if flat { self.tally.flattened() } else { self.tally };
        Cursor { keys: self.keys.reader(), runs: self.runs.reader(), next: tally.starts(), flat }
    }

    /// The ids in external order if `flat`, otherwise in degree order.
    pub(crate) fn in_order(&self, flat: bool) -> Ordered<'_> {
        Ordered { ids: self, flat }
    }
}

/// The number of occurrences of each key, saturated at 255, as (key, count), ascending.
fn count(
    counted: Sorter<'_, u64>,
    folder: &dyn Folder,
    resources: &Resources,
) -> Result<Sequence<[u64; 2]>> {
    let mut writer = SequenceWriter::new(folder, &resources.job)?;
    let mut now: Option<[u64; 2]> = None;
    counted.merge(&resources.pool, |batch| {
        for &key in batch {
            match &mut now {
                Some([last, count]) if *last == key => *count = (*count + 1).min(u8::MAX.into()),
                _ => {
                    if let Some(done) = now.replace([key, 1]) {
                        writer.push(done)?;
                    }
                }
            }
        }
        resources.job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    if let Some(done) = now {
        writer.push(done)?;
    }
    Ok(writer.finish()?)
}

/// The declared ids, ascending, from two ranges and a list.
pub(crate) struct DeclaredKeys<'d> {
    /// Ranges of order keys, up to the greatest; the first range comes before the second.
    ranges: [RangeInclusive<u64>; 2],
    listed: Option<SequenceReader<'d, u64>>,
    /// The input that declares all ids, if no other ids are valid.
    only: Option<&'d Path>,
    id_type: IdType,
}

impl<'d> DeclaredKeys<'d> {
    /// The ids in `ranges`, which are below 2^63, and the keys in `listed`, which ascend and are
    /// distinct.
    pub(crate) fn new(
        ranges: &[Range<u64>; 2],
        listed: Option<&'d Sequence<u64>>,
        id_type: IdType,
    ) -> Self {
        let keys = |range: &Range<u64>| match range.end.checked_sub(1) {
            Some(last) if !range.is_empty() => {
                id_type.order_key(range.start)..=id_type.order_key(last)
            }
            _ => RangeInclusive::new(1, 0),
        };
        let [first, second] = ranges;
        let listed = listed.map(Sequence::reader);
        Self { ranges: [keys(first), keys(second)], listed, only: None, id_type }
    }

    /// If an input is given, it declares that no other ids are valid.
    pub(crate) fn only(self, input: Option<&'d Path>) -> Self {
        Self { only: input, ..self }
    }

    /// Passes an id that an edge names.
    fn pass(&mut self, key: u64) -> Result<()> {
        // A declared id needs no further check.
        if self.next_below(key.checked_add(1))?.is_some() {
            return Ok(());
        }
        self.only.map_or(Ok(()), |input| {
            let problem = format!(
                "an edge names the vertex {}, which the .v file does not have; add it there or \
                 remove the edge (--on-error skip does so in a larger budget)",
                self.id_type.number(self.id_type.from_order_key(key))
            );
            Err(Error::input(input, problem))
        })
    }

    /// Passes the least key if it is below `end`. `None` means no bound.
    fn next_below(&mut self, end: Option<u64>) -> Result<Option<u64>> {
        let range = self.ranges.iter_mut().find(|range| !range.is_empty());
        let listed = match &mut self.listed {
            Some(listed) => listed.peek()?,
            None => None,
        };
        let first = range.as_ref().map(|range| *range.start());
        let least = first.into_iter().chain(listed).min();
        let Some(key) = least.filter(|key| end.is_none_or(|end| *key < end)) else {
            return Ok(None);
        };
        if let Some(range) = range.filter(|range| *range.start() == key) {
            range.next();
        }
        if let Some(reader) = self.listed.as_mut().filter(|_| listed == Some(key)) {
            reader.skip();
        }
        Ok(Some(key))
    }
}

/// Writes the ids that occur, and the declared ids between them.
pub(crate) struct DistinctWriter<'d> {
    keys: SequenceWriter<u64>,
    runs: SequenceWriter<u8>,
    declared: DeclaredKeys<'d>,
    tally: Tally,
}

impl<'d> DistinctWriter<'d> {
    pub(crate) fn new(declared: DeclaredKeys<'d>, folder: &dyn Folder, job: &Job) -> Result<Self> {
        let (keys, runs) = (SequenceWriter::new(folder, job)?, SequenceWriter::new(folder, job)?);
        Ok(Self { keys, runs, declared, tally: Tally::default() })
    }

    /// Appends the id with order key `key`, which is greater than the previous one.
    pub(crate) fn push(&mut self, key: u64, run: usize) -> Result<()> {
        self.isolated_before(Some(key))?;
        self.declared.pass(key)?;
        self.append(key, run)
    }

    /// Appends the declared ids after the last id.
    pub(crate) fn finish(mut self, id_type: IdType) -> Result<DistinctIds> {
        self.isolated_before(None)?;
        let Self { keys, runs, tally, .. } = self;
        Ok(DistinctIds { id_type, keys: keys.finish()?, runs: runs.finish()?, tally })
    }

    fn isolated_before(&mut self, end: Option<u64>) -> Result<()> {
        while let Some(key) = self.declared.next_below(end)? {
            self.append(key, ISOLATED)?;
        }
        Ok(())
    }

    fn append(&mut self, key: u64, run: usize) -> Result<()> {
        self.keys.push(key)?;
        self.runs.push(run as u8)?;
        self.tally.0[run] += 1;
        Ok(())
    }
}

/// Reads the ids in ascending order, with the internal id of each.
pub(crate) struct Cursor<'d> {
    keys: SequenceReader<'d, u64>,
    runs: SequenceReader<'d, u8>,
    next: [u64; RUNS],
    flat: bool,
}

impl Cursor<'_> {
    /// The internal id of the id with order key `key`. Keys of successive calls ascend and may
    /// repeat.
    pub(crate) fn internal(&mut self, key: u64) -> Result<u64> {
        loop {
            let (Some(at), Some(run)) = (self.keys.peek()?, self.runs.peek()?) else {
                return Err(changed());
            };
            let next = self.next.get_mut(flattened(run, self.flat)).ok_or_else(changed)?;
            if at == key {
                return Ok(*next);
            }
            *next += 1;
            self.keys.skip();
            self.runs.skip();
        }
    }
}

fn flattened(run: u8, flat: bool) -> usize {
    let run = usize::from(run);
    if flat && run < ISOLATED { 0 } else { run }
}

/// The ids in internal order; they are read once for every run.
pub(crate) struct Ordered<'d> {
    ids: &'d DistinctIds,
    flat: bool,
}

impl InInternalOrder for Ordered<'_> {
    fn for_each_id(&self, f: &mut dyn FnMut(u64) -> Result<bool>) -> Result<()> {
        let tally = if self.flat { self.ids.tally.flattened() } else { self.ids.tally };
        for wanted in (0..RUNS).filter(|run| tally.0[*run] > 0) {
            let (mut keys, mut runs) = (self.ids.keys.reader(), self.ids.runs.reader());
            while let (Some(key), Some(run)) = (keys.take()?, runs.take()?) {
                if flattened(run, self.flat) == wanted && !f(self.ids.id_type.from_order_key(key))?
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

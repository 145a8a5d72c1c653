//! Internal ids for distributed edges whose ids do not fit in a set.
//!
//! Other processes number the ids of their edges by generations (see [`crate::build::numbering`]).
//! External sorts merge the ids of all generations, and bring the internal ids into the order of
//! the generations' numbers. Every step is sequential, so memory is that of the sorters and of one
//! generation's ids. Invariant: the order is the one that a set of all ids would give.

use brimful_store::sequence::{Sequence, SequenceWriter};
use brimful_store::sorter::Sorter;

use super::{Import, OrderedIds, joins};
use crate::build::numbering::{Numbered, Task, numbered_of};
use crate::build::records::Pair;
use crate::build::weights::Weights;
use crate::edges::BATCH_EDGES;
use crate::error::{Error, Result};
use crate::input::distributed::DistributedEdges;
use crate::input::parsed::Replacement;
use crate::input::scan::ScanSummary;
use crate::message::damaged;
use crate::order::choice::Sampled;
use crate::order::classes::{Mark, changed};
use crate::order::distinct::{DeclaredKeys, DistinctIds, DistinctWriter};

/// The maximum number of ids of a generation, whatever the budget.
const MAX_IDS: usize = 1 << 22;
/// The memory of an id of a generation in this process, in bytes: its message and its internal id.
const ID_BYTES: u64 = 8 + 2 + 8;

/// The ids of all generations: pairs of an order key and an [`occurrence`].
struct Marked<'j> {
    pairs: Sorter<'j, Pair>,
    /// The number of ids of each generation.
    lengths: Vec<u64>,
}

/// A generation, and the mark of an id in it.
fn occurrence(generation: usize, mark: Mark) -> u64 {
    (generation as u64) << 16 | u64::from(mark.bits())
}

impl Import<'_> {
    /// Chooses the order of the ids of distributed edges and writes them. Other processes keep the
    /// edges by internal id from then on.
    pub(super) fn order_numbered(
        &mut self,
        distributed: &dyn DistributedEdges,
        seen: &ScanSummary,
        sampled: Sampled,
    ) -> Result<OrderedIds> {
        let marked = self.receive_numbered(distributed, seen)?;
        let lengths = marked.lengths;
        let declared = DeclaredKeys::new(&seen.declared.ranges, None, seen.id_type);
        let writer = DistinctWriter::new(declared, self.folder, &self.resources.job)?;
        let (ids, occurrences) = self.merge_marked(marked.pairs, writer, seen)?;
        let (flat, ordered) = joins::write_ordered(&ids, sampled, self.folder, self.resources)?;
        self.replace_numbers(distributed, &ids, flat, &occurrences, &lengths)?;
        self.end_phase("rank ids");
        Ok(ordered)
    }

    /// Takes in the ids of all generations.
    fn receive_numbered(
        &self,
        distributed: &dyn DistributedEdges,
        seen: &ScanSummary,
    ) -> Result<Marked<'_>> {
        let job = &*self.resources.job;
        let most_ids = (self.sorter_bytes(0) / 4 / ID_BYTES) as usize;
        let task = Task {
            id_type: seen.id_type,
            drops_self_loops: self.options.policy.drops_self_loops(),
            hashed: self.options.weights == Weights::Hash,
            most_ids: most_ids.clamp(2 * BATCH_EDGES, MAX_IDS),
        };
        let task = serde_json::to_vec(&task).map_err(|_| damaged())?;
        let (pairs, mut lengths) = (self.pair_sorter()?, Vec::new());
        let mut writer = pairs.writer();
        job.begin("number ids", seen.edges);
        let mut messages = distributed.number(&task)?;
        while let Some((generation, message)) = messages.next(job)? {
            let Numbered { edges, keys, marks } = numbered_of((*message).as_ref())?;
            if generation != lengths.len() {
                return Err(damaged());
            }
            for (key, mark) in keys.iter().zip(&*marks) {
                writer.push(Pair { first: *key, second: occurrence(generation, *mark) })?;
            }
            lengths.push(keys.len() as u64);
            job.advance(edges);
        }
        writer.finish()?;
        Ok(Marked { pairs, lengths })
    }

    /// A sorter in half of the memory; at any time there is one of them.
    fn pair_sorter(&self) -> Result<Sorter<'_, Pair>> {
        Ok(Sorter::new(self.folder, self.sorter_bytes(0) / 2, 1, &self.resources.job)?)
    }

    /// Merges the marks of each id, and writes the ids. Also returns the key and the generation of
    /// each pair, in the order of keys.
    fn merge_marked(
        &self,
        pairs: Sorter<'_, Pair>,
        mut writer: DistinctWriter<'_>,
        seen: &ScanSummary,
    ) -> Result<(DistinctIds, Sequence<[u64; 2]>)> {
        let job = &*self.resources.job;
        job.begin("sort ids", pairs.len());
        let mut occurrences = SequenceWriter::new(self.folder, job)?;
        let mut last: Option<(u64, Mark)> = None;
        pairs.merge(&self.resources.pool, |batch| {
            for &Pair { first: key, second } in batch {
                let mark = Mark::from_bits(second as u16);
                match &mut last {
                    Some((before, all)) if *before == key => *all = all.and(mark),
                    _ => {
                        if let Some((done, all)) = last.replace((key, mark)) {
                            writer.push(done, all.run())?;
                        }
                    }
                }
                occurrences.push([key, second >> 16])?;
            }
            job.advance(batch.len() as u64);
            Ok::<(), Error>(())
        })?;
        if let Some((done, all)) = last {
            writer.push(done, all.run())?;
        }
        Ok((writer.finish(seen.id_type)?, occurrences.finish()?))
    }

    /// Lets other processes replace the numbers of each generation by internal ids.
    fn replace_numbers(
        &self,
        distributed: &dyn DistributedEdges,
        ids: &DistinctIds,
        flat: bool,
        occurrences: &Sequence<[u64; 2]>,
        lengths: &[u64],
    ) -> Result<()> {
        let job = &*self.resources.job;
        job.begin("rank ids", occurrences.len());
        // The next number of each generation, among those of all.
        let mut next: Vec<u64> = Vec::with_capacity(lengths.len());
        next.extend(
            lengths.iter().scan(0, |end, length| Some(std::mem::replace(end, *end + length))),
        );
        let by_number = self.pair_sorter()?;
        let (mut writer, mut cursor) = (by_number.writer(), ids.cursor(flat));
        let mut reader = occurrences.reader();
        while let Some([key, generation]) = reader.take()? {
            let number = next.get_mut(generation as usize).ok_or_else(changed)?;
            writer.push(Pair { first: *number, second: cursor.internal(key)? })?;
            *number += 1;
        }
        writer.finish()?;
        let task = Replacement::InternalIds.message()?;
        let (mut table, mut generation) = (Vec::new(), 0);
        by_number.merge(&self.resources.pool, |batch| {
            for pair in batch {
                table.push(pair.second);
                if lengths.get(generation) == Some(&(table.len() as u64)) {
                    distributed.replace(&task, generation, bytemuck::cast_slice(&table))?;
                    generation += 1;
                    table.clear();
                }
            }
            job.advance(batch.len() as u64);
            Ok::<(), Error>(())
        })?;
        job.begin("replace ids", lengths.len() as u64);
        while distributed.next(job)?.is_some() {
            job.advance(1);
        }
        Ok(())
    }
}

//! The scan of files whose edges stay with the processes that read them.
//!
//! Invariant: counts, ids and their order are those of [`super::Reader`] reading the same files
//! itself.

use std::sync::Arc;

use brimful_store::huge::HugeArray;

use crate::error::Result;
use crate::ids::external::IdType;
use crate::ids::names::{RunWriter, Runs};
use crate::input::distributed::{
    DistributedEdges, DistributedFiles, DistributedKind, FILE_POSITIONS, RankTask, check_files,
};
use crate::input::formats::parser::Found;
use crate::input::parsed::{End, Names, Replacement, ScanChoices, end_of, names_of};
use crate::input::scan::text::summarized;
use crate::input::scan::{Declared, InputScan, Reader, ScanSummary, alone};
use crate::message::damaged;
use crate::order::bitmap::ranges::ranges_of;
use crate::order::bitmap::ranks::{IdRanks, PAGE_BYTES};

/// The facts about a file, in the form of its reader.
type Facts = Vec<u8>;

impl Reader<'_> {
    /// Takes in the facts about all files, and the ranks of their ids if these fit.
    pub(super) fn read_distributed(
        &self,
        files: &mut DistributedFiles<'_>,
        scan: InputScan,
    ) -> Result<ScanSummary> {
        let DistributedFiles { paths, kind, edges } = files;
        let has_names = match kind {
            DistributedKind::Text(_, has_names) => *has_names,
            DistributedKind::Tables(stream) => stream.has_names(),
        };
        check_files(paths.len())?;
        if has_names {
            self.check_names()?;
        }
        self.resources.job.begin("read", paths.len() as u64);
        let mut facts: Vec<Option<Facts>> = vec![None; paths.len()];
        self.add_ended(edges, &scan, |number, end| {
            *facts.get_mut(number).ok_or_else(damaged)? = Some(std::mem::take(&mut end.facts));
            Ok(())
        })?;
        let facts = facts.into_iter().collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let mut seen = match kind {
            DistributedKind::Text(format, _) => {
                let files = alone(*format, paths);
                let mut all = Found::default();
                for facts in &facts {
                    all.append(serde_json::from_slice(facts).map_err(|_| damaged())?);
                }
                let signs = all.signs;
                let mut summary = all.summary(&files)?;
                summary.inputs.iter_mut().for_each(|(_, positions)| *positions = FILE_POSITIONS);
                let numbered = match has_names {
                    true => 0..self.rank_distributed_names(edges, &scan, summary.undirected)?,
                    false => summary.numbered(),
                };
                let declared = Declared::new(self.declared, numbered, None);
                summarized(&files, scan, summary, declared, signs)?
            }
            DistributedKind::Tables(stream) => {
                for (number, (path, facts)) in paths.iter().zip(&facts).enumerate() {
                    let before = number as u64 * FILE_POSITIONS;
                    stream.absorb(path, before, FILE_POSITIONS, facts)?;
                }
                let undirected = stream.undirected() && self.directed != Some(true);
                let numbered = match has_names {
                    true => 0..self.rank_distributed_names(edges, &scan, undirected)?,
                    false => stream.declared(),
                };
                let declared = Declared::new(self.declared, numbered, None);
                self.summary_of_stream(&**stream, scan, declared)?
            }
        };
        if has_names {
            seen.id_type = IdType::String;
        }
        // Without the ids of all files, the set is not whole.
        if seen.ranks.take().is_some() {
            seen.ranks = self.rank_distributed(edges, &seen.declared)?;
        }
        Ok(seen)
    }

    /// Adds the scans of other processes, until all have ended, and passes the last message of each
    /// to `take`.
    fn add_ended(
        &self,
        edges: &Arc<dyn DistributedEdges>,
        scan: &InputScan,
        mut take: impl FnMut(usize, &mut End) -> Result<()>,
    ) -> Result<()> {
        let job = &*self.resources.job;
        while let Some((number, message)) = edges.next(job)? {
            let mut end = end_of((*message).as_ref())?;
            take(number, &mut end)?;
            scan.add_scanned(end.scanned, end.sampled, number as u64 * FILE_POSITIONS);
            job.advance(1);
        }
        Ok(())
    }

    /// Ranks and writes the names of all files, and lets other processes keep the edges by rank.
    /// Returns the number of names.
    fn rank_distributed_names(
        &self,
        edges: &Arc<dyn DistributedEdges>,
        scan: &InputScan,
        undirected: bool,
    ) -> Result<u64> {
        let (runs, lengths) = self.receive_names(edges)?;
        let tables = self.write_names(runs, self.names_bytes(0))?;
        let choices = ScanChoices {
            undirected: undirected || self.directed == Some(false),
            policy: self.policy,
        };
        let task = Replacement::Ranks(choices).message()?;
        self.resources.job.begin("rank edges", lengths.len() as u64);
        for (generation, length) in lengths.into_iter().enumerate() {
            let mut table: HugeArray<u32> = HugeArray::zeroed(length);
            tables.load(generation, &mut table)?;
            edges.replace(&task, generation, bytemuck::cast_slice(&table))?;
        }
        self.add_ended(edges, scan, |_, _| Ok(()))?;
        Ok(tables.names)
    }

    /// The sorted names of all generations, and the length of the table of each.
    fn receive_names(&self, edges: &Arc<dyn DistributedEdges>) -> Result<(Runs, Vec<usize>)> {
        let job = &*self.resources.job;
        let (mut writer, mut lengths) = (RunWriter::new(self.folder, job)?, Vec::new());
        let mut messages = edges.names()?;
        while let Some((generation, message)) = messages.next(job)? {
            let Names { length, facts, piece } = names_of((*message).as_ref())?;
            if generation == lengths.len() {
                if generation > 0 {
                    writer.end_run()?;
                }
                lengths.push(usize::try_from(length).map_err(|_| damaged())?);
            } else if generation + 1 != lengths.len() {
                return Err(damaged());
            }
            writer.append(facts, piece)?;
        }
        if !lengths.is_empty() {
            writer.end_run()?;
        }
        Ok((writer.finish()?, lengths))
    }

    /// The ranks of all ids, which other processes find; `None` if they do not fit.
    fn rank_distributed(
        &self,
        edges: &Arc<dyn DistributedEdges>,
        declared: &Declared,
    ) -> Result<Option<IdRanks>> {
        let ranges = declared.ranges.each_ref().map(ranges_of);
        let [Some(first), Some(second)] = ranges else { return Ok(None) };
        let more: Vec<usize> = first.chain(second).collect();
        let task = RankTask { declared: declared.ranges.clone() };
        let task = serde_json::to_vec(&task).map_err(|_| damaged())?;
        let mut messages = edges.rank(&task, &more)?;
        let (mut ranges, mut bytes) = (Vec::new(), 0);
        while let Some((range, message)) = messages.next(&self.resources.job)? {
            bytes += (*message).as_ref().len() as u64;
            ranges.push((range, message));
        }
        // The lines of a page are nearly all of its message.
        if bytes > self.bitmap_bytes.saturating_sub(PAGE_BYTES as u64) {
            return Ok(None);
        }
        ranges.sort_unstable_by_key(|(range, _)| *range);
        let messages: Vec<_> = ranges.into_iter().map(|(_, message)| message).collect();
        IdRanks::joined(&messages).map(Some).ok_or_else(damaged)
    }
}

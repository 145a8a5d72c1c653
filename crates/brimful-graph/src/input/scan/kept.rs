//! The scan of files whose edges stay with the processes that read them.
//!
//! Invariant: counts, ids and their order are those of [`super::Reader`] reading the same files
//! itself.

use std::sync::Arc;

use crate::error::Result;
use crate::input::formats::parser::Found;
use crate::input::kept::{
    FILE_POSITIONS, KeptEdges, KeptFiles, KeptKind, KeptSource, RankTask, check_files,
};
use crate::input::parsed::{End, damaged, end_of};
use crate::input::scan::text::summarized;
use crate::input::scan::{Declared, InputScan, Reader, Reading, ScanSummary, alone};
use crate::input::stream::Listed;
use crate::order::bitmap::ranges::ranges_of;
use crate::order::bitmap::ranks::{IdRanks, PAGE_BYTES};

impl Reader<'_> {
    /// Takes in the facts about all files, and the ranks of their ids if these fit.
    pub(super) fn read_kept<'i>(
        &self,
        files: &'i mut KeptFiles<'_>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        let KeptFiles { paths, kind, edges } = files;
        check_files(paths.len())?;
        let job = &*self.resources.job;
        job.begin("read", paths.len() as u64);
        let mut facts: Vec<Option<Vec<u8>>> = vec![None; paths.len()];
        let mut has_list = false;
        while let Some((number, message)) = edges.next(job)? {
            let End { scanned, sampled, facts: own } = end_of((*message).as_ref())?;
            has_list |= scanned.has_list;
            scan.add_scanned(scanned, sampled, number as u64 * FILE_POSITIONS);
            *facts.get_mut(number).ok_or_else(damaged)? = Some(own);
            job.advance(1);
        }
        let facts = facts.into_iter().collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let source = KeptSource::new(edges, false)?;
        let list = KeptSource::new(edges, true)?;
        let listed = has_list.then(|| Box::new(list) as Listed);
        let is_whole = !scan.bitmap.is_incomplete();
        let seen = match kind {
            KeptKind::Text(format) => {
                let files = alone(*format, paths);
                let mut all = Found::default();
                for facts in &facts {
                    all.append(serde_json::from_slice(facts).map_err(|_| damaged())?);
                }
                let signs = all.signs;
                let mut summary = all.summary(&files)?;
                summary.inputs.iter_mut().for_each(|(_, positions)| *positions = FILE_POSITIONS);
                let declared = Declared::new(self.declared, summary.numbered(), listed);
                summarized(&files, scan, summary, declared, signs)?
            }
            KeptKind::Tables(stream) => {
                for (number, (path, facts)) in paths.iter().zip(&facts).enumerate() {
                    let before = number as u64 * FILE_POSITIONS;
                    stream.absorb(path, before, FILE_POSITIONS, facts)?;
                }
                let declared = Declared::new(self.declared, stream.declared(), listed);
                self.summary_of_stream(&**stream, scan, declared)?
            }
        };
        let ranks = match is_whole {
            true => self.rank_elsewhere(edges, &seen.declared)?,
            false => None,
        };
        Ok((Box::new(source), ScanSummary { ranks, ..seen }))
    }

    /// The ranks of all ids, which other processes find; `None` if they do not fit.
    fn rank_elsewhere(
        &self,
        edges: &Arc<dyn KeptEdges>,
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

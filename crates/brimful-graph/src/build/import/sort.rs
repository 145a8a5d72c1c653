//! The second pass: sorts edges by internal id into the requested shards, and counts degrees.
//!
//! Invariant: sorters use the part of the budget that ids and counters leave, and at least their
//! minimum.

use brimful_store::sorter;

use super::{IDS_BYTES, IdMap, Import, index_bytes};
use crate::build::degrees;
use crate::build::records::{
    EdgeRecord, KeyLayout, Pair, PositionedKey, PositionedPair, PositionedWeightedKey,
    PositionedWeightedPair, WeightedKey, WeightedPair,
};
use crate::build::shards::{Built, ShardSortWriter, ShardSorter};
use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::input::scan::each_part;
use crate::order::classes::{Tally, changed};
use crate::read::degree_counter::DegreeCounter;
use crate::read::description::LongestLists;
use crate::read::index::Index;
use crate::read::shards::ShardFile;

/// Edges whose ends are mapped together.
const MAPPED_AT_ONCE: usize = 128;

/// The counts of the shards and degrees that were written.
pub(super) struct Indexed {
    pub(super) forward: Built,
    pub(super) longest_lists: LongestLists,
    pub(super) reverse: Option<Built>,
}

impl Import<'_> {
    /// Runs the second pass.
    pub(super) fn sort_mapped(
        &mut self,
        source: &dyn EdgeSource,
        map: &IdMap,
        tally: Tally,
        weighted: bool,
    ) -> Result<Indexed> {
        let connected = tally.connected();
        // Dropped self-loops may belong to vertices without another edge.
        let ends =
            if self.options.policy.drops_self_loops() { tally.vertices() } else { connected };
        let counted = connected.min(self.spare / 4 / degrees::bytes_per_vertex(weighted));
        let mut degrees = DegreeCounter::new(0..counted, weighted);
        let forward = self.sort_index(Index::In, source, map, ends, weighted, &mut degrees)?;
        let longest_lists = self.write_degrees(map, connected, weighted, degrees)?;
        let mut reverse = None;
        if self.options.reverse && !self.undirected {
            let mut none = DegreeCounter::default();
            reverse =
                Some(self.sort_index(Index::Reverse, source, map, ends, weighted, &mut none)?);
        }
        Ok(Indexed { forward, longest_lists, reverse })
    }

    fn write_degrees(
        &mut self,
        map: &IdMap,
        connected: u64,
        weighted: bool,
        first: DegreeCounter,
    ) -> Result<LongestLists> {
        let bits = self.options.geometry.interval_bits;
        let traffic = self.resources.job.traffic();
        let shards =
            ShardFile::open(self.folder, Index::In.name(), connected, weighted, bits, traffic)?;
        // The first degrees are written and freed before others are counted.
        let bytes = self.sorter_bytes(map.memory_bytes());
        let resources = self.resources;
        let outgoing =
            degrees::write(self.folder, &shards, connected, first, weighted, bytes, resources)?;
        // An undirected graph stores every arc with its opposite, so both maximums are equal.
        let incoming =
            if self.undirected { outgoing } else { degrees::max_incoming(&shards, resources)? };
        self.end_phase("count degrees");
        Ok(LongestLists { incoming, outgoing })
    }

    pub(super) fn sort_index(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        ends: u64,
        weighted: bool,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let layout = KeyLayout::new(ends, self.options.geometry.interval_bits);
        // Only one index needs positions.
        let positioned = self.carries_places() && index == Index::In;
        match (layout.is_narrow(), weighted, positioned) {
            (true, false, false) => self.sort_as::<u64>(index, source, map, layout, degrees),
            (true, true, false) => self.sort_as::<WeightedKey>(index, source, map, layout, degrees),
            (false, false, false) => self.sort_as::<Pair>(index, source, map, layout, degrees),
            (false, true, false) => {
                self.sort_as::<WeightedPair>(index, source, map, layout, degrees)
            }
            (true, false, true) => {
                self.sort_as::<PositionedKey>(index, source, map, layout, degrees)
            }
            (true, true, true) => {
                self.sort_as::<PositionedWeightedKey>(index, source, map, layout, degrees)
            }
            (false, false, true) => {
                self.sort_as::<PositionedPair>(index, source, map, layout, degrees)
            }
            (false, true, true) => {
                self.sort_as::<PositionedWeightedPair>(index, source, map, layout, degrees)
            }
        }
    }

    /// True if edges carry their input positions until equal edges are merged; only then is it
    /// known which edges are left out.
    pub(super) fn carries_places(&self) -> bool {
        self.positions && self.options.policy.merges()
    }

    /// Memory for sorting besides ids of `ids_bytes`, in bytes: the sorters' share of the minimum
    /// and the spare budget.
    pub(super) fn sorter_bytes(&self, ids_bytes: u64) -> u64 {
        let minimum =
            2 * sorter::minimum_bytes(self.resources.workers(), size_of::<WeightedPair>());
        (minimum + self.spare).saturating_sub(ids_bytes.saturating_sub(IDS_BYTES)).max(minimum)
    }

    fn sort_as<R: EdgeRecord>(
        &mut self,
        index: Index,
        source: &dyn EdgeSource,
        map: &IdMap,
        layout: KeyLayout,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let job = &self.resources.job;
        job.begin("sort", source.parts() as u64);
        let counting = (degrees.degrees.len() + degrees.strengths.len()) as u64 * 8;
        let workers = self.resources.workers();
        let more = index_bytes(workers, R::WEIGHTED, self.positions);
        let bytes = more + self.sorter_bytes(map.memory_bytes() + counting);
        let sorter = ShardSorter::<R>::new(
            self.folder,
            layout,
            self.options.geometry,
            self.undirected,
            bytes,
            workers,
            job,
        )?;
        let push_all = |writer: &mut ShardSortWriter<'_, '_, R>, batch: &EdgeBatch| {
            let (mut sources, mut targets) = ([0; MAPPED_AT_ONCE], [0; MAPPED_AT_ONCE]);
            for start in (0..batch.len()).step_by(MAPPED_AT_ONCE) {
                let range = start..batch.len().min(start + MAPPED_AT_ONCE);
                let (sources, targets) = (&mut sources[..range.len()], &mut targets[..range.len()]);
                sources.copy_from_slice(&batch.sources[range.clone()]);
                targets.copy_from_slice(&batch.targets[range.clone()]);
                if !(map.map(sources) && map.map(targets)) {
                    // The first pass saw every id.
                    return Err(changed());
                }
                for (at, (&s, &t)) in range.zip(sources.iter().zip(&*targets)) {
                    let (s, t) = if index == Index::In { (s, t) } else { (t, s) };
                    writer.push(s, t, batch.weight(at), batch.position(at))?;
                }
            }
            job.advance(1);
            Ok(())
        };
        each_part(
            source,
            self.resources,
            || Ok(sorter.writer()),
            push_all,
            ShardSortWriter::finish,
        )?;
        self.end_phase("sort");
        let (name, policy) = (index.name(), self.options.policy);
        let built =
            sorter.write(self.folder, name, policy, &self.input, degrees, self.resources)?;
        self.end_phase("write shards");
        Ok(built)
    }
}

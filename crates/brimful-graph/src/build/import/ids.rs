//! From external ids to internal ids: chooses the order, writes the ids in it, and maps edges.
//!
//! Invariant: the order depends on the input alone, and the file of ids is complete before any edge
//! is mapped.

use brimful_store::sealed::Kind;
use brimful_store::{Error as StoreError, Folder, Resources};

use super::Import;
use crate::build::import::joins;
use crate::build::mapping::IdTable;
use crate::build::records::{Pair, PositionedPair, PositionedWeightedPair, WeightedPair};
use crate::edges::{EdgeSource, SpooledEdges};
use crate::error::{Error, Result};
use crate::ids::ascending::AscendingWriter;
use crate::ids::external::IdType;
use crate::input::scan::{Declared, ScanSummary};
use crate::order::bitmap::ranks::IdRanks;
use crate::order::choice::{LaidOut, OrderName, Sampled};
use crate::order::classes::{InInternalOrder, Tally, changed};
use crate::read::graph::IDS;

/// The map from ids to internal ids in the second pass.
pub(super) enum IdMap {
    /// Internal id = id - first, of `count` ids.
    Consecutive {
        first: u64,
        count: u64,
    },
    Ranks(IdRanks),
}

impl IdMap {
    /// The map for look-ups.
    pub(super) fn table(&self) -> IdTable<'_> {
        match self {
            Self::Consecutive { first, count } => {
                IdTable::Consecutive { first: *first, count: *count }
            }
            Self::Ranks(ranks) => IdTable::Ranks(ranks.table()),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Consecutive { .. } => 0,
            Self::Ranks(ranks) => ranks.memory_bytes(),
        }
    }
}

/// Ids whose internal order is chosen and written.
pub(crate) struct OrderedIds {
    pub(crate) name: OrderName,
    pub(crate) tally: Tally,
    /// The bits of the first id if ids are consecutive; otherwise a file holds the ids.
    pub(crate) first: Option<u64>,
    /// The internal ids of the targets of some edges, ascending; there may be none.
    pub(crate) targets: Vec<u64>,
}

/// Writes the file of ids; if they are consecutive, returns the bits of the first id instead.
pub(crate) fn write_ids(
    folder: &dyn Folder,
    order: &dyn InInternalOrder,
    resources: &Resources,
) -> Result<Option<u64>> {
    let first = order.consecutive_from()?;
    if first.is_none() {
        let mut file = AscendingWriter::create(folder, IDS, Kind::Ids, resources.job.traffic())?;
        order.for_each_id(&mut |id| {
            if file.len() % CHECK_EVERY == 0 {
                resources.job.check()?;
            }
            file.push(id)?;
            Ok(true)
        })?;
        file.finish()?;
    }
    Ok(first)
}

/// Ids written between two checks for cancellation.
const CHECK_EVERY: u64 = 1 << 16;

/// Bytes of disk, mostly temporary, for a declared vertex that is in no bitmap.
const DECLARED_BYTES: u64 = 8 + 1 + 8;

impl Import<'_> {
    /// Chooses the order of ranked ids, and writes them.
    pub(super) fn order(
        &mut self,
        mut ranks: IdRanks,
        id_type: IdType,
        sampled: Sampled,
    ) -> Result<(IdMap, OrderedIds)> {
        let LaidOut { name, targets } = match ranks.tally().has_classes() {
            true => sampled.cheaper(id_type, |order| {
                let ranks = &ranks;
                move |id| {
                    let position = match order {
                        OrderName::Degree => ranks.internal(id),
                        OrderName::External => ranks.external(id),
                    };
                    position.ok_or_else(changed)
                }
            })?,
            false => LaidOut::same(),
        };
        if name == OrderName::External {
            ranks.flatten();
        }
        let tally = ranks.tally();
        let first = write_ids(self.folder, &ranks, self.resources)?;
        let map = match first {
            Some(first) => IdMap::Consecutive { first, count: tally.vertices() },
            None => IdMap::Ranks(ranks),
        };
        self.end_phase("order");
        Ok((map, OrderedIds { name, tally, first, targets }))
    }

    /// Chooses the order of ids that exceed a bitmap, writes them and maps the edges.
    pub(super) fn order_joined(
        &mut self,
        source: &dyn EdgeSource,
        seen: &ScanSummary,
        sampled: Sampled,
    ) -> Result<(SpooledEdges, OrderedIds)> {
        let spec = joins::Spec {
            folder: self.folder,
            id_type: seen.id_type,
            declared: &seen.declared,
            all_declared: seen.all_declared.then_some(&*self.input),
            drops_self_loops: self.options.policy.drops_self_loops(),
            bytes: self.sorter_bytes(0) / 2,
            resources: self.resources,
        };
        let joined = match (seen.weighted, self.carries_positions()) {
            (true, false) => joins::order_edges::<WeightedPair>(&spec, source, sampled),
            (false, false) => joins::order_edges::<Pair>(&spec, source, sampled),
            (true, true) => joins::order_edges::<PositionedWeightedPair>(&spec, source, sampled),
            (false, true) => joins::order_edges::<PositionedPair>(&spec, source, sampled),
        };
        self.end_phase("rank ids");
        joined
    }

    /// Refuses declared vertices that exceed the free disk space, before anything is written for
    /// them.
    pub(super) fn check_declared(&self, declared: &Declared) -> Result<()> {
        let free = self
            .folder
            .free_bytes()
            .map_err(|e| StoreError::io(self.folder.path(), "find the free space of", e))?;
        let vertices = declared.numbered();
        if vertices.saturating_mul(DECLARED_BYTES) > free {
            let problem = format!(
                "{vertices} vertices are declared, for which the disk has no room \
                 ({DECLARED_BYTES} bytes each, {free} are free); correct the header or --vertices, \
                 or use another disk"
            );
            return Err(Error::input(&self.input, problem));
        }
        Ok(())
    }
}

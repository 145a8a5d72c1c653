//! External ids to internal ids: the order is chosen, the ids are written in it, and edges are
//! mapped.
//!
//! Invariant: the order depends on the input alone, and the file of ids is complete before any edge
//! is mapped.

use brimful_store::sealed::Kind;
use brimful_store::{Error as StoreError, Folder, Resources};

use super::Import;
use crate::ascending::AscendingWriter;
use crate::bitmap::IdBitmap;
use crate::choice::Sampled;
use crate::classes::{InInternalOrder, Tally, changed};
use crate::description::OrderName;
use crate::edges::{EdgeSource, SpooledEdges};
use crate::error::{Error, Result};
use crate::graph::IDS;
use crate::id_ranks::IdRanks;
use crate::ids::IdType;
use crate::joins;
use crate::records::{Pair, PositionedPair, PositionedWeightedPair, WeightedPair};
use crate::scan::{Declared, ScanSummary};

/// How ids become internal ids while edges are read again.
pub(super) enum IdMap {
    /// Internal id = id - first.
    Consecutive {
        first: u64,
    },
    Ranks(IdRanks),
}

impl IdMap {
    /// Replaces ids by their internal ids; false if there is another among them.
    #[inline]
    pub(super) fn map(&self, ids: &mut [u64]) -> bool {
        match self {
            Self::Consecutive { first } => {
                ids.iter_mut().for_each(|id| *id = id.wrapping_sub(*first));
                true
            }
            Self::Ranks(ranks) => ranks.map(ids),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Consecutive { .. } => 0,
            Self::Ranks(ranks) => ranks.memory_bytes(),
        }
    }
}

/// Ids whose internal order was chosen and written.
pub(crate) struct OrderedIds {
    pub(crate) name: OrderName,
    pub(crate) tally: Tally,
    /// The bits of the first id if the ids are consecutive; else they are in a file.
    pub(crate) first: Option<u64>,
}

/// Writes the file of ids unless they are consecutive; then returns the bits of the first.
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

/// Ids written between two looks at whether the work was cancelled.
const CHECK_EVERY: u64 = 1 << 16;

/// Bytes on disk, most of them for a while, of a vertex that is declared and in no bitmap.
const DECLARED_BYTES: u64 = 8 + 1 + 8;

impl Import<'_> {
    /// Chooses the order of ids that a bitmap holds, and writes them.
    pub(super) fn order(
        &mut self,
        bitmap: IdBitmap,
        id_type: IdType,
        sampled: Sampled,
    ) -> Result<(IdMap, OrderedIds)> {
        let mut ranks = bitmap.into_ranks();
        let name = match ranks.tally().has_classes() {
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
            // The orders are one and the same.
            false => OrderName::External,
        };
        if name == OrderName::External {
            ranks.flatten();
        }
        let tally = ranks.tally();
        let first = write_ids(self.folder, &ranks, self.resources)?;
        let map = match first {
            Some(first) => IdMap::Consecutive { first },
            None => IdMap::Ranks(ranks),
        };
        self.end_phase("order");
        Ok((map, OrderedIds { name, tally, first }))
    }

    /// Chooses the order of ids that no bitmap holds, writes them and maps the edges.
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
        let joined = match (seen.weighted, self.carries_places()) {
            (true, false) => joins::order_edges::<WeightedPair>(&spec, source, sampled),
            (false, false) => joins::order_edges::<Pair>(&spec, source, sampled),
            (true, true) => joins::order_edges::<PositionedWeightedPair>(&spec, source, sampled),
            (false, true) => joins::order_edges::<PositionedPair>(&spec, source, sampled),
        };
        self.end_phase("rank ids");
        joined
    }

    /// Refuses vertices that this disk cannot hold, before anything is written for each of them.
    pub(super) fn check_declared(&self, declared: &Declared) -> Result<()> {
        let free = self
            .folder
            .free_bytes()
            .map_err(|e| StoreError::io(self.folder.path(), "look at", e))?;
        let vertices = declared.numbered();
        if vertices.saturating_mul(DECLARED_BYTES) > free {
            let what = format!(
                "{vertices} vertices are declared, for which the disk has no room ({DECLARED_BYTES} bytes each, {free} are \
                 free); correct the header or --vertices, or use another disk"
            );
            return Err(Error::input(&self.input, what));
        }
        Ok(())
    }
}

//! The second pass: sorts edges by internal id into the requested shards, and counts degrees.
//!
//! Invariant: sorters use the part of the budget that ids and counters leave, and at least their
//! minimum.

use brimful_store::{Resources, sorter};

use super::{IDS_BYTES, IdMap, Import, index_bytes};
use crate::build::degrees;
use crate::build::divided::{PartBounds, SortOptions};
use crate::build::edge_writer::{EdgeWriter, RecordWriter};
use crate::build::mapping::{Mapping, write_mapped};
use crate::build::records::{EdgeRecord, KeyLayout, RecordWork, WeightedPair};
use crate::build::shards::{Built, IndexWriter, ShardSorter};
use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::input::distributed::DistributedEdges;
use crate::input::scan::each_part;
use crate::order::classes::Tally;
use crate::read::degree_counter::DegreeCounter;
use crate::read::description::LongestLists;
use crate::read::index::Index;
use crate::read::shards::ShardFile;

/// The processes that have the edges.
#[derive(Clone, Copy)]
pub(super) enum EdgeLocation<'a> {
    /// This process reads, maps and sorts them.
    Here(&'a dyn EdgeSource),
    /// Other processes keep and map them, and sort them. `hashed`: their weights are hashed.
    Distributed { edges: &'a dyn DistributedEdges, hashed: bool },
}

/// Edges, and the internal ids of their ends.
pub(super) struct MappedEdges<'a> {
    pub(super) location: EdgeLocation<'a>,
    pub(super) map: &'a IdMap,
    /// All internal ids are below this number.
    pub(super) ends: u64,
    pub(super) weighted: bool,
    /// The targets of some of the edges, ascending.
    pub(super) targets: &'a [u64],
}

impl MappedEdges<'_> {
    /// Passes all edges of `source`, in their direction in `index`, to writers that `begin` makes.
    fn write_all<W: RecordWriter>(
        &self,
        source: &dyn EdgeSource,
        index: Index,
        resources: &Resources,
        begin: impl Fn() -> EdgeWriter<W> + Sync,
    ) -> Result<()> {
        resources.job.begin("sort", source.parts() as u64);
        let table = self.map.table();
        let push_all = |writer: &mut EdgeWriter<W>, batch: &EdgeBatch| {
            write_mapped(&table, index, batch, writer)?;
            resources.job.advance(1);
            Ok(())
        };
        each_part(source, resources, || Ok(begin()), push_all, EdgeWriter::finish)
    }
}

/// The counts of the shards and degrees that were written.
pub(super) struct Indexed {
    pub(super) forward: Built,
    pub(super) longest_lists: LongestLists,
    pub(super) reverse: Option<Built>,
}

impl Import<'_> {
    /// Runs the second pass.
    pub(super) fn sort_mapped(&mut self, edges: &MappedEdges<'_>, tally: Tally) -> Result<Indexed> {
        let (map, connected) = (edges.map, tally.connected());
        // Other processes do not count degrees.
        let counted = match edges.location {
            EdgeLocation::Distributed { .. } => 0,
            EdgeLocation::Here(_) => {
                connected.min(self.spare / 4 / degrees::bytes_per_vertex(edges.weighted))
            }
        };
        let mut degrees = DegreeCounter::new(0..counted, edges.weighted);
        let forward = self.sort_index(Index::In, edges, &mut degrees)?;
        let longest_lists = self.write_degrees(map, connected, edges.weighted, degrees)?;
        let mut reverse = None;
        if self.has_reverse() {
            let mut none = DegreeCounter::default();
            reverse = Some(self.sort_index(Index::Reverse, edges, &mut none)?);
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
        edges: &MappedEdges<'_>,
        degrees: &mut DegreeCounter,
    ) -> Result<Built> {
        let layout = KeyLayout::new(edges.ends, self.options.geometry.interval_bits);
        // Only one index needs positions.
        let positioned = self.carries_positions() && index == Index::In;
        let sorting = IndexSorting { import: self, index, edges, layout, degrees };
        layout.with_records(edges.weighted, positioned, sorting)
    }

    /// True if a reverse index is requested that differs from the first.
    fn has_reverse(&self) -> bool {
        self.options.reverse && !self.undirected
    }

    /// True if edges carry their input positions until equal edges are merged; only then is it
    /// known which edges are left out.
    pub(super) fn carries_positions(&self) -> bool {
        self.positions && self.options.policy.merges()
    }

    /// Memory for sorting besides ids of `ids_bytes`, in bytes: the sorters' share of the minimum
    /// and the spare budget.
    pub(super) fn sorter_bytes(&self, ids_bytes: u64) -> u64 {
        let minimum =
            2 * sorter::minimum_bytes(self.resources.workers(), size_of::<WeightedPair>());
        (minimum + self.spare).saturating_sub(ids_bytes.saturating_sub(IDS_BYTES)).max(minimum)
    }
}

/// The sorting of an index.
struct IndexSorting<'s, 'i, 'e> {
    import: &'s mut Import<'i>,
    index: Index,
    edges: &'s MappedEdges<'e>,
    layout: KeyLayout,
    degrees: &'s mut DegreeCounter,
}

impl RecordWork for IndexSorting<'_, '_, '_> {
    type Done = Result<Built>;

    fn with<R: EdgeRecord>(self) -> Result<Built> {
        let Self { import, index, edges, layout, degrees } = self;
        let counting = (degrees.degrees.len() + degrees.strengths.len()) as u64 * 8;
        let (resources, workers) = (import.resources, import.resources.workers());
        let more = index_bytes(workers, R::WEIGHTED, import.positions);
        let bytes = more + import.sorter_bytes(edges.map.memory_bytes() + counting);
        let (folder, geometry) = (import.folder, import.options.geometry);
        let (policy, undirected) = (import.options.policy, import.undirected);
        let built = match edges.location {
            EdgeLocation::Here(source) => {
                let sorter = ShardSorter::<R>::new(
                    folder,
                    layout,
                    geometry,
                    undirected,
                    bytes,
                    workers,
                    &resources.job,
                )?;
                edges.write_all(source, index, resources, || sorter.writer())?;
                import.end_phase("sort");
                sorter.write(folder, index.name(), policy, &import.input, degrees, resources)?
            }
            EdgeLocation::Distributed { edges: distributed, hashed } => {
                let job = &resources.job;
                let bounds =
                    PartBounds::new(layout, edges.ends, edges.targets, distributed.parts()?);
                let has_more = index == Index::In && import.has_reverse();
                let table = edges.map.table();
                let mapping = Mapping { distributed, table, index, undirected, hashed };
                let records = mapping.run::<R>(&bounds, !has_more, job)?;
                import.end_phase("sort");
                let (name, traffic) = (index.name(), job.traffic());
                let mut out = IndexWriter::create(folder, name, R::WEIGHTED, geometry, traffic)?;
                let options = SortOptions { geometry, policy, undirected };
                let applied = bounds.sort::<R>(records, distributed, options, &mut out, job)?;
                out.finish(applied, &import.input)?
            }
        };
        import.end_phase("write shards");
        Ok(built)
    }
}

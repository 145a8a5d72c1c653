//! Internal ids for sparse ids of any 64 bits, without the set of ids in memory.
//!
//! External sorts give the distinct ids and the number of sampled edge ends at each. Edges are
//! sorted by source and merged with the ids, then by target and merged again. Every step is
//! sequential, so memory is that of the sorters. Invariant: the order is the one that a bitmap
//! would give.

use std::path::Path;

use brimful_store::sequence::{Sequence, SequenceWriter};
use brimful_store::sorter::{SortWriter, Sorter};
use brimful_store::{Folder, Resources};

use crate::build::import::{OrderedIds, write_ids};
use crate::build::records::EndsRecord;
use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource, Spool, SpooledEdges};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::input::scan::{Declared, each_part};
use crate::input_position::UNKNOWN;
use crate::order::choice::{LaidOut, OrderName, Sampled};
use crate::order::classes::is_counted;
use crate::order::distinct::{DeclaredKeys, DistinctIds};

/// The arguments of ordering.
pub(crate) struct Spec<'a> {
    pub(crate) folder: &'a dyn Folder,
    pub(crate) id_type: IdType,
    /// The vertices that exist even without an edge.
    pub(crate) declared: &'a Declared,
    /// The input that declares all vertices, if edges may name no others.
    pub(crate) all_declared: Option<&'a Path>,
    /// True if self-loops are dropped. A vertex without another edge then counts as declared.
    pub(crate) drops_self_loops: bool,
    /// Memory of each of two sorters that exist at the same time.
    pub(crate) bytes: u64,
    pub(crate) resources: &'a Resources,
}

/// The writers of one worker in the first pass.
struct Writers<'s, 'j, R> {
    ends: SortWriter<'s, 'j, u64>,
    counted: SortWriter<'s, 'j, u64>,
    edges: SortWriter<'s, 'j, R>,
}

/// Writes the file of ids and returns the edges by internal id.
pub(crate) fn order_edges<R: EndsRecord>(
    spec: &Spec<'_>,
    source: &dyn EdgeSource,
    sampled: Sampled,
) -> Result<(SpooledEdges, OrderedIds)> {
    let listed = sort_listed(spec, source)?;
    let Sorted { ends, counted, edges } = sort_ids::<R>(spec, source)?;
    let declared = DeclaredKeys::new(&spec.declared.ranges, listed.as_ref(), spec.id_type);
    let declared = declared.only(spec.all_declared);
    let ids = DistinctIds::new(ends, counted, declared, spec.id_type, spec.folder, spec.resources)?;
    drop(listed);
    let (flat, ordered) = write_ordered(&ids, sampled, spec.folder, spec.resources)?;
    let by_target = rank_sources(spec, edges, &ids, flat)?;
    let edges = rank_targets(spec, by_target, &ids, flat)?;
    Ok((edges, ordered))
}

/// Chooses the order of ids, and writes them. The first result is true if the order is flat.
pub(crate) fn write_ordered(
    ids: &DistinctIds,
    sampled: Sampled,
    folder: &dyn Folder,
    resources: &Resources,
) -> Result<(bool, OrderedIds)> {
    let LaidOut { name, targets } = choose(ids, sampled)?;
    let flat = name == OrderName::External;
    let tally = if flat { ids.tally().flattened() } else { ids.tally() };
    let first = write_ids(folder, &ids.in_order(flat), resources)?;
    Ok((flat, OrderedIds { name, tally, first, targets }))
}

/// The keys of all ends of edges, the keys of the ends of sampled edges, and the edges by source.
struct Sorted<'j, R> {
    ends: Sorter<'j, u64>,
    counted: Sorter<'j, u64>,
    edges: Sorter<'j, R>,
}

/// Sorts the keys of ends, and edges by source.
fn sort_ids<'j, R: EndsRecord>(spec: &Spec<'j>, source: &dyn EdgeSource) -> Result<Sorted<'j, R>> {
    let (workers, job) = (spec.resources.workers(), &*spec.resources.job);
    let key = |bits| spec.id_type.order_key(bits);
    // Single keys need a third of the memory of weighted edges, so two sorters fit in the share of
    // one.
    let third = spec.bytes / 3;
    let ends = Sorter::<u64>::new(spec.folder, 2 * third, workers, job)?;
    let counted = Sorter::<u64>::new(spec.folder, third, workers, job)?;
    let edges = Sorter::<R>::new(spec.folder, spec.bytes, workers, job)?;
    job.begin("sort ids", source.parts() as u64);
    let begin =
        || Ok(Writers { ends: ends.writer(), counted: counted.writer(), edges: edges.writer() });
    let push_all = |writers: &mut Writers<'_, '_, R>, batch: &EdgeBatch| {
        for (at, (&source, &target)) in batch.sources.iter().zip(&batch.targets).enumerate() {
            let (s, t) = (key(source), key(target));
            if source != target || !spec.drops_self_loops {
                writers.ends.push(s)?;
                writers.ends.push(t)?;
                if is_counted(source, target) {
                    writers.counted.push(s)?;
                    writers.counted.push(t)?;
                }
            }
            writers.edges.push(R::new(s, t, batch.weight(at), batch.position(at)))?;
        }
        job.advance(1);
        Ok(())
    };
    each_part(source, spec.resources, begin, push_all, |writers| {
        writers.ends.finish()?;
        writers.counted.finish()?;
        Ok(writers.edges.finish()?)
    })?;
    Ok(Sorted { ends, counted, edges })
}

/// Replaces the sources of edges by internal ids; the edges are sorted by target.
fn rank_sources<'j, R: EndsRecord>(
    spec: &Spec<'j>,
    by_source: Sorter<'_, R>,
    ids: &DistinctIds,
    flat: bool,
) -> Result<Sorter<'j, R>> {
    let job = &*spec.resources.job;
    job.begin("rank sources", by_source.len());
    let by_target = Sorter::<R>::new(spec.folder, spec.bytes, 1, job)?;
    let mut writer = by_target.writer();
    let mut cursor = ids.cursor(flat);
    by_source.merge(&spec.resources.pool, |batch| {
        for edge in batch {
            let (s, t) = edge.ends();
            let (source, weight) = (cursor.internal(s)?, edge.weight().unwrap_or(1.0));
            writer.push(R::new(t, source, weight, edge.position()))?;
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    writer.finish()?;
    Ok(by_target)
}

/// Replaces the targets of edges by internal ids.
fn rank_targets<R: EndsRecord>(
    spec: &Spec<'_>,
    by_target: Sorter<'_, R>,
    ids: &DistinctIds,
    flat: bool,
) -> Result<SpooledEdges> {
    let job = &*spec.resources.job;
    job.begin("rank targets", by_target.len());
    let spool = Spool::new(spec.folder, job)?;
    let (mut out, mut buffer) = (EdgeBatch::default(), Vec::new());
    let mut cursor = ids.cursor(flat);
    by_target.merge(&spec.resources.pool, |batch| {
        for edge in batch {
            let (t, source) = edge.ends();
            out.sources.push(source);
            out.targets.push(cursor.internal(t)?);
            out.weights.extend(edge.weight());
            out.positions.extend(Some(edge.position()).filter(|position| *position != UNKNOWN));
            if out.len() == BATCH_EDGES {
                spool.append(&out, &mut buffer)?;
                out.clear();
            }
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    if !out.is_empty() {
        spool.append(&out, &mut buffer)?;
    }
    Ok(spool.into_source())
}

/// The listed ids and the ids of dropped self-loops, ascending and distinct.
fn sort_listed(spec: &Spec<'_>, edges: &dyn EdgeSource) -> Result<Option<Sequence<u64>>> {
    if spec.declared.listed.is_none() && !spec.drops_self_loops {
        return Ok(None);
    }
    let (workers, job) = (spec.resources.workers(), &*spec.resources.job);
    let sorter = Sorter::<u64>::new(spec.folder, spec.bytes, workers, job)?;
    let begin = || Ok(sorter.writer());
    let push = |writer: &mut SortWriter<'_, '_, u64>, id| writer.push(spec.id_type.order_key(id));
    if let Some(listed) = &spec.declared.listed {
        let push_all = |writer: &mut _, batch: &EdgeBatch| {
            Ok(batch.sources.iter().try_for_each(|&id| push(writer, id))?)
        };
        each_part(&**listed, spec.resources, begin, push_all, |writer| Ok(writer.finish()?))?;
    }
    if spec.drops_self_loops {
        let push_all = |writer: &mut _, batch: &EdgeBatch| {
            let mut loops = batch.sources.iter().zip(&batch.targets).filter(|(s, t)| s == t);
            Ok(loops.try_for_each(|(&id, _)| push(writer, id))?)
        };
        each_part(edges, spec.resources, begin, push_all, |writer| Ok(writer.finish()?))?;
    }
    let (mut listed, mut last) = (SequenceWriter::new(spec.folder, job)?, None);
    sorter.merge(&spec.resources.pool, |batch| {
        for &key in batch {
            if last.replace(key) != Some(key) {
                listed.push(key)?;
            }
        }
        Ok::<(), Error>(())
    })?;
    Ok(Some(listed.finish()?))
}

fn choose(ids: &DistinctIds, sampled: Sampled) -> Result<LaidOut> {
    if !ids.tally().has_classes() {
        return Ok(LaidOut::same());
    }
    let id_type = ids.id_type();
    sampled.cheaper(id_type, |order| {
        let mut cursor = ids.cursor(order == OrderName::External);
        move |bits| cursor.internal(id_type.order_key(bits))
    })
}

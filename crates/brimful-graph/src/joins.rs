//! Ranks for sparse ids: ids of any 64 bits, without holding the set of ids in memory.
//!
//! Distinct ids come from one external sort; edges are sorted by source and merged with the ids, then
//! by target and merged again. Every step is sequential, so memory is what the sorters are given.

use brimful_store::array::{ArrayFile, ArrayWriter};
use brimful_store::sealed::Kind;
use brimful_store::sorter::{SortWriter, Sorter};
use brimful_store::{DiskFolder, Resources};

use crate::census::each_part;
use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource, Spool, SpooledEdges};
use crate::error::{Error, Result};
use crate::graph::IDS;
use crate::ids::IdType;
use crate::records::EndsRecord;

/// What ranking needs to know.
pub(crate) struct Spec<'a> {
    pub(crate) folder: &'a DiskFolder,
    pub(crate) id_type: IdType,
    /// The ids 0 to `declared` - 1 exist too.
    pub(crate) declared: u64,
    /// These ids exist too.
    pub(crate) declared_ids: &'a [u64],
    /// Memory of each of the two sorters that live at once.
    pub(crate) bytes: u64,
    pub(crate) resources: &'a Resources,
}

/// Edges by rank.
pub(crate) struct Joined {
    pub(crate) edges: SpooledEdges,
    pub(crate) vertices: u64,
}

/// Writes the file of ids and returns the edges by rank.
pub(crate) fn rank_edges<R: EndsRecord>(spec: &Spec<'_>, source: &dyn EdgeSource) -> Result<Joined> {
    let (workers, job) = (spec.resources.workers(), &*spec.resources.job);
    let key = |bits| spec.id_type.order_key(bits);
    let ids = Sorter::<u64>::new(spec.folder, spec.bytes, workers, job)?;
    let by_source = Sorter::<R>::new(spec.folder, spec.bytes, workers, job)?;
    job.begin("sort ids", source.parts() as u64);
    let begin = || Ok((ids.writer(), by_source.writer()));
    let push_all = |(ids, edges): &mut (SortWriter<'_, '_, u64>, SortWriter<'_, '_, R>),
                    batch: &EdgeBatch| {
        for at in 0..batch.len() {
            let (s, t) = (key(batch.sources[at]), key(batch.targets[at]));
            ids.push(s)?;
            ids.push(t)?;
            edges.push(R::new(s, t, batch.weight(at)))?;
        }
        job.advance(1);
        Ok(())
    };
    each_part(source, spec.resources, begin, push_all, |(ids, edges)| {
        ids.finish()?;
        Ok(edges.finish()?)
    })?;
    let mut declared = ids.writer();
    for id in 0..spec.declared {
        declared.push(key(id))?;
    }
    for &id in spec.declared_ids {
        declared.push(key(id))?;
    }
    declared.finish()?;
    let vertices = write_distinct(spec, ids)?;

    job.begin("rank sources", by_source.len());
    let by_target = Sorter::<R>::new(spec.folder, spec.bytes, 1, job)?;
    let mut writer = by_target.writer();
    let mut ranks = RankCursor::open(spec, vertices)?;
    by_source.merge(&spec.resources.pool, |batch| {
        for edge in batch {
            let (s, t) = edge.ends();
            writer.push(R::new(t, ranks.rank(s)?, edge.weight().unwrap_or(1.0)))?;
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    writer.finish()?;

    job.begin("rank targets", by_target.len());
    let spool = Spool::new(spec.folder, job)?;
    let (mut out, mut room) = (EdgeBatch::default(), Vec::new());
    let mut ranks = RankCursor::open(spec, vertices)?;
    by_target.merge(&spec.resources.pool, |batch| {
        for edge in batch {
            let (t, source) = edge.ends();
            out.sources.push(source);
            out.targets.push(ranks.rank(t)?);
            out.weights.extend(edge.weight());
            if out.len() == BATCH_EDGES {
                spool.append(&out, &mut room)?;
                out.clear();
            }
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    if !out.is_empty() {
        spool.append(&out, &mut room)?;
    }
    Ok(Joined { edges: spool.into_source(), vertices })
}

/// Writes every distinct id once, ascending; returns how many there are.
fn write_distinct(spec: &Spec<'_>, ids: Sorter<'_, u64>) -> Result<u64> {
    spec.resources.job.begin("write ids", ids.len());
    let mut file = ArrayWriter::create(spec.folder, IDS, Kind::Ids, spec.resources.job.traffic())?;
    let mut last = None;
    ids.merge(&spec.resources.pool, |batch| {
        for &key in batch {
            if last != Some(key) {
                file.push(spec.id_type.from_order_key(key))?;
                last = Some(key);
            }
        }
        spec.resources.job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    let vertices = file.len();
    file.finish()?;
    Ok(vertices)
}

/// Ranks of ascending ids, by reading the file of ids beside them.
struct RankCursor {
    file: ArrayFile<u64>,
    id_type: IdType,
    window: Vec<u64>,
    start: u64,
    at: usize,
}

const CURSOR_IDS: u64 = 8 << 10;

impl RankCursor {
    fn open(spec: &Spec<'_>, vertices: u64) -> Result<Self> {
        let file = ArrayFile::open(spec.folder, IDS, Kind::Ids, vertices, spec.resources.job.traffic())?;
        Ok(Self { file, id_type: spec.id_type, window: Vec::new(), start: 0, at: 0 })
    }

    fn rank(&mut self, key: u64) -> Result<u64> {
        loop {
            while let Some(&bits) = self.window.get(self.at) {
                if self.id_type.order_key(bits) == key {
                    return Ok(self.start + self.at as u64);
                }
                self.at += 1;
            }
            self.start += self.window.len() as u64;
            let count = CURSOR_IDS.min(self.file.len() - self.start);
            if count == 0 {
                return Err(Error::input("(input)", "it changed while it was read; import it again"));
            }
            self.window.resize(count as usize, 0);
            self.file.read(self.start, &mut self.window)?;
            self.at = 0;
        }
    }
}

//! Out-degrees and sums of outgoing weights, counted from shards.
//!
//! Sources that fit in the given memory are counted while the shards are written. Another pass over
//! the shards counts the others, window by window. Invariant: weights are summed in the order of
//! the shards, whichever pass counts them.

use std::sync::atomic::{AtomicUsize, Ordering};

use brimful_store::array::ArrayWriter;
use brimful_store::in_order::InOrder;
use brimful_store::sealed::Kind;
use brimful_store::{Folder, Job, Resources};

use crate::error::{Error, Result};
use crate::ids::ascending::AscendingWriter;
use crate::read::degree_counter::DegreeCounter;
use crate::read::graph::{DEGREES, STRENGTHS};
use crate::read::segment_reader::SegmentReader;
use crate::read::shards::ShardFile;

/// Bytes of memory per counted vertex.
pub(crate) fn bytes_per_vertex(weighted: bool) -> u64 {
    if weighted { 16 } else { 8 }
}

/// The maximum number of arcs to one vertex. Memory per thread: 8 bytes for each vertex of an
/// interval, and a unit.
pub(crate) fn max_incoming(shards: &ShardFile, resources: &Resources) -> Result<u64> {
    let segments: Vec<_> = shards.shards().collect();
    let window = 1 << shards.interval_bits();
    resources.job.begin("measure lists", segments.len() as u64);
    let most = resources.parallel_map(
        segments.len(),
        |at, (reader, counts): &mut (Option<SegmentReader>, Vec<u64>)| {
            let first_target =
                shards.segments()[segments[at].start].interval << shards.interval_bits();
            let reader = reader.get_or_insert_with(|| SegmentReader::default().with_weights(false));
            counts.clear();
            counts.resize(window, 0);
            for index in segments[at].clone() {
                resources.job.check()?;
                reader.for_each_edge(shards, index, |_, target, _| {
                    counts[(target - first_target) as usize] += 1;
                })?;
            }
            resources.job.advance(1);
            Ok::<_, Error>(counts.iter().copied().max().unwrap_or(0))
        },
    )?;
    Ok(most.into_iter().max().unwrap_or(0))
}

/// Writes the files of degrees and, if weighted, of strengths. `first` holds the counts of the
/// first vertices; the others are counted in windows that fit in `bytes`. Returns the greatest
/// degree.
pub(crate) fn write(
    folder: &dyn Folder,
    shards: &ShardFile,
    vertices: u64,
    first: DegreeCounter,
    weighted: bool,
    bytes: u64,
    resources: &Resources,
) -> Result<u64> {
    let job = &resources.job;
    let mut files = DegreeFiles::create(folder, weighted, job)?;
    let counted = first.degrees.len() as u64;
    files.append(&first)?;
    drop(first);
    let workers = resources.workers() as u64;
    // A reader holds a unit and the unit's weights.
    let largest =
        shards.files().flat_map(|file| file.entries()).map(|e| e.len).max().unwrap_or(0) * 2;
    let each = (bytes / workers).saturating_sub(largest) / bytes_per_vertex(weighted);
    let window = each.min((vertices - counted).div_ceil(workers)).max(1 << 12);
    let windows = (vertices - counted).div_ceil(window) as usize;
    job.begin("count degrees", windows as u64);
    let out = InOrder::new(files);
    let next = AtomicUsize::new(0);
    let results = resources.broadcast(|_| {
        let _wake = out.wake_on_panic();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= windows {
                return Ok(());
            }
            let start = counted + number as u64 * window;
            let counter =
                DegreeCounter::count(shards, start..vertices.min(start + window), weighted, job);
            if !out.pass(number, |files| counter.and_then(|counter| files.append(&counter)))? {
                return Ok(());
            }
            job.advance(1);
        }
    });
    results.into_iter().collect::<Result<()>>()?;
    out.into_inner().finish()
}

/// The files of running sums of degrees, and of strengths.
struct DegreeFiles {
    degrees: AscendingWriter,
    sum: u64,
    greatest: u64,
    strengths: Option<ArrayWriter<f64>>,
}

impl DegreeFiles {
    fn create(folder: &dyn Folder, weighted: bool, job: &Job) -> Result<Self> {
        let traffic = job.traffic();
        let degrees = AscendingWriter::create(folder, DEGREES, Kind::Degrees, traffic)?;
        let strengths = match weighted {
            true => Some(ArrayWriter::create(folder, STRENGTHS, Kind::Strengths, traffic)?),
            false => None,
        };
        Ok(Self { degrees, sum: 0, greatest: 0, strengths })
    }

    fn append(&mut self, counted: &DegreeCounter) -> Result<()> {
        for &degree in &counted.degrees {
            self.sum += degree;
            self.greatest = self.greatest.max(degree);
            self.degrees.push(self.sum)?;
        }
        if let Some(file) = &mut self.strengths {
            for &strength in &counted.strengths {
                file.push(strength)?;
            }
        }
        Ok(())
    }

    /// Finishes the files; returns the greatest degree.
    fn finish(self) -> Result<u64> {
        self.degrees.finish()?;
        if let Some(file) = self.strengths {
            file.finish()?;
        }
        Ok(self.greatest)
    }
}

//! `verify`: checks every byte against its checksum, and ids, degrees and arcs against the shards.

use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Job};

use crate::error::Result;
use crate::read::degree_counter::DegreeCounter;
use crate::read::external_order::ExternalOrder;
use crate::read::graph::{DEGREES, Graph, IDS, STRENGTHS};
use crate::read::index::Index;
use crate::read::segment_reader::SegmentReader;
use crate::read::shards::ShardFile;

/// The counts of a verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of files.
    pub files: u64,
    /// Total bytes of the files.
    pub bytes: u64,
    /// Number of decoded arcs in all indexes.
    pub arcs: u64,
}

/// Vertices whose degrees are counted at once.
const WINDOW: u64 = 1 << 20;
/// Ids that are checked at once.
const BATCH: usize = 64 << 10;

/// Verifies an open graph. Its manifest and headers were verified when it was opened.
///
/// # Errors
/// Corruption, with file and offset.
pub fn verify(graph: &Graph, job: &Job) -> Result<Verified> {
    let mut verified = Verified::default();
    job.begin("verify", graph.bytes_on_disk()?);
    for file in graph.sealed_files() {
        file.verify(job)?;
        verified.files += 1;
        verified.bytes += file.len()?;
    }
    for table in graph.description().tables.values() {
        table.verify(graph.folder(), job, graph.traffic())?;
        verified.files += 1;
        verified.bytes += table.bytes;
    }
    verify_ids(graph, job)?;
    if let Some(names) = graph.names() {
        names.verify(job)?;
    }
    let reverse = graph.shards(Index::Reverse).filter(|_| graph.description().directed);
    for shards in [graph.forward()].into_iter().chain(reverse) {
        let arcs = count_arcs(shards, job)?;
        verified.files += 1;
        verified.bytes += shards.directory_bytes();
        verified.arcs += arcs;
        if arcs != graph.description().arcs {
            let expected = counted(graph.description().arcs, "arc");
            let problem = format!("expected {expected}, found {arcs}");
            return Err(StoreError::corrupt(shards.file().path(), 0, problem).into());
        }
    }
    verify_degrees(graph, job)?;
    Ok(verified)
}

/// Checks that ids ascend strictly in the merged runs: then each run ascends and no id is in two
/// runs.
fn verify_ids(graph: &Graph, job: &Job) -> Result<()> {
    if graph.description().ids.first.is_some() {
        return Ok(());
    }
    let mut order = ExternalOrder::new(graph);
    let (mut vertices, mut ids, mut last) = (Vec::new(), Vec::new(), None);
    loop {
        job.check()?;
        vertices.clear();
        ids.clear();
        order.next_batch(BATCH, &mut vertices, &mut ids)?;
        if ids.is_empty() {
            return Ok(());
        }
        for &bits in &ids {
            let key = graph.id_type().order_key(bits);
            if last.is_some_and(|last| last >= key) {
                let problem =
                    "the ids of a run are not in ascending order, or one id is in two runs";
                return Err(StoreError::corrupt(graph.path().join(IDS), 0, problem).into());
            }
            last = Some(key);
        }
    }
}

fn count_arcs(shards: &ShardFile, job: &Job) -> Result<u64> {
    let (mut reader, mut arcs) = (SegmentReader::default(), 0);
    let directory = shards.open_directory()?;
    directory.verify(job)?;
    for index in 0..shards.segments().len() {
        job.check()?;
        reader.for_each_edge(shards, index, |_, _, _| arcs += 1)?;
        reader.verify_directory(shards, &directory, index)?;
    }
    Ok(arcs)
}

fn verify_degrees(graph: &Graph, job: &Job) -> Result<()> {
    let shards = graph.forward();
    let weighted = graph.description().weighted;
    let (mut degrees, mut strengths) = (Vec::new(), Vec::new());
    for start in (0..graph.connected()).step_by(WINDOW as usize) {
        let range = start..graph.connected().min(start + WINDOW);
        let length = (range.end - range.start) as usize;
        let counter = DegreeCounter::count(shards, range, weighted, job)?;
        degrees.resize(length, 0);
        graph.degrees(start, &mut degrees)?;
        let differ = |file: &str| {
            StoreError::corrupt(graph.path().join(file), 0, "it contradicts the edges")
        };
        if degrees != counter.degrees {
            return Err(differ(DEGREES).into());
        }
        if weighted {
            strengths.resize(length, 0.0);
            graph.strengths(start, &mut strengths)?;
            if !strengths.iter().zip(&counter.strengths).all(|(a, b)| a.to_bits() == b.to_bits()) {
                return Err(differ(STRENGTHS).into());
            }
        }
    }
    Ok(())
}

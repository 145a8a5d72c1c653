//! The scan, the first pass of an import: counts the input, finds its ids, and samples edges for
//! the choice of the internal order.
//!
//! The edges of an input that can be read only once are copied to a spool. Invariant: the second
//! pass reads exactly the edges that the scan counts.

mod distributed;
mod names;
mod stream;
mod summary;
mod text;

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use brimful_store::external::{input_len, open_input};
use brimful_store::{Folder, Resources};

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource, Spool};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::input::columns::ColumnChoice;
use crate::input::decompress;
use crate::input::distributed::DistributedEdges;
use crate::input::formats::parser::OnError;
use crate::input::formats::reader::CHUNK_BYTES;
use crate::input::formats::{TextFile, TextFormat, graphalytics, webgraph::WebGraph};
use crate::input::id_choice::IdChoice;
use crate::input::pairs::{PairFiles, PairStream};
use crate::input::policy::Policy;
use crate::input::pump::chunks_in_flight;
use crate::input::source::Input;
use crate::input::stream::Listed;
use crate::order::bitmap::IdBitmap;
pub(crate) use summary::{Declared, InputScan, ScanSummary};

/// The result of a scan: edges for the second pass, and the summary.
type Reading<'i> = (Box<dyn EdgeSource + 'i>, ScanSummary);

/// Edges for the second pass.
pub(crate) enum Edges<'i> {
    /// This process reads them.
    Here(Box<dyn EdgeSource + 'i>),
    /// Other processes keep them.
    Distributed(&'i dyn DistributedEdges),
}

/// Bytes of chunks, batches (with input positions, if `positions`) and spool buffers of a reading
/// pass.
pub(crate) fn reading_bytes(workers: usize, positions: bool) -> u64 {
    let batch = BATCH_EDGES * (8 + 8 + 8 + if positions { 8 } else { 0 });
    ((chunks_in_flight(workers) + 1) * CHUNK_BYTES + workers * 2 * batch) as u64
}

/// Reads inputs in the scan.
pub(crate) struct Reader<'a> {
    /// The folder of the spool.
    pub(crate) folder: &'a dyn Folder,
    pub(crate) resources: &'a Resources,
    /// The vertices 0 to n - 1 exist, whatever the input contains.
    pub(crate) declared: u64,
    /// The user's choice of direction, in place of the one that the input states. `true`: store
    /// every edge only in its written direction; an edge listed at both ends becomes two arcs.
    pub(crate) directed: Option<bool>,
    /// The policy for self-loops and duplicates.
    pub(crate) policy: Policy,
    /// True if input positions are needed to report the first edges that are left out.
    pub(crate) positions: bool,
    /// True if weights are computed from ids.
    pub(crate) hashes_weights: bool,
    /// The user's choice of id type.
    pub(crate) ids: IdChoice,
    /// The user's choice of columns.
    pub(crate) columns: &'a ColumnChoice,
    pub(crate) on_error: OnError,
    /// Memory for the set of ids, and for the window of a decompressor.
    pub(crate) bitmap_bytes: u64,
    pub(crate) decoder_bytes: u64,
}

impl Reader<'_> {
    /// Reads the input once; returns counts, ids, and a source of the edges for the second pass.
    pub(crate) fn read<'i>(&self, input: &'i mut Input<'_>) -> Result<(Edges<'i>, ScanSummary)> {
        let bitmap = IdBitmap::new(self.bitmap_bytes);
        let scan =
            InputScan::new(bitmap, self.directed == Some(false), self.policy.drops_self_loops());
        if let (IdChoice::String, Some(format)) = (self.ids, input.numbered()) {
            let problem =
                format!("ids of {format} are integers by definition; leave --ids string out");
            return Err(Error::Usage(problem));
        }
        let (source, seen): Reading<'i> = match input {
            Input::Distributed(files) => {
                let seen = self.read_distributed(files, scan)?;
                return Ok((Edges::Distributed(&*files.edges), seen));
            }
            Input::EdgeList(paths) => self.read_words(&alone(TextFormat::EdgeList, paths), scan),
            Input::Text(format, paths) => self.read_words(&alone(*format, paths), scan),
            Input::Graphalytics(paths) => {
                let files = graphalytics::files(paths, |path| self.open(path))?;
                self.read_words(&files, scan)
            }
            Input::WebGraph(path) => {
                let mut stream = WebGraph::open(path, self.decoder_bytes, |path| self.open(path))?;
                self.read_stream(&mut stream, scan)
            }
            Input::Pairs(files) => self.read_pairs(files, scan),
            Input::Stream(stream) => self.read_stream(&mut **stream, scan),
            Input::Numbered(source, vertices) => {
                let source: &dyn EdgeSource = *source;
                let edges = self.read_twice(source, &scan, source.parts() as u64, |_| 1)?;
                let declared = self.declare(&scan, 0..*vertices, None)?;
                Ok((
                    Box::new(source) as _,
                    scan.into_summary(declared, IdType::Int64, false, edges),
                ))
            }
        }?;
        Ok((Edges::Here(source), seen))
    }

    /// True if a file is uncompressed. For a file that cannot be examined it is false; reading that
    /// file reports the error.
    pub(crate) fn is_plain(&self, path: &Path) -> bool {
        is_plain(path, self.resources).unwrap_or(false)
    }

    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn Read + Send>> {
        decompress::open(open_input(path, &self.resources.job)?, path, self.decoder_bytes)
    }

    /// Scans a source that can be read again.
    fn read_twice(
        &self,
        source: &dyn EdgeSource,
        scan: &InputScan,
        units: u64,
        units_of: impl Fn(&EdgeBatch) -> u64 + Sync,
    ) -> Result<u64> {
        self.resources.job.begin("read", units);
        let work = |(): &mut (), batch: &EdgeBatch| {
            scan.add(batch);
            self.resources.job.advance(units_of(batch));
            Ok(())
        };
        each_part(source, self.resources, || Ok(()), work, Ok)?;
        Ok(scan.edges.load(Ordering::Relaxed))
    }

    /// Adds the input's declarations to those of the options, and inserts them into the bitmap.
    pub(crate) fn declare(
        &self,
        scan: &InputScan,
        numbered: Range<u64>,
        listed: Option<Listed>,
    ) -> Result<Declared> {
        let declared = Declared::new(self.declared, numbered, listed);
        declared.ranges.iter().for_each(|range| scan.bitmap.insert_range(range.clone()));
        if let Some(listed) = &declared.listed {
            let insert = |(): &mut (), batch: &EdgeBatch| {
                scan.bitmap.insert_declared(&batch.sources);
                Ok(())
            };
            each_part(&**listed, self.resources, || Ok(()), insert, Ok)?;
        }
        Ok(declared)
    }

    /// Spools edges for the second pass, with input positions if that pass needs them.
    pub(crate) fn spool(
        &self,
        spool: &Spool,
        batch: &mut EdgeBatch,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.policy.merges() {
            batch.positions.clear();
        }
        spool.append(batch, buffer)
    }

    fn read_pairs<'i>(&self, files: &[PathBuf], scan: InputScan) -> Result<Reading<'i>> {
        if !files.iter().all(|path| self.is_plain(path)) {
            let mut stream = PairStream::new(files, self.decoder_bytes, self.resources);
            return self.read_stream(&mut stream, scan);
        }
        let source = PairFiles::open(files, &self.resources.job)?.noting_positions(self.positions);
        let pairs = source.pairs();
        self.read_twice(&source, &scan, pairs, |batch| batch.len() as u64)?;
        let declared = self.declare(&scan, 0..0, None)?;
        let inputs = files.iter().cloned().zip(source.lengths()).collect();
        let seen = scan.into_summary(declared, IdType::UInt32, false, pairs);
        Ok((Box::new(source), ScanSummary { inputs, ..seen }))
    }
}

/// The vertices in a spool, if there are any.
fn listed_in(spool: Spool) -> Option<Listed> {
    let listed = spool.into_source();
    (listed.parts() > 0).then(|| Box::new(listed) as Listed)
}

/// Files that all have the format `format`.
pub(crate) fn alone(format: TextFormat, paths: &[PathBuf]) -> Vec<TextFile> {
    paths.iter().map(|path| TextFile { path: path.clone(), format }).collect()
}

/// Reads a source with all workers, each with its own state.
pub(crate) fn each_part<S>(
    source: &dyn EdgeSource,
    resources: &Resources,
    begin: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, &EdgeBatch) -> Result<()> + Sync,
    end: impl Fn(S) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let parts = source.parts();
    let results = resources.broadcast(|_| {
        let (mut state, mut batch) = (begin()?, EdgeBatch::default());
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return end(state);
            }
            let done = resources.job.check().map_err(Error::from);
            let done = done
                .and_then(|()| source.read_part(part, &mut batch))
                .and_then(|()| work(&mut state, &batch));
            if done.is_err() {
                // After a failure, no worker takes another part.
                next.store(parts, Ordering::Relaxed);
                return done;
            }
        }
    });
    results.into_iter().collect()
}

/// True for an uncompressed regular file, which can be read twice.
fn is_plain(path: &Path, resources: &Resources) -> Result<bool> {
    if input_len(path).is_none() {
        return Ok(false);
    }
    Ok(!decompress::is_compressed(&decompress::first_bytes(path, &resources.job)?))
}

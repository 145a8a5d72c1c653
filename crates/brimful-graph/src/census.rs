//! The first pass of an import: reads the input once, counts it and learns which ids there are.
//!
//! Edges of an input that cannot be read twice are kept in a spool. Invariant: what is counted here is
//! exactly what the second pass will read.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::external::{input_len, open_input};
use brimful_store::{DiskFolder, Resources};

use crate::decompress;
use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource, Spool};
use crate::error::{Error, Result};
use crate::ids::{IdBitmap, IdType};
use crate::pairs::{self, PairFiles};
use crate::pump::{chunks_in_flight, pump};
use crate::text::{CHUNK_BYTES, ChunkReader, EdgeListParser, Signs, check_signs};

/// A stream of edges that is pulled batch by batch, once.
pub trait EdgeStream: Send {
    /// Replaces `batch` by the next edges (any number, also none); false at the end.
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool>;
    /// What messages call the stream.
    fn name(&self) -> &Path;
    /// True if edges have weights.
    fn weighted(&self) -> bool;
    /// How ids are read, known at the latest when the stream has ended.
    fn id_type(&self) -> Result<IdType>;
}

/// Where edges come from.
pub enum Input<'a> {
    /// Text edge lists, perhaps compressed; `-` is standard input.
    EdgeList(Vec<PathBuf>),
    /// Little-endian pairs of 32-bit ids.
    Pairs(Vec<PathBuf>),
    /// Anything else that yields batches.
    Stream(&'a mut dyn EdgeStream),
    /// Edges among the vertices 0 to n - 1, all of them declared.
    Numbered(&'a dyn EdgeSource, u64),
}

/// Bytes of chunks, batches and spool buffers while reading.
pub(crate) fn reading_bytes(workers: usize) -> u64 {
    let batch = BATCH_EDGES * (8 + 8 + 8);
    ((chunks_in_flight(workers) + 1) * CHUNK_BYTES + workers * 2 * batch) as u64
}

/// What the first pass learned.
pub(crate) struct Seen {
    pub(crate) id_type: IdType,
    pub(crate) weighted: bool,
    pub(crate) lines: u64,
    pub(crate) edges: u64,
    pub(crate) self_loops: u64,
    pub(crate) bitmap: Option<IdBitmap>,
}

/// Counters and ids of everything read, filled by many threads.
pub(crate) struct Census {
    bitmap: Option<IdBitmap>,
    edges: AtomicU64,
    self_loops: AtomicU64,
}

impl Census {
    pub(crate) fn new(bitmap: Option<IdBitmap>) -> Self {
        Self { bitmap, edges: AtomicU64::new(0), self_loops: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, batch: &EdgeBatch) {
        if let Some(bitmap) = &self.bitmap {
            bitmap.insert_all(&batch.sources);
            bitmap.insert_all(&batch.targets);
        }
        let loops = batch.sources.iter().zip(&batch.targets).filter(|(s, t)| s == t).count();
        self.edges.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.self_loops.fetch_add(loops as u64, Ordering::Relaxed);
    }

    pub(crate) fn into_seen(self, id_type: IdType, weighted: bool, lines: u64) -> Seen {
        Seen {
            id_type,
            weighted,
            lines,
            edges: self.edges.into_inner(),
            self_loops: self.self_loops.into_inner(),
            bitmap: self.bitmap,
        }
    }
}

/// Reads inputs.
pub(crate) struct Reader<'a> {
    /// Where the spool goes.
    pub(crate) folder: &'a DiskFolder,
    pub(crate) resources: &'a Resources,
    /// The ids 0 to n - 1 exist whatever the input says.
    pub(crate) declared: Option<u64>,
    /// These ids exist too.
    pub(crate) declared_ids: &'a [u64],
    /// Memory for the set of ids, and for a decompressor's window.
    pub(crate) bitmap_bytes: u64,
    pub(crate) decoder_bytes: u64,
}

impl Reader<'_> {
    /// Reads the input once: counts, ids, and a source to read the edges from again.
    pub(crate) fn read(&self, input: &mut Input<'_>) -> Result<(Box<dyn EdgeSource>, Seen)> {
        let bitmap = IdBitmap::new(self.bitmap_bytes);
        if let Some(count) = self.declared {
            bitmap.insert_range(count);
        }
        bitmap.insert_all(self.declared_ids);
        let census = Census::new(Some(bitmap));
        match input {
            Input::EdgeList(files) => self.read_text(files, census),
            Input::Pairs(files) => self.read_pairs(files, census),
            Input::Stream(stream) => self.read_stream(&mut **stream, census),
            Input::Numbered(..) => unreachable!("numbered sources need no census"),
        }
    }

    fn read_text(&self, files: &[PathBuf], census: Census) -> Result<(Box<dyn EdgeSource>, Seen)> {
        let resources = self.resources;
        let lengths: Option<u64> = files.iter().map(|path| input_len(path)).sum();
        resources.job.begin("read", lengths.unwrap_or(0));
        let mut reader = ChunkReader::new(files, self.decoder_bytes, &resources.job);
        let parser = EdgeListParser::new(files);
        let spool = Spool::new(self.folder, &resources.job)?;
        let signs = Mutex::new(Signs::default());
        pump(
            resources,
            |chunk| {
                let more = reader.next(chunk)?;
                if more {
                    parser.look(chunk);
                }
                Ok(more)
            },
            || Ok((EdgeBatch::default(), Vec::new(), Signs::default())),
            |(batch, room, signs), number, chunk| {
                parser.parse(number, chunk, batch, signs, BATCH_EDGES, |batch| {
                    census.add(batch);
                    spool.append(batch, room)?;
                    batch.clear();
                    Ok(())
                })
            },
            |(batch, mut room, seen)| {
                signs.lock().unwrap_or_else(PoisonError::into_inner).merge(seen);
                census.add(&batch);
                if batch.is_empty() { Ok(()) } else { spool.append(&batch, &mut room) }
            },
        )
        .map_err(|error| parser.settle(error))?;
        let signs = signs.into_inner().unwrap_or_else(PoisonError::into_inner);
        check_signs(signs, files.first().map_or(Path::new("-"), PathBuf::as_path))?;
        let id_type = if signs.huge { IdType::UInt64 } else { IdType::Int64 };
        Ok((Box::new(spool.into_source()), census.into_seen(id_type, parser.weighted(), parser.lines())))
    }

    fn read_pairs(&self, files: &[PathBuf], census: Census) -> Result<(Box<dyn EdgeSource>, Seen)> {
        // A file that cannot be looked at is reported by the reader that then opens it.
        if !files.iter().all(|path| is_plain(path, self.resources).unwrap_or(false)) {
            let mut stream = PairStream::new(files, self.decoder_bytes, self.resources);
            return self.read_stream(&mut stream, census);
        }
        let source = PairFiles::open(files, &self.resources.job)?;
        self.resources.job.begin("read", source.pairs());
        each_part(
            &source,
            self.resources,
            || Ok(()),
            |(), batch| {
                census.add(batch);
                self.resources.job.advance(batch.len() as u64);
                Ok(())
            },
            Ok,
        )?;
        let pairs = source.pairs();
        Ok((Box::new(source), census.into_seen(IdType::UInt32, false, pairs)))
    }

    fn read_stream(
        &self,
        stream: &mut dyn EdgeStream,
        census: Census,
    ) -> Result<(Box<dyn EdgeSource>, Seen)> {
        let resources = self.resources;
        resources.job.begin("read", 0);
        let spool = Spool::new(self.folder, &resources.job)?;
        pump(
            resources,
            |batch| stream.next(batch),
            || Ok(Vec::new()),
            |room, _, batch: &mut EdgeBatch| {
                census.add(batch);
                resources.job.advance(batch.len() as u64);
                if batch.is_empty() { Ok(()) } else { spool.append(batch, room) }
            },
            |_| Ok(()),
        )?;
        let edges = census.edges.load(Ordering::Relaxed);
        Ok((Box::new(spool.into_source()), census.into_seen(stream.id_type()?, stream.weighted(), edges)))
    }
}

/// Walks a source with all workers, each with a state of its own.
pub(crate) fn each_part<S>(
    source: &dyn EdgeSource,
    resources: &Resources,
    begin: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, &EdgeBatch) -> Result<()> + Sync,
    end: impl Fn(S) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let parts = source.parts();
    let results = resources.pool.broadcast(|_| {
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
                // Nobody takes another part after a failure.
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
    let mut start = Vec::new();
    let read = open_input(path, &resources.job)?.take(8).read_to_end(&mut start);
    read.map_err(|e| decompress::read_error(path, e))?;
    Ok(!decompress::is_compressed(&start))
}

/// Pairs from standard input or a compressed file.
struct PairStream<'a> {
    files: &'a [PathBuf],
    next: usize,
    reader: Option<Box<dyn Read + Send>>,
    memory_bytes: u64,
    resources: &'a Resources,
    bytes: Vec<u8>,
}

impl<'a> PairStream<'a> {
    fn new(files: &'a [PathBuf], memory_bytes: u64, resources: &'a Resources) -> Self {
        Self { files, next: 0, reader: None, memory_bytes, resources, bytes: Vec::new() }
    }
}

impl EdgeStream for PairStream<'_> {
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        loop {
            if self.reader.is_none() {
                let Some(path) = self.files.get(self.next) else {
                    return Ok(false);
                };
                let input = open_input(path, &self.resources.job)?;
                self.reader = Some(decompress::open(input, path, self.memory_bytes)?);
                self.next += 1;
            }
            let Some(reader) = &mut self.reader else {
                return Ok(false);
            };
            let path = &self.files[self.next - 1];
            self.bytes.clear();
            let limit = BATCH_EDGES as u64 * pairs::PAIR_BYTES;
            reader.take(limit).read_to_end(&mut self.bytes).map_err(|e| decompress::read_error(path, e))?;
            if self.bytes.is_empty() {
                self.reader = None;
                continue;
            }
            pairs::check_length(path, self.bytes.len() as u64)?;
            pairs::decode(&self.bytes, batch);
            return Ok(true);
        }
    }

    fn name(&self) -> &Path {
        self.files.first().map_or(Path::new("-"), PathBuf::as_path)
    }

    fn weighted(&self) -> bool {
        false
    }

    fn id_type(&self) -> Result<IdType> {
        Ok(IdType::UInt32)
    }
}

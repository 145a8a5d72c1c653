//! `u32pairs`: little-endian pairs of 32-bit source and target, and nothing else.

use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_store::external::open_input;
use brimful_store::file::StoreFile;
use brimful_store::wording::counted;
use brimful_store::{Content, DiskFolder, Job, Resources};

use crate::input::decompress;
use crate::input::stream::EdgeStream;

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::input_position::InputPart;

/// Bytes of a pair.
pub const PAIR_BYTES: u64 = 8;

/// Plain files of pairs, readable in parts and more than once.
pub struct PairFiles {
    files: Vec<(StoreFile, u64)>,
    parts: usize,
    positions: bool,
}

impl PairFiles {
    /// Opens the files; an error names a file whose length is not a multiple of a pair.
    pub fn open(paths: &[PathBuf], job: &Job) -> Result<Self> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let file = open_plain(path, job)?;
            let length = file.len()?;
            check_length(path, length)?;
            files.push((file, length / PAIR_BYTES));
        }
        let parts =
            files.iter().map(|(_, pairs)| pairs.div_ceil(BATCH_EDGES as u64) as usize).sum();
        Ok(Self { files, parts, positions: false })
    }

    /// Records the input position of every pair, if `positions`.
    pub(crate) fn noting_positions(self, positions: bool) -> Self {
        Self { positions, ..self }
    }

    /// Number of pairs in each file.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.files.iter().map(|(_, pairs)| *pairs)
    }

    /// Number of pairs in all files.
    pub fn pairs(&self) -> u64 {
        self.lengths().sum()
    }
}

/// Opens an uncompressed input for reading at any offset.
pub(crate) fn open_plain(path: &Path, job: &Job) -> Result<StoreFile> {
    let folder = path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = StoreFile::open(&DiskFolder::new(folder), &name, job.traffic())?;
    Ok(file.counted_as(Content::Input))
}

/// Returns an error unless `length` is a multiple of a pair.
pub fn check_length(path: &Path, length: u64) -> Result<()> {
    if length.is_multiple_of(PAIR_BYTES) {
        return Ok(());
    }
    let problem = format!(
        "a length of {} is not a whole number of 8-byte pairs; the file was cut or is of another \
         format",
        counted(length, "byte")
    );
    Err(Error::input(path, problem))
}

/// Appends the pairs in `bytes` to `batch`.
pub fn decode(bytes: &[u8], batch: &mut EdgeBatch) {
    for [a, b, c, d, e, f, g, h] in bytes.as_chunks().0 {
        batch.sources.push(u64::from(u32::from_le_bytes([*a, *b, *c, *d])));
        batch.targets.push(u64::from(u32::from_le_bytes([*e, *f, *g, *h])));
    }
}

impl EdgeSource for PairFiles {
    fn parts(&self) -> usize {
        self.parts
    }

    fn read_part(&self, mut part: usize, batch: &mut EdgeBatch) -> Result<()> {
        batch.clear();
        let mut before = 0;
        for (file, pairs) in &self.files {
            let parts = pairs.div_ceil(BATCH_EDGES as u64) as usize;
            if part < parts {
                let start = (part * BATCH_EDGES) as u64;
                let count = (pairs - start).min(BATCH_EDGES as u64) as usize;
                // A pair has the size of an id, so pairs are read into the memory of the targets.
                batch.targets.resize(count, 0);
                file.read_exact_at(
                    bytemuck::cast_slice_mut(&mut batch.targets),
                    start * PAIR_BYTES,
                )?;
                batch.sources.extend(
                    batch.targets.iter().map(|&pair| u64::from_le(pair) & u64::from(u32::MAX)),
                );
                batch.targets.iter_mut().for_each(|pair| *pair = u64::from_le(*pair) >> 32);
                if self.positions {
                    batch.number(before + start);
                }
                return Ok(());
            }
            part -= parts;
            before += pairs;
        }
        Ok(())
    }
}

/// Pairs from standard input or a compressed file.
pub(crate) struct PairStream<'a> {
    files: &'a [PathBuf],
    next: usize,
    reader: Option<Box<dyn Read + Send>>,
    memory_bytes: u64,
    resources: &'a Resources,
    bytes: Vec<u8>,
    positions: bool,
    /// The opened files, and the number of their pairs so far.
    read: Vec<InputPart>,
}

impl<'a> PairStream<'a> {
    pub(crate) fn new(files: &'a [PathBuf], memory_bytes: u64, resources: &'a Resources) -> Self {
        let (bytes, read) = (Vec::new(), Vec::new());
        Self {
            files,
            next: 0,
            reader: None,
            memory_bytes,
            resources,
            bytes,
            positions: false,
            read,
        }
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
                self.read.push((path.clone(), 0));
            }
            let Some(reader) = &mut self.reader else {
                return Ok(false);
            };
            let path = &self.files[self.next - 1];
            self.bytes.clear();
            let limit = BATCH_EDGES as u64 * PAIR_BYTES;
            reader
                .take(limit)
                .read_to_end(&mut self.bytes)
                .map_err(|e| decompress::read_error(path, e))?;
            if self.bytes.is_empty() {
                self.reader = None;
                continue;
            }
            check_length(path, self.bytes.len() as u64)?;
            decode(&self.bytes, batch);
            if self.positions {
                batch.number(self.read.iter().map(|(_, pairs)| pairs).sum());
            }
            if let Some((_, pairs)) = self.read.last_mut() {
                *pairs += batch.len() as u64;
            }
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

    fn note_positions(&mut self) {
        self.positions = true;
    }

    fn inputs(&self) -> Vec<InputPart> {
        self.read.clone()
    }
}

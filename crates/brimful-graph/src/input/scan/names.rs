//! The first pass over an input with string ids.
//!
//! Names become local numbers while the input is read, and ranks when all names are known. Then
//! edges are counted and spooled again by rank, and the import continues as with the integers 0 to
//! n - 1, all of them declared. Invariant: the file of names is complete before any rank is used.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use brimful_store::huge::HugeArray;
use brimful_store::memory::release_free_memory;

use crate::edges::{EdgeBatch, EdgeSource, Spool, SpooledEdges};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::ids::names::{InternBuffers, Interner, NameBatch, NameWriter, RankTables, Runs};
use crate::input::formats::TextFile;
use crate::input::formats::parser::{Output, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, TextReader};
use crate::input::pump::pump;
use crate::input::scan::text::summarized;
use crate::input::scan::{InputScan, Reader, Reading, ScanSummary, each_part};
use crate::input::stream::EdgeStream;
use crate::input::text::Signs;

/// The least memory for a generation of names, in bytes.
const MIN_BYTES: u64 = 1 << 20;

impl Reader<'_> {
    /// Refuses options that do not apply to strings.
    pub(crate) fn check_names(&self) -> Result<()> {
        let refused = match (self.declared > 0, self.hashes_weights) {
            (true, _) => "--vertices N declares the ids 0 to N-1",
            (_, true) => "--weights hash makes weights of integer ids",
            _ => return Ok(()),
        };
        Err(Error::Usage(format!("{refused}, and the ids of this input are strings; leave it out")))
    }

    /// Memory for a generation of names in this phase, in bytes.
    pub(super) fn names_bytes(&self, decoder_bytes: u64) -> u64 {
        let buffers = self.resources.workers() as u64 * NameBatch::MEMORY_BYTES;
        (self.bitmap_bytes + self.decoder_bytes)
            .saturating_sub(decoder_bytes + buffers)
            .max(MIN_BYTES)
    }

    /// Reads text with string ids; `first` is the first file if it is already open.
    pub(crate) fn read_named_text<'i>(
        &self,
        files: &[TextFile],
        mut first: Option<Box<dyn Read + Send>>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        self.check_names()?;
        let resources = self.resources;
        let open = |path: &Path| first.take().map_or_else(|| self.open(path), Ok);
        let reader = TextReader::new(files, self.directed, CHUNK_BYTES, Box::new(open));
        let mut reader = reader.with_columns(self.columns).with_names();
        let parser = TextParser::new(files, self.on_error).noting_positions(self.positions);
        // A decompressor needs memory for its window at the same time.
        let plain = files.iter().all(|file| self.is_plain(&file.path));
        let bytes = self.names_bytes(if plain { 0 } else { self.decoder_bytes });
        let interner = Interner::new(self.folder, bytes, resources)?;
        let take = |out: &mut Output, buffers: &mut InternBuffers| -> Result<()> {
            interner.add_edges(&out.names, buffers)?;
            interner.add_vertices(&out.declared_names, buffers)?;
            out.names.clear();
            out.declared_names.clear();
            Ok(())
        };
        pump(
            resources,
            |chunk| reader.next(chunk),
            || Ok((Output::default(), InternBuffers::default())),
            |(out, buffers), _, chunk| parser.parse(chunk, out, &mut |out| take(out, buffers)),
            |(mut out, mut buffers)| take(&mut out, &mut buffers),
        )?;
        let summary = parser.finish(reader.into_ends())?;
        if summary.undirected {
            scan.take_both_directions();
        }
        let (spool, names) = self.rank(interner, &scan, bytes)?;
        let declared = self.declare(&scan, 0..names, None)?;
        let seen = summarized(files, scan, summary, declared, Signs::default())?;
        Ok((Box::new(spool), ScanSummary { id_type: IdType::String, ..seen }))
    }

    /// Reads a stream with string ids.
    pub(crate) fn read_named_stream<'i>(
        &self,
        stream: &mut dyn EdgeStream,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        self.check_names()?;
        let resources = self.resources;
        let bytes = self.names_bytes(0);
        let interner = Interner::new(self.folder, bytes, resources)?;
        pump(
            resources,
            |(edges, vertices)| {
                let more = stream.next_names(edges)?;
                stream.next_vertex_names(vertices);
                Ok(more)
            },
            || Ok(InternBuffers::default()),
            |buffers, _, (edges, vertices): &mut (NameBatch, NameBatch)| {
                resources.job.advance(edges.len() as u64 / 2);
                interner.add_vertices(vertices, buffers)?;
                interner.add_edges(edges, buffers)
            },
            |_| Ok(()),
        )?;
        let (mut batch, mut buffers) = (NameBatch::default(), InternBuffers::default());
        for name in stream.listed_names() {
            batch.push(name.as_bytes());
            if batch.is_full() {
                interner.add_vertices(&batch, &mut buffers)?;
                batch.clear();
            }
        }
        interner.add_vertices(&batch, &mut buffers)?;
        let (spool, names) = self.rank(interner, &scan, bytes)?;
        let declared = self.declare(&scan, 0..names, None)?;
        Ok((Box::new(spool), self.summary_of_stream(stream, scan, declared)?))
    }

    /// Writes the names and counts the edges by rank; returns the edges and the number of names.
    fn rank(
        &self,
        interner: Interner<'_>,
        scan: &InputScan,
        bytes: u64,
    ) -> Result<(SpooledEdges, u64)> {
        let job = &self.resources.job;
        let (runs, locals, generations) = interner.finish()?;
        // Tables grow in small allocations; freed, these would stay with the process.
        release_free_memory();
        let tables = self.write_names(runs, bytes)?;
        let spool = Spool::new(self.folder, job)?;
        job.begin("rank edges", locals.parts() as u64);
        for (run, generation) in generations.iter().enumerate() {
            let mut table: HugeArray<u32> = HugeArray::zeroed(generation.locals);
            tables.load(run, &mut table)?;
            let rank = |local: &u64| u64::from(table[*local as usize]);
            let work = |(ranked, buffers): &mut (EdgeBatch, Vec<u8>), batch: &EdgeBatch| {
                ranked.clear();
                ranked.sources.extend(batch.sources.iter().map(rank));
                ranked.targets.extend(batch.targets.iter().map(rank));
                ranked.weights.extend_from_slice(&batch.weights);
                ranked.positions.extend_from_slice(&batch.positions);
                scan.add(ranked);
                job.advance(1);
                self.spool(&spool, ranked, buffers)
            };
            let parts = Parts { source: &locals, range: generation.parts.clone() };
            each_part(&parts, self.resources, || Ok(Default::default()), work, |_| Ok(()))?;
        }
        release_free_memory();
        Ok((spool.into_source(), tables.names))
    }
}

impl Reader<'_> {
    /// Merges the runs of all generations, and writes the names.
    pub(super) fn write_names(&self, runs: Runs, bytes: u64) -> Result<RankTables> {
        let job = &self.resources.job;
        job.begin("sort names", runs.names());
        let mut file = NameWriter::create(self.folder, job.traffic())?;
        let tables = runs.merge(self.folder, bytes, self.resources, |name| file.push(name))?;
        file.finish()?;
        Ok(tables)
    }
}

/// A range of the parts of a source.
struct Parts<'s> {
    source: &'s SpooledEdges,
    range: Range<usize>,
}

impl EdgeSource for Parts<'_> {
    fn parts(&self) -> usize {
        self.range.len()
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        self.source.read_part(self.range.start + part, batch)
    }
}

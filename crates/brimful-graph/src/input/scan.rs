//! The scan, the first pass of an import: counts the input, finds its ids, and samples edges for
//! the choice of the internal order.
//!
//! The edges of an input that can be read only once are copied to a spool. Invariant: the second
//! pass reads exactly the edges that the scan counts.

mod names;
mod parsed;

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::external::{input_len, open_input};
use brimful_store::{Folder, Resources};

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource, Spool};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::input::columns::{ColumnChoice, Columns};
use crate::input::decompress;
use crate::input::formats::parser::{OnError, Output, Summary, TextParser, VertexClaim};
use crate::input::formats::reader::{CHUNK_BYTES, TextReader, no_names};
use crate::input::formats::{TextFile, TextFormat, graphalytics, webgraph::WebGraph};
use crate::input::id_choice;
use crate::input::id_choice::IdChoice;
use crate::input::pairs::{PairFiles, PairStream};
use crate::input::policy::Policy;
use crate::input::pump::{chunks_in_flight, pump};
use crate::input::source::Input;
use crate::input::stream::{EdgeStream, Listed, Rejection};
use crate::input::text::{Signs, check_signs};
use crate::input_position::{InputPart, PositionedEdge};
use crate::order::bitmap::IdBitmap;
use crate::order::choice::{EdgeSample, Sampled};

/// Bytes of chunks, batches (with input positions, if `positions`) and spool buffers of a reading
/// pass.
pub(crate) fn reading_bytes(workers: usize, positions: bool) -> u64 {
    let batch = BATCH_EDGES * (8 + 8 + 8 + if positions { 8 } else { 0 });
    ((chunks_in_flight(workers) + 1) * CHUNK_BYTES + workers * 2 * batch) as u64
}

/// The vertices that exist even without an edge.
pub(crate) struct Declared {
    /// Ranges that a header or the user declares: disjoint, ascending, possibly empty.
    pub(crate) ranges: [Range<u64>; 2],
    /// Single ids, unordered and with repeats.
    pub(crate) listed: Option<Listed>,
}

impl Declared {
    /// The declared ids 0 to `count` - 1, with those of a range and of a list.
    fn new(count: u64, range: Range<u64>, listed: Option<Listed>) -> Self {
        let ranges =
            if range.start <= count { [0..count.max(range.end), 0..0] } else { [0..count, range] };
        Self { ranges, listed }
    }

    /// Number of ids in the ranges.
    pub(crate) fn numbered(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// True if no vertex is declared.
    pub(crate) fn is_none(&self) -> bool {
        self.numbered() == 0 && self.listed.is_none()
    }
}

/// The results of the scan.
pub(crate) struct ScanSummary {
    pub(crate) id_type: IdType,
    pub(crate) weighted: bool,
    pub(crate) lines: u64,
    pub(crate) edges: u64,
    pub(crate) self_loops: u64,
    /// The first dropped self-loop, with the bits of its ids.
    pub(crate) first_self_loop: Option<PositionedEdge>,
    /// The parts of the input, for input positions.
    pub(crate) inputs: Vec<InputPart>,
    /// The chosen columns, if the format leaves a choice.
    pub(crate) columns: Option<Columns>,
    /// `None` if the set of ids exceeds its memory.
    pub(crate) bitmap: Option<IdBitmap>,
    pub(crate) sampled: Sampled,
    /// The vertices that exist even without an edge.
    pub(crate) declared: Declared,
    /// True if edges may name declared vertices only.
    pub(crate) all_declared: bool,
    /// True if the format declares edges as undirected.
    pub(crate) undirected: bool,
    pub(crate) rejected: u64,
    pub(crate) rejections: Vec<Rejection>,
    /// The number of vertices that the input declares.
    pub(crate) claim: Option<VertexClaim>,
}

/// Counters and ids of the whole input, filled by many threads.
pub(crate) struct InputScan {
    bitmap: IdBitmap,
    sample: EdgeSample,
    /// True if self-loops are dropped. A vertex without another edge then counts as declared.
    drops_self_loops: bool,
    edges: AtomicU64,
    self_loops: AtomicU64,
    first_self_loop: Mutex<Option<PositionedEdge>>,
}

/// Edges copied at once when self-loops are removed.
const COPIED_EDGES: usize = 1 << 10;

impl InputScan {
    pub(crate) fn new(bitmap: IdBitmap, undirected: bool, drops_self_loops: bool) -> Self {
        let sample = EdgeSample::new(undirected);
        let (edges, self_loops) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            bitmap,
            sample,
            drops_self_loops,
            edges,
            self_loops,
            first_self_loop: Mutex::default(),
        }
    }

    /// From now on, counts edges in both directions, as the input declares.
    pub(crate) fn take_both_directions(&self) {
        self.sample.take_both_directions();
    }

    pub(crate) fn add(&self, batch: &EdgeBatch) {
        let loops = batch.sources.iter().zip(&batch.targets).filter(|(s, t)| s == t).count();
        if loops > 0 && self.drops_self_loops {
            self.add_without_loops(batch);
            self.note_first_loop(batch);
        } else {
            self.bitmap.insert_edges(batch);
            self.sample.add(batch);
        }
        self.edges.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.self_loops.fetch_add(loops as u64, Ordering::Relaxed);
    }

    fn add_without_loops(&self, batch: &EdgeBatch) {
        let (mut kept, mut loops) = (EdgeBatch::default(), Vec::new());
        let chunks = batch.sources.chunks(COPIED_EDGES).zip(batch.targets.chunks(COPIED_EDGES));
        for (sources, targets) in chunks {
            for (&source, &target) in sources.iter().zip(targets) {
                if source == target {
                    loops.push(source);
                } else {
                    kept.sources.push(source);
                    kept.targets.push(target);
                }
            }
            self.bitmap.insert_declared(&loops);
            self.bitmap.insert_edges(&kept);
            self.sample.add(&kept);
            loops.clear();
            kept.clear();
        }
    }

    fn note_first_loop(&self, batch: &EdgeBatch) {
        let edges = batch.sources.iter().zip(&batch.targets).zip(&batch.positions);
        let loops = edges.filter(|((source, target), _)| source == target);
        let first = loops
            .filter_map(|((&source, &target), &position)| {
                PositionedEdge::new(position, (source, target))
            })
            .min();
        let mut kept = self.first_self_loop.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = PositionedEdge::earlier(*kept, first);
    }

    pub(crate) fn into_summary(
        self,
        declared: Declared,
        id_type: IdType,
        weighted: bool,
        lines: u64,
    ) -> ScanSummary {
        ScanSummary {
            id_type,
            weighted,
            lines,
            edges: self.edges.into_inner(),
            self_loops: self.self_loops.into_inner(),
            first_self_loop: self
                .first_self_loop
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
            inputs: Vec::new(),
            columns: None,
            bitmap: Some(self.bitmap).filter(|bitmap| !bitmap.is_incomplete()),
            sampled: self.sample.finish(),
            declared,
            all_declared: false,
            undirected: false,
            rejected: 0,
            rejections: Vec::new(),
            claim: None,
        }
    }
}

/// Reads inputs in the scan.
pub(crate) struct Reader<'a> {
    /// The folder of the spool.
    pub(crate) folder: &'a dyn Folder,
    pub(crate) resources: &'a Resources,
    /// The vertices 0 to n - 1 exist, whatever the input contains.
    pub(crate) declared: u64,
    /// True to store every edge in both directions.
    pub(crate) undirected: bool,
    /// True to store every edge only in its written direction; an edge listed at both ends becomes
    /// two arcs.
    pub(crate) directed: bool,
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
    pub(crate) fn read<'i>(
        &self,
        input: &'i mut Input<'_>,
    ) -> Result<(Box<dyn EdgeSource + 'i>, ScanSummary)> {
        let bitmap = IdBitmap::new(self.bitmap_bytes);
        let scan = InputScan::new(bitmap, self.undirected, self.policy.drops_self_loops());
        if let (IdChoice::String, Some(format)) = (self.ids, input.numbered()) {
            let what =
                format!("ids of {format} are integers by definition; leave --ids string out");
            return Err(Error::Usage(what));
        }
        match input {
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
            Input::Parsed(parsed) => self.read_parsed(parsed, scan),
            Input::Pairs(files) => self.read_pairs(files, scan),
            Input::Stream(stream) => self.read_stream(&mut **stream, scan),
            Input::Numbered(source, vertices) => {
                let source: &dyn EdgeSource = *source;
                let edges = self.read_twice(source, &scan, source.parts() as u64, |_| 1)?;
                let declared = self.settle(&scan, 0..*vertices, None)?;
                Ok((Box::new(source), scan.into_summary(declared, IdType::Int64, false, edges)))
            }
        }
    }

    /// Reads text whose ids are integers or strings, by the user's choice or the text.
    fn read_words<'i>(
        &self,
        files: &[TextFile],
        scan: InputScan,
    ) -> Result<(Box<dyn EdgeSource + 'i>, ScanSummary)> {
        self.begin_text(files);
        let numbers = files.iter().find(|file| !file.format.may_have_names());
        match (self.ids, numbers, files.first()) {
            (IdChoice::String, Some(file), _) => Err(no_names(&file.path, file.format)),
            (IdChoice::String, None, _) => self.read_named_text(files, None, scan),
            (IdChoice::Auto, None, Some(first)) => {
                let opened = self.open(&first.path)?;
                match id_choice::look_at(opened, &first.path, first.format, self.columns)? {
                    (true, opened) => self.read_named_text(files, Some(opened), scan),
                    (false, opened) => self.read_text(files, Some(opened), scan),
                }
            }
            _ => self.read_text(files, None, scan),
        }
    }

    /// Shows progress by the lengths of the files, if they are known.
    fn begin_text(&self, files: &[TextFile]) {
        let lengths: Option<u64> = files.iter().map(|file| input_len(&file.path)).sum();
        self.resources.job.begin("read", lengths.unwrap_or(0));
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
    pub(crate) fn settle(
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

    /// Reads text with integer ids; `first` is the first file if it is already open.
    fn read_text<'i>(
        &self,
        files: &[TextFile],
        first: Option<Box<dyn Read + Send>>,
        scan: InputScan,
    ) -> Result<(Box<dyn EdgeSource + 'i>, ScanSummary)> {
        // Vertex lists come first, because edges may name only their vertices.
        let (vertices, edges): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| file.format == TextFormat::Vertices);
        let spool = Spool::new(self.folder, &self.resources.job)?;
        let listed = Spool::new(self.folder, &self.resources.job)?;
        let mut signs = Signs::default();
        let before = match vertices.is_empty() {
            true => None,
            false => {
                let spools = [&spool, &listed];
                Some(self.pump_text(&vertices, None, &scan, spools, &mut signs, (None, 0))?)
            }
        };
        let lines = before.as_ref().map_or(0, |summary| summary.lines);
        let all_declared = before.is_some();
        let settle = |listed: Spool, numbered| self.settle(&scan, numbered, listed_in(listed));
        let (summary, declared) = if let Some(before) = before {
            let declared = settle(listed, 0..0)?;
            let members = Some(&scan.bitmap).filter(|bitmap| !bitmap.is_incomplete());
            // Files of edges declare no vertices.
            let none = Spool::new(self.folder, &self.resources.job)?;
            let spools = [&spool, &none];
            let summary =
                self.pump_text(&edges, first, &scan, spools, &mut signs, (members, lines))?;
            (summary.after(before), declared)
        } else {
            let spools = [&spool, &listed];
            let summary = self.pump_text(&edges, first, &scan, spools, &mut signs, (None, 0))?;
            let declared = settle(listed, summary.numbered())?;
            (summary, declared)
        };
        let seen = summarized(files, scan, summary, declared, signs)?;
        Ok((Box::new(spool.into_source()), ScanSummary { all_declared, ..seen }))
    }

    /// Adds the edges of `out` to the scan and one spool, and its vertices to the other.
    fn take_numbers(
        &self,
        out: &mut Output,
        scan: &InputScan,
        [spool, listed]: [&Spool; 2],
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if !out.edges.is_empty() {
            scan.add(&out.edges);
            self.spool(spool, &mut out.edges, buffer)?;
            out.edges.clear();
        }
        if !out.declared.is_empty() {
            listed.append(&out.declared, buffer)?;
            out.declared.clear();
        }
        Ok(())
    }

    /// Reads files on all cores: spools edges among `members` in one spool, vertices in the other.
    fn pump_text(
        &self,
        files: &[TextFile],
        mut first: Option<Box<dyn Read + Send>>,
        scan: &InputScan,
        [spool, listed]: [&Spool; 2],
        signs: &mut Signs,
        (members, lines): (Option<&IdBitmap>, u64),
    ) -> Result<Summary> {
        let resources = self.resources;
        let open = |path: &Path| first.take().map_or_else(|| self.open(path), Ok);
        let reader = TextReader::new(files, self.directed, CHUNK_BYTES, Box::new(open));
        let mut reader = reader.with_columns(self.columns).after_lines(lines);
        let parser =
            TextParser::new(files, self.on_error).noting_positions(self.positions).among(members);
        let all_signs = Mutex::new(signs);
        let take = |out: &mut Output, buffer: &mut Vec<u8>| {
            self.take_numbers(out, scan, [spool, listed], buffer)
        };
        pump(
            resources,
            |chunk| {
                let more = reader.next(chunk)?;
                if reader.undirected() {
                    scan.take_both_directions();
                }
                Ok(more)
            },
            || Ok((Output::default(), Vec::new())),
            |(out, buffer), _, chunk| parser.parse(chunk, out, &mut |out| take(out, buffer)),
            |(mut out, mut buffer)| {
                all_signs.lock().unwrap_or_else(PoisonError::into_inner).merge(out.signs);
                take(&mut out, &mut buffer)
            },
        )?;
        parser.finish(reader.into_ends())
    }

    fn read_pairs<'i>(
        &self,
        files: &[PathBuf],
        scan: InputScan,
    ) -> Result<(Box<dyn EdgeSource + 'i>, ScanSummary)> {
        if !files.iter().all(|path| self.is_plain(path)) {
            let mut stream = PairStream::new(files, self.decoder_bytes, self.resources);
            return self.read_stream(&mut stream, scan);
        }
        let source = PairFiles::open(files, &self.resources.job)?.noting_positions(self.positions);
        let pairs = source.pairs();
        self.read_twice(&source, &scan, pairs, |batch| batch.len() as u64)?;
        let declared = self.settle(&scan, 0..0, None)?;
        let inputs = files.iter().cloned().zip(source.lengths()).collect();
        let seen = scan.into_summary(declared, IdType::UInt32, false, pairs);
        Ok((Box::new(source), ScanSummary { inputs, ..seen }))
    }

    fn read_stream<'i>(
        &self,
        stream: &mut dyn EdgeStream,
        scan: InputScan,
    ) -> Result<(Box<dyn EdgeSource + 'i>, ScanSummary)> {
        let resources = self.resources;
        resources.job.begin("read", 0);
        if self.positions {
            stream.note_places();
        }
        if stream.undirected() && !self.directed {
            scan.take_both_directions();
        }
        if stream.has_names() {
            return self.read_named_stream(stream, scan);
        }
        let spool = Spool::new(self.folder, &resources.job)?;
        let listed = Spool::new(self.folder, &resources.job)?;
        pump(
            resources,
            |(edges, vertices)| {
                let more = stream.next(edges)?;
                stream.next_vertices(vertices);
                Ok(more)
            },
            || Ok(Vec::new()),
            |buffer, _, (edges, vertices): &mut (EdgeBatch, EdgeBatch)| {
                scan.add(edges);
                resources.job.advance(edges.len() as u64);
                if !vertices.is_empty() {
                    listed.append(vertices, buffer)?;
                }
                if edges.is_empty() { Ok(()) } else { self.spool(&spool, edges, buffer) }
            },
            |_| Ok(()),
        )?;
        if let Some(more) = stream.listed() {
            let (mut batch, mut buffer) = (EdgeBatch::default(), Vec::new());
            for part in 0..more.parts() {
                more.read_part(part, &mut batch)?;
                listed.append(&batch, &mut buffer)?;
            }
        }
        let edges = scan.edges.load(Ordering::Relaxed);
        let rejections = stream.rejections();
        let rejected = rejections.iter().map(|rejection| rejection.count).sum();
        let claim = self.claim_of(stream, rejected)?;
        let declared = self.settle(&scan, stream.declared(), listed_in(listed))?;
        let seen =
            scan.into_summary(declared, stream.id_type()?, stream.weighted(), edges + rejected);
        let (undirected, inputs, columns) =
            (stream.undirected(), stream.inputs(), stream.columns());
        let seen = ScanSummary { undirected, rejected, rejections, inputs, columns, claim, ..seen };
        Ok((Box::new(spool.into_source()), seen))
    }
}

impl Reader<'_> {
    /// The number of vertices that a finished stream declares, to be compared when all vertices are
    /// known.
    pub(crate) fn claim_of(
        &self,
        stream: &dyn EdgeStream,
        rejected: u64,
    ) -> Result<Option<VertexClaim>> {
        let claimed = stream.check()?.filter(|_| rejected == 0);
        Ok(claimed.map(|vertices| VertexClaim { path: stream.name().into(), line: None, vertices }))
    }
}

/// The vertices in a spool, if there are any.
fn listed_in(spool: Spool) -> Option<Listed> {
    let listed = spool.into_source();
    (listed.parts() > 0).then(|| Box::new(listed) as Listed)
}

/// The results of the scan of text with integer ids.
fn summarized(
    files: &[TextFile],
    scan: InputScan,
    summary: Summary,
    declared: Declared,
    signs: Signs,
) -> Result<ScanSummary> {
    check_signs(signs, files.first().map_or(Path::new("-"), |file| &file.path))?;
    let id_type = if signs.huge { IdType::UInt64 } else { IdType::Int64 };
    Ok(ScanSummary {
        undirected: summary.undirected,
        rejected: summary.rejected,
        rejections: summary.rejections,
        inputs: summary.inputs,
        columns: summary.columns,
        claim: summary.claim,
        ..scan.into_summary(declared, id_type, summary.weighted, summary.lines)
    })
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

//! Reading a file for an import in another process.
//!
//! Invariant: the messages of a file depend on the file and the choices alone.

use std::io::Read;
use std::path::Path;

use brimful_store::Resources;
use brimful_store::external::open_input;

use crate::edges::BATCH_EDGES;
use crate::error::Result;
use crate::ids::names::NameBatch;
use crate::input::columns::ColumnChoice;
use crate::input::decompress;
use crate::input::formats::TextFile;
use crate::input::formats::parser::{OnError, Output, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, Chunk, TextReader, no_names};
use crate::input::id_choice::{self, IdChoice};
use crate::input::parsed::{BATCH, END, RANGES, Scanned, batch, damaged, end_message};
use crate::input::policy::Policy;
use crate::input::scan::InputScan;
use crate::input::stream::EdgeStream;
use crate::order::bitmap::IdBitmap;
use crate::order::choice::Sampled;

/// The purpose of the budget, in error messages.
const PURPOSE: &str = "to read a file of edges";
/// The least memory for the window of a decompressor.
const DECODER_BYTES: u64 = 16 << 20;

/// The choices of an import that concern the parsing of a file.
#[derive(Debug, Clone)]
pub struct Choices {
    /// True if ids are strings.
    pub names: bool,
    /// True to store every edge only in its written direction.
    pub directed: bool,
    /// The choice of columns.
    pub columns: ColumnChoice,
    /// The treatment of lines that are not edges.
    pub on_error: OnError,
    /// The choices that concern the scan.
    pub scan: ScanChoices,
}

/// The choices of an import that concern the scan of edges.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanChoices {
    /// True to store every edge in both directions.
    pub undirected: bool,
    /// The policy for self-loops and duplicates.
    pub policy: Policy,
}

/// True if the ids of an input are strings, by the user's choice or its first file.
///
/// # Errors
/// [`Error::Usage`] if the ids cannot have the type that the user chose; errors of reading.
pub fn has_names(
    first: &TextFile,
    ids: IdChoice,
    columns: &ColumnChoice,
    resources: &Resources,
) -> Result<bool> {
    match (ids, first.format.may_have_names()) {
        (IdChoice::String, false) => Err(no_names(&first.path, first.format)),
        (IdChoice::String, true) => Ok(true),
        (IdChoice::Auto, true) => {
            // A decoder touches only as much of its window as it decodes.
            let opened = open(&first.path, u64::MAX, resources)?;
            Ok(id_choice::detect(opened, &first.path, first.format, columns)?.0)
        }
        _ => Ok(false),
    }
}

/// The smallest budget of [`parse_file`] and [`read_stream`], in bytes besides the process.
pub fn minimum_bytes(positions: bool) -> u64 {
    let edge = 8 + 8 + 8 + if positions { 8 } else { 0 };
    // The text of this chunk and of the next one; a batch of edges or of names, and its message.
    let reading = 2 * CHUNK_BYTES + 3 * BATCH_EDGES * edge;
    reading as u64 + 2 * NameBatch::MEMORY_BYTES + DECODER_BYTES + SCAN_BYTES
}

/// The least memory of a scan: a set of ids without ids, and a sample.
const SCAN_BYTES: u64 = 4 * IdBitmap::BASE_BYTES;

/// Parses a file on this thread, and passes its messages to `send`, each with its label.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of an import of the file.
pub fn parse_file(
    file: &TextFile,
    choices: &Choices,
    resources: &Resources,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let positions = choices.scan.policy.leaves_out();
    let minimum = minimum_bytes(positions);
    let decoder = decompress::decoder_bytes(&file.path, &resources.job)?;
    let more = decoder.saturating_sub(DECODER_BYTES);
    resources.budget.require(minimum.saturating_add(more), PURPOSE)?;
    let memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let scan_bytes = if choices.names { 0 } else { (memory.bytes() - minimum - more) / 2 };
    let decoder_bytes = memory.bytes() - minimum - scan_bytes + DECODER_BYTES;
    let files = std::slice::from_ref(file);
    let opener = |path: &Path| open(path, decoder_bytes, resources);
    let reader = TextReader::new(files, choices.directed, CHUNK_BYTES, Box::new(opener));
    let mut reader = reader.with_columns(&choices.columns);
    if choices.names {
        reader = reader.with_names();
    }
    let parser = TextParser::new(files, choices.on_error).noting_positions(positions);
    let (mut chunk, mut out) = (Chunk::default(), Output::default());
    let mut sender = Sender::new(choices.scan, (!choices.names).then_some(scan_bytes), send);
    while reader.next(&mut chunk)? {
        resources.job.check()?;
        sender.text_bytes += chunk.bytes.len() as u64;
        if reader.undirected() {
            sender.take_both_directions();
        }
        parser.parse(&chunk, &mut out, &mut |out| sender.send(out))?;
    }
    sender.send(&mut out)?;
    let facts = parser.found(reader.into_ends(), out.signs);
    sender.end(&serde_json::to_vec(&facts).map_err(|_| damaged())?)
}

/// Reads a stream of edges with integer ids on this thread, and passes its messages to `send`, each
/// with its label. `facts` gives the facts about the stream at its end.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of the stream.
pub fn read_stream<E: EdgeStream>(
    stream: &mut E,
    directed: bool,
    choices: ScanChoices,
    resources: &Resources,
    facts: impl FnOnce(&E) -> Result<Vec<u8>>,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let positions = choices.policy.leaves_out();
    let minimum = minimum_bytes(positions);
    resources.budget.require(minimum, PURPOSE)?;
    let memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    if positions {
        stream.note_places();
    }
    let mut sender = Sender::new(choices, Some(memory.bytes() - minimum), send);
    if stream.undirected() && !directed {
        sender.take_both_directions();
    }
    let mut out = Output::default();
    while stream.next(&mut out.edges)? {
        resources.job.check()?;
        stream.next_vertices(&mut out.declared);
        sender.send(&mut out)?;
    }
    sender.end(&facts(stream)?)
}

fn open(path: &Path, decoder_bytes: u64, resources: &Resources) -> Result<Box<dyn Read + Send>> {
    decompress::open(open_input(path, &resources.job)?, path, decoder_bytes)
}

/// Sends the messages of a file.
struct Sender<S> {
    /// `None` if ids are strings, which are known by their ranks only later.
    scan: Option<InputScan>,
    policy: Policy,
    has_list: bool,
    /// Bytes of text that were parsed since the last message.
    text_bytes: u64,
    send: S,
}

impl<S: FnMut(usize, Vec<u8>) -> Result<()>> Sender<S> {
    /// `scan_bytes`: memory for the set of ids, beyond `SCAN_BYTES`.
    fn new(choices: ScanChoices, scan_bytes: Option<u64>, send: S) -> Self {
        let ScanChoices { undirected, policy } = choices;
        let scan = scan_bytes.map(|bytes| {
            let set = IdBitmap::new(2 * IdBitmap::BASE_BYTES + bytes);
            InputScan::new(set, undirected, policy.drops_self_loops())
        });
        Self { scan, policy, has_list: false, text_bytes: 0, send }
    }

    fn take_both_directions(&self) {
        self.scan.iter().for_each(InputScan::take_both_directions);
    }

    /// Scans and sends edges and vertices, which are removed from `out`.
    fn send(&mut self, out: &mut Output) -> Result<()> {
        if let Some(scan) = &self.scan {
            if out.edges.is_empty() && out.declared.is_empty() {
                return Ok(());
            }
            scan.add(&out.edges);
            scan.bitmap.insert_declared(&out.declared.sources);
            self.has_list |= !out.declared.is_empty();
            if !self.policy.merges() {
                // Only the scan needs them.
                out.edges.positions.clear();
            }
        }
        (self.send)(BATCH, batch(out, std::mem::take(&mut self.text_bytes)))
    }

    /// Sends the ids, and the facts about the file.
    fn end(mut self, facts: &[u8]) -> Result<()> {
        let (mut scanned, mut sampled) = (Scanned::default(), Sampled::default());
        if let Some(scan) = self.scan {
            if !scan.bitmap.is_incomplete() {
                scan.bitmap.send_ranges(|range, ids| (self.send)(RANGES + range, ids))?;
            }
            (scanned, sampled) = scan.into_scanned(self.has_list);
        }
        (self.send)(END, end_message(&scanned, &sampled, facts)?)
    }
}

//! Reading a file for an import in another process.
//!
//! Invariant: the messages of a file depend on the file and the choices alone.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use brimful_store::external::open_input;
use brimful_store::{Folder, Resources};

use crate::edges::{BATCH_EDGES, EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::ids::names::{InternBuffers, Interner, NameBatch, Written};
use crate::input::columns::ColumnChoice;
use crate::input::decompress;
use crate::input::formats::TextFile;
use crate::input::formats::parser::{OnError, Output, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, Chunk, TextReader, no_names};
use crate::input::id_choice::{self, IdChoice};
use crate::input::parsed::{
    BATCH, END, Names, RANGES, Replacement, ScanChoices, Scanned, batch, end_message, take_batch,
};
use crate::input::policy::Policy;
use crate::input::scan::InputScan;
use crate::input::stream::EdgeStream;
use crate::message::{Message, damaged, records_of};
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
    /// The user's choice of direction: true to store every edge only in its written direction,
    /// false to store it in both.
    pub directed: Option<bool>,
    /// The choice of columns.
    pub columns: ColumnChoice,
    /// The treatment of lines that are not edges.
    pub on_error: OnError,
    /// The choices that concern the scan.
    pub scan: ScanChoices,
}

/// True if the ids of an input are strings, by the user's choice or its first file.
///
/// # Errors
/// [`crate::Error::Usage`] if the ids cannot have the type that the user chose; errors of reading.
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

/// Parses a file on this thread, and passes its messages to `send`, each with its label. Scratch
/// files are in `folder`.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of an import of the file.
pub fn parse_file(
    file: &TextFile,
    choices: &Choices,
    folder: &dyn Folder,
    resources: &Resources,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let positions = choices.scan.policy.leaves_out();
    let minimum = minimum_bytes(positions);
    let decoder = decompress::decoder_bytes(&file.path, &resources.job)?;
    let more = decoder.saturating_sub(DECODER_BYTES);
    let memory = resources.budget.reserve_all(minimum.saturating_add(more), PURPOSE)?;
    let id_bytes = (memory.bytes() - minimum - more) / 2;
    let decoder_bytes = memory.bytes() - minimum - id_bytes + DECODER_BYTES;
    let files = std::slice::from_ref(file);
    let opener = |path: &Path| open(path, decoder_bytes, resources);
    let reader = TextReader::new(files, choices.directed, CHUNK_BYTES, Box::new(opener));
    let mut reader = reader.with_columns(&choices.columns);
    if choices.names {
        reader = reader.with_names();
    }
    let parser = TextParser::new(files, choices.on_error).noting_positions(positions);
    let (mut chunk, mut out) = (Chunk::default(), Output::default());
    let mut sender = match choices.names {
        true => Sender::of_names(folder, id_bytes, resources, send)?,
        false => Sender::of_numbers(choices.scan, id_bytes, send),
    };
    while reader.next(&mut chunk)? {
        resources.job.check()?;
        if reader.undirected() {
            sender.take_both_directions();
        }
        parser.parse(&chunk, &mut out, &mut |out| sender.send(out))?;
    }
    sender.send(&mut out)?;
    let facts = parser.found(reader.into_ends(), out.signs);
    sender.end(&serde_json::to_vec(&facts).map_err(|_| damaged())?)
}

/// Reads a stream of edges on this thread, and passes its messages to `send`, each with its label.
/// `facts` gives the facts about the stream at its end. Scratch files are in `folder`.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of the stream.
pub fn read_stream<E: EdgeStream>(
    stream: &mut E,
    directed: bool,
    choices: ScanChoices,
    folder: &dyn Folder,
    resources: &Resources,
    facts: impl FnOnce(&E) -> Result<Vec<u8>>,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let positions = choices.policy.leaves_out();
    let minimum = minimum_bytes(positions);
    let memory = resources.budget.reserve_all(minimum, PURPOSE)?;
    if positions {
        stream.note_positions();
    }
    let (id_bytes, has_names) = (memory.bytes() - minimum, stream.has_names());
    let mut sender = match has_names {
        true => Sender::of_names(folder, id_bytes, resources, send)?,
        false => Sender::of_numbers(choices, id_bytes, send),
    };
    if stream.undirected() && !directed {
        sender.take_both_directions();
    }
    let mut out = Output::default();
    loop {
        resources.job.check()?;
        let has_more = match has_names {
            true => stream.next_names(&mut out.names)?,
            false => stream.next(&mut out.edges)?,
        };
        if !has_more {
            return sender.end(&facts(stream)?);
        }
        match has_names {
            true => stream.next_vertex_names(&mut out.declared_names),
            false => stream.next_vertices(&mut out.declared),
        }
        sender.send(&mut out)?;
    }
}

/// Replaces the numbers of a generation by the entries of `table`, in the batches that `batches`
/// returns until it returns `None`; passes messages to `send` as for a file with integers.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of `batches` and of `send`.
pub fn replace_numbers(
    task: &[u8],
    table: &[u8],
    resources: &Resources,
    mut batches: impl FnMut() -> Result<Option<Message>>,
    send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let replacement: Replacement = serde_json::from_slice(task).map_err(|_| damaged())?;
    let minimum = minimum_bytes(true);
    let memory = resources.budget.reserve_all(minimum, "to replace numbers by ids")?;
    let id_bytes = memory.bytes() - minimum;
    let (mut sender, entry): (_, Box<dyn Fn(usize) -> Option<u64>>) = match replacement {
        Replacement::Ranks(choices) => {
            let table: Cow<'_, [u32]> = records_of(table);
            let entry = move |number| table.get(number).map(|rank| u64::from(*rank));
            (Sender::of_numbers(choices, id_bytes, send), Box::new(entry))
        }
        Replacement::InternalIds => {
            let table: Cow<'_, [u64]> = records_of(table);
            (Sender::of_ordered(send), Box::new(move |number| table.get(number).copied()))
        }
    };
    let replace = |id: &mut u64| {
        let entry = usize::try_from(*id).ok().and_then(&entry);
        entry.map(|entry| *id = entry).ok_or_else(damaged)
    };
    let mut out = Output::default();
    while let Some(message) = batches()? {
        resources.job.check()?;
        take_batch((*message).as_ref(), &mut out)?;
        out.edges.sources.iter_mut().chain(&mut out.edges.targets).try_for_each(replace)?;
        sender.send(&mut out)?;
    }
    sender.end(&[])
}

fn open(path: &Path, decoder_bytes: u64, resources: &Resources) -> Result<Box<dyn Read + Send>> {
    decompress::open(open_input(path, &resources.job)?, path, decoder_bytes)
}

/// The ids of a file.
enum Ids<'r> {
    /// Integers.
    Numbers(InputScan, Policy),
    /// Internal ids, which are not scanned.
    Ordered,
    /// Strings, whose ranks are known only once all files are read.
    Names(Box<Interner<'r>>, Box<InternBuffers>),
}

/// Sends the messages of a file.
struct Sender<'r, S> {
    ids: Ids<'r>,
    send: S,
}

impl<'r, S: FnMut(usize, Vec<u8>) -> Result<()>> Sender<'r, S> {
    /// `bytes`: memory for the set of ids, beyond `SCAN_BYTES`.
    fn of_numbers(choices: ScanChoices, bytes: u64, send: S) -> Self {
        let ScanChoices { undirected, policy } = choices;
        let set = IdBitmap::new(2 * IdBitmap::BASE_BYTES + bytes);
        let scan = InputScan::new(set, undirected, policy.drops_self_loops());
        Self { ids: Ids::Numbers(scan, policy), send }
    }

    fn of_ordered(send: S) -> Self {
        Self { ids: Ids::Ordered, send }
    }

    /// `bytes`: memory for the names of a generation, beyond `SCAN_BYTES`.
    fn of_names(
        folder: &dyn Folder,
        bytes: u64,
        resources: &'r Resources,
        send: S,
    ) -> Result<Self> {
        let interner = Interner::new(folder, SCAN_BYTES + bytes, resources)?;
        Ok(Self { ids: Ids::Names(Box::new(interner), Box::default()), send })
    }

    /// From now on, scans edges in both directions. Ranked names are scanned later.
    fn take_both_directions(&self) {
        if let Ids::Numbers(scan, ..) = &self.ids {
            scan.take_both_directions();
        }
    }

    /// Scans and sends edges and vertices, which are removed from `out`.
    fn send(&mut self, out: &mut Output) -> Result<()> {
        match &mut self.ids {
            Ids::Numbers(scan, policy) => {
                if out.edges.is_empty() && out.declared.is_empty() {
                    return Ok(());
                }
                scan.add(&out.edges);
                scan.bitmap.insert_declared(&out.declared.sources);
                if !policy.merges() {
                    // Only the scan needs them.
                    out.edges.positions.clear();
                }
                (self.send)(BATCH, batch(out))
            }
            Ids::Ordered => (self.send)(BATCH, batch(out)),
            Ids::Names(interner, buffers) => {
                interner.add_edges(&out.names, buffers)?;
                interner.add_vertices(&out.declared_names, buffers)?;
                out.names.clear();
                out.declared_names.clear();
                Ok(())
            }
        }
    }

    /// Sends the ids, and the facts about the file.
    fn end(self, facts: &[u8]) -> Result<()> {
        let Self { ids, mut send } = self;
        let (scanned, sampled) = match ids {
            Ids::Numbers(scan, _) => {
                if !scan.bitmap.is_incomplete() {
                    scan.bitmap.send_ranges(|range, ids| send(RANGES + range, ids))?;
                }
                scan.into_scanned()
            }
            Ids::Ordered => (Scanned { is_whole: true, ..Scanned::default() }, Sampled::default()),
            Ids::Names(interner, _) => {
                send_names(*interner, &mut send)?;
                (Scanned { is_whole: true, ..Scanned::default() }, Sampled::default())
            }
        };
        send(END, end_message(&scanned, &sampled, facts)?)
    }
}

/// Sends the names of each generation, and its edges by the numbers of names.
fn send_names(
    interner: Interner<'_>,
    send: &mut impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let (runs, edges, generations) = interner.finish()?;
    let (mut out, mut part) = (Output::default(), EdgeBatch::default());
    for (generation, Written { parts, locals }) in generations.into_iter().enumerate() {
        let label = RANGES + 2 * generation;
        runs.send(generation, |facts, piece| {
            let length = locals as u64;
            send(label, Names { length, facts, piece }.message())
        })?;
        for at in parts {
            edges.read_part(at, &mut part)?;
            out.edges.append(&part);
            if out.edges.len() >= BATCH_EDGES {
                send(label + 1, batch(&mut out))?;
            }
        }
        if !out.edges.is_empty() {
            send(label + 1, batch(&mut out))?;
        }
    }
    Ok(())
}

//! Text files that other processes parse: the messages that carry their edges.
//!
//! A process parses a file and sends batches of its edges, then the facts that the import itself
//! would have found. Invariant: the messages of a file depend on the file and the choices alone, so
//! that another process can continue where one is lost.

use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_store::Resources;
use brimful_store::external::open_input;

use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::{Error, Result};
use crate::ids::names::NameBatch;
use crate::input::columns::ColumnChoice;
use crate::input::decompress;
use crate::input::formats::parser::{Found, OnError, Output, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, Chunk, TextReader, no_names};
use crate::input::formats::{TextFile, TextFormat};
use crate::input::id_choice::{self, IdChoice};
use crate::message::{Messages, put, take};

/// The purpose of the budget, in error messages.
const PURPOSE: &str = "to parse a file of edges";
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
    /// True to pass on the input positions of edges.
    pub positions: bool,
}

/// Files of one text format, which other processes parse.
pub struct ParsedFiles<'m> {
    /// Their format.
    pub format: TextFormat,
    /// Their names in messages to the user.
    pub paths: Vec<PathBuf>,
    /// True if ids are strings: [`has_names`] of the first file.
    pub names: bool,
    /// Their contents.
    pub messages: &'m mut dyn Messages,
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

/// The smallest budget of [`parse_file`], in bytes besides the process.
pub fn minimum_bytes(positions: bool) -> u64 {
    let edge = 8 + 8 + 8 + if positions { 8 } else { 0 };
    // The text of this chunk and of the next one; a batch of edges or of names, and its message.
    let reading = 2 * CHUNK_BYTES + 3 * BATCH_EDGES * edge;
    reading as u64 + 2 * NameBatch::MEMORY_BYTES + DECODER_BYTES
}

/// Parses a file on this thread, and passes its messages to `send`.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of an import of the file.
pub fn parse_file(
    file: &TextFile,
    choices: &Choices,
    resources: &Resources,
    mut send: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let minimum = minimum_bytes(choices.positions);
    let decoder = decompress::decoder_bytes(&file.path, &resources.job)?;
    let more = decoder.saturating_sub(DECODER_BYTES);
    resources.budget.require(minimum.saturating_add(more), PURPOSE)?;
    let memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let decoder_bytes = memory.bytes() - minimum + DECODER_BYTES;
    let files = std::slice::from_ref(file);
    let opener = |path: &Path| open(path, decoder_bytes, resources);
    let reader = TextReader::new(files, choices.directed, CHUNK_BYTES, Box::new(opener));
    let mut reader = reader.with_columns(&choices.columns);
    if choices.names {
        reader = reader.with_names();
    }
    let parser = TextParser::new(files, choices.on_error).noting_positions(choices.positions);
    let (mut chunk, mut out) = (Chunk::default(), Output::default());
    let (mut text_bytes, mut undirected) = (0, false);
    while reader.next(&mut chunk)? {
        resources.job.check()?;
        text_bytes += chunk.bytes.len() as u64;
        undirected |= reader.undirected();
        parser.parse(&chunk, &mut out, &mut |out| {
            send(batch(out, undirected, std::mem::take(&mut text_bytes)))
        })?;
    }
    send(batch(&mut out, undirected, text_bytes))?;
    let mut message = vec![END];
    let facts = parser.found(reader.into_ends(), out.signs);
    serde_json::to_writer(&mut message, &facts).map_err(|_| damaged_message(&file.path))?;
    send(message)
}

fn open(path: &Path, decoder_bytes: u64, resources: &Resources) -> Result<Box<dyn Read + Send>> {
    decompress::open(open_input(path, &resources.job)?, path, decoder_bytes)
}

/// The first byte of a message.
const BATCH: u8 = 0;
const END: u8 = 1;

/// The content of a message.
pub(crate) enum Content {
    /// Edges and vertices.
    Batch {
        /// True if the file declares its edges as undirected.
        undirected: bool,
        /// Bytes of text that were parsed since the last message.
        text_bytes: u64,
    },
    /// The facts about the file, after its last edges.
    End(Box<Found>),
}

/// The message of edges and vertices, which are removed from `out`.
fn batch(out: &mut Output, undirected: bool, text_bytes: u64) -> Vec<u8> {
    let mut message = vec![BATCH, u8::from(undirected)];
    put(&mut message, &[text_bytes]);
    for edges in [&mut out.edges, &mut out.declared] {
        put(&mut message, &edges.sources);
        put(&mut message, &edges.targets);
        put(&mut message, &edges.weights);
        put(&mut message, &edges.positions);
        edges.clear();
    }
    for names in [&mut out.names, &mut out.declared_names] {
        let (bytes, ends) = names.parts();
        put(&mut message, bytes);
        put(&mut message, ends);
        put(&mut message, &names.weights);
        put(&mut message, &names.positions);
        names.clear();
    }
    message
}

/// Reads a message; edges and vertices replace those of `out`.
///
/// # Errors
/// [`Error::Input`] if it is damaged.
pub(crate) fn content(message: &[u8], out: &mut Output, path: &Path) -> Result<Content> {
    let damaged = || damaged_message(path);
    match message {
        [END, facts @ ..] => {
            Ok(Content::End(serde_json::from_slice(facts).map_err(|_| damaged())?))
        }
        [BATCH, undirected, rest @ ..] => {
            let text_bytes = take_batch(rest, out).ok_or_else(damaged)?;
            Ok(Content::Batch { undirected: *undirected != 0, text_bytes })
        }
        _ => Err(damaged()),
    }
}

/// The bytes of text of a batch; `None` if it is damaged.
fn take_batch(mut rest: &[u8], out: &mut Output) -> Option<u64> {
    let rest = &mut rest;
    let mut text_bytes = Vec::new();
    take(rest, &mut text_bytes)?;
    for edges in [&mut out.edges, &mut out.declared] {
        let EdgeBatch { sources, targets, weights, positions } = edges;
        take(rest, sources)?;
        take(rest, targets)?;
        take(rest, weights)?;
        take(rest, positions)?;
        let per_edge = |len: usize| len == 0 || len == sources.len();
        (targets.len() == sources.len() && per_edge(weights.len()) && per_edge(positions.len()))
            .then_some(())?;
    }
    for names in [&mut out.names, &mut out.declared_names] {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        take(rest, &mut bytes)?;
        take(rest, &mut ends)?;
        *names = NameBatch::of_parts(bytes, ends)?;
        take(rest, &mut names.weights)?;
        take(rest, &mut names.positions)?;
    }
    (rest.is_empty() && text_bytes.len() == 1).then(|| text_bytes[0])
}

fn damaged_message(path: &Path) -> Error {
    let problem = "the process that parses it sent a damaged message; please report it";
    Error::input(path, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Vec<u8> {
        let mut out = Output::default();
        out.edges.sources = vec![1, 2];
        out.edges.targets = vec![3, 1 << 60];
        out.edges.weights = vec![0.5, -0.0];
        out.declared.sources = vec![9];
        out.declared.targets = vec![9];
        out.names.push(b"ada");
        out.names.push("zoë".as_bytes());
        out.names.positions = vec![7];
        batch(&mut out, true, 11)
    }

    #[test]
    fn a_batch_survives_the_way() {
        let mut out = Output::default();
        out.edges.sources = vec![5];
        let content = content(&sent(), &mut out, Path::new("x")).unwrap();
        assert!(matches!(content, Content::Batch { undirected: true, text_bytes: 11 }));
        assert_eq!((&*out.edges.sources, &*out.edges.targets), (&[1, 2][..], &[3, 1 << 60][..]));
        assert!(out.edges.weights[1].is_sign_negative());
        assert_eq!((out.declared.len(), out.declared_names.len()), (1, 0));
        assert_eq!(out.names.iter().collect::<Vec<_>>(), [&b"ada"[..], "zoë".as_bytes()]);
        assert_eq!(out.names.positions, [7]);
    }

    #[test]
    fn a_message_that_was_cut_is_damaged() {
        let whole = sent();
        for end in 0..whole.len() {
            let mut out = Output::default();
            assert!(content(&whole[..end], &mut out, Path::new("x")).is_err(), "{end}");
        }
    }
}

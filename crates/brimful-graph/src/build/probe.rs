//! A probe of an input before its import: the size of its graph, for a forecast.
//!
//! A header with counts states the size. Of other text, `sample` counts the edges of a part, with
//! the parsers of the import. Invariant: a probe takes a few MiB of memory and of reading, whatever
//! the input; it changes nothing and reads nothing that can be read only once.

mod sample;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_store::Job;
use brimful_store::external::{input_len, open_input};

use crate::build::import::{ImportOptions, Input};
use crate::edges::EdgeBatch;
use crate::error::Result;
use crate::input::declaration::Declaration;
use crate::input::decompress;
use crate::input::formats::webgraph::WebGraph;
use crate::input::formats::{Body, Claim, TextFile, TextFormat, graphalytics};
use crate::input::id_choice::IdChoice;
use crate::input::pairs::{self, PAIR_BYTES};
use crate::input::scan::alone;
use crate::input::stream::EdgeStream;
use sample::Front;

/// Memory limit of a decoder, in bytes: none. A decoder reserves the window that the file asks for
/// and touches as much of it as it decodes, which is [`sample::FIRST_BYTES`].
const DECODER_BYTES: u64 = u64::MAX;
/// Memory limit of the neighbor lists of a WebGraph, in bytes.
const LIST_BYTES: u64 = 1 << 27;

/// The facts that a probe finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputEstimate {
    /// Number of edges: exact if the input states it or is short, otherwise an estimate.
    pub edges: u64,
    /// The largest id that the input states, or the largest of the sample.
    pub largest: u64,
    /// True if edges have weights.
    pub weighted: bool,
    /// True if edges are undirected, unless the user overrides it.
    pub undirected: bool,
}

impl InputEstimate {
    fn join(self, other: Self) -> Self {
        Self {
            edges: self.edges.saturating_add(other.edges),
            largest: self.largest.max(other.largest),
            weighted: self.weighted || other.weighted,
            undirected: self.undirected || other.undirected,
        }
    }
}

/// Looks at an input of [`import`](crate::build::import::import), with the options of the import.
///
/// Returns `None` for an input whose size cannot be estimated: standard input and pipes, string or
/// negative ids, compressed pairs, or a file that the import cannot read.
pub fn probe(input: &Input<'_>, options: &ImportOptions) -> Option<InputEstimate> {
    let seen = try_probe(input, options);
    seen.unwrap_or_else(|error| {
        // The import meets the same flaw and reports it.
        tracing::debug!(error = %error, "sampling the input failed");
        None
    })
}

fn try_probe(input: &Input<'_>, options: &ImportOptions) -> Result<Option<InputEstimate>> {
    if options.ids == IdChoice::String {
        return Ok(None);
    }
    match input {
        Input::EdgeList(paths) => probe_texts(&alone(TextFormat::EdgeList, paths), options),
        Input::Text(format, paths) => probe_texts(&alone(*format, paths), options),
        Input::Graphalytics(paths) => {
            let files = graphalytics::files(paths, open)?;
            probe_texts(&files, options)
        }
        Input::WebGraph(path) => {
            let graph = WebGraph::open(path, LIST_BYTES, open)?;
            let largest = graph.declared().end.saturating_sub(1);
            let edges = graph.arcs();
            Ok(Some(InputEstimate { edges, largest, weighted: false, undirected: false }))
        }
        Input::Pairs(paths) => probe_each(paths.iter(), |path: &PathBuf| probe_pairs(path)),
        Input::Distributed(_) | Input::Stream(_) | Input::Numbered(..) => Ok(None),
    }
}

/// The joint facts about all `inputs`; `None` if one of them has no estimate.
fn probe_each<T>(
    inputs: impl Iterator<Item = T>,
    probe: impl Fn(T) -> Result<Option<InputEstimate>>,
) -> Result<Option<InputEstimate>> {
    let mut all: Option<InputEstimate> = None;
    for input in inputs {
        let Some(seen) = probe(input)? else { return Ok(None) };
        all = Some(all.map_or(seen, |all| all.join(seen)));
    }
    Ok(all)
}

fn probe_texts(files: &[TextFile], options: &ImportOptions) -> Result<Option<InputEstimate>> {
    // The edges of a Graphalytics graph are in its other file.
    let files = files.iter().filter(|file| !matches!(file.format, TextFormat::Vertices(_)));
    probe_each(files, |file| probe_text(file, options))
}

/// Opens a file that belongs to a graph of several files.
fn open(path: &Path) -> Result<Box<dyn std::io::Read + Send>> {
    decompress::open(open_input(path, &Arc::new(Job::new()))?, path, DECODER_BYTES)
}

/// Length of a regular file.
fn length_of(path: &Path) -> Option<u64> {
    input_len(path).filter(|_| path != Path::new("-"))
}

fn probe_text(file: &TextFile, options: &ImportOptions) -> Result<Option<InputEstimate>> {
    if let TextFormat::Graphalytics(said) = file.format
        && let (Some(vertices), Some(edges)) = (said.vertices, said.edges)
    {
        let ((undirected, weighted), largest) = (said.kind(), vertices.saturating_sub(1));
        return Ok(Some(InputEstimate { edges, largest, weighted, undirected }));
    }
    let Some(length) = length_of(&file.path) else { return Ok(None) };
    let mut front = Front::open(file, length, options)?;
    let Some(body) = front.body()? else { return Ok(None) };
    let (weighted, undirected) = (body.weighted, body.undirected);
    let declared = body.declared.map(|ids| (ids.first + ids.count).saturating_sub(1));
    let stated = edges_stated(&body);
    if let (Some(edges), Some(largest)) = (stated, declared) {
        return Ok(Some(InputEstimate { edges, largest, weighted, undirected }));
    }
    if matches!(body.claim, Some(Claim::Declared(Declaration { names: true, .. }))) {
        return Ok(None);
    }
    Ok(front.sample(options.on_error)?.map(|sampled| InputEstimate {
        edges: stated.unwrap_or(sampled.edges),
        largest: declared.unwrap_or(sampled.largest),
        weighted,
        undirected,
    }))
}

/// The number of edges that a header states.
fn edges_stated(body: &Body) -> Option<u64> {
    match body.claim? {
        Claim::Entries(edges) | Claim::Lines(edges) | Claim::Mirrored(edges) => Some(edges),
        Claim::Declared(said) => Some(said.edges),
        // Every entry of a list is an arc, and the header is taken to count pairs of arcs.
        Claim::Arcs(pairs) => Some(pairs.saturating_mul(2)),
    }
}

fn probe_pairs(path: &Path) -> Result<Option<InputEstimate>> {
    let Some(length) = length_of(path) else { return Ok(None) };
    let job = Arc::new(Job::new());
    if decompress::is_compressed(&decompress::first_bytes(path, &job)?) {
        return Ok(None);
    }
    pairs::check_length(path, length)?;
    let file = pairs::open_plain(path, &job)?;
    let (mut bytes, mut batch) = (Vec::new(), EdgeBatch::default());
    let mut largest = 0;
    for block in sample::blocks(0..length, PAIR_BYTES) {
        sample::read_block(&file, block, &mut bytes)?;
        batch.clear();
        pairs::decode(&bytes, &mut batch);
        largest = sample::largest_of(&[&batch.sources, &batch.targets]).max(largest);
    }
    Ok(Some(InputEstimate {
        edges: length / PAIR_BYTES,
        largest,
        weighted: false,
        undirected: false,
    }))
}

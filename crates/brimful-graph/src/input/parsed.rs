//! Messages of the processes that read files for an import.
//!
//! A process sends batches of the edges of a file, the ids in them by range (or the names by
//! generation), then the facts that the import itself would have found. Invariant: the messages of
//! a file depend on the file and the choices alone, so that another process can continue where one
//! is lost.

use serde::{Deserialize, Serialize};

use crate::edges::EdgeBatch;
use crate::error::Result;
use crate::ids::names::RunFacts;
use crate::input::formats::parser::Output;
use crate::input::policy::Policy;
use crate::input_position::PositionedEdge;
use crate::message::{damaged, put, take};
use crate::order::choice::Sampled;

/// The choices of an import that concern the scan of edges.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct ScanChoices {
    /// True to store every edge in both directions.
    pub undirected: bool,
    /// The policy for self-loops and duplicates.
    pub policy: Policy,
}

/// The numbers of a generation, and the table that replaces them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Replacement {
    /// Numbers of names; their ranks have 32 bits, and are scanned as the ids of a file.
    Ranks(ScanChoices),
    /// Numbers of ids; internal ids have 64 bits.
    InternalIds,
}

impl Replacement {
    /// The task of [`replace_numbers`].
    ///
    /// # Errors
    /// Serialization fails only for a bug.
    pub(crate) fn message(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|_| damaged())
    }
}

/// The label of a message of edges and vertices.
pub const BATCH: usize = 0;
/// The label of the facts about a file, its last message.
pub const END: usize = 1;
/// The label of the ids of the first range; the labels of other ranges follow. With generations it
/// is the label of the names or ids of the first one; the label of its edges follows, and so on.
pub const RANGES: usize = 2;

/// The counts of a scan by another process, without ids.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Scanned {
    pub(crate) edges: u64,
    pub(crate) self_loops: u64,
    pub(crate) first_self_loop: Option<PositionedEdge>,
    /// True if the set of ids has all of them.
    pub(crate) is_whole: bool,
}

/// The last message of a file.
pub(crate) struct End {
    pub(crate) scanned: Scanned,
    pub(crate) sampled: Sampled,
    /// The facts in the form of the reader.
    pub(crate) facts: Vec<u8>,
}

/// The last message of a file.
///
/// # Errors
/// Serialization fails only for a bug.
pub(crate) fn end_message(scanned: &Scanned, sampled: &Sampled, facts: &[u8]) -> Result<Vec<u8>> {
    let mut message = vec![END as u8];
    put(&mut message, &serde_json::to_vec(scanned).map_err(|_| damaged())?);
    put(&mut message, &[sampled.level]);
    put(&mut message, &sampled.edges);
    message.extend_from_slice(facts);
    Ok(message)
}

/// Reads the last message of a file.
///
/// # Errors
/// [`Error::Input`](crate::Error::Input) if it is damaged.
pub(crate) fn end_of(message: &[u8]) -> Result<End> {
    take_end(message).ok_or_else(damaged)
}

fn take_end(message: &[u8]) -> Option<End> {
    let (kind, mut rest) = message.split_first()?;
    let (mut scanned, mut level, mut edges) = (Vec::<u8>::new(), Vec::new(), Vec::new());
    take(&mut rest, &mut scanned)?;
    take(&mut rest, &mut level)?;
    take(&mut rest, &mut edges)?;
    let is_end = usize::from(*kind) == END && level.len() == 1;
    let scanned = serde_json::from_slice(&scanned).ok().filter(|_| is_end)?;
    Some(End { scanned, sampled: Sampled { level: level[0], edges }, facts: rest.to_vec() })
}

/// The message of edges and vertices, which are removed from `out`.
pub(crate) fn batch(out: &mut Output) -> Vec<u8> {
    let mut message = vec![BATCH as u8];
    for edges in [&mut out.edges, &mut out.declared] {
        put_ids(&mut message, &edges.sources);
        put_ids(&mut message, &edges.targets);
        put(&mut message, &edges.weights);
        put(&mut message, &edges.positions);
        edges.clear();
    }
    message
}

/// Appends ids, in 32 bits each if all fit.
fn put_ids(message: &mut Vec<u8>, ids: &[u64]) {
    let is_narrow = ids.iter().fold(0, |all, id| all | id) >> 32 == 0;
    message.push(is_narrow.into());
    match is_narrow {
        true => put(message, &ids.iter().map(|id| *id as u32).collect::<Vec<_>>()),
        false => put(message, ids),
    }
}

/// Replaces `ids` by the next ones of a message.
fn take_ids(rest: &mut &[u8], ids: &mut Vec<u64>) -> Option<()> {
    let (is_narrow, after) = rest.split_first()?;
    *rest = after;
    if *is_narrow == 0 {
        return take(rest, ids);
    }
    let mut narrow: Vec<u32> = Vec::new();
    take(rest, &mut narrow)?;
    ids.clear();
    ids.extend(narrow.into_iter().map(u64::from));
    Some(())
}

/// Reads a message of edges and vertices, which replace those of `out`.
///
/// # Errors
/// An internal error if it is damaged.
pub(crate) fn take_batch(message: &[u8], out: &mut Output) -> Result<()> {
    let rest = message.split_first().filter(|(kind, _)| usize::from(**kind) == BATCH);
    rest.and_then(|(_, rest)| take_edges(rest, out)).ok_or_else(damaged)
}

fn take_edges(mut rest: &[u8], out: &mut Output) -> Option<()> {
    let rest = &mut rest;
    for edges in [&mut out.edges, &mut out.declared] {
        let EdgeBatch { sources, targets, weights, positions } = edges;
        take_ids(rest, sources)?;
        take_ids(rest, targets)?;
        take(rest, weights)?;
        take(rest, positions)?;
        let per_edge = |len: usize| len == 0 || len == sources.len();
        (targets.len() == sources.len() && per_edge(weights.len()) && per_edge(positions.len()))
            .then_some(())?;
    }
    rest.is_empty().then_some(())
}

/// A piece of the sorted names of a generation.
pub(crate) struct Names<'m> {
    /// The length of a table of the generation's numbers.
    pub(crate) length: u64,
    pub(crate) facts: RunFacts,
    pub(crate) piece: &'m [u8],
}

impl Names<'_> {
    /// The message of the piece.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut message = Vec::new();
        put(&mut message, &[self.length]);
        put(&mut message, &[self.facts]);
        message.extend_from_slice(self.piece);
        message
    }
}

/// Reads a piece of names.
///
/// # Errors
/// An internal error if it is damaged.
pub(crate) fn names_of(mut message: &[u8]) -> Result<Names<'_>> {
    let (mut length, mut facts) = (Vec::new(), Vec::new());
    let rest = take(&mut message, &mut length).and_then(|()| take(&mut message, &mut facts));
    match (rest, length.as_slice(), facts.as_slice()) {
        (Some(()), [length], [facts]) => {
            Ok(Names { length: *length, facts: *facts, piece: message })
        }
        _ => Err(damaged()),
    }
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
        batch(&mut out)
    }

    #[test]
    fn a_batch_survives_the_way() {
        let mut out = Output::default();
        out.edges.sources = vec![5];
        take_batch(&sent(), &mut out).unwrap();
        assert_eq!((&*out.edges.sources, &*out.edges.targets), (&[1, 2][..], &[3, 1 << 60][..]));
        assert!(out.edges.weights[1].is_sign_negative());
        assert_eq!(out.declared.sources, [9]);
    }

    #[test]
    fn a_message_that_was_cut_is_damaged() {
        let whole = sent();
        for end in 0..whole.len() {
            assert!(take_batch(&whole[..end], &mut Output::default()).is_err(), "{end}");
        }
    }
}

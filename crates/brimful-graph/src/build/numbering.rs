//! Numbers the ids of distributed edges that do not fit in a set, in this process or in others.
//!
//! A process takes batches as long as they fit in its memory: a *generation*. It sorts the ids of a
//! generation; the number of an id is its place among them. The import merges the ids of all
//! generations into internal ids. Invariant: the marks of an id in all generations add up to the
//! mark that one scan of all edges gives.

use std::borrow::Cow;

use brimful_store::Resources;
use brimful_store::sorter::sort_in_memory;
use serde::{Deserialize, Serialize};

use crate::build::records::Pair;
use crate::build::weights::hash_all;
use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::Result;
use crate::ids::external::IdType;
use crate::input::distributed::take_edges;
use crate::input::formats::parser::Output;
use crate::input::parsed::{RANGES, batch};
use crate::message::{Message, damaged, put, take_records};
use crate::order::classes::{Mark, is_counted};

/// The facts that another process needs to number ids.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id_type: IdType,
    /// True if self-loops are dropped. A vertex without another edge then counts as declared.
    pub(crate) drops_self_loops: bool,
    /// True if weights are hashed.
    pub(crate) hashed: bool,
    /// The maximum number of ids in a generation.
    pub(crate) most_ids: usize,
}

/// The memory of an edge in a generation, in bytes: its columns, a record of each end and the
/// buffer to sort it, and the message of its ids.
const EDGE_BYTES: u64 = 32 + 2 * (16 + 16 + 10);
/// The memory of a batch and its message, in bytes.
const BATCH_BYTES: u64 = (2 * BATCH_EDGES * 32) as u64;
/// The purpose of the budget, in error messages.
const PURPOSE: &str = "to number ids";

/// The smallest budget of [`number_ids`], in bytes besides the process.
pub fn numbering_bytes() -> u64 {
    2 * BATCH_BYTES + BATCH_EDGES as u64 * EDGE_BYTES
}

/// Numbers the ids in the batches that `batches` returns, each with the number of its file, until
/// it returns `None`. Passes the ids of each generation to `send`, with the label of the names of a
/// generation; then its edges by number, as those of a generation of names.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of `batches` and of `send`.
pub fn number_ids(
    task: &[u8],
    resources: &Resources,
    mut batches: impl FnMut() -> Result<Option<(usize, Message)>>,
    mut send: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let task: Task = serde_json::from_slice(task).map_err(|_| damaged())?;
    let memory = resources.budget.reserve_all(numbering_bytes(), PURPOSE)?;
    let edges = (memory.bytes() - 2 * BATCH_BYTES) / EDGE_BYTES;
    let most_ends = task.most_ids.min(2 * edges as usize);
    let (mut generation, mut out, mut number) = (Generation::default(), Output::default(), 0);
    while let Some((file, message)) = batches()? {
        resources.job.check()?;
        take_edges(file, &message, &mut out)?;
        let ends = 2 * out.edges.len() + out.declared.len();
        if !generation.ends.is_empty() && generation.ends.len() + ends > most_ends {
            generation.send(number, &mut send)?;
            number += 1;
        }
        generation.add(&task, &mut out);
    }
    match generation.ends.is_empty() {
        true => Ok(()),
        false => generation.send(number, &mut send),
    }
}

/// The edges of some batches, and the ids in them.
#[derive(Default)]
struct Generation {
    edges: EdgeBatch,
    /// The order key of each id, and its [`Occurrence`].
    ends: Vec<Pair>,
    buffer: Vec<Pair>,
}

/// An occurrence of an id: the end of an edge, if it is one, above two flags.
#[derive(Clone, Copy)]
struct Occurrence(u64);

impl Occurrence {
    const CONNECTED: u64 = 1;
    const COUNTED: u64 = 2;
    /// The place of a vertex that is listed apart from edges.
    const LISTED: Self = Self(!(Self::CONNECTED | Self::COUNTED));

    /// The `end` (0: source, 1: target) of the edge at `at`.
    fn of_end(at: usize, end: usize, flags: u64) -> Self {
        Self(((2 * at + end) as u64) << 2 | flags)
    }

    /// The edge and the end of it.
    fn edge(self) -> (usize, usize) {
        let end = (self.0 >> 2) as usize;
        (end / 2, end % 2)
    }

    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

impl Generation {
    /// Takes the edges and the vertices of `out`.
    fn add(&mut self, task: &Task, out: &mut Output) {
        if task.hashed {
            hash_all(&mut out.edges);
        }
        let before = self.edges.len();
        let edges = out.edges.sources.iter().zip(&out.edges.targets);
        for (at, (&source, &target)) in edges.enumerate() {
            let is_dropped = source == target && task.drops_self_loops;
            let counted = if is_counted(source, target) { Occurrence::COUNTED } else { 0 };
            let flags = if is_dropped { 0 } else { Occurrence::CONNECTED | counted };
            for (end, id) in [source, target].into_iter().enumerate() {
                let Occurrence(second) = Occurrence::of_end(before + at, end, flags);
                self.ends.push(Pair { first: task.id_type.order_key(id), second });
            }
        }
        let Occurrence(second) = Occurrence::LISTED;
        let listed = out.declared.sources.iter().map(|id| task.id_type.order_key(*id));
        self.ends.extend(listed.map(|first| Pair { first, second }));
        self.edges.append(&out.edges);
    }

    /// Sends the ids and the edges, and removes them.
    fn send(
        &mut self,
        number: usize,
        send: &mut impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let Self { edges, ends, buffer } = self;
        sort_in_memory(ends, buffer);
        let (mut keys, mut marks) = (Vec::<u64>::new(), Vec::<Mark>::new());
        for same in ends.chunk_by(|one, other| one.first == other.first) {
            let number = keys.len() as u64;
            let (mut is_connected, mut counted) = (false, 0);
            for place in same.iter().map(|end| Occurrence(end.second)) {
                is_connected |= place.is(Occurrence::CONNECTED);
                counted += usize::from(place.is(Occurrence::COUNTED));
                let (edge, end) = place.edge();
                let column = if end == 0 { &mut edges.sources } else { &mut edges.targets };
                // A listed vertex is at no edge.
                if let Some(id) = column.get_mut(edge) {
                    *id = number;
                }
            }
            keys.extend(same.first().map(|end| end.first));
            marks.push(if is_connected { Mark::connected(counted) } else { Mark::default() });
        }
        let mut message = Vec::new();
        put(&mut message, &[edges.len() as u64]);
        put(&mut message, &keys);
        put(&mut message, &marks);
        ends.clear();
        send(RANGES + 2 * number, message)?;
        let mut out = Output::default();
        for start in (0..edges.len()).step_by(BATCH_EDGES) {
            out.edges.append_range(edges, start..edges.len().min(start + BATCH_EDGES));
            send(RANGES + 2 * number + 1, batch(&mut out))?;
        }
        edges.clear();
        Ok(())
    }
}

/// The ids of a generation.
pub(crate) struct Numbered<'m> {
    /// The number of edges.
    pub(crate) edges: u64,
    /// Order keys, ascending and distinct.
    pub(crate) keys: Cow<'m, [u64]>,
    /// The mark of each id.
    pub(crate) marks: Cow<'m, [Mark]>,
}

/// Reads the message of the ids of a generation.
///
/// # Errors
/// [`crate::Error::Input`] if it is damaged.
pub(crate) fn numbered_of(mut message: &[u8]) -> Result<Numbered<'_>> {
    let rest = &mut message;
    let mut read = || {
        let edges = take_records::<u64>(rest)?;
        let (keys, marks) = (take_records::<u64>(rest)?, take_records::<Mark>(rest)?);
        let is_whole = edges.len() == 1 && keys.len() == marks.len() && !keys.is_empty();
        is_whole.then(|| Numbered { edges: edges[0], keys, marks })
    };
    read().ok_or_else(damaged)
}

//! Edges that stay with the processes that read them, for an import that receives only the ids.
//!
//! A process that reads a file keeps its edges in batches, and sends the ids of the batches by
//! range. Other processes rank the ids of a range, and map the edges of batches. Strings come first
//! as numbers of the names of a *generation*; when the names of all files are ranked, other
//! processes keep the edges by rank, as if they had read integers. Ids that do not fit in a set are
//! numbered by generations too, and their numbers replaced by internal ids. Invariant: the edges,
//! the ids and their ranks are those of one process that reads all files.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_store::{Job, Resources};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::formats::TextFormat;
use crate::input::formats::parser::Output;
use crate::input::parsed::take_batch;
use crate::input::stream::EdgeStream;
use crate::message::{Message, Messages, damaged};
use crate::order::bitmap::IdBitmap;
use crate::order::bitmap::ranges::{MESSAGE_BYTES, set_bytes};
use crate::order::bitmap::ranks::IdRanks;

/// Input positions of each file: more than a file has lines, so that positions do not depend on the
/// numbers of lines in earlier files.
pub(crate) const FILE_POSITIONS: u64 = 1 << 40;
/// The maximum number of files with positions.
const MAX_FILES: usize = 1 << 23;

/// Refuses more files than there are positions for.
pub(crate) fn check_files(count: usize) -> Result<()> {
    match count <= MAX_FILES {
        true => Ok(()),
        false => Err(Error::Usage(format!("an import takes at most {MAX_FILES} files"))),
    }
}

/// The processes that read files, keep their edges, rank ids, and map and sort edges.
pub trait DistributedEdges: fmt::Debug + Send + Sync {
    /// The last message of a file that was read, and the number of the file; `None` after the last
    /// file. With generations, the same then follows for each, once its table is handed over.
    ///
    /// # Errors
    /// The error of the first file that has one; [`brimful_store::Error::Interrupted`] after a
    /// cancellation of `job`.
    fn next(&self, job: &Job) -> Result<Option<(usize, Message)>>;

    /// Returns the names of all generations, in pieces, one generation after the other. The number
    /// of a message is that of the generation among all.
    ///
    /// # Errors
    /// The processes are gone.
    fn names(&self) -> Result<Box<dyn Messages>>;

    /// Begins [`crate::build::numbering::number_ids`] of `task` for all batches. Returns the
    /// message of the ids of each generation, in the order of the generations' numbers.
    ///
    /// # Errors
    /// The work could not be begun.
    fn number(&self, task: &[u8]) -> Result<Box<dyn Messages>>;

    /// Hands over the table of a generation; [`crate::input::sending::replace_numbers`] of `task`
    /// begins when the next message is asked for.
    ///
    /// # Errors
    /// The table could not be kept.
    fn replace(&self, task: &[u8], generation: usize, table: &[u8]) -> Result<()>;

    /// The number of batches, when all files are read.
    ///
    /// # Errors
    /// The processes are gone.
    fn batches(&self) -> Result<usize>;

    /// Begins [`rank_range`] of `task` for each range with ids, and for the ranges `declared`.
    /// Returns the message of each range with its number, in any order.
    ///
    /// # Errors
    /// The work could not be begun.
    fn rank(&self, task: &[u8], declared: &[usize]) -> Result<Box<dyn Messages>>;

    /// Begins [`crate::build::mapping::map_edges`] of all batches; the records go to the processes
    /// that sort. Returns a message for each number of batches that are mapped. `last`: the batches
    /// are not needed again.
    ///
    /// # Errors
    /// The work could not be begun.
    fn map(&self, task: &[u8], table: [&[u8]; 2], last: bool) -> Result<Box<dyn Messages>>;

    /// The maximum number of parts into which the records are divided.
    ///
    /// # Errors
    /// The processes are gone.
    fn parts(&self) -> Result<usize>;

    /// Begins [`crate::build::divided::sort_part`] of `task` with the records of each of `parts`
    /// parts that were mapped since the last call. Returns the messages of the parts, one part
    /// after the other.
    ///
    /// # Errors
    /// The work could not be begun.
    fn sort(&self, task: &[u8], parts: usize) -> Result<Box<dyn Messages>>;
}

/// Files whose edges stay with the processes that read them.
pub struct DistributedFiles<'a> {
    /// Their names in messages to the user.
    pub paths: Vec<PathBuf>,
    /// Their kind.
    pub kind: DistributedKind<'a>,
    /// Their edges.
    pub edges: Arc<dyn DistributedEdges>,
}

/// A kind of files.
pub enum DistributedKind<'a> {
    /// Text of one format. True if ids are strings: [`crate::input::sending::has_names`] of the
    /// first file.
    Text(TextFormat, bool),
    /// Tables, as a stream whose edges are elsewhere.
    Tables(&'a mut dyn TableStream),
}

/// Tables that other processes read.
pub trait TableStream: EdgeStream {
    /// Takes in the facts about the next table, when it was read to its end. It has `positions`
    /// input positions after `before`.
    ///
    /// # Errors
    /// The facts are damaged.
    fn absorb(&mut self, path: &Path, before: u64, positions: u64, facts: &[u8]) -> Result<()>;
}

/// Reads the edges of a batch, with positions among those of all files.
pub(crate) fn take_edges(file: usize, message: &Message, out: &mut Output) -> Result<()> {
    take_batch((**message).as_ref(), out)?;
    let before = file as u64 * FILE_POSITIONS;
    out.edges.positions.iter_mut().for_each(|position| *position += before);
    Ok(())
}

/// The facts that a process needs to rank the ids of ranges.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RankTask {
    /// Ranges of declared ids.
    pub(crate) declared: [Range<u64>; 2],
}

/// The smallest budget of [`rank_range`], in bytes besides the process.
pub fn ranking_bytes() -> u64 {
    // The message of a file, and the ranks with their message.
    set_bytes() + 2 * MESSAGE_BYTES
}

/// Ranks the ids of the range `range`, given by the messages that `ids` returns until it returns
/// `None`. Returns the message of their ranks.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; errors of `ids`.
pub fn rank_range(
    task: &[u8],
    range: usize,
    resources: &Resources,
    mut ids: impl FnMut() -> Result<Option<Message>>,
) -> Result<Vec<u8>> {
    let RankTask { declared } = serde_json::from_slice(task).map_err(|_| damaged())?;
    resources.budget.require(ranking_bytes(), "to rank ids")?;
    let set = IdBitmap::new(set_bytes());
    while let Some(message) = ids()? {
        resources.job.check()?;
        set.add_range(&message).ok_or_else(damaged)?;
    }
    declared.iter().for_each(|ids| set.declare_in(range, ids));
    Ok(IdRanks::message_of(&set))
}

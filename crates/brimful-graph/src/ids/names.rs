//! String ids: vertices that users call by strings.
//!
//! The external id of a string is its *rank*, the number of smaller strings in the graph. After the
//! first pass, an import uses ranks only, and data that is sorted by external id is sorted by
//! bytes. `interner` maps strings to local numbers during reading, and `runs` merges these into
//! ranks. `file` stores the strings by rank.

mod batch;
mod file;
mod interner;
mod runs;
#[cfg(test)]
mod tests;

pub use batch::{LONGEST_NAME, NameBatch};
pub use file::NameSizes;
pub(crate) use file::{NameBlock, NameFile, NameWriter};
pub(crate) use interner::{InternBuffers, Interner, Written};
pub(crate) use runs::{RankTables, RunFacts, RunWriter, Runs};

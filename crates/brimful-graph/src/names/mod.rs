//! String ids: vertices that users call by strings.
//!
//! The external id of a string is its *rank*, the number of smaller strings in the graph. After the
//! first pass, an import uses ranks only, and data that is sorted by external id is sorted by
//! bytes. `decide`: whether the words of a text are ids or integers; `interner`: maps strings to
//! local numbers during reading; `runs`: merges these into ranks; `reading`: the first pass, made
//! of these. `file` stores the strings by rank; `cursor` and `lookup` look them up. `varint`:
//! numbers of variable length.

mod batch;
mod cursor;
pub(crate) mod decide;
mod file;
mod interner;
mod lookup;
mod reading;
mod runs;
#[cfg(test)]
mod tests;
mod varint;

pub use batch::{LONGEST_NAME, NameBatch};
pub use cursor::{Labels, NameCursor};
pub use decide::IdChoice;
pub(crate) use decide::{LOOKED_AT_LINES, are_names};
pub(crate) use file::NameFile;
pub use file::NameSizes;

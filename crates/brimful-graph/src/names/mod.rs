//! String ids: vertices that users call by strings.
//!
//! A string's *rank*, the number of smaller strings of the graph, is its external id: everything
//! behind the first pass of an import knows ranks only, and what is sorted by external id is sorted
//! by bytes. `decide`: are the words of a text ids or integers; `interner`: strings to local
//! numbers while reading; `runs`: their merge into ranks; `reading`: the first pass made of these.
//! `file` keeps the strings by rank, `cursor` and `lookup` give them back. `varint`: short numbers.

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

//! Bytes on disk within a memory budget. This crate knows the names of a graph's files, for formats
//! and figures, and nothing else of graphs.
//!
//! - [`device`]: raw files and folders behind two small traits; [`fault`] implements them a second
//!   time, for crash and failure tests.
//! - [`external`]: the user's inputs and outputs.
//! - [`mod@file`]: exact reads and writes with typed errors, for all other modules; [`traffic`]:
//!   bytes moved, by content, and hits of caches.
//! - [`sealed`]: immutable, checksummed files made of blocks; [`mod@array`]: fixed-size records in
//!   such a file; [`checksummed_file`]: files of other formats, under checksums of ours.
//! - [`scratch`]: windowed working memory that may live on disk; no crash promise.
//! - [`sequence`]: records written once in order to a nameless file and read in order.
//! - [`durable`]: the user's pages, changed in memory and made durable together by a sync.
//! - [`read_ahead`]: batched, prefetched block reads; [`pinned`]: blocks that stay in memory.
//! - [`sorter`]: the external sorter; `radix`: its sort in memory.
//! - [`manifest`]: numbered manifests and the one checksummed `current` pointer.
//! - [`checkpoint`]: sealed checkpoints, from which a long run resumes.
//! - [`budget`]: the memory budget; [`automatic`]: budgets that the user leaves open; [`job`]:
//!   cancellation and progress; [`memory`]: the operating system's figures about memory;
//!   [`bandwidth`]: the measured bandwidth of memory; [`resources`]: all resources of a long call.
//! - [`huge`]: large arrays on huge pages.
//! - [`in_order`]: parallel work whose effects keep one order.
//! - [`splitmix`]: a hash of integers; [`varint`]: integers in as many bytes as they need.
//! - [`wording`]: counted nouns in messages.

pub mod array;
pub mod automatic;
pub mod bandwidth;
pub mod budget;
pub mod checkpoint;
pub mod checksummed_file;
pub mod device;
pub mod durable;
pub mod error;
pub mod external;
pub mod fault;
pub mod file;
pub mod huge;
pub mod in_order;
pub mod job;
pub mod manifest;
pub mod memory;
pub mod pinned;
mod radix;
pub mod read_ahead;
pub mod resources;
pub mod scratch;
pub mod sealed;
pub mod sequence;
pub mod sorter;
pub mod splitmix;
pub mod traffic;
pub mod varint;
pub mod wording;

pub use budget::{Budget, Reservation};
pub use device::{Device, DiskFolder, Folder};
pub use error::{Error, ErrorKind, Result};
pub use file::StoreFile;
pub use job::Job;
pub use resources::Resources;
pub use traffic::{CacheStats, Content, Moved, Traffic, Transfers};

/// XXH3 (64 bits): the checksum of every block, header and pointer.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

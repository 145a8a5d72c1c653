//! The errors of collections.
//!
//! Every operation can fail with `Error::Store`: an I/O error, corruption, a budget that is too
//! small, or a cancellation. Sections on errors name the other variants.

use std::path::PathBuf;

use brimful_store::ErrorKind;
use brimful_store::wording::counted;

/// Result type of a collection.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation on a collection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// The collection has no such id.
    #[error("{} has no record {id}; its ids are less than {len}", path.display())]
    OutOfRange {
        /// The collection.
        path: PathBuf,
        /// The id that does not exist.
        id: u64,
        /// Number of ids in the collection.
        len: u64,
    },
    /// The record was removed.
    #[error("record {id} of {} was removed", path.display())]
    Removed {
        /// The collection.
        path: PathBuf,
        /// The id.
        id: u64,
    },
    /// The collection was made for records of another type.
    #[error("{} holds {found} and cannot be opened as {expected}; open it as its own kind, or use \
             another path", path.display())]
    RecordType {
        /// The collection.
        path: PathBuf,
        /// The type requested.
        expected: String,
        /// The type in the file.
        found: String,
    },
    /// The number of bytes given does not fit the records.
    #[error("a record of {} must have {}, not {found}", path.display(), counted(*expected, "byte"))]
    RecordBytes {
        /// The collection.
        path: PathBuf,
        /// The number of bytes expected, or its maximum.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// The codec cannot decode a record, or a chain of a map is damaged.
    #[error("the serializer of {} cannot read record {id}: {problem}", path.display())]
    Codec {
        /// The collection.
        path: PathBuf,
        /// The id.
        id: u64,
        /// The message of the codec.
        problem: String,
    },
    /// An argument is invalid, or the codec cannot encode a value.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// The kind of this error, by which callers choose a reaction.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::OutOfRange { .. } | Self::Removed { .. } | Self::RecordType { .. } => {
                ErrorKind::Input
            }
            Self::RecordBytes { .. } | Self::Usage(_) => ErrorKind::Usage,
            Self::Codec { .. } => ErrorKind::Corrupt,
        }
    }
}

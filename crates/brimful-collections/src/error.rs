//! The errors of collections.

use std::path::PathBuf;

use brimful_store::ErrorKind;

/// Result type of a collection.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure between a caller and a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// The collection has no such id.
    #[error("{} has no record {id}: its ids are 0 to {len}, the last excluded", path.display())]
    OutOfRange {
        /// The collection.
        path: PathBuf,
        /// The first missing id.
        id: u64,
        /// Records in the collection.
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
    /// The bytes of a record do not fit its type.
    #[error("a record of {} has {expected} bytes, {found} were given", path.display())]
    RecordBytes {
        /// The collection.
        path: PathBuf,
        /// Bytes per record, or their limit.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// The codec refused a record.
    #[error("record {id} of {} is not in the form of its serializer: {what}", path.display())]
    Codec {
        /// The collection.
        path: PathBuf,
        /// The id.
        id: u64,
        /// The message of the codec.
        what: String,
    },
    /// The call is invalid.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// The kind of this error.
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

//! What can go wrong with a collection.

use std::path::PathBuf;

use brimful_store::ErrorKind;

/// A result of a collection.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong between a caller and a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes below failed.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An id that the collection does not have.
    #[error("{} has no record {id}: its ids are 0 to {len}, the last excluded", path.display())]
    OutOfRange {
        /// The collection.
        path: PathBuf,
        /// The first id asked for that is not there.
        id: u64,
        /// Records in the collection.
        len: u64,
    },
    /// A record that was removed.
    #[error("record {id} of {} was removed", path.display())]
    Removed {
        /// The collection.
        path: PathBuf,
        /// The id.
        id: u64,
    },
    /// A collection made for records of another type.
    #[error("{} holds {found}, it cannot be opened as {expected}; open it as what it is, or use another path", path.display())]
    RecordType {
        /// The collection.
        path: PathBuf,
        /// The type asked for.
        expected: String,
        /// The type it was made with.
        found: String,
    },
    /// A record whose bytes are not those of its type.
    #[error("a record of {} has {expected} bytes, {found} were given", path.display())]
    RecordBytes {
        /// The collection.
        path: PathBuf,
        /// Bytes of a record, or the most that it may have.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// A record that its codec refuses.
    #[error("record {id} of {} is not what its serializer writes: {what}", path.display())]
    Codec {
        /// The collection.
        path: PathBuf,
        /// The id.
        id: u64,
        /// What the codec says.
        what: String,
    },
    /// A call that asks for something impossible.
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

//! Errors of stores of vertices.

use brimful_store::ErrorKind;

/// A result of a store of vertices.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of stores of vertices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the storage layer or the budget.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An error of a collection.
    #[error(transparent)]
    Collection(brimful_collections::Error),
    /// A vertex that its serializer refuses to write.
    #[error(
        "the serializer {serializer} cannot write vertex {vertex}: {problem}; use another \
         serializer"
    )]
    Unserializable {
        /// The serializer.
        serializer: String,
        /// The vertex.
        vertex: String,
        /// The message of the serializer.
        problem: String,
    },
    /// A record that its serializer cannot read.
    #[error(
        "the record of vertex {vertex} is not in the form of the serializer {serializer}: \
         {problem}; open the store with the serializer that wrote it"
    )]
    Unreadable {
        /// The serializer.
        serializer: String,
        /// The vertex, or the bytes of its id if they are invalid.
        vertex: String,
        /// Expected against found.
        problem: String,
    },
    /// Bytes that are not a valid partition chunk.
    #[error(
        "a partition chunk is damaged: {0}; remove the checkpoints and start the run from the \
         beginning"
    )]
    PartitionChunk(String),
    /// The error of a borrower, which its store passes on unchanged.
    #[error(transparent)]
    Borrower(Box<dyn std::error::Error + Send + Sync>),
    /// An error of a plug-in, or of the embedded database.
    #[error("the store {store}: {source}")]
    Plugin {
        /// The name of the store.
        store: String,
        /// The error, as the store raised it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An invalid call.
    #[error("{0}")]
    Usage(String),
}

// An error that a collection only passes on from the crate below becomes the variant of that crate,
// so that each failure has one form.
impl From<brimful_collections::Error> for Error {
    fn from(error: brimful_collections::Error) -> Self {
        match error {
            brimful_collections::Error::Store(error) => Self::Store(error),
            error => Self::Collection(error),
        }
    }
}

impl Error {
    /// A vertex that a serializer refused to write.
    pub(crate) fn unserializable(
        serializer: String,
        vertex: impl std::fmt::Display,
        problem: String,
    ) -> Self {
        Self::Unserializable { serializer, vertex: vertex.to_string(), problem }
    }

    /// A record that a serializer cannot read.
    pub(crate) fn unreadable(
        serializer: String,
        vertex: impl std::fmt::Display,
        problem: String,
    ) -> Self {
        Self::Unreadable { serializer, vertex: vertex.to_string(), problem }
    }

    /// The name of the vertex in this error, if it has one.
    pub fn vertex_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Unserializable { vertex, .. } | Self::Unreadable { vertex, .. } => Some(vertex),
            _ => None,
        }
    }

    /// The kind of this error; that of a borrower counts as an error of a program.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Collection(error) => error.kind(),
            Self::Unserializable { .. } => ErrorKind::Input,
            Self::Unreadable { .. } | Self::PartitionChunk(_) => ErrorKind::Corrupt,
            Self::Plugin { .. } => ErrorKind::Io,
            Self::Borrower(_) => ErrorKind::Program,
            Self::Usage(_) => ErrorKind::Usage,
        }
    }
}

/// Joins names as `a, b or c`.
pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

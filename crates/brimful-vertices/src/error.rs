//! Errors of vertices and their stores.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brimful_store::ErrorKind;

/// A result of the store path.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a user's program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Calls a user's program; a panic becomes a failure. The caller must end the run, because the
/// panic may have left partial changes.
pub(crate) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("it panicked: {}", text.unwrap_or_else(|| "it says nothing".into())).into()
    })
}

/// Errors between a program and its vertices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the storage layer or the budget.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An error of a collection.
    #[error(transparent)]
    Collection(brimful_collections::Error),
    /// An error of the graph from which vertices are loaded.
    #[error(transparent)]
    Graph(brimful_graph::Error),
    /// An error of a numeric program, or of a run on shards.
    #[error(transparent)]
    Engine(brimful_engine::Error),
    /// A vertex that its serializer refuses to write.
    #[error(
        "the serializer {serializer} cannot write vertex {vertex}: {what}; use another serializer"
    )]
    Unserializable {
        /// The serializer.
        serializer: String,
        /// The vertex.
        vertex: String,
        /// The message of the serializer.
        what: String,
    },
    /// A record that its serializer cannot read.
    #[error(
        "the record of vertex {vertex} is not what the serializer {serializer} writes: {what}; open the store with the serializer that wrote it"
    )]
    Unreadable {
        /// The serializer.
        serializer: String,
        /// The vertex, or the bytes of its id if they are invalid.
        vertex: String,
        /// Expected against found.
        what: String,
    },
    /// Bytes that are not a valid partition chunk.
    #[error("a partition chunk is damaged: {0}; pack and send it again")]
    PartitionChunk(String),
    /// A user's program failed.
    #[error("the program failed at vertex {vertex} while it was to {doing}: {source}")]
    Program {
        /// The vertex.
        vertex: String,
        /// The operation, as a verb: "signal", "collect".
        doing: &'static str,
        /// The error of the program.
        source: Failure,
    },
    /// An invalid call.
    #[error("{0}")]
    Usage(String),
    /// A fault of brimful itself.
    #[error("internal error: {0}; this is a fault of brimful, please report it with this message")]
    Internal(String),
}

/// The element at `index`, called `what`; it exists unless brimful has a fault.
#[inline]
pub(crate) fn element<'l, T>(list: &'l mut [T], index: usize, what: &str) -> Result<&'l mut T> {
    let len = list.len();
    list.get_mut(index).ok_or_else(|| no_element(index, len, what))
}

/// The error of an index that should exist.
#[cold]
pub(crate) fn no_element(index: usize, len: usize, what: &str) -> Error {
    Error::Internal(format!("there is no {what} {index}, but {len} of them"))
}

// Errors that the crates below pass on from the crates below them become their own variant, so that
// each failure has one form.

impl From<brimful_collections::Error> for Error {
    fn from(error: brimful_collections::Error) -> Self {
        match error {
            brimful_collections::Error::Store(error) => Self::Store(error),
            error => Self::Collection(error),
        }
    }
}

impl From<brimful_graph::Error> for Error {
    fn from(error: brimful_graph::Error) -> Self {
        match error {
            brimful_graph::Error::Store(error) => Self::Store(error),
            error => Self::Graph(error),
        }
    }
}

impl From<brimful_engine::Error> for Error {
    fn from(error: brimful_engine::Error) -> Self {
        match error {
            brimful_engine::Error::Store(error) => Self::Store(error),
            brimful_engine::Error::Graph(error) => error.into(),
            brimful_engine::Error::Usage(what) => Self::Usage(what),
            error => Self::Engine(error),
        }
    }
}

impl Error {
    /// The failure of a program at a vertex.
    pub(crate) fn program(
        vertex: &impl std::fmt::Display,
        doing: &'static str,
        source: Failure,
    ) -> Self {
        Self::Program { vertex: vertex.to_string(), doing, source }
    }

    /// A vertex that a serializer refused to write.
    pub(crate) fn unserializable(
        serializer: String,
        vertex: impl std::fmt::Display,
        what: String,
    ) -> Self {
        Self::Unserializable { serializer, vertex: vertex.to_string(), what }
    }

    /// A record that a serializer cannot read.
    pub(crate) fn unreadable(
        serializer: String,
        vertex: impl std::fmt::Display,
        what: String,
    ) -> Self {
        Self::Unreadable { serializer, vertex: vertex.to_string(), what }
    }

    /// The same error with the name of the vertex replaced by `name`, if that returns one.
    pub(crate) fn of_vertex(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        if let Self::Program { vertex, .. }
        | Self::Unserializable { vertex, .. }
        | Self::Unreadable { vertex, .. } = &mut self
            && let Some(named) = name(vertex)
        {
            *vertex = named;
        }
        self
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Collection(error) => error.kind(),
            Self::Graph(error) => error.kind(),
            Self::Engine(error) => error.kind(),
            Self::Unserializable { .. } => ErrorKind::Input,
            Self::Unreadable { .. } | Self::PartitionChunk(_) => ErrorKind::Corrupt,
            Self::Program { .. } => ErrorKind::Program,
            Self::Usage(_) => ErrorKind::Usage,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_should_exist_is_a_fault_and_no_usage_error() {
        let mut list = [7, 8];
        assert_eq!(*element(&mut list, 1, "mailbox").unwrap(), 8);
        let error = element(&mut list, 5, "mailbox").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        let expected = "internal error: there is no mailbox 5, but 2 of them; \
                        this is a fault of brimful, please report it with this message";
        assert_eq!(error.to_string(), expected);
    }
}

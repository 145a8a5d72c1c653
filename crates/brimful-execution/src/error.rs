//! Errors of runs on stores of vertices.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brimful_store::ErrorKind;
use brimful_vertices::Error as VerticesError;

/// A result of the store path.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a user's program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Calls a user's program; a panic becomes a failure. The caller must end the run, because the
/// panic may have left partial changes.
pub(crate) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(of_panic)
}

/// The failure of a program that panicked.
#[cold]
fn of_panic(panic: Box<dyn Any + Send>) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_else(|| "no message".into())).into()
}

/// Errors of a run on stores of vertices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the storage layer or the budget.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An error of a store of vertices.
    #[error(transparent)]
    Vertices(VerticesError),
    /// An error of the graph from which vertices are loaded.
    #[error(transparent)]
    Graph(brimful_graph::Error),
    /// An error of a numeric program, or of a run on shards.
    #[error(transparent)]
    Engine(brimful_engine::Error),
    /// A user's program failed.
    #[error("the program failed to {doing} at vertex {vertex}: {source}")]
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

/// The element at `index`, which the error calls `noun`. The element is missing only through a
/// fault of brimful.
#[inline]
pub(crate) fn element<'l, T>(list: &'l mut [T], index: usize, noun: &str) -> Result<&'l mut T> {
    let len = list.len();
    list.get_mut(index).ok_or_else(|| no_element(index, len, noun))
}

/// The error of an index that should exist.
#[cold]
pub(crate) fn no_element(index: usize, len: usize, noun: &str) -> Error {
    Error::Internal(format!("there is no {noun} {index}; their number is {len}"))
}

/// The failure of a program that was called for a batch of vertices. The error names the vertex
/// that a kernel names, else the `first` of the batch.
pub(crate) fn of_batch(first: impl ToString, doing: &'static str, source: Failure) -> Error {
    let vertex = match source.downcast_ref() {
        Some(brimful_engine::Error::Kernel { vertex: Some(vertex), .. }) => vertex.to_string(),
        _ => first.to_string(),
    };
    Error::Program { vertex, doing, source }
}

// An error that a lower crate only passes on becomes the variant of the crate in which it began, so
// that each failure has one form.

impl From<VerticesError> for Error {
    fn from(error: VerticesError) -> Self {
        match error {
            VerticesError::Store(error) => Self::Store(error),
            VerticesError::Usage(problem) => Self::Usage(problem),
            VerticesError::Borrower(error) => match error.downcast() {
                Ok(own) => *own,
                Err(other) => Self::Vertices(VerticesError::Borrower(other)),
            },
            error => Self::Vertices(error),
        }
    }
}

/// Lets a borrower return errors of the run through the store that lends to it.
impl From<Error> for VerticesError {
    fn from(error: Error) -> Self {
        match error {
            Error::Vertices(error) => error,
            error => Self::Borrower(Box::new(error)),
        }
    }
}

impl From<brimful_collections::Error> for Error {
    fn from(error: brimful_collections::Error) -> Self {
        VerticesError::from(error).into()
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
            brimful_engine::Error::Usage(problem) => Self::Usage(problem),
            brimful_engine::Error::Internal(problem) => Self::Internal(problem),
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

    /// The same error, in which `name` replaces the name of the vertex, if it returns one.
    pub fn of_vertex(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        let vertex = match &mut self {
            Self::Program { vertex, .. } => Some(vertex),
            Self::Vertices(error) => error.vertex_mut(),
            _ => None,
        };
        if let Some(vertex) = vertex
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
            Self::Vertices(error) => error.kind(),
            Self::Graph(error) => error.kind(),
            Self::Engine(error) => error.kind(),
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
        let expected = "internal error: there is no mailbox 5; their number is 2; \
                        this is a fault of brimful, please report it with this message";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_error_within_a_loan_comes_out_of_its_store_as_it_was() {
        let through = |error: Error| Error::from(VerticesError::from(error));
        let internal = through(no_element(5, 2, "mailbox"));
        assert!(matches!(internal, Error::Internal(_)), "{internal:?}");
        let program = through(Error::program(&7, "signal", "no more ink".into()));
        let Error::Program { vertex, doing: "signal", source } = &program else {
            panic!("{program:?}")
        };
        assert_eq!((vertex.as_str(), source.to_string().as_str()), ("7", "no more ink"));
        let usage = through(Error::Usage("on purpose".into()));
        assert!(matches!(&usage, Error::Usage(problem) if problem == "on purpose"), "{usage:?}");
        let damaged = through(Error::Vertices(VerticesError::PartitionChunk("cut off".into())));
        assert_eq!(damaged.kind(), ErrorKind::Corrupt);
        let other = Error::from(VerticesError::Borrower("no vertex of mine".into()));
        assert_eq!(
            (other.kind(), other.to_string().as_str()),
            (ErrorKind::Program, "no vertex of mine")
        );
    }
}

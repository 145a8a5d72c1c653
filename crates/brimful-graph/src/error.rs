//! The errors of inputs and graphs.

use std::path::PathBuf;

use brimful_store::ErrorKind;

use crate::ids::external::{ExternalId, IdType, is_of_integer};

/// A result of the graph crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error on the way from an input to a graph, or in a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the storage layer.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An unexpected text at a position of an input.
    #[error("{}:{line}:{column}: expected {expected}, found {found}; {advice}", path.display())]
    Parse {
        /// The input.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
        column: u64,
        /// The expected text.
        expected: String,
        /// The offending text, shortened.
        found: String,
        /// Advice.
        advice: String,
    },
    /// An error that concerns an input as a whole.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The input.
        path: PathBuf,
        /// Cause and advice.
        problem: String,
    },
    /// A column that the input lacks.
    #[error("{}: {problem}", path.display())]
    NoColumn {
        /// The input.
        path: PathBuf,
        /// Cause and advice.
        problem: String,
        /// The requested column.
        column: String,
        /// The columns of the input.
        names: Vec<String>,
    },
    /// A path that contains no graph.
    #[error("{} is not a brimful graph: {problem}", path.display())]
    NotAGraph {
        /// The path.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// A vertex that is not in the graph.
    #[error("the graph has no vertex {vertex}{other_ids}")]
    NoSuchVertex {
        /// The external id.
        vertex: Box<ExternalId>,
        /// The kind of the graph's ids as the end of the message, if `vertex` is of the other kind.
        other_ids: &'static str,
    },
    /// A graph whose files were replaced since it was opened.
    #[error("{} was replaced or removed after it was opened; open it again", path.display())]
    Replaced {
        /// The path of the graph.
        path: PathBuf,
    },
    /// An index that was not built and cannot be built here.
    #[error(
        "{} has no `{index}` index, and its folder cannot be written to; copy the graph to a \
         folder of your own, or let its owner run `brimful index {} {index}`",
        path.display(),
        path.display()
    )]
    MissingIndex {
        /// The path of the graph.
        path: PathBuf,
        /// The name of the index.
        index: &'static str,
    },
    /// An invalid request of the caller.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// The error for an external id of no vertex of a graph whose ids are of type `ids`.
    pub fn no_such_vertex(vertex: &ExternalId, ids: IdType) -> Self {
        let other_ids = match (vertex, ids) {
            (ExternalId::Number(_), IdType::String) => "; its ids are strings",
            (ExternalId::Number(_), _) | (ExternalId::Name(_), IdType::String) => "",
            // Such a float is equal to an integer, and is shown as one.
            (ExternalId::Name(name), _) if is_of_integer(name) => {
                "; its ids are integers, not floats"
            }
            (ExternalId::Name(_), _) => "; its ids are integers",
        };
        Self::NoSuchVertex { vertex: Box::new(vertex.clone()), other_ids }
    }

    /// The error for an internal id beyond those of a graph.
    pub(crate) fn no_such_rank(rank: u64) -> Self {
        Self::NoSuchVertex { vertex: Box::new(ExternalId::Number(rank.into())), other_ids: "" }
    }

    /// An error that concerns an input as a whole.
    pub fn input(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Input { path: path.into(), problem: problem.into() }
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Parse { .. }
            | Self::Input { .. }
            | Self::NoColumn { .. }
            | Self::Replaced { .. }
            | Self::NotAGraph { .. }
            | Self::NoSuchVertex { .. }
            | Self::MissingIndex { .. } => ErrorKind::Input,
            Self::Usage(_) => ErrorKind::Usage,
        }
    }
}

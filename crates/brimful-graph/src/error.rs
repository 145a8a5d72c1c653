//! What can be wrong with an input or a graph.

use std::path::PathBuf;

use brimful_store::ErrorKind;

/// A result of the graph crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong between an input and a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes below failed.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// A place in an input that is not what it should be.
    #[error("{}:{line}:{column}: expected {expected}, found {found}; {advice}", path.display())]
    Parse {
        /// The input.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Column in bytes, counted from 1.
        column: u64,
        /// What should stand there.
        expected: String,
        /// The offending text, shortened.
        found: String,
        /// What to do.
        advice: String,
    },
    /// An input that is wrong as a whole.
    #[error("{}: {what}", path.display())]
    Input {
        /// The input.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// A column that an input does not have.
    #[error("{}: {what}", path.display())]
    NoColumn {
        /// The input.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
        /// The column asked for.
        column: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// A path that holds no graph.
    #[error("{} is not a brimful graph: {what}", path.display())]
    NotAGraph {
        /// The path.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A vertex that the graph does not have.
    #[error("the graph has no vertex {vertex}")]
    NoSuchVertex {
        /// The external id as messages show it; strings are quoted.
        vertex: String,
    },
    /// A graph whose files are not those that were opened.
    #[error("{} was replaced or removed after it was opened; open it again", path.display())]
    Replaced {
        /// The graph.
        path: PathBuf,
    },
    /// An index that was never built and cannot be built here.
    #[error("{} has no `{index}` index and cannot be written to; build it once with `brimful index {} {index}`", path.display(), path.display())]
    MissingIndex {
        /// The graph.
        path: PathBuf,
        /// The index's name.
        index: &'static str,
    },
    /// A call that asks for something impossible.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// An input error without a line.
    pub fn input(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Input { path: path.into(), what: what.into() }
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

//! The store's errors, and the one classification that every crate maps to exit codes.

use std::io;
use std::path::{Path, PathBuf};

/// The kind of a failure, which determines the exit code of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call itself is wrong (exit 2).
    Usage,
    /// The input or the graph is invalid (exit 3).
    Input,
    /// The memory budget is too small (exit 4).
    Budget,
    /// A file fails its checksum or structure (exit 5).
    Corrupt,
    /// The operating system refused a read, write or open (exit 6).
    Io,
    /// The user's program failed (exit 7).
    Program,
    /// The user asked to stop (exit 130).
    Interrupted,
    /// A bug in brimful, to be reported (exit 1).
    Internal,
}

/// Result type of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure between a caller and its bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system failed an operation on a path.
    #[error("cannot {operation} {}: {}", path.display(), describe(path, operation, source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation, as a verb: "read", "write", "open".
        operation: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// Bytes fail their checksum or contradict their own structure.
    #[error("{} is corrupt at byte {offset}: {problem}; {remedy}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Offset in bytes of the part that failed.
        offset: u64,
        /// Expected against found.
        problem: String,
        /// Remedy for the user.
        remedy: &'static str,
    },
    /// A file has a version or kind that this program does not read.
    #[error("{} has format version {found}, but this program reads up to {supported}; use a \
             newer brimful", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version supported.
        supported: u32,
    },
    /// The pages of a file belong to another kind of owner.
    #[error("{} has pages of kind {found}, not of kind {expected}", path.display())]
    PageKind {
        /// The file.
        path: PathBuf,
        /// The kind found.
        found: u32,
        /// The kind of the owner that opens the file.
        expected: u32,
    },
    /// The file or folder to create already exists.
    #[error("{} already exists; remove it or choose another name", path.display())]
    Exists {
        /// The existing path.
        path: PathBuf,
    },
    /// The memory budget is too small for the work.
    #[error(
        "{} memory budget of {} is too small {purpose}; {}",
        if *is_automatic { "the automatic" } else { "a" },
        distinct(*budget, *needed),
        smallest(*needed, *is_estimate)
    )]
    Budget {
        /// The budget in bytes.
        budget: u64,
        /// True if no budget was given, so that it is the memory that was available.
        is_automatic: bool,
        /// The smallest budget that works, in bytes.
        needed: u64,
        /// True if `needed` is an estimate: a smaller budget may work, or `needed` may turn out too
        /// small.
        is_estimate: bool,
        /// The purpose, such as "to rank this graph".
        purpose: String,
    },
    /// The disk has less free space than the work needs.
    #[error(
        "{} takes at least {} of disk, {} more than is free; make room or choose another disk",
        path.display(),
        rough(*needed),
        rough(needed.saturating_sub(*free))
    )]
    NoSpace {
        /// The path to create.
        path: PathBuf,
        /// The minimum bytes that the work takes until it is complete.
        needed: u64,
        /// Free bytes.
        free: u64,
    },
    /// A sync failed earlier: the durable content is unknown, so further writes are refused.
    #[error(
        "{} is not used after a failed write or sync; reopen it to see which changes survived",
        path.display()
    )]
    Poisoned {
        /// The file.
        path: PathBuf,
    },
    /// The work was canceled.
    #[error("interrupted")]
    Interrupted,
    /// A fault of brimful.
    #[error("internal error: {0}; this is a fault of brimful, please report it with this message")]
    Internal(String),
}

impl Error {
    /// Wraps an operating-system error with its path and operation.
    pub fn io(path: impl Into<PathBuf>, operation: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.into(), operation, source }
    }

    /// A corruption at `offset` of `path`.
    pub fn corrupt(path: impl Into<PathBuf>, offset: u64, problem: impl Into<String>) -> Self {
        let remedy = "restore it from a copy or import the graph again";
        Self::Corrupt { path: path.into(), offset, problem: problem.into(), remedy }
    }

    /// Like [`Error::corrupt`], for the pages of a collection, which cannot be imported again.
    pub fn corrupt_pages(
        path: impl Into<PathBuf>,
        offset: u64,
        problem: impl Into<String>,
    ) -> Self {
        let remedy = "restore the collection from a copy or fill it again";
        Self::Corrupt { path: path.into(), offset, problem: problem.into(), remedy }
    }

    /// Like [`Error::corrupt`], for a checkpoint: the run can start again without it.
    pub fn corrupt_checkpoint(
        path: impl Into<PathBuf>,
        offset: u64,
        problem: impl Into<String>,
    ) -> Self {
        let remedy = "remove the checkpoints and start the run from the beginning";
        Self::Corrupt { path: path.into(), offset, problem: problem.into(), remedy }
    }

    /// Like [`Error::corrupt`], for a scratch file, which only the disk or another program damages.
    pub(crate) fn corrupt_scratch(
        path: impl Into<PathBuf>,
        offset: u64,
        problem: impl Into<String>,
    ) -> Self {
        let remedy = "check the disk and start again";
        Self::Corrupt { path: path.into(), offset, problem: problem.into(), remedy }
    }

    /// A given budget of `budget` bytes where `needed` bytes are the least.
    pub fn too_small(budget: u64, needed: u64, purpose: impl Into<String>) -> Self {
        let purpose = purpose.into();
        Self::Budget { budget, is_automatic: false, needed, is_estimate: false, purpose }
    }

    /// True if the path to open does not exist.
    pub fn is_missing(&self) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), NotFound | NotADirectory))
    }

    /// True if the path is not writable, by its permissions or its file system.
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
    }

    /// The same error; a budget error then says that the budget that it names is an estimate.
    #[must_use]
    pub fn estimated(mut self) -> Self {
        if let Self::Budget { is_estimate, .. } = &mut self {
            *is_estimate = true;
        }
        self
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::NoSpace { .. } | Self::Poisoned { .. } => ErrorKind::Io,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Version { .. } | Self::PageKind { .. } => ErrorKind::Input,
            Self::Exists { .. } => ErrorKind::Usage,
            Self::Budget { .. } => ErrorKind::Budget,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

/// The end of the message about a budget.
fn smallest(needed: u64, is_estimate: bool) -> String {
    let by_estimate = if is_estimate { "by estimate, " } else { "" };
    format!("{by_estimate}the smallest that works is {}", human(needed))
}

fn describe(path: &Path, operation: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space and start again".into(),
        // A path that is created need not exist, but its folder must.
        io::ErrorKind::NotFound if operation == "create" => match path.parent() {
            Some(folder) if !folder.is_dir() => format!("there is no folder {}", folder.display()),
            // Such as a folder of the kernel, in which nothing can be created.
            _ => error.to_string(),
        },
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Bytes in readable form, rounded up so that the figure is never too small: `300M`, `1536M`.
pub fn human(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        1 => "1 byte".into(),
        _ if bytes < MIB => format!("{bytes} bytes"),
        _ => format!("{}M", bytes.div_ceil(MIB)),
    }
}

/// [`human`], but in single bytes where `other` is a different number with the same text.
fn distinct(bytes: u64, other: u64) -> String {
    match human(bytes) {
        text if bytes != other && text == human(other) => format!("{bytes} bytes"),
        text => text,
    }
}

/// Bytes in about three digits: `588M`, `1.2T`.
fn rough(bytes: u64) -> String {
    if bytes < 1024 {
        return human(bytes);
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 'K';
    for next in ['M', 'G', 'T', 'P', 'E'] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if value < 10.0 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_be_created_names_its_missing_folder() {
        let missing = |operation| {
            Error::io("/no/such/file", operation, io::ErrorKind::NotFound.into()).to_string()
        };
        assert_eq!(missing("create"), "cannot create /no/such/file: there is no folder /no/such");
        assert_eq!(missing("open"), "cannot open /no/such/file: there is no such file");
        let refused = Error::io("/proc/file", "create", io::ErrorKind::NotFound.into());
        assert_eq!(refused.to_string(), "cannot create /proc/file: entity not found");
    }

    #[test]
    fn rough_figures_have_few_digits() {
        assert_eq!(rough(70), "70 bytes");
        assert_eq!(rough(2048), "2.0K");
        assert_eq!(rough(300 << 20), "300M");
        assert_eq!(rough((1 << 40) + (1 << 38)), "1.2T");
    }

    #[test]
    fn human_figures_never_understate() {
        assert_eq!(human(1), "1 byte");
        assert_eq!(human(1000), "1000 bytes");
        assert_eq!(human((1 << 20) + 1), "2M");
        assert_eq!(human(300 << 20), "300M");
    }

    #[test]
    fn a_budget_does_not_look_like_the_larger_one_that_works() {
        let text = |budget, needed| Error::too_small(budget, needed, "to rank").to_string();
        assert_eq!(
            text((16 << 20) - 9, 16 << 20),
            "a memory budget of 16777207 bytes is too small to rank; the smallest that works is 16M"
        );
        assert!(text((15 << 20) - 9, 16 << 20).starts_with("a memory budget of 15M is"));
    }
}

//! Checks of every parser and of every file format of our own, on any bytes.
//!
//! A check panics where the code under test breaks a promise: it must end with an answer or with a
//! typed error, and take from the bytes no more than they hold. `tests/corpus.rs` runs all checks
//! on the corpus and on mutations of it; `libfuzzer` explores one of them.

#![expect(clippy::expect_used, reason = "a failure of the check itself is a failed test")]

mod checkpoint;
mod codec;
mod graph;
mod pages;
mod seal;
mod sealed;
mod text;

/// A check and the folder of its corpus.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `corpus`.
    pub name: &'static str,
    /// Returns whether the bytes were accepted: they were read to their end without an error.
    pub check: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: [Target; 21] = [
    Target { name: "adjacency", check: |bytes| text::check("adjacency", bytes) },
    Target { name: "adjacency-ids", check: |bytes| text::check("adjacency-ids", bytes) },
    Target { name: "auto", check: |bytes| text::check("auto", bytes) },
    Target { name: "checkpoint", check: checkpoint::check },
    Target { name: "codec", check: codec::check },
    Target { name: "columns", check: text::columns },
    Target { name: "declaration", check: text::declaration },
    Target { name: "dimacs", check: |bytes| text::check("dimacs", bytes) },
    Target { name: "edgelist", check: |bytes| text::check("edgelist", bytes) },
    Target { name: "graph-files", check: graph::files },
    Target { name: "graphalytics", check: text::graphalytics },
    Target { name: "jlg", check: |bytes| text::check("jlg", bytes) },
    Target { name: "lookups", check: graph::lookups },
    Target { name: "manifest", check: graph::manifest },
    Target { name: "metis", check: |bytes| text::check("metis", bytes) },
    Target { name: "mtx", check: |bytes| text::check("mtx", bytes) },
    Target { name: "names", check: graph::names },
    Target { name: "pace", check: |bytes| text::check("pace", bytes) },
    Target { name: "pages", check: pages::check },
    Target { name: "sealed", check: sealed::check },
    Target { name: "webgraph", check: text::webgraph },
];

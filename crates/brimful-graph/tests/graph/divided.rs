//! Imports whose edges are sorted elsewhere: the files and the report of any import.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use brimful_graph::build::divided::sort_part;
use brimful_graph::build::import::{ImportOptions, ImportReport, Input, import};
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful_graph::message::{Message, Messages};
use brimful_graph::{Error, Result};
use brimful_store::{DiskFolder, Job};

use super::distributed::Distributed;
use super::parsed::import_kept;
use super::{bytes_of, resources, write};

/// Sorts parts in this process, each within `bytes`.
#[derive(Debug)]
pub(crate) struct Here {
    pub(crate) parts: usize,
    bytes: u64,
    folder: PathBuf,
    /// The records of each part, in pieces.
    records: Mutex<Vec<Vec<Vec<u8>>>>,
    /// The part whose last message is lost.
    lost: Option<usize>,
}

impl Here {
    pub(crate) fn new(parts: usize, bytes: u64, folder: &Path, lost: Option<usize>) -> Self {
        Self { parts, bytes, folder: folder.into(), records: Mutex::default(), lost }
    }
}

impl Here {
    pub(crate) fn put(&self, part: usize, records: Vec<u8>) -> Result<()> {
        let mut all = self.records.lock().unwrap();
        if all.len() <= part {
            all.resize(part + 1, Vec::new());
        }
        all[part].push(records);
        Ok(())
    }
}

impl Here {
    pub(crate) fn sort(&self, task: &[u8], parts: usize) -> Result<Box<dyn Messages>> {
        let mut all = std::mem::take(&mut *self.records.lock().unwrap());
        all.resize(parts, Vec::new());
        let mut sent = Vec::new();
        for (part, mut records) in all.into_iter().enumerate() {
            let resources = resources(1, self.bytes);
            // In another order than they were handed over in.
            let next = || Ok(records.pop().map(|one| Box::new(one) as Message));
            let send = |message| {
                sent.push((part, message));
                Ok(())
            };
            sort_part(task, &DiskFolder::new(&self.folder), &resources, next, send)?;
            if self.lost == Some(part) {
                sent.pop();
            }
        }
        Ok(Box::new(InOrder(sent.into_iter())))
    }
}

pub(crate) struct InOrder(pub(crate) std::vec::IntoIter<(usize, Vec<u8>)>);

impl Messages for InOrder {
    fn next(&mut self, _: &Job) -> Result<Option<(usize, Message)>> {
        Ok(self.0.next().map(|(part, message)| (part, Box::new(message) as Message)))
    }
}

/// Edges among 400,000 vertices, a third of them to 50 hubs, with whole weights.
fn edges(folder: &Path) -> PathBuf {
    let mut seed = 1_u64;
    let lines = (0..300_000).map(|number| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (source, target) = ((seed >> 40) % 400_000, (seed >> 20) % 400_000);
        let target = if number % 3 == 0 { target % 50 } else { target };
        format!("{source} {target} {}\n{target} {target} 1\n", number % 9)
    });
    let text: String = std::iter::once("source target weight\n".into()).chain(lines).collect();
    write(folder, "edges.txt", text.as_bytes())
}

fn import_divided(
    text: &Path,
    out: &Path,
    options: &ImportOptions,
    sorters: Option<Here>,
) -> Result<ImportReport> {
    let paths = vec![text.into()];
    match sorters {
        None => import(Input::EdgeList(paths), out, options, &resources(2, 1 << 28)),
        Some(sorters) => {
            let change = |kept: &mut Distributed| kept.sorters = sorters;
            import_kept(TextFormat::EdgeList, &paths, out, options, 1 << 28, change)
        }
    }
}

#[test]
fn edges_that_are_sorted_elsewhere_make_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = edges(folder.path());
    let sum = Policy { self_loops: SelfLoops::Drop, duplicates: Duplicates::Sum };
    let drop = Policy { self_loops: SelfLoops::Keep, duplicates: Duplicates::Drop };
    for (number, options) in [
        ImportOptions { reverse: true, ..Default::default() },
        ImportOptions { undirected: true, policy: sum, ..Default::default() },
        ImportOptions { sort_ids: true, policy: drop, ..Default::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let alone = folder.path().join(format!("{number}.brimful"));
        let one = import_divided(&text, &alone, &options, None).unwrap();
        for parts in if number == 0 { vec![1, 3, 64] } else { vec![3] } {
            let out = folder.path().join(format!("{number}-{parts}.brimful"));
            // With little memory the sorter writes runs.
            let here = Here::new(parts, 40 << 20, folder.path(), None);
            let two = import_divided(&text, &out, &options, Some(here)).unwrap();
            assert!(bytes_of(&alone) == bytes_of(&out), "{parts} parts, {options:?}");
            assert_eq!(one.left_out, two.left_out);
        }
    }
}

#[test]
fn a_part_that_is_incomplete_or_has_no_memory_ends_the_import() {
    let folder = tempfile::tempdir().unwrap();
    let text = edges(folder.path());
    let out = folder.path().join("graph.brimful");
    let import = |bytes, lost| {
        let here = Here::new(2, bytes, folder.path(), lost);
        import_divided(&text, &out, &ImportOptions::default(), Some(here)).unwrap_err()
    };
    for part in 0..2 {
        let lost = import(1 << 28, Some(part));
        assert!(lost.to_string().contains("sent a damaged message"), "{lost}");
    }
    let small = import(1 << 20, None);
    assert!(matches!(small, Error::Store(brimful_store::Error::Budget { .. })), "{small:?}");
    assert!(small.to_string().contains("to sort a part of the edges"), "{small}");
    assert!(!out.exists());
}

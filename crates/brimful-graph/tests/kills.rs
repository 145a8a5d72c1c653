//! Import, generation and index, killed at every operation that changes files. A child process runs
//! until it is killed, and the next process finishes the work as if it had not been interrupted.
//!
//! `BRIMFUL_KILLS=all` kills at every operation; otherwise a sample of operations is used.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::build::import::{
    ImportOptions, Input, build_reverse, build_reverse_alone, import, import_in,
};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::read::verify;
use brimful_graph::{Graph, Result};
use brimful_store::external::{FolderLock, PartialFolder};
use brimful_store::fault::{self, MortalFolder, killed_in_child, kills};
use brimful_store::{Budget, DiskFolder, Job, Resources};

/// Number of kills for each kind of work, unless all are requested.
const SAMPLED: u64 = 10;

/// Work that is killed and started again.
struct Work {
    name: &'static str,
    /// The preparation, before the child starts.
    prepare: fn(&Path) -> Result<()>,
    /// The work of the child; the number is that of its last operation. Returns the number of
    /// operations.
    run: fn(&Path, u64) -> Result<u64>,
    /// The work of the next process; it must succeed even if nothing is left to do.
    again: fn(&Path) -> Result<()>,
}

const WORKS: [Work; 5] = [
    Work {
        name: "import",
        prepare: |folder| {
            text(folder, "source target weight\n", |i| {
                format!("{} {} {}.5\n", i * i * 88_172_645_463, i % 41, i % 7)
            })
        },
        run: |folder, last| make(PartialFolder::create, folder, last, input_of(folder)),
        again: |folder| remake(folder, input_of(folder)),
    },
    Work {
        name: "import of strings",
        prepare: |folder| {
            text(folder, "source target\n", |i| format!("from-{} to-{}\n", i % 53, i * i % 61))
        },
        run: |folder, last| make(PartialFolder::create, folder, last, input_of(folder)),
        again: |folder| remake(folder, input_of(folder)),
    },
    Work {
        name: "generate",
        prepare: |_| Ok(()),
        run: |folder, last| {
            make(PartialFolder::create, folder, last, Input::Numbered(&generator(), 1 << 9))
        },
        again: |folder| remake(folder, Input::Numbered(&generator(), 1 << 9)),
    },
    Work {
        name: "import in the place of a graph",
        prepare: |folder| {
            remake(folder, Input::Numbered(&generator(), 1 << 9))?;
            text(folder, "source target\n", |i| format!("{} {}\n", i * i % 97, i % 41))
        },
        run: |folder, last| make(PartialFolder::replace, folder, last, input_of(folder)),
        again: |folder| {
            let options = ImportOptions { replace: true, ..ImportOptions::default() };
            import(input_of(folder), &graph_of(folder), &options, &resources())?;
            Ok(())
        },
    },
    Work {
        name: "index",
        prepare: |folder| remake(folder, Input::Numbered(&generator(), 1 << 9)),
        run: |folder, last| {
            let path = graph_of(folder);
            let _lock = FolderLock::take(&path)?;
            let mortal = MortalFolder::new(&DiskFolder::new(path), last);
            build_reverse_alone(&Graph::open_folder(&mortal, &Arc::default())?, &resources())?;
            Ok(mortal.spent())
        },
        again: |folder| {
            build_reverse(&Graph::open(&graph_of(folder), &Arc::default())?, &resources())?;
            Ok(())
        },
    },
];

fn resources() -> Resources {
    Resources::new(Budget::new(1 << 26, 0), Arc::new(Job::new()), Some(1)).unwrap()
}

fn generator() -> Generator {
    Generator::new(Kind::Rmat { scale: 9, edge_factor: 4 }, 3).unwrap()
}

fn graph_of(folder: &Path) -> std::path::PathBuf {
    folder.join("g.brimful")
}

fn text(folder: &Path, header: &str, line: fn(u64) -> String) -> Result<()> {
    let text = header.to_owned() + &(0..500).map(line).collect::<String>();
    std::fs::write(folder.join("edges.txt"), text).unwrap();
    Ok(())
}

fn input_of(folder: &Path) -> Input<'static> {
    Input::EdgeList(vec![folder.join("edges.txt")])
}

/// An import that may be killed, with the same steps as [`import`].
fn make(
    begin: fn(&Path) -> brimful_store::Result<PartialFolder>,
    folder: &Path,
    last: u64,
    input: Input<'_>,
) -> Result<u64> {
    let partial = begin(&graph_of(folder))?;
    let mortal = MortalFolder::new(partial.folder(), last);
    import_in(&mortal, input, &ImportOptions::default(), &resources())?;
    mortal.spend();
    partial.publish()?;
    mortal.spend();
    Ok(mortal.spent())
}

fn remake(folder: &Path, input: Input<'_>) -> Result<()> {
    let path = graph_of(folder);
    if !path.exists() {
        import(input, &path, &ImportOptions::default(), &resources())?;
    }
    Ok(())
}

/// All files below a folder, except two: the lock, which is empty, and a first manifest that a
/// second one replaced, which is removed when the third is published.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            files.extend(
                files_below(&entry.path())
                    .into_iter()
                    .map(|(below, bytes)| (format!("{name}/{below}"), bytes)),
            );
        } else if name != "lock" {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    if files.contains_key("manifest-2") {
        files.remove("manifest-1");
    }
    files
}

/// Runs in a process of its own; see [`killed_work_is_finished_by_the_next_process`].
#[test]
#[ignore = "the child of another test"]
fn child() {
    let (name, folder, last) = fault::child().unwrap();
    let work = WORKS.iter().find(|work| work.name == name).unwrap();
    (work.run)(&folder, last).unwrap();
}

#[test]
fn killed_work_is_finished_by_the_next_process() {
    for work in &WORKS {
        let undisturbed = tempfile::tempdir().unwrap();
        (work.prepare)(undisturbed.path()).unwrap();
        let operations = (work.run)(undisturbed.path(), 0).unwrap();
        let expected = files_below(undisturbed.path());
        assert!(operations > 2 * SAMPLED, "{}: {operations} operations", work.name);
        for at in kills(operations, SAMPLED) {
            let folder = tempfile::tempdir().unwrap();
            (work.prepare)(folder.path()).unwrap();
            let killed = killed_in_child("child", work.name, folder.path(), at).unwrap();
            assert!(killed, "{}: not killed at {at} of {operations}", work.name);
            if let Ok(graph) = Graph::open(&graph_of(folder.path()), &Arc::default()) {
                verify::verify(&graph, &Job::new()).unwrap();
            }
            (work.again)(folder.path()).unwrap();
            let found = files_below(folder.path());
            let names =
                |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&expected), "{}: killed at {at}", work.name);
            assert!(found == expected, "{}: killed at {at}: another graph", work.name);
        }
    }
}

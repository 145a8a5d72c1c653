//! Import, generation, index and export on a disk that fails. Whichever operation fails, the result
//! is the right graph or a typed error. After a power failure at any sync, the surviving files are
//! refused, or are right and usable.

use std::path::Path;
use std::sync::Arc;

use brimful_graph::build::import::{ImportOptions, Input, build_reverse_alone, import_in};
use brimful_graph::export::{ExportOptions, Format};
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::read::verify;
use brimful_graph::{Graph, Index, Result};
use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::{ErrorKind, Job};

use super::{SMALL, export_as, random_text, resources, write};

/// Number of failures tried for each class of operations.
const TRIED: u64 = 40;

type Files = std::collections::BTreeMap<String, Vec<u8>>;

/// Work in a folder that may fail.
type Work<'a> = dyn Fn(&FaultFolder) -> Result<()> + 'a;

/// A way to create a graph in an empty folder.
struct Making {
    name: &'static str,
    make: Box<Work<'static>>,
}

fn makings(folder: &Path) -> Vec<Making> {
    let import = |name, text: String, options: ImportOptions| {
        let path = write(folder, name, text);
        let make = move |folder: &FaultFolder| {
            import_in(folder, Input::EdgeList(vec![path.clone()]), &options, &resources(1, 1 << 26))
                .map(drop)
        };
        Making { name, make: Box::new(make) }
    };
    let sparse: Vec<i128> = (0..40).map(|i| i * i * 88_172_645_463_325_252 % (1 << 63)).collect();
    let strings = (0..300).map(|i| format!("name-{} name-{}\n", i * i % 37, i % 41)).collect();
    let columns = ColumnChoice { header: Some(false), ..ColumnChoice::default() };
    let small = ImportOptions { geometry: SMALL, reverse: true, ..Default::default() };
    let generate = |folder: &FaultFolder| {
        let generator = Generator::new(Kind::Rmat { scale: 7, edge_factor: 4 }, 3).unwrap();
        let input = Input::Numbered(&generator, generator.vertices());
        let options = ImportOptions { geometry: SMALL, ..Default::default() };
        import_in(folder, input, &options, &resources(1, 1 << 26)).map(drop)
    };
    vec![
        import("weighted", random_text(3, &sparse, 400, true), small.clone()),
        import(
            "sorted",
            random_text(4, &sparse, 300, false),
            ImportOptions { sort_ids: true, ..small },
        ),
        import(
            "strings",
            strings,
            ImportOptions { geometry: SMALL, columns, ..Default::default() },
        ),
        Making { name: "generated", make: Box::new(generate) },
    ]
}

/// The files of an undisturbed run, and its number of operations of each kind.
fn undisturbed(folder: &FaultFolder, work: &Work<'_>) -> (Files, [u64; 8]) {
    folder.set_plan(FaultPlan::new());
    work(folder).unwrap();
    let counts = Operation::ALL.map(|operation| folder.count(operation));
    (folder.files(), counts)
}

/// Fails each operation in turn; calls `judge` with the result and the folder, which works again.
fn fail_each(
    begin: &dyn Fn() -> FaultFolder,
    work: &Work<'_>,
    judge: &mut dyn FnMut(&FaultFolder, Result<()>, &str),
) {
    let (_, counts) = undisturbed(&begin(), work);
    for (operation, count) in Operation::ALL.into_iter().zip(counts) {
        for number in (1..=count).step_by(count.div_ceil(TRIED).max(1) as usize) {
            for fault in [Fault::Io, Fault::Full] {
                let folder = begin();
                folder.set_plan(FaultPlan::new().fail(operation, number, fault));
                let result = work(&folder);
                folder.set_plan(FaultPlan::new());
                judge(&folder, result, &format!("{operation:?} {number} of {count}: {fault:?}"));
                assert_eq!(folder.open_files(), 0, "{operation:?} {number}: files stay open");
            }
        }
    }
}

#[test]
fn an_import_on_a_failing_disk_ends_with_the_right_graph_or_a_typed_error() {
    let inputs = tempfile::tempdir().unwrap();
    for Making { name, make } in makings(inputs.path()) {
        let (expected, _) = undisturbed(&FaultFolder::new(), &make);
        let mut failed = 0;
        fail_each(&FaultFolder::new, &make, &mut |folder, result, problem| match result {
            Ok(()) => assert!(folder.files() == expected, "{name}: {problem}: another graph"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io, "{name}: {problem}: {error}");
                failed += 1;
            }
        });
        assert!(failed > 100, "{name}: {failed} failures");
    }
}

#[test]
fn short_and_interrupted_transfers_change_nothing() {
    let inputs = tempfile::tempdir().unwrap();
    for Making { name, make } in makings(inputs.path()) {
        let (expected, counts) = undisturbed(&FaultFolder::new(), &make);
        for seed in 0..3 {
            let folder = FaultFolder::new();
            let interrupted = |plan: FaultPlan, number| {
                plan.fail(Operation::Read, number, Fault::Interrupted).fail(
                    Operation::Write,
                    number,
                    Fault::Interrupted,
                )
            };
            folder.set_plan(
                (1..counts[1]).step_by(5).fold(FaultPlan::new().varying(90, seed), interrupted),
            );
            make(&folder).unwrap();
            folder.set_plan(FaultPlan::new());
            assert!(folder.files() == expected, "{name}: another graph");
        }
    }
}

#[test]
fn a_full_disk_ends_an_import_with_what_to_do() {
    let inputs = tempfile::tempdir().unwrap();
    for Making { name, make } in makings(inputs.path()) {
        let folder = FaultFolder::new();
        let (expected, _) = undisturbed(&folder, &make);
        let needed = folder.used_bytes();
        for capacity in (0..=needed).step_by((needed / 60) as usize) {
            let folder = FaultFolder::new();
            folder.set_plan(FaultPlan::new().capacity(capacity));
            match make(&folder) {
                Ok(()) => assert!(folder.files() == expected, "{name}: another graph"),
                Err(error) => assert!(
                    error.to_string().contains("the disk is full")
                        || error.to_string().contains("no room"),
                    "{name}: {capacity} of {needed} bytes: {error}"
                ),
            }
        }
    }
}

#[test]
fn a_power_failure_during_an_import_leaves_the_right_graph_or_none() {
    let inputs = tempfile::tempdir().unwrap();
    let (mut whole, mut none) = (0, 0);
    for Making { name, make } in makings(inputs.path()) {
        let folder = FaultFolder::new();
        let (expected, _) = undisturbed(&folder, &make);
        assert!(folder.crash().files() == expected, "{name}: what an import finished is durable");
        for at in 1..=folder.count(Operation::Sync) {
            for seed in 0..4 {
                let folder = FaultFolder::new();
                folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(seed * 100 + at));
                make(&folder).unwrap();
                let after = folder.crash();
                match Graph::open_folder(&after, &Arc::default()) {
                    Ok(graph) => {
                        verify::verify(&graph, &Job::new()).unwrap();
                        let survived = after.files();
                        assert!(
                            expected.iter().all(|(name, bytes)| survived.get(name) == Some(bytes)),
                            "{name}"
                        );
                        whole += 1;
                    }
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt),
                            "{name}: {error}"
                        );
                        none += 1;
                    }
                }
            }
        }
    }
    // The name of the pointer may survive even before its last sync.
    assert!(whole > 0 && none > 0, "{whole} whole, {none} without a graph");
}

/// A folder with a graph without reverse index, and the work that builds the index.
fn index_later() -> (impl Fn() -> FaultFolder, impl Fn(&FaultFolder) -> Result<()>) {
    let folder = tempfile::tempdir().unwrap();
    let ids: Vec<i128> = (0..50).collect();
    let input =
        Input::EdgeList(vec![write(folder.path(), "edges", random_text(5, &ids, 500, true))]);
    let options = ImportOptions { geometry: SMALL, ..Default::default() };
    let made = FaultFolder::new();
    import_in(&made, input, &options, &resources(1, 1 << 26)).unwrap();
    let begin = move || made.crash();
    let work = |folder: &FaultFolder| {
        let graph = Graph::open_folder(folder, &Arc::default())?;
        build_reverse_alone(&graph, &resources(1, 1 << 26)).map(drop)
    };
    (begin, work)
}

/// Asserts that the graph in `folder` is whole, with or without the index, and that the index can
/// be built.
fn assert_index_can_be_built(
    folder: &FaultFolder,
    work: &Work<'_>,
    expected: &Files,
    problem: &str,
) {
    let graph =
        Graph::open_folder(folder, &Arc::default()).unwrap_or_else(|e| panic!("{problem}: {e}"));
    verify::verify(&graph, &Job::new()).unwrap();
    drop(graph);
    work(folder).unwrap();
    let graph = Graph::open_folder(folder, &Arc::default()).unwrap();
    assert!(graph.shards(Index::Reverse).is_some(), "{problem}");
    verify::verify(&graph, &Job::new()).unwrap();
    let found = folder.files();
    let data = |name: &&String| !name.starts_with("manifest") && *name != "current";
    let same = expected.keys().filter(data).all(|name| found.get(name) == expected.get(name));
    assert!(same, "{problem}: another index");
}

#[test]
fn an_index_on_a_failing_disk_is_built_or_leaves_the_graph_as_it_was() {
    let (begin, work) = index_later();
    let (expected, _) = undisturbed(&begin(), &work);
    let mut failed = 0;
    fail_each(&begin, &work, &mut |folder, result, problem| {
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Io, "{problem}: {error}");
            failed += 1;
        }
        assert_index_can_be_built(folder, &work, &expected, problem);
    });
    assert!(failed > 50, "{failed} failures");
}

#[test]
fn a_power_failure_while_an_index_is_built_leaves_the_graph_whole() {
    let (begin, work) = index_later();
    let folder = begin();
    let (expected, _) = undisturbed(&folder, &work);
    assert!(folder.count(Operation::Sync) >= 6);
    for at in 1..=folder.count(Operation::Sync) {
        for seed in 0..6 {
            let folder = begin();
            folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(seed * 100 + at));
            work(&folder).unwrap();
            assert_index_can_be_built(
                &folder.crash(),
                &work,
                &expected,
                &format!("sync {at}, seed {seed}"),
            );
        }
    }
}

#[test]
fn an_export_from_a_failing_disk_writes_all_or_nothing() {
    let (begin, _) = index_later();
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("edges.txt");
    let export = |folder: &FaultFolder| {
        let _ = std::fs::remove_file(&path);
        let graph = Arc::new(Graph::open_folder(folder, &Arc::default())?);
        export_as(&graph, &path, &ExportOptions::new(Format::EdgeList)).map(drop)
    };
    export(&begin()).unwrap();
    let expected = std::fs::read(&path).unwrap();
    let mut failed = 0;
    fail_each(&begin, &export, &mut |_, result, problem| {
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Io, "{problem}: {error}");
            assert_eq!(
                std::fs::read_dir(out.path()).unwrap().count(),
                0,
                "{problem}: something is left behind"
            );
            failed += 1;
        } else {
            assert!(std::fs::read(&path).unwrap() == expected, "{problem}: another export");
        }
    });
    assert!(failed > 20, "{failed} failures");
}

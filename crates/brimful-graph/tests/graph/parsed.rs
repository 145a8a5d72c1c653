//! Imports of text that is parsed, ranked and mapped elsewhere: the files and the report of any
//! import.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_graph::Result;
use brimful_graph::build::import::{IdChoice, ImportOptions, ImportReport, Input, OnError, import};
use brimful_graph::build::numbering::numbering_bytes;
use brimful_graph::build::weights::Weights;
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::distributed::{DistributedFiles, DistributedKind};
use brimful_graph::input::formats::{TextFile, TextFormat};
use brimful_graph::input::parsed::ScanChoices;
use brimful_graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful_graph::input::sending::{Choices, has_names, minimum_bytes, parse_file};
use brimful_store::DiskFolder;

use super::distributed::{Distributed, is_small};
use super::{bytes_of, resources, write};

/// Imports `paths` from the messages of each, which are parsed within `bytes`; `change` changes the
/// processes that keep the edges.
pub(super) fn import_kept(
    format: TextFormat,
    paths: &[PathBuf],
    out: &Path,
    options: &ImportOptions,
    bytes: u64,
    change: impl FnOnce(&mut Distributed),
) -> Result<ImportReport> {
    let resources = resources(1, bytes);
    let file = |path: &PathBuf| TextFile { path: path.clone(), format };
    let names = has_names(&file(&paths[0]), options.ids, &options.columns, &resources)?;
    let (columns, on_error) = (options.columns.clone(), options.on_error);
    let scan = ScanChoices { undirected: options.undirected, policy: options.policy };
    let choices =
        Choices { names, directed: options.directed.then_some(true), columns, on_error, scan };
    let mut messages = Vec::new();
    let folder = DiskFolder::new(out.parent().unwrap());
    for (number, path) in paths.iter().enumerate() {
        parse_file(&file(path), &choices, &folder, &resources, |label, message| {
            messages.push((number, label, message));
            Ok(())
        })?;
    }
    let paths = paths.to_vec();
    let mut kept = Distributed::new(messages, names, out.parent().unwrap());
    change(&mut kept);
    let files = DistributedFiles {
        paths,
        kind: DistributedKind::Text(format, names),
        edges: Arc::new(kept),
    };
    import(Input::Distributed(files), out, options, &super::resources(2, BYTES))
}

/// Memory of an import.
const BYTES: u64 = 1 << 28;

fn import_parsed(
    format: TextFormat,
    paths: &[PathBuf],
    out: &Path,
    options: &ImportOptions,
) -> Result<ImportReport> {
    import_kept(format, paths, out, options, BYTES, |_| ())
}

/// Lines with hubs, self-loops, duplicates, and one line that is not an edge in each file.
fn texts(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    (0..3_u64)
        .map(|file| {
            let mut text = format!("# file {file}\n");
            for edge in 0..100_000 >> (8 * file) {
                let (source, target) = (edge * edge % 997, edge * 7919 % (1000 + file));
                writeln!(text, "{prefix}{source} {prefix}{target}").unwrap();
            }
            text.push_str("alone\n");
            write(folder, &format!("{file}.txt"), text.as_bytes())
        })
        .collect()
}

#[test]
fn the_order_in_which_parsed_files_arrive_changes_nothing() {
    let both = Policy { self_loops: SelfLoops::Drop, duplicates: Duplicates::Drop };
    let skip = ImportOptions { on_error: OnError::Skip, ..Default::default() };
    let no_header = ColumnChoice { header: Some(false), ..Default::default() };
    let cases = [
        ("", skip.clone()),
        ("", ImportOptions { policy: both, undirected: true, ..skip.clone() }),
        ("", ImportOptions { reverse: true, vertices: Some(9_000_000), ..skip.clone() }),
        ("-", ImportOptions { weights: Weights::Hash, ..skip.clone() }),
        ("", ImportOptions { sort_ids: true, reverse: true, ..skip.clone() }),
        ("", ImportOptions { ids: IdChoice::String, ..skip.clone() }),
        ("v", ImportOptions { policy: both, columns: no_header.clone(), ..skip.clone() }),
        ("v", ImportOptions { sort_ids: true, columns: no_header, ..skip.clone() }),
    ];
    for (prefix, options) in cases {
        let folder = tempfile::tempdir().unwrap();
        let paths = texts(folder.path(), prefix);
        let (here, there) = (folder.path().join("one.brimful"), folder.path().join("two.brimful"));
        let input = Input::Text(TextFormat::EdgeList, paths.clone());
        let one = import(input, &here, &options, &resources(2, 1 << 28)).unwrap();
        let two = import_parsed(TextFormat::EdgeList, &paths, &there, &options).unwrap();
        assert_eq!(one.rejections, two.rejections);
        assert_eq!(one.left_out, two.left_out);
        assert!(bytes_of(&here) == bytes_of(&there), "{prefix} {options:?}");
    }
}

#[test]
fn a_header_of_undirected_edges_reaches_the_choice_of_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut text =
        String::from("%%MatrixMarket matrix coordinate pattern symmetric\n900 900 800\n");
    (0..800).for_each(|edge| writeln!(text, "{} {}", 100 + edge, 1 + edge * edge % 100).unwrap());
    let paths = [write(folder.path(), "g.mtx", text.as_bytes())];
    let (here, there) = (folder.path().join("one.brimful"), folder.path().join("two.brimful"));
    let options = ImportOptions::default();
    let input = Input::Text(TextFormat::Auto, paths.to_vec());
    import(input, &here, &options, &resources(2, 1 << 28)).unwrap();
    import_parsed(TextFormat::Auto, &paths, &there, &options).unwrap();
    assert!(bytes_of(&here) == bytes_of(&there));
}

#[test]
fn parsing_has_a_budget_and_the_errors_of_an_import() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "g.txt", b"1 2\n1 x\n");
    let file = TextFile { path, format: TextFormat::EdgeList };
    let choices = Choices {
        names: false,
        directed: None,
        columns: ColumnChoice::default(),
        on_error: OnError::Fail,
        scan: ScanChoices {
            policy: Policy { self_loops: SelfLoops::Drop, ..Policy::default() },
            ..ScanChoices::default()
        },
    };
    let folder = DiskFolder::new(folder.path());
    let parse = |budget: u64| {
        let resources = resources(1, budget);
        parse_file(&file, &choices, &folder, &resources, |_, _| Ok(())).unwrap_err().to_string()
    };
    let least = minimum_bytes(true);
    assert!(parse(least).contains("g.txt:2:3: expected"), "{}", parse(least));
    assert!(parse(least - 1).contains("too small to read a file of edges"));
}

#[test]
fn ids_are_ranked_in_a_budget_by_ranges() {
    let folder = tempfile::tempdir().unwrap();
    // Ids in several ranges and pages, and some beyond those that a set holds.
    let text = |most: u64| -> String {
        let ends = (0..50_000_u64).map(|edge| (edge * edge * 7919 % most, edge % 300));
        ends.map(|(source, target)| format!("{source} {target}\n")).collect()
    };
    let options = ImportOptions::default();
    for (number, most) in [40_000_000, 1 << 33].into_iter().enumerate() {
        let paths = [write(folder.path(), &format!("{number}.txt"), text(most).as_bytes())];
        let (here, there) = ["one", "two"]
            .map(|name| folder.path().join(format!("{name}-{number}.brimful")))
            .into();
        let input = Input::Text(TextFormat::EdgeList, paths.to_vec());
        import(input, &here, &options, &resources(2, 1 << 28)).unwrap();
        import_parsed(TextFormat::EdgeList, &paths, &there, &options).unwrap();
        assert!(bytes_of(&here) == bytes_of(&there), "{most}");
    }
    let paths = [folder.path().join("0.txt")];
    let out = folder.path().join("three.brimful");
    let small = import_kept(TextFormat::EdgeList, &paths, &out, &options, BYTES, |kept| {
        kept.ranking_bytes -= 1;
    });
    let error = small.unwrap_err();
    assert!(is_small(&error) && error.to_string().contains("to rank ids"), "{error}");
    assert!(!out.exists());
}

#[test]
fn ids_of_several_generations_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    // Negative and wide ids with hubs, self-loops and duplicates; some vertices have no other edge.
    let paths: Vec<PathBuf> = (0..2_u64)
        .map(|file| {
            let spread = |id: u64| id.wrapping_mul(0x9E37_79B9_7F4A_7C15).cast_signed();
            let ends = (0..200_000_u64).map(|edge| (edge * edge % 90_001, edge % (300 + file)));
            let mut lines: String = ends
                .map(|(source, target)| format!("{} {}\n", spread(source), spread(target)))
                .collect();
            (0..100).for_each(|id| writeln!(lines, "{0} {0}", spread(1 << 20 | id)).unwrap());
            write(folder.path(), &format!("{file}.txt"), lines.as_bytes())
        })
        .collect();
    let both = Policy { self_loops: SelfLoops::Drop, duplicates: Duplicates::Drop };
    let summed = Policy { duplicates: Duplicates::Sum, ..Policy::default() };
    let hashed = ImportOptions { weights: Weights::Hash, reverse: true, ..Default::default() };
    let cases = [
        ImportOptions::default(),
        ImportOptions { policy: both, undirected: true, ..Default::default() },
        ImportOptions { policy: summed, vertices: Some(1000), ..Default::default() },
        hashed,
    ];
    for (number, options) in cases.into_iter().enumerate() {
        let [here, there] =
            ["one", "two"].map(|name| folder.path().join(format!("{name}{number}")));
        let input = Input::Text(TextFormat::EdgeList, paths.clone());
        let one = import(input, &here, &options, &resources(2, BYTES)).unwrap();
        let two = import_kept(TextFormat::EdgeList, &paths, &there, &options, BYTES, |kept| {
            kept.numbering_bytes = numbering_bytes();
            kept.together = 5;
        });
        let two = two.unwrap();
        assert_eq!(one.left_out, two.left_out);
        assert!(bytes_of(&here) == bytes_of(&there), "{options:?}");
    }
    let out = folder.path().join("three");
    let options = ImportOptions::default();
    let small = import_kept(TextFormat::EdgeList, &paths, &out, &options, BYTES, |kept| {
        kept.numbering_bytes = numbering_bytes() - 1;
    });
    let error = small.unwrap_err();
    assert!(is_small(&error) && error.to_string().contains("to number ids"), "{error}");
    assert!(!out.exists());
}

#[test]
fn names_of_several_generations_get_one_rank_each() {
    let folder = tempfile::tempdir().unwrap();
    let long = "https://example.org/".repeat(5);
    let paths: Vec<PathBuf> = (0..2_u64)
        .map(|file| {
            let ends = (0..60_000_u64).map(|edge| (edge * 7919 % 50_000, (edge + file) % 40_000));
            let lines = ends.map(|(source, target)| format!("{long}{source} {long}{target}\n"));
            write(folder.path(), &format!("{file}.txt"), lines.collect::<String>().as_bytes())
        })
        .collect();
    let columns = ColumnChoice { header: Some(false), ..Default::default() };
    let options = ImportOptions { columns, ..Default::default() };
    let (here, there) = (folder.path().join("one.brimful"), folder.path().join("two.brimful"));
    let input = Input::Text(TextFormat::EdgeList, paths.clone());
    import(input, &here, &options, &resources(2, BYTES)).unwrap();
    let (least, mut generations) = (minimum_bytes(false), 0);
    import_kept(TextFormat::EdgeList, &paths, &there, &options, least, |kept| {
        generations = kept.generations.len();
    })
    .unwrap();
    assert!(generations > 2, "{generations}");
    assert!(bytes_of(&here) == bytes_of(&there));
}

//! Imports of text that was parsed elsewhere: the files and the report of any import.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brimful_graph::Result;
use brimful_graph::build::import::{IdChoice, ImportOptions, ImportReport, Input, OnError, import};
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::formats::{TextFile, TextFormat};
use brimful_graph::input::parsed::{Choices, ParsedFiles, has_names, minimum_bytes, parse_file};
use brimful_graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful_graph::message::{Message, Messages};
use brimful_store::Job;

use super::{bytes_of, resources, write};

/// Messages, the last one first: files and their messages arrive in another order than they were
/// parsed in.
struct Backwards(Vec<(usize, Vec<u8>)>);

impl Messages for Backwards {
    fn next(&mut self, _: &Job) -> Result<Option<(usize, Message)>> {
        Ok(self.0.pop().map(|(file, message)| (file, Box::new(message) as Message)))
    }
}

/// Imports `paths` from the messages of each.
fn import_parsed(
    format: TextFormat,
    paths: &[PathBuf],
    out: &Path,
    options: &ImportOptions,
) -> Result<ImportReport> {
    let positions = options.policy.leaves_out();
    let resources = resources(2, minimum_bytes(positions).max(1 << 28));
    let file = |path: &PathBuf| TextFile { path: path.clone(), format };
    let names = has_names(&file(&paths[0]), options.ids, &options.columns, &resources)?;
    let (columns, on_error) = (options.columns.clone(), options.on_error);
    let choices = Choices { names, directed: options.directed, columns, on_error, positions };
    let mut messages = Backwards(Vec::new());
    for (number, path) in paths.iter().enumerate() {
        parse_file(&file(path), &choices, &resources, |message| {
            messages.0.push((number, message));
            Ok(())
        })?;
    }
    let paths = paths.to_vec();
    let parsed = ParsedFiles { format, paths, names, messages: &mut messages };
    import(Input::Parsed(parsed), out, options, &resources)
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
        ("", ImportOptions { sort_ids: true, reverse: true, ..skip.clone() }),
        ("", ImportOptions { ids: IdChoice::String, ..skip.clone() }),
        ("v", ImportOptions { policy: both, columns: no_header, ..skip.clone() }),
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
        directed: false,
        columns: ColumnChoice::default(),
        on_error: OnError::Fail,
        positions: true,
    };
    let parse = |budget: u64| {
        parse_file(&file, &choices, &resources(1, budget), |_| Ok(())).unwrap_err().to_string()
    };
    let least = minimum_bytes(true);
    assert!(parse(least).contains("g.txt:2:3: expected"), "{}", parse(least));
    assert!(parse(least - 1).contains("too small to parse a file of edges"));
}

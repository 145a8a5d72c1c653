//! The report of edges that a policy leaves out, with the input position of the first of each kind.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brimful_graph::build::import::{
    IdChoice, ImportOptions, Input, OnError, Rejection, import, minimum_bytes,
};
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful_graph::read::verify;
use brimful_store::Job;

use super::{resources, write};

const BOTH: Policy = Policy { self_loops: SelfLoops::Drop, duplicates: Duplicates::Drop };

/// Reason, count, file, line and text.
type Kind = (&'static str, u64, String, u64, String);

fn shown(kinds: &[Rejection]) -> Vec<Kind> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    kinds.iter().map(|k| (k.reason, k.count, name(&k.path), k.line, k.found.clone())).collect()
}

fn left_out(
    input: Input<'_>,
    folder: &Path,
    options: &ImportOptions,
    (threads, budget): (usize, u64),
) -> Vec<Kind> {
    let out = folder.join("g.brimful");
    let _ = std::fs::remove_dir_all(&out);
    let report = import(input, &out, options, &resources(threads, budget)).unwrap();
    let counts = report.description.counts;
    let total: u64 = report.left_out.iter().map(|kind| kind.count).sum();
    assert_eq!(total, counts.self_loops_dropped + counts.duplicates_dropped);
    shown(&report.left_out)
}

/// The expected report on edges with their file and line, in the order of the input.
fn model(
    edges: &[(u64, u64, usize, u64)],
    policy: Policy,
    undirected: bool,
    prefix: &str,
) -> Vec<Kind> {
    let (mut seen, mut kinds) = (HashSet::new(), BTreeMap::<&str, Kind>::new());
    for &(source, target, file, line) in edges {
        let name = |id: u64| format!("{prefix}{id}");
        // By id: integers compare as numbers, strings as strings.
        let greater = if prefix.is_empty() { source > target } else { name(source) > name(target) };
        let ends = if undirected && greater { (target, source) } else { (source, target) };
        let (key, reason) = if source == target && policy.self_loops == SelfLoops::Drop {
            ("1", "self-loop")
        } else if policy.duplicates != Duplicates::Keep && !seen.insert(ends) {
            ("2", "duplicate edge")
        } else {
            continue;
        };
        let found = format!("{} {}", name(ends.0), name(ends.1));
        let first = || (reason, 0, format!("{file}.txt"), line, found);
        kinds.entry(key).or_insert_with(first).1 += 1;
    }
    kinds.into_values().collect()
}

#[test]
fn the_first_is_found_at_any_thread_count_and_budget() {
    const LINES: u64 = 24_000;
    let folder = tempfile::tempdir().unwrap();
    // Two self-loops, and duplicates in the same and in the opposite direction; the first come
    // late.
    let edge = |n: u64| match n {
        25_600 | 33_777 => (n, n),
        38_400 => (7 * 33 + 1, 33),
        40_000 => (251, 7 * 251 + 1),
        _ => (n, 7 * n + 1),
    };
    for (prefix, spread) in [("", 1), ("", 1 << 40), ("vertex-", 1)] {
        let (mut files, mut edges) =
            (vec![String::from("# first\n"), String::from("% second\n\n")], vec![]);
        let mut lines = [1, 2];
        for n in 0..2 * LINES {
            let file = usize::from(n >= LINES);
            let (source, target) = (edge(n).0 * spread, edge(n).1 * spread);
            if n % 1000 == 0 {
                files[file].push_str("# between\n\n");
                lines[file] += 2;
            }
            lines[file] += 1;
            writeln!(files[file], "{prefix}{source} {prefix}{target}").unwrap();
            edges.push((source, target, file, lines[file]));
        }
        let paths: Vec<PathBuf> = files
            .iter()
            .enumerate()
            .map(|(file, text)| write(folder.path(), &format!("{file}.txt"), text))
            .collect();
        for (number, (self_loops, duplicates)) in [
            (SelfLoops::Drop, Duplicates::Keep),
            (SelfLoops::Keep, Duplicates::Sum),
            (SelfLoops::Drop, Duplicates::Drop),
            (SelfLoops::Keep, Duplicates::Keep),
        ]
        .into_iter()
        .enumerate()
        {
            let policy = Policy { self_loops, duplicates };
            let undirected = number % 2 == 0;
            let wanted = model(&edges, policy, undirected, prefix);
            assert_eq!(wanted.is_empty(), number == 3);
            for (threads, budget) in [(1, minimum_bytes(1, true, true)), (4, 1 << 30)] {
                let options = ImportOptions {
                    policy,
                    undirected,
                    sort_ids: threads == 1,
                    ids: if prefix.is_empty() { IdChoice::Int } else { IdChoice::String },
                    columns: ColumnChoice { header: Some(false), ..ColumnChoice::default() },
                    ..ImportOptions::default()
                };
                let input = Input::EdgeList(paths.clone());
                let found = left_out(input, folder.path(), &options, (threads, budget));
                assert_eq!(found, wanted, "{policy:?}, {threads} threads");
            }
        }
    }
}

/// A parallel edge with many more copies than a piece of the sorter holds.
#[test]
fn very_many_duplicates_of_one_edge_fit_the_smallest_budget() {
    let folder = tempfile::tempdir().unwrap();
    let text = "0 1\n".repeat(3) + &"7 7\n".repeat(1_500_000);
    let path = write(folder.path(), "0.txt", text);
    let policy = Policy { self_loops: SelfLoops::Keep, duplicates: Duplicates::Sum };
    let options = ImportOptions { policy, ..ImportOptions::default() };
    for (threads, budget) in [(1, minimum_bytes(1, true, true)), (4, 1 << 30)] {
        let found = left_out(
            Input::EdgeList(vec![path.clone()]),
            folder.path(),
            &options,
            (threads, budget),
        );
        assert_eq!(found, [("duplicate edge", 2 + 1_499_999, "0.txt".into(), 2, "0 1".into())]);
    }
}

#[test]
fn every_text_format_says_its_line() {
    let folder = tempfile::tempdir().unwrap();
    for (format, text, self_loop, duplicate) in [
        ("edgelist", "# c\n\n1 2\n3 3\n1 2\n", Some((4, "3 3")), Some((5, "1 2"))),
        ("edgelist", "u v w\n1 2 0.5\n2 1 1\n1 2 0.25\n", None, Some((4, "1 2"))),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate pattern general\n% c\n4 4 4\n1 2\n2 2\n% c\n\
             2 1\n1 2\n",
            Some((5, "2 2")),
            Some((8, "1 2")),
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 4\n2 1\n2 2\n4 1\n2 1\n",
            Some((4, "2 2")),
            Some((6, "1 2")),
        ),
        (
            "dimacs",
            "c c\np sp 3 4\na 1 2 5\na 3 3 1\nc c\na 2 1 5\na 1 2 4\n",
            Some((4, "3 3")),
            Some((7, "1 2")),
        ),
        ("pace", "p tw 3 4\n1 2\nc c\n3 3\n2 1\n1 3\n", Some((4, "3 3")), Some((5, "1 2"))),
        ("jlg", "3,4,d,name\n1,2\n3,3\n2,1\n1,2\n", Some((3, "3 3")), Some((5, "1 2"))),
        ("jlg", "3,4,u,name\n1,2\n3,3\n2,1\n1,3\n", Some((3, "3 3")), Some((4, "1 2"))),
        // Every edge is listed at both ends, which does not make it a duplicate.
        ("metis", "% c\n3 3\n2 3\n1\n% c\n1 3\n", Some((6, "3 3")), None),
        ("metis", "3 3\n2 3\n1 3\n1 2\n", None, None),
        ("metis", "4 5\n2 3\n1 3 4 4\n1 2\n2 2\n", None, Some((3, "2 4"))),
        ("adjacency", "4\n1 2\n2 1 2\n\n0 3\n", Some((3, "1 1")), Some((3, "1 2"))),
        ("adjacency-ids", "# c\n1 2 3\n3\n2 2\n1 4\n1 4\n", Some((4, "2 2")), Some((6, "1 4"))),
        ("adjacency-ids", "1 2\n2 1\n", None, None),
    ] {
        let path = write(folder.path(), "0.txt", text);
        let input = Input::Text(TextFormat::from_name(format).unwrap(), vec![path]);
        let options = ImportOptions { policy: BOTH, ..ImportOptions::default() };
        let found = left_out(input, folder.path(), &options, (2, 1 << 28));
        let found: Vec<(&str, u64, &str)> =
            found.iter().map(|k| (k.0, k.3, k.4.as_str())).collect();
        let wanted = [("self-loop", self_loop), ("duplicate edge", duplicate)];
        let wanted: Vec<(&str, u64, &str)> = wanted
            .into_iter()
            .filter_map(|(kind, first)| first.map(|(line, found)| (kind, line, found)))
            .collect();
        assert_eq!(found, wanted, "{format}: {text}");
    }
}

#[test]
fn directed_imports_of_mirrored_lists_and_undirected_ones_of_lists() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ImportOptions { policy: BOTH, directed: true, ..ImportOptions::default() };
    let found = |format: &str, text: &str, options: &ImportOptions| {
        let path = write(folder.path(), "0.txt", text);
        let input = Input::Text(TextFormat::from_name(format).unwrap(), vec![path]);
        left_out(input, folder.path(), options, (2, 1 << 28))
    };
    assert_eq!(found("metis", "3 3\n2 3\n1 3\n1 2\n", &options), []);
    let twice = found("metis", "4 5\n2 3\n1 3 4 4\n1 2\n2 2\n", &options);
    assert_eq!(twice, [("duplicate edge", 2, "0.txt".into(), 3, "2 4".into())]);
    (options.directed, options.undirected) = (false, true);
    // With arcs, the second arc of an edge is a duplicate.
    let arcs = found("adjacency", "3\n1\n0 2\n1\n", &options);
    assert_eq!(arcs, [("duplicate edge", 2, "0.txt".into(), 3, "0 1".into())]);
}

#[test]
fn rejected_lines_and_one_line_of_many_chunks_do_not_disturb_the_count() {
    let folder = tempfile::tempdir().unwrap();
    // A list longer than a chunk, followed by lines that are not edges.
    let mut text = String::from("# c\n0");
    (1..300_000).for_each(|target| write!(text, " {target}").unwrap());
    text.push_str(" 77\nx 1\n1 1\n");
    let path = write(folder.path(), "0.txt", text);
    let options = ImportOptions {
        policy: BOTH,
        on_error: OnError::Skip,
        ids: IdChoice::Int,
        ..ImportOptions::default()
    };
    let input = Input::Text(TextFormat::AdjacencyIds, vec![path]);
    let found = left_out(input, folder.path(), &options, (4, 1 << 28));
    let wanted = [("self-loop", 1, "0.txt", 4, "1 1"), ("duplicate edge", 1, "0.txt", 2, "0 77")];
    assert_eq!(
        found,
        wanted.map(|(r, n, file, line, text)| (r, n, file.into(), line, text.into()))
    );
}

#[test]
fn the_first_of_parallel_edges_stays_in_both_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "0.txt", "u v w\n1 2 3\n2 2 1\n1 2 0.5\n2 1 1\n");
    let options = ImportOptions { policy: BOTH, reverse: true, ..ImportOptions::default() };
    let resources = resources(2, 1 << 28);
    let out = folder.path().join("g.brimful");
    import(Input::EdgeList(vec![path]), &out, &options, &resources).unwrap();
    let graph = brimful_graph::Graph::open(&out, resources.job.traffic()).unwrap();
    verify::verify(&graph, &Job::new()).unwrap();
    let edges = super::edges(graph);
    assert_eq!(
        edges.into_keys().collect::<Vec<_>>(),
        [(1, 2, 3_f64.to_bits()), (2, 1, 1_f64.to_bits())]
    );
}

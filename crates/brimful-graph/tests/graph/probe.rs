//! A probe of an input before its import: exact for short inputs and headers, near for long ones,
//! and nothing for an input that does not tell.

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_graph::build::import::{IdChoice, ImportOptions, Input, OnError};
use brimful_graph::build::probe::{InputEstimate, probe};
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::formats::TextFormat;

use super::write;

fn text(name: &str, path: &Path) -> Input<'static> {
    Input::Text(TextFormat::from_name(name).unwrap(), vec![path.into()])
}

/// The probe of a text of the format `name`.
fn seen(name: &str, bytes: impl AsRef<[u8]>) -> Option<InputEstimate> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "input", bytes);
    probe(&text(name, &path), &ImportOptions::default())
}

/// Edges, largest id, weights, no direction.
fn of(edges: u64, largest: u64, weighted: bool, undirected: bool) -> Option<InputEstimate> {
    Some(InputEstimate { edges, largest, weighted, undirected })
}

/// A long list of edges that compresses alike everywhere.
fn long_list(lines: u64) -> String {
    let (mut text, mut state) = (String::from("# a comment\n"), 1_u64);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % lines
    };
    for _ in 0..lines {
        writeln!(text, "{} {}", next(), next()).unwrap();
    }
    text
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let level = flate2::Compression::fast();
    flate2::read::GzEncoder::new(bytes, level).read_to_end(&mut packed).unwrap();
    packed
}

fn near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) <= expected / 20
}

#[test]
fn headers_state_the_size() {
    let banner = "%%MatrixMarket matrix coordinate";
    for (name, text, expected) in [
        ("mtx", format!("{banner} real symmetric\n% x\n4 4 3\n"), of(3, 4, true, true)),
        ("mtx", format!("{banner} pattern general\n4 4 3\n"), of(3, 4, false, false)),
        ("metis", "% x\n4 3 001\n".into(), of(3, 4, true, true)),
        ("metis", "4 3\n2\n1 3\n".into(), of(3, 4, false, true)),
        ("gr", "c x\np sp 4 3\na 1 2 5\n".into(), of(3, 4, true, false)),
        ("dimacs", "p sp 4 3\na 1 2 5\n".into(), of(3, 4, true, false)),
        ("pace", "p tw 4 3\n1 2\n".into(), of(3, 4, false, true)),
        ("jlg", "4,3,d,graph\n1,2\n".into(), of(3, 4, false, false)),
        ("auto", format!("\n{banner} pattern symmetric\n4 4 3\n"), of(3, 4, false, true)),
        ("auto", "\np sp 4 3\na 1 2 5\n".into(), of(3, 4, true, false)),
        ("auto", "4,3,u,graph\n1,2\n".into(), of(3, 4, false, true)),
        // A header is not a header of another format.
        ("dimacs", "p tw 4 3\n1 2\n".into(), None),
        ("mtx", "4 4 3\n".into(), None),
        ("mtx", format!("{banner} pattern general\n4 5 3\n"), None),
        ("metis", "x\n".into(), None),
        ("jlg", String::new(), None),
    ] {
        assert_eq!(seen(name, &text), expected, "{name}: {text}");
        assert_eq!(seen(name, gzip(text.as_bytes())), expected, "{name}, compressed: {text}");
    }
    // With --directed every entry of a list is an edge.
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.metis", "4 3\n2\n1 3\n");
    let directed = ImportOptions { directed: true, ..ImportOptions::default() };
    assert_eq!(probe(&text("metis", &path), &directed), of(6, 4, false, false));
}

#[test]
fn short_inputs_are_counted() {
    for (name, text, expected) in [
        ("edgelist", "# x\n1 2\n\n3 9\n", of(2, 9, false, false)),
        ("auto", "source target weight\r\n1 2 .5\r\n3 9 1\r\n", of(2, 9, true, false)),
        ("csv", "name,source,target\n\"a, \"\"b\"\"\nc\",1,2\n,\"3\",9\n", of(2, 9, false, false)),
        ("tsv", "1\t2\n3\t9", of(2, 9, false, false)),
        ("adjacency", "4\n1 2 3\n\n3\n0\n", of(5, 3, false, false)),
        ("adjacency-ids", "#made by NetworkX\n10 11 12\n11\n13 10\n", of(3, 13, false, false)),
        // Strings and negative ids do not tell, nor does a text without edges.
        ("auto", "alice bob\nbob carol\n", None),
        ("auto", "-1 2\n", None),
        ("auto", "# nothing\n", None),
        ("auto", "", None),
        ("csv", "1,2\n3,x\n", None),
        ("csv", "a,b,c\n1,2,3\n", None),
        ("adjacency-ids", "a b\n", None),
    ] {
        assert_eq!(seen(name, text), expected, "{name}: {text}");
        assert_eq!(seen(name, gzip(text.as_bytes())), expected, "{name}, compressed: {text}");
    }
}

#[test]
fn the_user_decides_about_columns_and_flaws() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", "a,b,c\n1,2,3\n4,x,6\n7,8,9\n");
    let columns = ColumnChoice {
        source: Some("a".into()),
        target: Some("c".into()),
        weight: None,
        ..ColumnChoice::default()
    };
    let options = ImportOptions { columns, ..ImportOptions::default() };
    assert_eq!(probe(&text("csv", &path), &options), of(3, 9, false, false));
    let columns = ColumnChoice { ignore_extra: true, ..ColumnChoice::default() };
    let options = ImportOptions { columns, ..ImportOptions::default() };
    assert_eq!(probe(&text("csv", &path), &options), None);
    let skipping = ImportOptions { on_error: OnError::Skip, ..options };
    assert_eq!(probe(&text("csv", &path), &skipping), of(2, 8, false, false));
    let strings = ImportOptions { ids: IdChoice::String, ..skipping };
    assert_eq!(probe(&text("csv", &path), &strings), None);
}

#[test]
fn long_inputs_are_sampled() {
    let lines = 1_000_000;
    let list = long_list(lines);
    assert!(list.len() > 12 << 20);
    let lists: String = (0..200_000_u64)
        .map(|n| format!("{n} {} {} {}\n", n * 3 % 200_000, n * 5 % 200_000, n * 7 % 200_000))
        .collect();
    let ranked: String = format!("400000\n{}", "5 77 199999 3\n".repeat(400_000));
    let quoted = format!("id,text,to\n{}", "12,\"x, y\",345\n".repeat(500_000));
    for (name, text, edges, largest) in [
        ("auto", &list, lines, lines),
        ("adjacency-ids", &lists, 600_000, 200_000),
        ("adjacency", &ranked, 1_600_000, 400_000),
    ] {
        for bytes in [text.clone().into_bytes(), gzip(text.as_bytes())] {
            let seen = seen(name, &bytes).unwrap();
            assert!(near(seen.edges, edges), "{name}: {seen:?}");
            assert!(seen.largest <= largest && seen.largest > largest / 4, "{name}: {seen:?}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.csv", quoted);
    let column = |name: &str| Some(name.to_owned());
    let columns =
        ColumnChoice { source: column("id"), target: column("to"), ..ColumnChoice::default() };
    let options = ImportOptions { columns, ..ImportOptions::default() };
    let seen = probe(&text("csv", &path), &options).unwrap();
    assert!(near(seen.edges, 500_000) && seen.largest == 345, "{seen:?}");
}

#[test]
fn every_compression_is_probed() {
    let (lines, folder) = (600_000, tempfile::tempdir().unwrap());
    let list = long_list(lines);
    let xz = liblzma::encode_all(list.as_bytes(), 1).unwrap();
    let zstd = zstd::encode_all(list.as_bytes(), 3).unwrap();
    let mut bzip2 = Vec::new();
    let mut encoder = bzip2::read::BzEncoder::new(list.as_bytes(), bzip2::Compression::best());
    encoder.read_to_end(&mut bzip2).unwrap();
    // Two parts: the length at the end is that of the second.
    let parts = [gzip(&list.as_bytes()[..1 << 10]), gzip(&list.as_bytes()[1 << 10..])].concat();
    let short = [gzip(list.as_bytes()), gzip(b"1 2\n")].concat();
    for (name, bytes) in
        [("xz", xz), ("zstd", zstd), ("bzip2", bzip2), ("parts", parts), ("short", short)]
    {
        let path = write(folder.path(), name, &bytes);
        let seen = probe(&text("auto", &path), &ImportOptions::default()).unwrap();
        // A block of bzip2 is decoded as a whole.
        assert!(seen.edges.abs_diff(lines) <= lines / 10, "{name}: {seen:?}");
        std::fs::write(&path, &bytes[..bytes.len() / 9]).unwrap();
        let cut = probe(&text("auto", &path), &ImportOptions::default());
        assert!(cut.is_none_or(|seen| seen.edges < lines / 4), "{name}: {cut:?}");
        std::fs::write(&path, [&bytes[..20], &[0; 500], &bytes[20..]].concat()).unwrap();
        assert_eq!(probe(&text("auto", &path), &ImportOptions::default()), None, "{name}");
    }
}

#[test]
fn an_export_states_its_edges() {
    let said = |ids: &str, rest: &str| {
        format!(
            "# brimful: directed=no weighted=yes ids={ids} vertices=5 edges=4 isolated=1{rest}\n"
        )
    };
    let lines = "7 8 1\n8 9 1\n9 10 1\n7 10 1\n# vertex 11\n";
    assert_eq!(seen("auto", said("int", "") + lines), of(4, 11, true, true));
    assert_eq!(seen("csv", said("int", " first=7") + "7 8 1\n"), of(4, 11, true, true));
    assert_eq!(seen("auto", said("string", "") + lines), None);
}

#[test]
fn pairs_are_counted_by_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let pairs: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let options = ImportOptions::default();
    let at = |name: &str, bytes: &[u8]| vec![write(folder.path(), name, bytes)];
    let short = Input::Pairs(at("short", &pairs[..800]));
    assert_eq!(probe(&short, &options), of(100, 199, false, false));
    let long = probe(&Input::Pairs(at("long", &pairs)), &options).unwrap();
    assert!(long.edges == 50_000 && (90_000..100_000).contains(&long.largest), "{long:?}");
    let two = vec![folder.path().join("short"), folder.path().join("long")];
    assert_eq!(probe(&Input::Pairs(two), &options).unwrap().edges, 50_100);
    for (name, bytes) in [("cut", pairs[..801].to_vec()), ("packed", gzip(&pairs))] {
        assert_eq!(probe(&Input::Pairs(at(name, &bytes)), &options), None, "{name}");
    }
}

#[test]
fn the_files_beside_an_input_are_heeded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| write(folder.path(), name, text);
    let (vertices, edges) = (at("b.v", "7\n9\n"), at("b.e", "7 9 1 5\n"));
    let counts = "graph.b.meta.vertices = 2\ngraph.b.meta.edges = 1\ngraph.b.directed = false\n";
    for (names, weighted) in [("time, cost", false), ("time, weight", true)] {
        at("b.properties", &format!("{counts}graph.b.edge-properties.names : {names}\n"));
        let input = Input::Graphalytics(vec![vertices.clone(), edges.clone()]);
        let options = ImportOptions::default();
        assert_eq!(probe(&input, &options), of(1, 1, weighted, true), "{names}");
    }
    // Without counts the edges are counted.
    at("b.properties", "graph.b.directed = false\ngraph.b.edge-properties.names = a, weight\n");
    let input = Input::Graphalytics(vec![vertices]);
    assert_eq!(probe(&input, &ImportOptions::default()), of(1, 9, true, true));
    at("w.properties", "nodes=5\narcs=8\n");
    let input = Input::WebGraph(at("w.graph", ""));
    assert_eq!(probe(&input, &ImportOptions::default()), of(8, 4, false, false));
    std::fs::remove_file(folder.path().join("w.properties")).unwrap();
    assert_eq!(probe(&input, &ImportOptions::default()), None);
}

#[test]
fn an_input_without_an_end_or_a_beginning_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let long = write(folder.path(), "long", "7".repeat(9 << 20));
    let listed = write(folder.path(), "listed", "7 ".repeat(5 << 20));
    let comments = write(folder.path(), "comments", "# x\n".repeat(2 << 20) + "1 2\n");
    let packed = write(folder.path(), "packed", gzip(&vec![b'7'; 9 << 20]));
    let options = ImportOptions::default();
    for path in [&long, &listed, &comments, &packed] {
        for name in ["auto", "csv", "mtx", "metis", "dimacs", "jlg", "adjacency", "adjacency-ids"] {
            let seen = probe(&text(name, path), &options);
            assert_eq!(seen, None, "{name}: {}", path.display());
        }
    }
    let missing: [PathBuf; 2] = ["-".into(), folder.path().join("missing")];
    for path in missing {
        assert_eq!(probe(&text("auto", &path), &options), None);
        assert_eq!(probe(&Input::Pairs(vec![path]), &options), None);
    }
}

//! The corpus of the fuzz targets and thousands of seeded mutations of it, through every parser.
//!
//! What `cargo fuzz` explores for hours, this repeats in seconds and always the same: nothing panics,
//! nothing is made that the input does not have, an error names its place, and neither chunks nor
//! rejections change what is read.

use std::path::Path;

use brimful_graph::Error;
use brimful_graph::formats::TextFormat;
use brimful_graph::formats::graphalytics::EdgeFile;
use brimful_graph::formats::parse::{has_position, parse_text, parse_webgraph};
use brimful_graph::import::OnError;

const MUTATIONS: u64 = 3000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound.max(1) as u64) as usize
    }
}

/// One to four small changes: what people, disks and networks do to files.
fn mutate(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [&[u8]; 16] = [
        b"-1",
        b"0",
        b"18446744073709551616",
        b"9223372036854775808",
        b"18446744073709551615",
        b"\n",
        b"\n\n",
        b" ",
        b"%",
        b"#",
        b"c ",
        b"1.5e308",
        b"nan",
        b"\r\n",
        b"\0",
        b"\xff\xfe",
    ];
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() + 1);
        let end = (at + random.below(12)).min(out.len());
        match random.below(7) {
            0 if at < out.len() => out[at] ^= 1 << random.below(8),
            1 => drop(out.drain(at..end)),
            2 => out.truncate(at),
            3 => drop(out.splice(at..end, WORDS[random.below(16)].iter().copied())),
            4 => drop(out.splice(at..at, out[at..end].to_vec())),
            5 if !other.is_empty() => {
                let from = random.below(other.len());
                out.splice(at..end, other[from..(from + 20).min(other.len())].iter().copied());
            }
            _ => drop(out.splice(at..at, [b'0' + random.below(10) as u8])),
        }
    }
    out
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no corpus");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The corpus itself, then mutations of it.
fn each_input(name: &str, mut check: impl FnMut(&[u8])) {
    let corpus = corpus(name);
    corpus.iter().for_each(|bytes| check(bytes));
    let mut random = Random(name.len() as u64);
    for number in 0..MUTATIONS {
        let chosen = &corpus[number as usize % corpus.len()];
        let other = &corpus[random.below(corpus.len())];
        check(&mutate(chosen, other, &mut random));
    }
}

fn check_text(name: &str) {
    check_as(name, TextFormat::from_name(name).unwrap());
}

fn check_as(name: &str, format: TextFormat) {
    let (mut read, mut refused) = (0, 0);
    each_input(name, |bytes| {
        let whole = parse_text(format, bytes, 1 << 20, OnError::Fail);
        let cut = parse_text(format, bytes, 200, OnError::Fail);
        let skipped = parse_text(format, bytes, 1 << 20, OnError::Skip);
        match (&whole, &cut) {
            (Ok(whole), Ok(cut)) => {
                assert_eq!(whole, cut, "{bytes:?}");
                read += 1;
                // Even an entry of a list has a byte of its own.
                assert!(whole.edges.len() + whole.listed.len() <= bytes.len(), "{bytes:?}");
                assert!(whole.rejections.is_empty());
                assert_eq!(skipped.as_ref().ok(), Some(whole), "{bytes:?}");
            }
            (Err(error), Err(again)) => {
                refused += 1;
                assert!(has_position(error), "{error}: {bytes:?}");
                let too_long = again.to_string().contains("without an end");
                assert!(too_long || error.to_string() == again.to_string(), "{error} / {again}: {bytes:?}");
            }
            // A header longer than a small chunk.
            (_, Err(error)) => assert!(error.to_string().contains("without an end"), "{error}: {bytes:?}"),
            (Err(error), Ok(_)) => panic!("{error} only in one piece: {bytes:?}"),
        }
        if let Ok(skipped) = &skipped {
            let entries = skipped.edges.len() + skipped.listed.len();
            let rejected: u64 = skipped.rejections.iter().map(|rejection| rejection.count).sum();
            assert!(entries as u64 + rejected <= bytes.len() as u64, "{bytes:?}");
            assert!(skipped.rejections.iter().all(|r| r.line >= 1 && r.line <= skipped.lines), "{bytes:?}");
        }
    });
    // Mutations that are all broken, or all harmless, would find nothing.
    assert!(read >= 20 && refused >= 20, "{name}: {read} read, {refused} refused");
}

#[test]
fn edgelist() {
    check_text("edgelist");
}

#[test]
fn auto() {
    check_text("auto");
}

#[test]
fn mtx() {
    check_text("mtx");
}

#[test]
fn metis() {
    check_text("metis");
}

#[test]
fn dimacs() {
    check_text("dimacs");
}

#[test]
fn pace() {
    check_text("pace");
}

#[test]
fn adjacency() {
    check_text("adjacency");
}

#[test]
fn adjacency_ids() {
    check_text("adjacency-ids");
}

#[test]
fn jlg() {
    check_text("jlg");
}

#[test]
fn graphalytics() {
    check_as("graphalytics", TextFormat::Vertices);
    check_as("graphalytics", TextFormat::Graphalytics(EdgeFile::default()));
}

#[test]
fn webgraph() {
    let (mut read, mut refused) = (0, 0);
    each_input("webgraph", |bytes| {
        // The properties end at the first empty line; what follows is the graph.
        let split = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
        let (properties, graph) = bytes.split_at(split);
        let memory_bytes = 1 << 16;
        match parse_webgraph(properties, graph.get(2..).unwrap_or_default(), memory_bytes) {
            // Intervals and copies write many arcs in few bits: the properties bound them, and memory.
            Ok(scanned) => {
                let text = String::from_utf8_lossy(properties).into_owned();
                let mut numbers = text.split(|c: char| !c.is_ascii_digit());
                assert!(numbers.any(|number| number.parse() == Ok(scanned.edges.len())), "{text:?}");
                read += 1;
            }
            Err(error) => {
                assert!(has_position(&error) || matches!(&error, Error::Input { .. }), "{error}");
                refused += 1;
            }
        }
    });
    assert!(read >= 20 && refused >= 20, "{read} read, {refused} refused");
}

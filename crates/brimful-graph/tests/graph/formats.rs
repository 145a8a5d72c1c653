//! All text formats: their meaning for every cut into chunks, and the messages about broken files.

use brimful_graph::build::import::OnError;
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::formats::parse::{ParsedInput, parse_text};

/// Parses with many chunk sizes, with equal results. A header must fit in a chunk, but not a list.
fn parse(name: &str, text: &str) -> ParsedInput {
    let format = TextFormat::from_name(name).unwrap();
    let read =
        |chunk_bytes| parse_text(format, text.as_bytes(), chunk_bytes, OnError::Fail).unwrap();
    let whole = read(1 << 20);
    let header = text
        .lines()
        .map(|line| line.len() + 2)
        .filter(|length| *length < 90)
        .max()
        .unwrap_or(0)
        .max(16);
    for chunk_bytes in (header..header + 20).chain([100, 1000]) {
        assert_eq!(read(chunk_bytes), whole, "{name} in chunks of {chunk_bytes}");
    }
    whole
}

fn pairs(parsed: &ParsedInput) -> Vec<(u64, u64)> {
    parsed.edges.iter().map(|&(source, target, _)| (source, target)).collect()
}

#[test]
fn matrix_market() {
    let text = "%%MatrixMarket matrix coordinate pattern general\n% made by hand\n\n5 5 3\n\
                1 2\n2 3\n5 5\n";
    let general = parse("mtx", text);
    assert_eq!(pairs(&general), [(1, 2), (2, 3), (5, 5)]);
    assert_eq!(
        (general.declared, general.undirected, general.weighted),
        (Some((1, 5)), false, false)
    );
    assert_eq!(general.lines, 7);
    assert_eq!(pairs(&parse("auto", text)), pairs(&general));
    let symmetric = parse(
        "mtx",
        "%%matrixmarket MATRIX Coordinate Real Symmetric\n3 3 2\n2 1 0.5\n3 1 -2e-3\n",
    );
    assert_eq!(symmetric.edges, [(2, 1, 0.5), (3, 1, -0.002)]);
    assert!(symmetric.undirected && symmetric.weighted);
    let integer = parse("mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 7\n");
    assert_eq!(integer.edges, [(1, 2, 7.0)]);
}

#[test]
fn metis_with_every_flag() {
    let plain = parse("metis", "% comment\n5 3\n2 3\n1\n% between\n1\n\n5\n");
    assert_eq!(pairs(&plain), [(1, 2), (1, 3), (5, 5)]);
    assert_eq!((plain.declared, plain.undirected), (Some((1, 5)), true));
    // The last empty line may be missing, and further empty lines may follow.
    assert_eq!(pairs(&parse("metis", "3 1\n2\n1\n")), [(1, 2)]);
    assert_eq!(pairs(&parse("metis", "3 1\n2\n1\n\n\n \n")), [(1, 2)]);
    let weighted = parse("metis", "3 2 001\n2 10 3 20\n1 10\n1 20\n");
    assert_eq!(weighted.edges, [(1, 2, 10.0), (1, 3, 20.0)]);
    assert_eq!(parse("metis", "3 2 1\n2 10 3 20\n1 10\n1 20\n").edges, weighted.edges);
    for text in [
        "3 2 011 2\n7 7 2 10 3 20\n8 8 1 10\n9 9 1 20\n",
        "3 2 111 2\n6 7 7 2 10 3 20\n6 8 8 1 10\n6 9 9 1 20\n",
        "3 2 101\n6 2 10 3 20\n6 1 10\n6 1 20\n",
        "3 2 11\n7 2 10 3 20\n8 1 10\n9 1 20\n",
    ] {
        assert_eq!(parse("metis", text).edges, weighted.edges, "{text}");
    }
    assert_eq!(pairs(&parse("metis", "3 2 10\n77 2 3\n88 1\n99 1\n")), [(1, 2), (1, 3)]);
    assert_eq!(pairs(&parse("metis", "3 2 100\n77 2 3\n88 1\n99 1\n")), [(1, 2), (1, 3)]);
}

#[test]
fn dimacs_and_pace_are_told_apart() {
    let roads = "c roads\np sp 4 3\nc more\na 1 2 17\na 2 1 17\na 2 4 3.5\n";
    for name in ["dimacs", "gr", "auto"] {
        let parsed = parse(name, roads);
        assert_eq!(parsed.edges, [(1, 2, 17.0), (2, 1, 17.0), (2, 4, 3.5)]);
        assert_eq!((parsed.declared, parsed.undirected), (Some((1, 4)), false));
    }
    for name in ["pace", "gr", "auto"] {
        let parsed = parse(name, "c tree\np tw 4 2\n1 2\nc x\n2 4\n");
        assert_eq!(pairs(&parsed), [(1, 2), (2, 4)]);
        assert_eq!(
            (parsed.declared, parsed.undirected, parsed.weighted),
            (Some((1, 4)), true, false)
        );
    }
}

#[test]
fn adjacency_lists() {
    let numbered = parse("adjacency", "5\n1 2\n\n4 0 \n \n3\n");
    assert_eq!(pairs(&numbered), [(0, 1), (0, 2), (2, 4), (2, 0), (4, 3)]);
    assert_eq!((numbered.declared, numbered.undirected), (Some((0, 5)), false));
    let named = parse("adjacency-ids", "# ids\n7 8 9\n\n-3 7\n100\n8 -3 -3");
    assert_eq!(
        pairs(&named),
        [(7, 8), (7, 9), (-3_i64 as u64, 7), (8, -3_i64 as u64), (8, -3_i64 as u64)]
    );
    assert_eq!((named.declared, named.listed), (None, vec![100]));
}

#[test]
fn jlg() {
    for name in ["jlg", "auto"] {
        let parsed = parse(name, "4,2,u,friends\n1,2\n2,4\n");
        assert_eq!(pairs(&parsed), [(1, 2), (2, 4)]);
        assert_eq!((parsed.declared, parsed.undirected), (Some((1, 4)), true));
    }
    assert!(!parse("jlg", "2,1,d,\n1,2\n").undirected);
}

#[test]
fn edge_lists_keep_their_meaning_under_auto() {
    for text in ["# n m\n1 2\n2 3\n", "% sym\n1\t2\n2,3", "1 2\r\n2 3\r\n"] {
        assert_eq!(pairs(&parse("auto", text)), [(1, 2), (2, 3)]);
        assert_eq!(pairs(&parse("edgelist", text)), [(1, 2), (2, 3)]);
    }
    assert_eq!(parse("auto", "u v w\n1 2 3\n").edges, [(1, 2, 3.0)]);
}

#[test]
fn a_line_longer_than_many_chunks() {
    let hub: String = (1..5000).map(|target| format!("{target} ")).collect();
    let text = format!("5000\n{hub}\n{}", "0\n".repeat(4999));
    let parsed = parse("adjacency", &text);
    assert_eq!(parsed.edges.len(), 4999 * 2);
    assert_eq!(parsed.edges[4998], (0, 4999, 1.0));
    assert_eq!(parse("adjacency-ids", &format!("0 {hub}")).edges.len(), 4999);
    let weighted: String =
        (2..=3000).map(|target| format!("{target}   {}\t", target * 10)).collect();
    let spokes: String = (2..=3000).map(|target| format!("1 {}\n", target * 10)).collect();
    let parsed = parse("metis", &format!("3000 2999 1\n{weighted}\n{spokes}"));
    assert_eq!(parsed.edges.len(), 2999);
    assert!(
        parsed
            .edges
            .iter()
            .all(|&(source, target, weight)| source == 1 && weight == target as f64 * 10.0)
    );
}

#[test]
fn claims_allocate_nothing() {
    let many = 1_u64 << 60;
    let header = format!("%%MatrixMarket matrix coordinate pattern general\n{many} {many} 0\n");
    assert_eq!(parse("mtx", &header).declared, Some((1, many)));
    assert_eq!(parse("pace", &format!("p tw {many} 0\n")).declared, Some((1, many)));
    let error = parse_text(TextFormat::Metis, format!("{many} 0\n").as_bytes(), 64, OnError::Fail)
        .unwrap_err();
    assert!(error.to_string().contains("expected 1152921504606846976 lists"), "{error}");
}

const HEADER: &str = "correct the header, or name the format with --format";
const LINE: &str = "correct the line, or leave such lines out with --on-error skip";
const COUNT: &str = "the file was cut or its header is wrong; correct it or get the file again";

/// Format, text, and the message without the name.
type Case = (&'static str, String, String);

/// A case in each line, divided by tabs: format, advice, text with escaped ends of lines, message.
fn broken() -> Vec<Case> {
    let case = |line: &'static str| {
        let [format, advice, text, message] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let advice = match advice {
            "header" => HEADER,
            "line" => LINE,
            "count" => COUNT,
            other => panic!("{other}"),
        };
        (format, text.replace("\\n", "\n"), format!("{message}; {advice}"))
    };
    include_str!("broken.txt").lines().map(case).collect()
}

#[test]
fn broken_files_are_named_exactly() {
    for (name, text, message) in broken() {
        let format = TextFormat::from_name(name).unwrap();
        for chunk_bytes in [60, 64, 1 << 20] {
            let error =
                parse_text(format, text.as_bytes(), chunk_bytes, OnError::Fail).unwrap_err();
            assert_eq!(error.to_string(), format!("NAME:{message}"), "{name} {text:?}");
        }
    }
    for name in ["mtx", "metis", "dimacs", "pace", "adjacency", "adjacency-ids", "jlg", "edgelist"]
    {
        assert!(broken().iter().filter(|case| case.0 == name).count() >= 6, "{name}");
    }
}

#[test]
fn what_never_ends_is_refused() {
    let words = "x".repeat(200);
    for (name, expected) in [("edgelist", "a header or an edge"), ("adjacency-ids", "a vertex id")]
    {
        let format = TextFormat::from_name(name).unwrap();
        let error = parse_text(format, words.as_bytes(), 64, OnError::Fail).unwrap_err();
        let message = format!(
            "NAME:1:1: expected {expected}, found 64 bytes without a line end, as in a binary \
             file; check the file"
        );
        assert_eq!(error.to_string(), message);
    }
}

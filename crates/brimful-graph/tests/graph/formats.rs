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
    let text = "%%MatrixMarket matrix coordinate pattern general\n% made by hand\n\n5 5 3\n1 2\n2 3\n5 5\n";
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

const MTX: &str = "%%MatrixMarket matrix coordinate pattern general\n";
const HEADER: &str = "correct the header, or name the format with --format";
const LINE: &str = "correct the line, or leave such lines out with --on-error skip";
const COUNT: &str = "the file was cut or its header is wrong; correct it or get the file again";

/// Format, text, and the message without the name and the advice.
type Case = (&'static str, String, &'static str, &'static str);

fn broken() -> Vec<Case> {
    let case = |format, text: &str, message, advice| (format, text.to_owned(), message, advice);
    vec![
        case(
            "mtx",
            "",
            "1:1: expected the line `%%MatrixMarket matrix coordinate ...` and a line `rows columns entries`, found the end of the file",
            HEADER,
        ),
        case(
            "mtx",
            "1 2\n",
            "1:1: expected `%%MatrixMarket`, with which every MatrixMarket file begins, found \"1\"",
            HEADER,
        ),
        case(
            "mtx",
            "%%MatrixMarket matrix array real general\n",
            "1:23: expected `coordinate`; a dense matrix (`array`) is no graph, write it sparse, found \"array\"",
            HEADER,
        ),
        case(
            "mtx",
            "%%MatrixMarket matrix coordinate complex general\n",
            "1:34: expected `pattern`, `integer` or `real`; complex values are no weights, found \"complex\"",
            HEADER,
        ),
        case(
            "mtx",
            "%%MatrixMarket matrix coordinate real skew-symmetric\n",
            "1:39: expected `general` or `symmetric`; write a skew-symmetric or Hermitian matrix as general, found \"skew-symmetric\"",
            HEADER,
        ),
        case(
            "mtx",
            &format!("{MTX}3 4 1\n1 2\n"),
            "2:3: expected 3 columns, as many as rows: only a square matrix is a graph, found \"4\"",
            HEADER,
        ),
        case(
            "mtx",
            &format!("{MTX}3 3\n"),
            "2:4: expected the sizes `rows columns entries`, found the end of the line",
            HEADER,
        ),
        case(
            "mtx",
            &format!("{MTX}3 3 1\n1 4\n"),
            "3:3: expected a vertex id from 1 to 3, as the header says, found \"4\"",
            LINE,
        ),
        case(
            "mtx",
            &format!("{MTX}3 3 1\n0 1\n"),
            "3:1: expected a vertex id from 1 to 3, as the header says, found \"0\"",
            LINE,
        ),
        case(
            "mtx",
            &format!("{MTX}3 3 1\n1 2 0.5\n"),
            "3:5: expected the end of the line after source and target, found \"0.5\"",
            LINE,
        ),
        case(
            "mtx",
            &format!("{MTX}3 3 2\n1 2\n"),
            "2:1: expected 2 edges, as the header says, found 1",
            COUNT,
        ),
        case(
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2\n",
            "3:4: expected a finite number as weight, found the end of the line",
            LINE,
        ),
        case(
            "metis",
            "% only\n",
            "2:1: expected a line `n m [fmt [ncon]]`, found the end of the file",
            HEADER,
        ),
        case(
            "metis",
            "x 1\n",
            "1:1: expected the header `n m [fmt [ncon]]`, which begins with the number of vertices, found \"x\"",
            HEADER,
        ),
        case(
            "metis",
            "3\n",
            "1:2: expected the number of edges, as in the header `n m [fmt [ncon]]`, found the end of the line",
            HEADER,
        ),
        case(
            "metis",
            "3 1 2\n",
            "1:5: expected fmt: one to three digits 0 or 1, found \"2\"",
            HEADER,
        ),
        case(
            "metis",
            "3 1 0 1 5\n",
            "1:9: expected the end of the line after `n m fmt ncon`, found \"5\"",
            HEADER,
        ),
        case("metis", "3 1\n2\n1 x\n\n", "3:3: expected an integer vertex id, found \"x\"", LINE),
        case(
            "metis",
            "3 1\n2\n1 4\n\n",
            "3:3: expected a vertex id from 1 to 3, as the header says, found \"4\"",
            LINE,
        ),
        case(
            "metis",
            "3 1 1\n2 5\n1\n\n",
            "3:2: expected a finite number as the weight of the edge, found the end of the line",
            LINE,
        ),
        case(
            "metis",
            "4 1\n2\n1\n",
            "4:1: expected 4 lists, one for each vertex of the header, found the end of the file after 2",
            HEADER,
        ),
        case(
            "metis",
            "2 1\n2\n1\n\n1\n",
            "5:1: expected the end of the file after the lists of 2 vertices, as the header says, found \"1\"",
            LINE,
        ),
        case(
            "metis",
            "2 2\n2\n1\n",
            "1:1: expected 2 edges, as the header says, found 1 (entries, halved)",
            COUNT,
        ),
        case(
            "metis",
            "3 1\n2\n\n\n",
            "1:1: expected every edge at both its ends (1 edges, as the header says), found 1 entries from the lower end and 0 from the higher",
            COUNT,
        ),
        case(
            "metis",
            "4 2\n2 3\n1\n\n2\n",
            "1:1: expected every edge at both its ends, with the same weight, found an entry without its reverse",
            COUNT,
        ),
        case(
            "metis",
            "2 1 1\n2 5\n1 6\n",
            "1:1: expected every edge at both its ends, with the same weight, found an entry without its reverse",
            COUNT,
        ),
        case(
            "dimacs",
            "a 1 2 3\n",
            "1:1: expected a line `p sp n m` (DIMACS) or `p tw n m` (PACE) before the edges, found \"a\"",
            HEADER,
        ),
        case(
            "dimacs",
            "c x\n",
            "2:1: expected a line `p sp n m` (DIMACS) or `p tw n m` (PACE), found the end of the file",
            HEADER,
        ),
        case(
            "dimacs",
            "p tw 3 1\n1 2\n",
            "1:3: expected `sp`, as DIMACS files have it; this one is read with --format pace, found \"tw\"",
            HEADER,
        ),
        case(
            "dimacs",
            "p sp 3\n",
            "1:7: expected the number of edges, found the end of the line",
            HEADER,
        ),
        case(
            "dimacs",
            "p sp 3 1\n1 2 3\n",
            "2:1: expected a line that begins with `a` (an arc) or `c` (a comment), found \"1\"",
            LINE,
        ),
        case(
            "dimacs",
            "p sp 3 1\na 1 2\n",
            "2:6: expected a finite number as weight, found the end of the line",
            LINE,
        ),
        case(
            "dimacs",
            "p sp 3 1\na 1 9 5\n",
            "2:5: expected a vertex id from 1 to 3, as the header says, found \"9\"",
            LINE,
        ),
        case(
            "dimacs",
            "p sp 3 2\na 1 2 5\n",
            "1:1: expected 2 edges, as the header says, found 1",
            COUNT,
        ),
        case(
            "pace",
            "1 2\n",
            "1:1: expected a line `p sp n m` (DIMACS) or `p tw n m` (PACE) before the edges, found \"1\"",
            HEADER,
        ),
        case(
            "pace",
            "p td 3 1\n",
            "1:3: expected `sp` (DIMACS shortest paths) or `tw` (PACE), found \"td\"",
            HEADER,
        ),
        case("pace", "p tw x 1\n", "1:6: expected the number of vertices, found \"x\"", HEADER),
        case(
            "pace",
            "p tw 3 1 5\n",
            "1:10: expected the end of the line after the numbers of vertices and edges, found \"5\"",
            HEADER,
        ),
        case(
            "pace",
            "p tw 3 1\n1 2 7\n",
            "2:5: expected the end of the line after source and target, found \"7\"",
            LINE,
        ),
        case(
            "pace",
            "p tw 3 1\n1\n",
            "2:2: expected two vertex ids on a line, found the end of the line",
            LINE,
        ),
        case(
            "pace",
            "p tw 0 1\n1 1\n",
            "2:1: expected no edge, as the header says that there are no vertices, found \"1\"",
            LINE,
        ),
        case(
            "pace",
            "p tw 3 1\n1 2\n2 3\n",
            "1:1: expected 1 edges, as the header says, found 2",
            COUNT,
        ),
        case(
            "adjacency",
            "",
            "1:1: expected the number of vertices on the first line, found the end of the file",
            HEADER,
        ),
        case(
            "adjacency",
            "\n1\n",
            "1:1: expected the number of vertices on the first line, found the end of the line",
            HEADER,
        ),
        case(
            "adjacency",
            "3 4\n",
            "1:3: expected the end of the line after the number of vertices, found \"4\"",
            HEADER,
        ),
        case(
            "adjacency",
            "-3\n",
            "1:1: expected the number of vertices on the first line, found \"-3\"",
            HEADER,
        ),
        case(
            "adjacency",
            "2\n1\n2\n",
            "3:1: expected a vertex id from 0 to 1, as the header says, found \"2\"",
            LINE,
        ),
        case(
            "adjacency",
            "2\n1 1.5\n0\n",
            "2:3: expected an integer vertex id, found \"1.5\"",
            LINE,
        ),
        case(
            "adjacency",
            "3\n1\n",
            "3:1: expected 3 lists, one for each vertex of the header, found the end of the file after 1",
            HEADER,
        ),
        case(
            "adjacency",
            "1\n0\n0\n",
            "3:1: expected the end of the file after the lists of 1 vertices, as the header says, found \"0\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "1 2\nx 1\n",
            "2:1: expected an integer vertex id (ids that are words are read with --ids string), found \"x\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "1 2 b\n",
            "1:5: expected an integer vertex id (ids that are words are read with --ids string), found \"b\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "1 2\n\n3 18446744073709551616\n",
            "3:3: expected a vertex id between -2^63 and 2^64-1, found \"18446744073709551616\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "-9223372036854775809 1\n",
            "1:1: expected a vertex id between -2^63 and 2^64-1, found \"-9223372036854775809\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "% 1 2\n",
            "1:1: expected an integer vertex id (ids that are words are read with --ids string), found \"%\"",
            LINE,
        ),
        case(
            "adjacency-ids",
            "1 2 3:0.5\n",
            "1:5: expected an integer vertex id (ids that are words are read with --ids string), found \"3:0.5\"",
            LINE,
        ),
        case("jlg", "", "1:1: expected a line `n,m,u|d,name`, found the end of the file", HEADER),
        case(
            "jlg",
            "graph\n",
            "1:1: expected the header `n,m,u|d,name`, which begins with the number of vertices, found \"graph\"",
            HEADER,
        ),
        case(
            "jlg",
            "3,u\n",
            "1:3: expected the number of edges, as in the header `n,m,u|d,name`, found \"u\"",
            HEADER,
        ),
        case(
            "jlg",
            "3,1,x,name\n",
            "1:5: expected `u` (undirected) or `d` (directed), found \"x\"",
            HEADER,
        ),
        case(
            "jlg",
            "3,1,u,name\n0,1\n",
            "2:1: expected a vertex id from 1 to 3, as the header says, found \"0\"",
            LINE,
        ),
        case(
            "jlg",
            "3,1,u,name\n1,2,3\n",
            "2:5: expected the end of the line after source and target, found \"3\"",
            LINE,
        ),
        case(
            "jlg",
            "3,2,u,name\n1,2\n",
            "1:1: expected 2 edges, as the header says, found 1",
            COUNT,
        ),
        case(
            "edgelist",
            "1 2\n3\n",
            "2:2: expected two vertex ids on a line, found the end of the line",
            LINE,
        ),
        case(
            "edgelist",
            "1 2\na b\n",
            "2:1: expected an integer vertex id (a table is read with --format csv, ids that are words with --ids string), found \"a\"",
            LINE,
        ),
        case(
            "edgelist",
            "1 2\n1 2 3\n",
            "2:5: expected the end of the line after source and target, as in the lines before, found \"3\"",
            LINE,
        ),
        case(
            "edgelist",
            "u v w\n1 2 3 4\n",
            "2:7: expected the end of the line after source, target and weight, found \"4\"",
            LINE,
        ),
        case(
            "edgelist",
            "u v w\n1 2\n",
            "2:4: expected a finite number as weight, as in the first line, found the end of the line",
            LINE,
        ),
        case(
            "edgelist",
            "u v w\n1 2 inf\n",
            "2:5: expected a finite number as weight, as in the first line, found \"inf\"",
            LINE,
        ),
        case(
            "edgelist",
            "1 18446744073709551616\n",
            "1:3: expected a vertex id between -2^63 and 2^64-1, found \"18446744073709551616\"",
            LINE,
        ),
        case(
            "edgelist",
            &format!("1 2\n{} 3\n", "x".repeat(50)),
            "2:1: expected an integer vertex id (a table is read with --format csv, ids that are words with --ids string), found \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"...",
            LINE,
        ),
    ]
}

#[test]
fn broken_files_are_named_exactly() {
    for (name, text, message, advice) in broken() {
        let format = TextFormat::from_name(name).unwrap();
        for chunk_bytes in [60, 64, 1 << 20] {
            let error =
                parse_text(format, text.as_bytes(), chunk_bytes, OnError::Fail).unwrap_err();
            assert_eq!(error.to_string(), format!("NAME:{message}; {advice}"), "{name} {text:?}");
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
            "NAME:1:1: expected {expected}, found 64 bytes without an end; is this a text file?; check the file"
        );
        assert_eq!(error.to_string(), message);
    }
}

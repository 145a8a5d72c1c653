//! Recognizes, by their first bytes, formats that are not read, whatever the file name, and says
//! how to convert them.
//!
//! Invariant: a beginning is refused only if no edge list, matrix or list of neighbors has it.

use std::path::Path;

use crate::error::{Error, Result};

/// A format that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The name.
    pub name: &'static str,
    /// Advice; `IN` stands for the file, `OUT` for its name without suffix.
    advice: &'static str,
    /// True if brimful reads the format, but the name of the file says another one.
    is_read: bool,
}

/// Bytes at the beginning that are examined.
const LOOKED_AT: usize = 4096;

const fn foreign(name: &'static str, advice: &'static str) -> Foreign {
    Foreign { name, advice, is_read: false }
}

const fn misnamed(name: &'static str, advice: &'static str) -> Foreign {
    Foreign { name, advice, is_read: true }
}

/// Binary formats, by their first bytes.
const BINARY: [(&[u8], Foreign); 18] = [
    (
        b"\x93NUMPY",
        foreign(
            "a NumPy array",
            "convert it with python -c \"import numpy; numpy.savetxt('OUT.csv', \
             numpy.load('IN'), fmt='%d', delimiter=',')\"",
        ),
    ),
    (b"\x89HDF", foreign("HDF5", "write its edges as Parquet or CSV")),
    (
        b"SQLite format 3\0",
        foreign(
            "an SQLite database",
            "convert it with sqlite3 -csv 'IN' 'SELECT source, target FROM edges' > 'OUT.csv'",
        ),
    ),
    (
        b"MATLAB 5.0",
        foreign(
            "a MATLAB file",
            "write its matrix as MatrixMarket, for example with scipy.io.loadmat and \
             scipy.io.mmwrite",
        ),
    ),
    (b"\xd0\xcf\x11\xe0", EXCEL),
    (
        b"ORC",
        foreign(
            "ORC",
            "convert it with python -c \"import pyarrow.orc, pyarrow.parquet; \
             pyarrow.parquet.write_table(pyarrow.orc.read_table('IN'), 'OUT.parquet')\"",
        ),
    ),
    (
        b"Obj\x01",
        foreign(
            "Avro",
            "convert it with python -c \"import polars; \
             polars.read_avro('IN').write_parquet('OUT.parquet')\"",
        ),
    ),
    (
        b"PAR1",
        foreign(
            "Parquet",
            "give it as a file, not as a stream, and call it OUT.parquet or give --format parquet",
        ),
    ),
    (
        b">>graph6<<",
        foreign(
            "graph6",
            "convert it with python -c \"import brimful, networkx; \
             brimful.Graph.from_networkx(networkx.read_graph6('IN'), path='OUT.brimful')\"",
        ),
    ),
    (
        b">>sparse6<<",
        foreign(
            "sparse6",
            "convert it with python -c \"import brimful, networkx; \
             brimful.Graph.from_networkx(networkx.read_sparse6('IN'), path='OUT.brimful')\"",
        ),
    ),
    // The mark of UTF-32 begins with that of UTF-16.
    (b"\xff\xfe\0\0", UTF_32),
    (b"\0\0\xfe\xff", UTF_32),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (
        b"\x04\x22\x4d\x18",
        foreign("an lz4 file", "pipe it in: lz4 -dc 'IN' | brimful import - 'OUT.brimful'"),
    ),
    (
        b"\x1f\x9d",
        foreign("a file of compress", "pipe it in: gzip -dc 'IN' | brimful import - 'OUT.brimful'"),
    ),
    (b"%PDF-", foreign("a PDF document", "get the data as a text file")),
    (b"7z\xbc\xaf", foreign("a 7z archive", "unpack it and import the files in it")),
];

const EXCEL: Foreign = foreign(
    "an Excel workbook",
    "convert it with python -c \"import polars; polars.read_excel('IN').write_csv('OUT.csv')\"",
);
const UTF_16: Foreign =
    foreign("text in UTF-16", "convert it to UTF-8 with iconv -f UTF-16 -t UTF-8 'IN' > 'OUT.txt'");
const UTF_16_LE: Foreign = foreign(
    "text in UTF-16",
    "convert it to UTF-8 with iconv -f UTF-16LE -t UTF-8 'IN' > 'OUT.txt'",
);
const UTF_16_BE: Foreign = foreign(
    "text in UTF-16",
    "convert it to UTF-8 with iconv -f UTF-16BE -t UTF-8 'IN' > 'OUT.txt'",
);
const UTF_32: Foreign =
    foreign("text in UTF-32", "convert it to UTF-8 with iconv -f UTF-32 -t UTF-8 'IN' > 'OUT.txt'");
const PICKLE: Foreign = foreign(
    "a Python pickle",
    "if it is a NetworkX graph that you trust, convert it with python -c \"import brimful, pickle; \
     brimful.Graph.from_networkx(pickle.load(open('IN', 'rb')), path='OUT.brimful')\"",
);
const NPZ: Foreign = foreign(
    "NumPy npz",
    "if it is a sparse matrix, convert it with python -c \"import brimful, scipy.sparse; \
     brimful.Graph.from_scipy(scipy.sparse.load_npz('IN'), path='OUT.brimful')\"",
);
const ODS: Foreign = foreign("an OpenDocument spreadsheet", "export its table of edges as CSV");
const ZIP: Foreign = foreign("a zip archive", "unpack it and import the files in it");
const TAR: Foreign = foreign("a tar archive", "unpack it and import the files in it");
const GRAPHML: Foreign = misnamed("GraphML", "read it with --format graphml");
const GEXF: Foreign = misnamed("GEXF", "read it with --format gexf");
const GML: Foreign = foreign(
    "GML",
    "convert it with python -c \"import brimful, networkx; \
     brimful.Graph.from_networkx(networkx.read_gml('IN'), path='OUT.brimful')\"",
);
const PAJEK: Foreign = foreign(
    "Pajek",
    "convert it with python -c \"import brimful, networkx; \
     brimful.Graph.from_networkx(networkx.read_pajek('IN'), path='OUT.brimful')\"",
);
const DOT: Foreign = foreign(
    "DOT",
    "convert it with python -c \"import brimful, networkx; \
     brimful.Graph.from_networkx(networkx.nx_pydot.read_dot('IN'), path='OUT.brimful')\"",
);
const DGS: Foreign = foreign(
    "DGS",
    "write the edges that it adds with awk '$1 == \"ae\" {gsub(/\"/, \"\"); if ($4 == \"<\") \
     print $5, $3; else if ($4 == \">\") print $3, $5; else print $3, $4}' 'IN' > 'OUT.txt'",
);
const XML: Foreign = foreign("XML", "write its edges as CSV");
const HTML: Foreign = foreign("a web page", "download the data file that it links to");
const RUTHERFORD_BOEING: Foreign = foreign(
    "a Harwell-Boeing or Rutherford-Boeing matrix",
    "get it as MatrixMarket, or convert it with python -c \"import scipy.io; \
     scipy.io.mmwrite('OUT.mtx', scipy.io.hb_read('IN'))\"",
);
/// SciPy reads none without values.
const RUTHERFORD_BOEING_PATTERN: Foreign =
    foreign("a Harwell-Boeing or Rutherford-Boeing matrix", "get it as MatrixMarket");
const GRAPHSON: Foreign = foreign(
    "GraphSON",
    "export the edges of the database as CSV, or a smaller graph as GraphML for NetworkX",
);
/// NetworkX before 3.6 wrote the key `links`. It may come long after the nodes, as the key
/// `adjacency` does, which NetworkX writes in its place.
const NODE_LINK: Foreign = foreign(
    "JSON of nodes and links",
    "convert it with python -c \"import brimful, json, networkx; brimful.Graph.from_networkx(\
     networkx.adjacency_graph(data) if 'adjacency' in (data := json.load(open('IN'))) else \
     networkx.node_link_graph(data, edges='links' if 'links' in data else 'edges'), \
     path='OUT.brimful')\"",
);
const CYTOSCAPE: Foreign = foreign(
    "JSON of Cytoscape",
    "convert it with python -c \"import brimful, json, networkx; brimful.Graph.from_networkx(\
     networkx.cytoscape_graph(json.load(open('IN'))), path='OUT.brimful')\"",
);
const JSON_LINES: Foreign = foreign(
    "JSON lines",
    "convert it with python -c \"import polars; polars.read_ndjson('IN').write_csv('OUT.csv')\"",
);
const JSON: Foreign = foreign(
    "JSON",
    "convert it with python -c \"import polars; polars.read_json('IN').write_csv('OUT.csv')\"",
);

const JSON_PAIRS: Foreign = foreign(
    JSON.name,
    "if it is a list of edges, convert it with python -c \"import csv, json; \
     csv.writer(open('OUT.csv', 'w')).writerows(json.load(open('IN')))\"",
);
const JSON_LISTS: Foreign = foreign(
    JSON.name,
    "if it has lists of neighbors, convert it with python -c \"import json; \
     open('OUT.adjlist', 'w').writelines(' '.join(map(str, [one, *them])) + chr(10) \
     for one, them in json.load(open('IN')).items())\"",
);

/// The format of a file that begins with `start`, if it is a format that is not read.
pub fn of(start: &[u8]) -> Option<Foreign> {
    let start = start.get(..LOOKED_AT).unwrap_or(start);
    let has = |text: &str| memchr::memmem::find(start, text.as_bytes()).is_some();
    if let Some((_, format)) = BINARY.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(*format);
    }
    if start.starts_with(b"PK\x03\x04") {
        return Some(if has(".npy") {
            NPZ
        } else if has("xl/") || has("[Content_Types].xml") {
            EXCEL
        } else if has("application/vnd.oasis.opendocument.spreadsheet") {
            ODS
        } else {
            ZIP
        });
    }
    // A pickle of protocol 2 or later; from 4 on it has a frame.
    if matches!(start, [0x80, 2..=5, b')' | b'c' | b'(' | b']' | b'}' | 0x95, ..]) {
        return Some(PICKLE);
    }
    if start.get(257..262) == Some(b"ustar") {
        return Some(TAR);
    }
    of_utf_16(start).or_else(|| of_text(start))
}

/// UTF-16 without a mark: every other byte is NUL, the others are ASCII.
fn of_utf_16(start: &[u8]) -> Option<Foreign> {
    let (pairs, _) = start.as_chunks::<2>();
    let all = |is: fn(&[u8; 2]) -> bool| pairs.len() > 2 && pairs.iter().all(is);
    if all(|[low, high]| is_text(*low) && *high == 0) {
        Some(UTF_16_LE)
    } else if all(|[high, low]| is_text(*low) && *high == 0) {
        Some(UTF_16_BE)
    } else {
        None
    }
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n')
}

fn of_text(start: &[u8]) -> Option<Foreign> {
    let text = String::from_utf8_lossy(start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start));
    let text = text.trim_start();
    let lower = text.to_ascii_lowercase();
    let first_line = lower.lines().next().unwrap_or_default().trim_end();
    let begins = |starts: &[&str]| starts.iter().any(|start| lower.starts_with(start));
    if begins(&["<?xml", "<graphml", "<gexf", "<!doctype", "<html"]) {
        return Some(match () {
            () if lower.contains("<graphml") => GRAPHML,
            () if lower.contains("<gexf") => GEXF,
            () if begins(&["<html"]) || lower.contains("<!doctype html") => HTML,
            () => XML,
        });
    }
    if first_line.starts_with("dgs00") {
        return Some(DGS);
    }
    if begins(&["*vertices", "*network"]) {
        return Some(PAJEK);
    }
    // GML is `graph [`, optionally after a creator, a version and comments; DOT is `graph name {`.
    let code =
        || lower.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_graph =
        |line: &str| line == "graph" || line.starts_with("graph [") || line.starts_with("graph[");
    let before_graph = |line: &&str| {
        ["creator ", "version ", "comment "].iter().any(|word| line.starts_with(word))
    };
    let mut gml = code().skip_while(before_graph);
    if let Some(line) = gml.next()
        && is_graph(line)
        && (line.contains('[') || gml.next().is_some_and(|next| next.starts_with('[')))
    {
        return Some(GML);
    }
    if code().next().is_some_and(|line| {
        let kinds = ["strict digraph", "strict graph", "digraph", "graph"];
        let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind));
        let name =
            rest.filter(|rest| rest.starts_with([' ', '{'])).and_then(|rest| rest.split_once('{'));
        name.is_some_and(|(name, _)| name.split_whitespace().count() <= 1)
    }) {
        return Some(DOT);
    }
    of_json(text).or_else(|| of_rutherford_boeing(start))
}

fn of_json(text: &str) -> Option<Foreign> {
    let mut bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    match (bytes.next()?, bytes.next()?) {
        (b'{', b'"' | b'}') => {
            let first = text.lines().next().unwrap_or_default().trim_end();
            let second = text.lines().nth(1).unwrap_or_default();
            let (_, after_key) = text.split_once(':').unwrap_or_default();
            let is_one = second.trim().is_empty() || !first.ends_with('}');
            let has_list = is_one && after_key.trim_start().starts_with('[');
            Some(
                if text.contains("\"inE\"") || text.contains("\"outE\"") || text.contains("tinker:")
                {
                    GRAPHSON
                } else if text.contains("\"elements\"") && text.contains("\"data\"") {
                    CYTOSCAPE
                } else if text.contains("\"links\"") || text.contains("\"nodes\"") {
                    NODE_LINK
                } else if has_list {
                    JSON_LISTS
                } else if first.ends_with('}') && (second.is_empty() || second.starts_with('{')) {
                    JSON_LINES
                } else {
                    JSON
                },
            )
        }
        (b'[', b'[') => Some(JSON_PAIRS),
        (b'[', b'{' | b'"' | b']') => Some(JSON),
        _ => None,
    }
}

/// The third line of a Rutherford-Boeing matrix begins with the three letters of its type: value
/// type, symmetry, and `a` for assembled or `e` for elemental.
fn of_rutherford_boeing(start: &[u8]) -> Option<Foreign> {
    let mut lines = start.split(|&byte| byte == b'\n');
    let (Some(_), Some(counts), Some(kind)) = (lines.next(), lines.next(), lines.next()) else {
        return None;
    };
    let is_number = |word: &&[u8]| word.iter().all(u8::is_ascii_digit);
    let counts: Vec<_> =
        counts.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let mut words = kind.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let kind = words.next().unwrap_or_default().to_ascii_lowercase();
    let is_kind = matches!(
        kind[..],
        [b'r' | b'c' | b'p' | b'i' | b'q', b's' | b'u' | b'h' | b'z' | b'r' | b'g', b'a' | b'e']
    );
    let is_matrix = counts.len() >= 4
        && counts.iter().all(is_number)
        && is_kind
        && words.filter(is_number).count() >= 4;
    let is_pattern = kind.first() == Some(&b'p');
    is_matrix.then_some(if is_pattern { RUTHERFORD_BOEING_PATTERN } else { RUTHERFORD_BOEING })
}

/// The message for a file at `path` that begins with `start`, if it is in a format that is not
/// read.
pub fn sentence(path: &Path, start: &[u8]) -> Option<String> {
    let format = of(start)?;
    // The commands read no compressed files.
    let packer = if format.advice.contains("'IN'") { packer(path) } else { None };
    let unpacked = if packer.is_some() { path.with_extension("") } else { path.to_owned() };
    let (shown, out) = names(&unpacked, format.advice);
    let advice = format.advice.replace("IN", "\u{1}").replace("OUT", &out).replace('\u{1}', &shown);
    let lacking = if format.is_read { "" } else { ", which brimful does not read" };
    let first = packer.map_or_else(String::new, |packer| {
        format!("unpack it with {packer} '{}', then ", names(path, "").0)
    });
    Some(format!("this is {}{lacking}; {first}{advice}", format.name))
}

/// The command that unpacks a file with this suffix and keeps it.
fn packer(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "gz" => Some("gunzip -k"),
        "xz" => Some("unxz -k"),
        "zst" => Some("unzstd"),
        "bz2" => Some("bunzip2 -k"),
        _ => None,
    }
}

/// The names for IN and OUT in advice. Users copy commands into a shell: a command must not
/// overwrite the file that it reads, and its names must not be code to a shell or to Python.
fn names(path: &Path, advice: &str) -> (String, String) {
    let shown = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || " _./-+=@%,:~".contains(letter);
    if !shown.chars().all(is_plain) {
        return ("FILE".to_owned(), "NAME".to_owned());
    }
    let stem = path.with_extension("").display().to_string();
    let suffix = path.extension().unwrap_or_default().display().to_string();
    let same = !suffix.is_empty() && advice.contains(&format!("OUT.{suffix}"));
    (shown, if same { format!("{stem}-converted") } else { stem })
}

/// Returns an error if a file that begins with `start` is in a format that is not read.
pub(crate) fn refuse(path: &Path, start: &[u8]) -> Result<()> {
    sentence(path, start).map_or(Ok(()), |problem| Err(Error::input(path, problem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_content() {
        for (start, name) in [
            ("<?xml version=\"1.0\"?>\n<graphml xmlns=\"x\">", "GraphML"),
            ("<gexf version=\"1.2\">", "GEXF"),
            ("graph [\n  node [", "GML"),
            ("Creator \"igraph\"\nVersion 1\ngraph\n[", "GML"),
            ("DGS004\nnull 0 0", "DGS"),
            ("{\"source\":1,\"target\":2}\n{\"source\":2,\"target\":3}\n", "JSON lines"),
            ("{\"directed\": true, \"nodes\": [], \"links\": []}", "JSON of nodes and links"),
            ("{\"1\":[2,3]}", "JSON"),
            ("[[1,2],[2,3]]", "JSON"),
            (
                "PK\x03\x04..mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
                "an OpenDocument spreadsheet",
            ),
            ("[\n {\"source\": 1}]", "JSON"),
            ("{\"id\":1,\"label\":\"v\",\"outE\":{}}", "GraphSON"),
            ("PK\x03\x04....indices.npy", "NumPy npz"),
            ("PK\x03\x04....[Content_Types].xml", "an Excel workbook"),
            ("*Vertices 3\n1 \"a\"", "Pajek"),
            ("digraph g {\n a -> b", "DOT"),
            ("strict graph { a -- b; }", "DOT"),
            (
                "1138_bus   |1138_bus\n   5   1   2   2\nrsa    1138   1138   2596   0\n",
                "a Harwell-Boeing or Rutherford-Boeing matrix",
            ),
        ] {
            assert_eq!(of(start.as_bytes()).map(|format| format.name), Some(name), "{start}");
        }
        for (start, name) in [
            (&b"\x80\x04\x95\x10"[..], "a Python pickle"),
            (b"\xff\xfe\0\x001\0\0\0", "text in UTF-32"),
            (b"\xff\xfe1\0 \x002\0", "text in UTF-16"),
            (b"1\0 \x002\0\n\0", "text in UTF-16"),
            (b"\x001\0 \x002\0\n", "text in UTF-16"),
            (b"\x04\x22\x4d\x18..", "an lz4 file"),
            (b"\x1f\x9d..", "a file of compress"),
        ] {
            assert_eq!(of(start).map(|format| format.name), Some(name), "{start:?}");
        }
    }

    #[test]
    fn advice_is_safe_to_copy() {
        let advice = |path: &str, start: &[u8]| sentence(Path::new(path), start).unwrap();
        let text = b"\xff\xfe1\0";
        assert!(advice("a.tsv", text).ends_with("'a.tsv' > 'a.txt'"));
        assert!(advice("a.txt", text).ends_with("'a.txt' > 'a-converted.txt'"));
        let packed = advice("a.rb.gz", text);
        assert!(packed.contains("unpack it with gunzip -k 'a.rb.gz', then convert"), "{packed}");
        assert!(packed.ends_with("'a.rb' > 'a.txt'"), "{packed}");
        for name in
            ["it's.gml", "$(id).gml", "`id`.gml", "a\"b.gml", "a\\b.gml", "a\nb.gml", "a;b.gml"]
        {
            assert!(advice(name, b"graph [").contains("read_gml('FILE'), path='NAME.brimful'"));
        }
    }

    #[test]
    fn edges_are_not_taken_for_anything_else() {
        for start in [
            "1 2\n3 4\n5 6 7 8\n",
            "graph bigraph\nalice bob\n",
            "{a} {b}\n",
            "[1] [2]\n",
            "<http://a> <http://b> <http://c> .\n",
            "rua 1 2\n3 4\nrua 5 6 7\n",
            "source,target\n\"{\"\"a\"\"}\",b\n",
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 3\n",
            "",
        ] {
            assert_eq!(of(start.as_bytes()), None, "{start}");
        }
    }
}

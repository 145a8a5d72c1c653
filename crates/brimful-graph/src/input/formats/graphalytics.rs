//! `graphalytics`: `NAME.v`, a vertex a line, and `NAME.e`, `source target [properties]` a line.
//!
//! The two are in the same folder; either of them, or `NAME.properties`, names the graph. The
//! properties state whether edges are directed and which of their properties is the weight: the one
//! that SSSP uses, or the one called `weight`, or none. Without that file edges are directed, and
//! the user chooses the columns after the target. The vertices are those of `NAME.v`, with ids of
//! any 64 bits.
//!
//! Format: Iosup et al., "The LDBC Graphalytics Benchmark", arXiv:2011.15028, section 2.2.

use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_store::external::input_len;

use super::{Body, Draft, HeaderFlaw, Lines, Shape, Step, TextFile, TextFormat, edge_list};
use crate::error::{Error, Result};
use crate::input::columns::{ColumnChoice, Doubt};
use crate::input::text;

const COMPRESSIONS: [&str; 5] = ["", "gz", "xz", "zst", "bz2"];
/// The longest properties file that is read.
const PROPERTIES_BYTES: u64 = 1 << 20;

/// The statements of the properties about an edge file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EdgeFile {
    undirected: bool,
    /// Number of properties of an edge, and the one that is the weight; `None`: the first line
    /// decides.
    columns: Option<(u8, Option<u8>)>,
    /// Number of vertices and of edges. They serve forecasts only; an import counts.
    pub(crate) counts: Option<(u64, u64)>,
}

impl EdgeFile {
    /// True if edges are undirected, and true if they have weights, by the properties.
    pub(crate) fn kind(self) -> (bool, bool) {
        (self.undirected, self.columns.is_some_and(|(_, weight)| weight.is_some()))
    }
}

pub(super) fn header(line: &[u8], file: EdgeFile, draft: &mut Draft) -> Result<Step, HeaderFlaw> {
    let body = match file.columns {
        Some(_) if draft.choice != ColumnChoice::default() => {
            let what = "its .properties say which columns there are; leave --source, --target, \
                        --weight, --header, --delimiter and --ignore-extra out";
            return Err(Doubt::Unsaid(what.into()).into());
        }
        Some((columns, weight)) => {
            let lines = Lines { comments: b"#", columns, weight, ..Lines::default() };
            Step::Data(Body { weighted: weight.is_some(), ..Body::new(Shape::Lines(lines)) })
        }
        None => {
            // In this format the first line is always an edge.
            draft.choice.header = Some(false);
            edge_list::first_line(line, b"#", draft)?
        }
    };
    Ok(match body {
        Step::Data(body) => Step::Data(Body { undirected: file.undirected, ..body }),
        step => step,
    })
}

/// The files of the graphs that `paths` name, each graph once.
///
/// # Errors
/// [`Error::Input`] if a vertex or edge file is missing, or the properties are invalid.
pub fn files(
    paths: &[PathBuf],
    mut open: impl FnMut(&Path) -> Result<Box<dyn Read + Send>>,
) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    let mut stems: Vec<PathBuf> = Vec::new();
    for path in paths {
        let stem = stem(path);
        if stems.contains(&stem) {
            continue;
        }
        let part = |suffix: &str| {
            find(&stem, suffix).ok_or_else(|| {
                let what =
                    format!("a graph in this format needs {}.{suffix} next to it", stem.display());
                Error::input(path, what)
            })
        };
        let (vertices, edges) = (part("v")?, part("e")?);
        let edge_file = match find(&stem, "properties") {
            None => EdgeFile::default(),
            Some(path) => {
                let mut text = Vec::new();
                let read = open(&path)?.take(PROPERTIES_BYTES).read_to_end(&mut text);
                read.map_err(|e| crate::input::decompress::read_error(&path, e))?;
                read_properties(&path, &text)?
            }
        };
        files.push(TextFile { path: vertices, format: TextFormat::Vertices });
        files.push(TextFile { path: edges, format: TextFormat::Graphalytics(edge_file) });
        stems.push(stem);
    }
    Ok(files)
}

/// `path` without the suffix of a graph's file.
fn stem(path: &Path) -> PathBuf {
    let has_suffix = |path: &Path, suffixes: &[&str]| {
        path.extension()
            .and_then(|suffix| suffix.to_str())
            .is_some_and(|suffix| suffixes.contains(&suffix))
    };
    let mut stem = path.to_path_buf();
    if has_suffix(&stem, &COMPRESSIONS) {
        stem.set_extension("");
    }
    if has_suffix(&stem, &["v", "e", "properties"]) {
        stem.set_extension("");
    }
    stem
}

fn find(stem: &Path, suffix: &str) -> Option<PathBuf> {
    COMPRESSIONS.iter().find_map(|compression| {
        let mut name = stem.as_os_str().to_owned();
        name.push(".");
        name.push(suffix);
        if !compression.is_empty() {
            name.push(".");
            name.push(compression);
        }
        input_len(Path::new(&name)).is_some().then(|| PathBuf::from(name))
    })
}

fn read_properties(path: &Path, text: &[u8]) -> Result<EdgeFile> {
    let mut file = EdgeFile::default();
    let (mut names, mut weight) = (Vec::new(), None);
    let (mut vertices, mut edges) = (None, None);
    for (number, line) in text.split(|&b| b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let Some((key, value)) = property(&line) else {
            continue;
        };
        let fail = |expected: &str| Error::Parse {
            path: path.into(),
            line: number as u64 + 1,
            column: 1,
            expected: expected.into(),
            found: text::shown(value.as_bytes(), 0),
            advice: "correct the properties".into(),
        };
        // Keys are `graph.NAME.rest`; a name may contain periods.
        if key.ends_with(".directed") {
            file.undirected = match value {
                "true" => false,
                "false" => true,
                _ => return Err(fail("`true` or `false` as `directed`")),
            };
        } else if key.ends_with(".edge-properties.names") {
            names = value
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|n| !n.is_empty())
                .collect();
            if names.len() > usize::from(u8::MAX) {
                return Err(fail("at most 255 edge properties"));
            }
        } else if key.ends_with(".sssp.weight-property") {
            weight = Some(value.to_owned());
        } else if key.ends_with(".meta.vertices") {
            vertices = text::parse_count(value.as_bytes());
        } else if key.ends_with(".meta.edges") {
            edges = text::parse_count(value.as_bytes());
        }
    }
    file.counts = vertices.zip(edges);
    let weight = weight.unwrap_or_else(|| "weight".to_owned());
    let position = names.iter().position(|name| *name == weight);
    file.columns = Some((names.len() as u8, position.map(|position| position as u8)));
    Ok(file)
}

/// Key and value of a line of a Java properties file; `None` for a comment or an empty line.
pub(super) fn property(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', '!']) {
        return None;
    }
    let (key, value) = line.split_once(['=', ':'])?;
    Some((key.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_say_direction_weight_and_counts() {
        let read = |text: &str| read_properties(Path::new("g.properties"), text.as_bytes());
        let said =
            |undirected, columns| EdgeFile { undirected, columns: Some(columns), counts: None };
        let text =
            "# x\ngraph.a.b.directed = false\ngraph.a.b.edge-properties.names = time, weight\n";
        assert_eq!(read(text).unwrap(), said(true, (2, Some(1))));
        let text = "graph.g.edge-properties.names = cost\ngraph.g.sssp.weight-property = cost\n";
        assert_eq!(read(text).unwrap(), said(false, (1, Some(0))));
        assert_eq!(read("").unwrap(), said(false, (0, None)));
        let counts = |text: &str| read(text).unwrap().counts;
        assert_eq!(counts("graph.g.meta.vertices = 5\ngraph.g.meta.edges : 7\n"), Some((5, 7)));
        assert_eq!(counts("graph.g.meta.vertices = 5\ngraph.g.meta.edges = many\n"), None);
        let error = read("\ngraph.g.directed = maybe\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "g.properties:2:1: expected `true` or `false` as `directed`, found \"maybe\"; correct \
             the properties"
        );
    }

    #[test]
    fn any_part_names_the_graph() {
        for name in ["d/g", "d/g.v", "d/g.e", "d/g.properties", "d/g.v.gz", "d/g.e.zst"] {
            assert_eq!(stem(Path::new(name)), Path::new("d/g"), "{name}");
        }
    }
}

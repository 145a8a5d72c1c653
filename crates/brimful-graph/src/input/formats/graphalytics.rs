//! `graphalytics`: `NAME.v`, a vertex a line, and `NAME.e`, `source target [properties]` a line.
//!
//! The two are in the same folder; either of them, or `NAME.properties`, names the graph. The
//! properties state whether edges are directed and which of their properties is the weight: the one
//! that SSSP uses, or the one called `weight`, or none; and the numbers of vertices and edges.
//! Without that file edges are directed, and the user chooses the columns after the target. The
//! vertices are those of `NAME.v`, with ids of any 64 bits.
//!
//! Format: Iosup et al., "The LDBC Graphalytics Benchmark", arXiv:2011.15028, section 2.2.

use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_store::external::input_len;

use super::properties::{self, Property};
use super::{Body, Claim, Draft, HeaderFlaw, Lines, Shape, Step, TextFile, TextFormat, edge_list};
use crate::error::{Error, Result};
use crate::input::columns::{ColumnChoice, Doubt};
use crate::input::text;

const COMPRESSIONS: [&str; 5] = ["", "gz", "xz", "zst", "bz2"];

/// The statements of the properties about an edge file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EdgeFile {
    undirected: bool,
    /// Number of properties of an edge, and the one that is the weight; `None`: the first line
    /// decides.
    columns: Option<(u8, Option<u8>)>,
    /// Numbers of vertices and of edges, which are compared with those of the files.
    pub(crate) vertices: Option<u64>,
    pub(crate) edges: Option<u64>,
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
            let problem = "its .properties say which columns there are; leave --source, --target, \
                           --weight, --header, --delimiter and --ignore-extra out";
            return Err(Doubt::Unsaid(problem.into()).into());
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
        Step::Data(body) => {
            let claim = file.edges.map(Claim::Lines);
            Step::Data(Body { undirected: file.undirected, claim, ..body })
        }
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
                let problem =
                    format!("a graph in this format needs {}.{suffix} next to it", stem.display());
                Error::input(path, problem)
            })
        };
        let (vertices, edges) = (part("v")?, part("e")?);
        let edge_file = match find(&stem, "properties") {
            None => EdgeFile::default(),
            Some(path) => {
                let text = properties::read(&path, open(&path)?)?;
                read_properties(&path, &text)?
            }
        };
        let format = TextFormat::Vertices(edge_file.vertices);
        files.push(TextFile { path: vertices, format });
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
    let mut names = Vec::new();
    let mut weight = None;
    for property in properties::parse(text) {
        let Property { key, value, .. } = &property;
        let fail = |expected: &str| invalid(path, &property, expected);
        let count = |problem: &str| {
            let count = text::parse_count(value.as_bytes());
            count.ok_or_else(|| fail(&format!("a number of {problem}"))).map(Some)
        };
        // Keys are `graph.NAME.rest`; a name may contain periods.
        if key.ends_with(".directed") {
            file.undirected = match value.as_str() {
                "true" => false,
                "false" => true,
                _ => return Err(fail("`true` or `false` as `directed`")),
            };
        } else if key.ends_with(".edge-properties.names") {
            let given = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            names = given.map(str::to_owned).collect();
            if names.len() > usize::from(u8::MAX) {
                return Err(fail("at most 255 edge properties"));
            }
        } else if key.ends_with(".sssp.weight-property") {
            weight = Some(property);
        } else if key.ends_with(".meta.vertices") {
            file.vertices = count("vertices")?;
        } else if key.ends_with(".meta.edges") {
            file.edges = count("edges")?;
        }
    }
    let position = |wanted: &str| names.iter().position(|name| name == wanted);
    let weight = match &weight {
        None => position("weight"),
        Some(said) => Some(position(&said.value).ok_or_else(|| {
            let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            invalid(path, said, &format!("one of the edge properties as weight ({list})"))
        })?),
    };
    file.columns = Some((names.len() as u8, weight.map(|position| position as u8)));
    Ok(file)
}

fn invalid(path: &Path, property: &Property, expected: &str) -> Error {
    Error::Parse {
        path: path.into(),
        line: property.line,
        column: 1,
        expected: expected.into(),
        found: text::shown_word(property.value.as_bytes()),
        advice: "correct the properties".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_say_direction_weight_and_counts() {
        let read = |text: &str| read_properties(Path::new("g.properties"), text.as_bytes());
        let said = |undirected, columns| EdgeFile {
            undirected,
            columns: Some(columns),
            ..EdgeFile::default()
        };
        let text =
            "# x\ngraph.a.b.directed = false\ngraph.a.b.edge-properties.names = time, weight\n";
        assert_eq!(read(text).unwrap(), said(true, (2, Some(1))));
        let text = "graph.g.edge-properties.names cost\\\n ,x\ngraph.g.sssp.weight-property cost\n";
        assert_eq!(read(text).unwrap(), said(false, (2, Some(0))));
        assert_eq!(read("").unwrap(), said(false, (0, None)));
        let counted = read("graph.g.meta.vertices = 5\ngraph.g.meta.edges : 7\n").unwrap();
        assert_eq!((counted.vertices, counted.edges), (Some(5), Some(7)));
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("graph.g.meta.edges = many\n"),
            "g.properties:1:1: expected a number of edges, found \"many\"; correct the properties"
        );
        assert_eq!(
            error("g.edge-properties.names = a, b\ng.sssp.weight-property = c\n"),
            "g.properties:2:1: expected one of the edge properties as weight (a, b), found \"c\"; \
             correct the properties"
        );
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

//! LDBC Graphalytics: `.v` lists the vertices, `.e` the edges; `.properties` describes them. (The
//! LDBC Graphalytics Benchmark, section 2.2; arXiv 2011.15028.)
//!
//! This is the only text format that holds every graph unchanged: any ids, isolated vertices,
//! direction. Invariant: `.properties` appears last; if it exists, the other files are complete.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brimful_store::external::remove_file;

use super::sink::Sink;
use super::{Exporting, OTHERS, WINDOW, each_edge};
use crate::error::{Error, Result};
use crate::input::formats::properties::escaped;
use crate::read::external_order::ExternalOrder;

/// The three files of a graph.
pub(super) struct Files {
    vertices: PathBuf,
    edges: PathBuf,
    properties: PathBuf,
    name: String,
}

impl Files {
    /// The files that `path` names: `path` without `.v`, `.e` or `.properties`, with each of these.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let own = path
            .extension()
            .is_some_and(|suffix| ["v", "e", "properties"].iter().any(|s| *s == suffix));
        let stem = if own { path.with_extension("") } else { path.to_path_buf() };
        let Some(name) = stem.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Err(Error::Usage(format!("{} names no file", path.display())));
        };
        if name.contains(['\n', '\r']) {
            let problem = "has a line end in its name, which .properties cannot hold";
            return Err(Error::Usage(format!("{} {problem}; choose another", path.display())));
        }
        let with = |suffix: &str| {
            let mut path = stem.clone().into_os_string();
            path.push(suffix);
            path.into()
        };
        let (vertices, edges, properties) = (with(".v"), with(".e"), with(".properties"));
        Ok(Self { vertices, edges, properties, name })
    }

    /// Gives the files their names. After a failure none of them stays: two files of three would be
    /// read as another graph.
    fn publish(&self, sinks: [Sink; 3], overwrite: bool) -> Result<()> {
        let paths = [&self.vertices, &self.edges, &self.properties];
        if overwrite {
            // It describes the old files.
            remove_file(&self.properties)?;
        }
        for (at, sink) in sinks.into_iter().enumerate() {
            if let Err(error) = sink.finish() {
                // The first error is more useful than one of the removal.
                paths[..at].iter().for_each(|path| drop(remove_file(path)));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Writes the three files; returns the number of edges.
pub(super) fn write(exporting: &Exporting<'_>) -> Result<u64> {
    if exporting.options.compression.is_some() {
        let problem =
            "graphalytics is three files that its tools read uncompressed; leave the suffix out";
        return Err(Error::Usage(problem.into()));
    }
    if exporting.graph.longest_name().is_some() {
        let problem = "ids of graphalytics are integers, and those of this graph are strings";
        return Err(Error::Usage(format!("{problem}; {OTHERS}")));
    }
    let files = Files::of(exporting.path)?;
    let create = |path: &Path| Sink::create(path, exporting.options.overwrite, None);
    let (mut vertices, mut edges) = (create(&files.vertices)?, create(&files.edges)?);
    let mut properties = create(&files.properties)?;
    write_vertices(exporting, &mut vertices)?;
    let written = each_edge(exporting, &mut edges, |text, source, target, weight| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{source} {target}");
        if let Some(weight) = weight {
            let _ = write!(text, " {weight}");
        }
        text.push('\n');
        Ok(())
    })?;
    properties.write(describe(exporting, &files).as_bytes())?;
    files.publish([vertices, edges, properties], exporting.options.overwrite)?;
    Ok(written)
}

/// Writes the ids of all vertices, ascending.
fn write_vertices(exporting: &Exporting<'_>, out: &mut Sink) -> Result<()> {
    let id_type = exporting.graph.id_type();
    let mut order = ExternalOrder::new(&**exporting.graph);
    let (mut vertices, mut ids, mut text) = (Vec::new(), Vec::new(), String::new());
    loop {
        exporting.resources.job.check()?;
        vertices.clear();
        ids.clear();
        order.next_batch(WINDOW, &mut vertices, &mut ids)?;
        if ids.is_empty() {
            return Ok(());
        }
        text.clear();
        for &bits in &ids {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", id_type.number(bits));
        }
        out.write(text.as_bytes())?;
    }
}

fn describe(exporting: &Exporting<'_>, files: &Files) -> String {
    let (name, graph) = (escaped(&files.name), exporting.graph.description());
    let mut text = format!(
        "# {}\n\
         graph.{name}.vertex-file = {name}.v\n\
         graph.{name}.edge-file = {name}.e\n\
         graph.{name}.meta.vertices = {}\n\
         graph.{name}.meta.edges = {}\n\
         graph.{name}.directed = {}\n",
        graph.created_by, graph.vertices, graph.edges, graph.directed
    );
    if graph.weighted {
        let _ = write!(
            text,
            "graph.{name}.edge-properties.names = weight\n\
             graph.{name}.edge-properties.types = real\n"
        );
    }
    text
}

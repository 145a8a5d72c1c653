//! The results of parsed files, compared with the claims of their headers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use brimful_store::wording::counted;
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::error::{Error, Result};
use crate::input::columns::Columns;
use crate::input::formats::reader::FileEnd;
use crate::input::formats::{Claim, Stated, TextFile, TextFormat};
use crate::input::stream::Rejection;
use crate::input::text::{Reason, Signs, Span};
use crate::input_position::InputPart;

/// The number of rejections for one reason, and the first of them.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct ReasonCount {
    pub(super) count: u64,
    /// File and line.
    pub(super) position: (usize, u64),
    pub(super) found: String,
}

/// The combined statements and counts of the files.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) lines: u64,
    pub(crate) rejected: u64,
    pub(crate) rejections: Vec<Rejection>,
    /// The files and their lines.
    pub(crate) inputs: Vec<InputPart>,
    pub(crate) undirected: bool,
    pub(crate) weighted: bool,
    /// The vertices that the headers declare; edges name no others.
    pub(crate) declared: Option<Span>,
    /// The number of vertices that the only file declares.
    pub(crate) claim: Option<VertexClaim>,
    /// The chosen columns, if the format leaves a choice.
    pub(crate) columns: Option<Columns>,
}

/// A number of vertices that a file declares, compared when all vertices are known.
#[derive(Debug, Clone)]
pub(crate) struct VertexClaim {
    pub(crate) path: PathBuf,
    /// The line of the declaration; `None` if it is in the metadata of a schema.
    pub(crate) line: Option<u64>,
    pub(crate) vertices: u64,
}

impl VertexClaim {
    /// Compares the claim with the actual number.
    pub(crate) fn check(self, vertices: u64) -> Result<()> {
        if vertices == self.vertices {
            return Ok(());
        }
        let expected = format!("{}, as the declaration says", counted(self.vertices, "vertex"));
        let found = vertices.to_string();
        Err(match self.line {
            Some(line) => {
                let advice = CUT.to_owned();
                Error::Parse { path: self.path, line, column: 1, expected, found, advice }
            }
            None => Error::input(self.path, format!("expected {expected}, found {found}; {CUT}")),
        })
    }
}

/// Advice for counts that differ.
const CUT: &str = "the file was cut or its header is wrong; correct it or get the file again";

impl Summary {
    /// The range of ids that the headers declare.
    pub(crate) fn numbered(&self) -> Range<u64> {
        self.declared.map_or(0..0, |Span { first, count }| first..first + count)
    }

    /// The results of `before`, followed by those of `self`.
    pub(crate) fn after(self, before: Self) -> Self {
        let mut rejections = before.rejections;
        for rejection in self.rejections {
            match rejections.iter_mut().find(|counted| counted.reason == rejection.reason) {
                Some(counted) => counted.count += rejection.count,
                None => rejections.push(rejection),
            }
        }
        Self {
            lines: before.lines + self.lines,
            rejected: before.rejected + self.rejected,
            rejections,
            inputs: [before.inputs, self.inputs].concat(),
            ..self
        }
    }
}

/// The facts found in files that were parsed to their ends.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Found {
    files: Vec<(FileEnd, Tally)>,
    /// By reason, ascending.
    rejections: Vec<(Reason, ReasonCount)>,
    pub(crate) signs: Signs,
}

impl Found {
    /// The facts found in files that end with `ends`.
    pub(super) fn new(
        ends: Vec<FileEnd>,
        tallies: Vec<Tally>,
        rejections: BTreeMap<Reason, ReasonCount>,
        signs: Signs,
    ) -> Self {
        let files = ends.into_iter().zip(tallies).collect();
        Self { files, rejections: rejections.into_iter().collect(), signs }
    }

    /// Adds the facts of the files that follow.
    pub(crate) fn append(&mut self, next: Self) {
        let before = self.files.len();
        self.files.extend(next.files);
        self.signs.merge(next.signs);
        let mut rejections: BTreeMap<_, _> =
            std::mem::take(&mut self.rejections).into_iter().collect();
        for (reason, more) in next.rejections {
            let (file, line) = more.position;
            let more = ReasonCount { position: (before + file, line), ..more };
            rejections
                .entry(reason)
                .and_modify(|counted: &mut ReasonCount| counted.count += more.count)
                .or_insert(more);
        }
        self.rejections = rejections.into_iter().collect();
    }

    /// Compares the counts with the headers of the files.
    pub(crate) fn summary(self, files: &[TextFile]) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut first: Option<(&TextFile, &Stated, &FileEnd)> = None;
        let mut spans: Vec<(Span, &TextFile)> = Vec::new();
        for (file, (end, tally)) in files.iter().zip(&self.files) {
            summary.lines += end.lines;
            summary.rejected += tally.rejected;
            summary.inputs.push((file.path.clone(), end.lines));
            let Some(stated) = &end.stated else {
                // Without a body only the properties state the kind of edges.
                if let TextFormat::Graphalytics(edges) = file.format {
                    check_count("edge", edges.edges.unwrap_or(0), 0)
                        .map_or(Ok(()), |difference| Err(differ(file, end, difference)))?;
                    (summary.undirected, summary.weighted) = edges.kind();
                }
                continue;
            };
            check_claim(file, end, stated, tally)?;
            if let (Some(Claim::Declared(declared)), [_], 0) = (stated.claim, files, tally.rejected)
            {
                let (path, line) = (file.path.clone(), Some(end.header_line));
                summary.claim = Some(VertexClaim { path, line, vertices: declared.vertices });
            }
            spans.extend(stated.declared.map(|span| (span, file)));
            if stated.vertices {
                continue;
            }
            match first {
                None => first = Some((file, stated, end)),
                Some((first, first_stated, first_end)) => {
                    check_columns(first, first_end, file, end)?;
                    check_same(first, first_stated, file, stated)?;
                }
            }
            (summary.undirected, summary.weighted) = (stated.undirected, stated.weighted);
        }
        summary.declared = union(spans)?;
        summary.columns = first.and_then(|(.., end)| end.columns.clone());
        summary.rejections = self
            .rejections
            .into_iter()
            .map(|(reason, counted)| Rejection {
                reason: reason.name(),
                count: counted.count,
                path: files
                    .get(counted.position.0)
                    .map(|file| file.path.clone())
                    .unwrap_or_default(),
                line: counted.position.1,
                found: counted.found,
            })
            .collect();
        Ok(summary)
    }
}

/// The union of the ids that files declare.
///
/// # Errors
/// The ids of a file begin after all others end: the graph would get vertices of no file.
fn union(mut spans: Vec<(Span, &TextFile)>) -> Result<Option<Span>> {
    spans.sort_by_key(|(span, _)| span.first);
    let mut spans = spans.into_iter();
    let Some((Span { first, mut count }, _)) = spans.next() else { return Ok(None) };
    for (span, file) in spans {
        if span.first > first + count {
            let problem = format!(
                "it declares ids from {} on, and those of the other files end before {}; import \
                 the files separately",
                span.first,
                first + count
            );
            return Err(Error::input(&file.path, problem));
        }
        count = count.max(span.first + span.count - first);
    }
    Ok(Some(Span { first, count }))
}

/// Checks that files of one graph have the same columns.
fn check_columns(
    first: &TextFile,
    first_end: &FileEnd,
    file: &TextFile,
    end: &FileEnd,
) -> Result<()> {
    let names = |end: &FileEnd| {
        end.columns.as_ref().map(|c| (c.source.clone(), c.target.clone(), c.weight.clone()))
    };
    if names(first_end) == names(end) {
        return Ok(());
    }
    let problem = format!(
        "its columns are not those of {}; name them with --source, --target and --weight where \
         they have names, or import the files separately",
        first.path.display()
    );
    Err(Error::input(&file.path, problem))
}

/// Checks that files of one graph agree on direction and weights.
fn check_same(
    first: &TextFile,
    first_stated: &Stated,
    file: &TextFile,
    stated: &Stated,
) -> Result<()> {
    for ([yes, no], of_first, of_file, remedy) in [
        (
            ["undirected", "directed"],
            first_stated.undirected,
            stated.undirected,
            "give --directed or --undirected for all files, or import the files separately",
        ),
        (
            ["weighted", "unweighted"],
            first_stated.weighted,
            stated.weighted,
            "import the files separately",
        ),
    ] {
        if of_first != of_file {
            let word = |is_so: bool| if is_so { yes } else { no };
            let problem = format!(
                "its edges are {} and those of {} are {}; {remedy}",
                word(of_file),
                first.path.display(),
                word(of_first)
            );
            return Err(Error::input(&file.path, problem));
        }
    }
    Ok(())
}

/// Compares the counts of a file with the claim of its header.
fn check_claim(file: &TextFile, end: &FileEnd, stated: &Stated, tally: &Tally) -> Result<()> {
    let difference = match stated.claim {
        None => None,
        Some(Claim::Entries(claimed)) => {
            let entries = tally.entries + tally.rejected;
            (entries != claimed)
                .then(|| (as_the_header_says(counted(claimed, "edge")), entries.to_string()))
        }
        Some(Claim::Lines(claimed)) => {
            let kind = if stated.vertices { "vertex" } else { "edge" };
            check_count(kind, claimed, tally.entries + tally.listed + tally.rejected)
        }
        Some(Claim::Declared(declared)) => {
            let (edges, listed, rejected) = (tally.entries, tally.listed, tally.rejected);
            let same = match rejected {
                0 => (edges, listed) == (declared.edges, declared.listed()),
                // Rejected lines may have been edges or vertices.
                _ => edges + listed + rejected == declared.edges + declared.listed(),
            };
            let expected = format!(
                "{} and {} without edges, as the declaration says",
                counted(declared.edges, "edge"),
                counted(declared.listed(), "vertex")
            );
            (!same).then(|| (expected, format!("{edges} and {listed}")))
        }
        Some(Claim::Arcs(claimed)) => {
            let arcs = tally.entries + tally.rejected;
            let expected = as_the_header_says(format!("{claimed} or {} arcs", 2 * claimed));
            (arcs != claimed && arcs != 2 * claimed).then(|| (expected, arcs.to_string()))
        }
        // A rejected entry cannot be told from a missing one.
        Some(Claim::Mirrored(_)) if tally.rejected > 0 => None,
        Some(Claim::Mirrored(claimed)) => mirror_difference(claimed, tally),
    };
    difference.map_or(Ok(()), |difference| Err(differ(file, end, difference)))
}

/// `2 edges, as the header says`.
fn as_the_header_says(count: String) -> String {
    count + ", as the header says"
}

/// The error of a file whose contents differ from what its header expects.
fn differ(file: &TextFile, end: &FileEnd, (expected, found): (String, String)) -> Error {
    let (path, line, column) = (file.path.clone(), end.header_line, 1);
    Error::Parse { path, line, column, expected, found, advice: CUT.into() }
}

/// The stated and the actual number of lines; `None` if they are the same.
fn check_count(kind: &str, claimed: u64, lines: u64) -> Option<(String, String)> {
    let expected = || format!("{}, as the properties say", counted(claimed, kind));
    (lines != claimed).then(|| (expected(), lines.to_string()))
}

/// The expected and the actual entries of a file that lists every edge at both its ends; `None` if
/// they are the same.
fn mirror_difference(claimed: u64, tally: &Tally) -> Option<(String, String)> {
    let (up, down) = (tally.up, tally.down);
    let edges = up.0 + tally.loops;
    if up.0 != down.0 {
        return Some((
            format!(
                "every edge at both its ends ({})",
                as_the_header_says(counted(claimed, "edge"))
            ),
            format!(
                "{} from the lower end and {} from the higher",
                counted(edges, "entry"),
                down.0
            ),
        ));
    }
    if edges != claimed {
        return Some((
            as_the_header_says(counted(claimed, "edge")),
            format!("{edges} (entries, halved)"),
        ));
    }
    (up.1 != down.1).then(|| {
        (
            "every edge at both its ends, with the same weight".into(),
            "an entry without its reverse".into(),
        )
    })
}

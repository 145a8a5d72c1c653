//! `dimacs` and `pace`: two formats with the suffix `.gr`, which differ in their header.
//!
//! DIMACS (9th challenge, shortest paths): comments `c`, header `p sp n m`, arcs `a source target
//! weight`; directed. PACE (treewidth): comments `c`, header `p tw n m`, edges `u v`; undirected,
//! without weights. Vertices: 1 to n. Invariant: the number of arcs or edges equals that of the
//! header.

use super::{Body, Claim, HeaderFlaw, HeaderWords, Lines, Shape, Step, span};

pub(super) const HEADER: &str = "a line `p sp n m` (DIMACS) or `p tw n m` (PACE)";

/// The format of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    Dimacs,
    Pace,
}

pub(super) fn header(line: &[u8], wanted: Option<Problem>) -> Result<Step, HeaderFlaw> {
    let mut words = HeaderWords::new(line);
    let (at, letter) = words.next();
    match letter {
        b"p" => {}
        b"" => return Ok(Step::Skip),
        _ if letter.first() == Some(&b'c') => return Ok(Step::Skip),
        _ => return Err(HeaderFlaw::new(at, format!("{HEADER} before the edges"))),
    }
    let (at, word) = words.next();
    let problem = match word {
        b"sp" => Problem::Dimacs,
        b"tw" => Problem::Pace,
        _ => return Err(HeaderFlaw::new(at, "`sp` (DIMACS shortest paths) or `tw` (PACE)")),
    };
    if wanted.is_some_and(|wanted| wanted != problem) {
        let expected = match problem {
            Problem::Dimacs => "`tw`, as PACE files have it; this one is read with --format dimacs",
            Problem::Pace => "`sp`, as DIMACS files have it; this one is read with --format pace",
        };
        return Err(HeaderFlaw::new(at, expected));
    }
    let vertices_at = words.at;
    let vertices = words.count("the number of vertices")?;
    let edges = words.count("the number of edges")?;
    words.end("the end of the line after the numbers of vertices and edges")?;
    let ids = span(1, vertices, vertices_at)?;
    let dimacs = problem == Problem::Dimacs;
    let lines = Lines {
        comments: b"c",
        letter: dimacs.then_some(b'a'),
        columns: u8::from(dimacs),
        weight: dimacs.then_some(0),
        ids: Some(ids),
        ..Lines::default()
    };
    Ok(Step::Header(Body {
        shape: Shape::Lines(lines),
        undirected: !dimacs,
        weighted: dimacs,
        declared: Some(ids),
        claim: Some(Claim::Entries(edges)),
    }))
}

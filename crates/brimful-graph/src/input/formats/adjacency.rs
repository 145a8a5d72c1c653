//! `adjacency` and `adjacency-ids`: the targets of one vertex a line.
//!
//! `adjacency`: the first line is the number of vertices n; line k + 2 lists the targets of vertex
//! k and may be empty; vertices: 0 to n - 1. `adjacency-ids`: every line begins with the id of its
//! vertex; a line without targets declares the vertex; empty lines and comment lines, which begin
//! with `#`, are skipped. Both are directed, without weights.

use super::{Body, HeaderFlaw, HeaderWords, IdWords, Lists, Shape, Step, lists::Rows, span};

pub(super) const HEADER: &str = "the number of vertices on the first line";

pub(super) fn header(line: &[u8]) -> Result<Step, HeaderFlaw> {
    let mut words = HeaderWords::new(line);
    let at = words.at;
    let vertices = words.count(HEADER)?;
    words.end("the end of the line after the number of vertices")?;
    let ids = span(0, vertices, at)?;
    let lists = Lists { rows: Rows::Numbered(ids), comment: None, ..lists() };
    Ok(Step::Header(Body { declared: Some(ids), ..Body::new(Shape::Lists(lists)) }))
}

pub(super) fn with_ids(names: bool) -> Body {
    let words = IdWords::of(names);
    Body::new(Shape::Lists(Lists { rows: Rows::Named, comment: Some(b'#'), words, ..lists() }))
}

fn lists() -> Lists {
    let words = IdWords::Integers;
    Lists {
        rows: Rows::Named,
        skip: 0,
        weighted: false,
        comment: None,
        mirrored: false,
        once: false,
        words,
    }
}

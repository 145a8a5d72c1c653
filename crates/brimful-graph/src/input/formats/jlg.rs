//! `jlg`: header `n,m,u|d,name`, then `source,target` a line, counted from 1.
//!
//! `u` is undirected, `d` is directed; edges have no weights. Vertices: 1 to n.

use super::{Body, Claim, HeaderFlaw, HeaderWords, Lines, Shape, Step, span};

pub(super) const HEADER: &str = "a line `n,m,u|d,name`";

/// True if `line` is the header of such a file.
pub(super) fn is_header(line: &[u8]) -> bool {
    line.iter().filter(|&&byte| byte == b',').count() >= 2
        && matches!(header(line), Ok(Step::Header(_)))
}

pub(super) fn header(line: &[u8]) -> Result<Step, HeaderFlaw> {
    let mut words = HeaderWords::new(line);
    let at = words.at;
    let vertices =
        words.count("the header `n,m,u|d,name`, which begins with the number of vertices")?;
    let edges = words.count("the number of edges, as in the header `n,m,u|d,name`")?;
    let (kind_at, kind) = words.next();
    let undirected = match kind {
        b"u" => true,
        b"d" => false,
        _ => return Err(HeaderFlaw::new(kind_at, "`u` (undirected) or `d` (directed)")),
    };
    let ids = span(1, vertices, at)?;
    let lines = Lines { ids: Some(ids), ..Lines::default() };
    Ok(Step::Header(Body {
        shape: Shape::Lines(lines),
        undirected,
        weighted: false,
        declared: Some(ids),
        claim: Some(Claim::Entries(edges)),
    }))
}

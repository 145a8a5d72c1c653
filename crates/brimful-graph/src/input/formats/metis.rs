//! `metis`: header `n m [fmt [ncon]]`, then line i lists the neighbors of vertex i.
//!
//! `fmt` has up to three digits: vertex sizes, vertex weights (`ncon` of them), edge weights. Edge
//! weights are stored; the others are skipped. `%` begins a comment line. An empty line is a vertex
//! without neighbors; that of the last vertex may be missing. Graphs are undirected: every edge is
//! listed at both ends, with equal weights, and stored once; a self-loop is listed once. With
//! `--directed` every entry is an arc, and the header may count arcs or pairs of arcs. Vertices: 1
//! to n.
//!
//! Format: Karypis, "METIS manual 5.1", section 4.1.1.

use super::{
    Body, Claim, Draft, HeaderFlaw, HeaderWords, IdWords, Lists, Shape, Step, lists::Rows, span,
};
use crate::input::text;

pub(super) const HEADER: &str = "a line `n m [fmt [ncon]]`";

pub(super) fn header(line: &[u8], draft: &Draft) -> Result<Step, HeaderFlaw> {
    let mut words = HeaderWords::new(line);
    if matches!(text::word(line, words.at).first(), None | Some(b'%')) {
        return Ok(Step::Skip);
    }
    let at = words.at;
    let vertices =
        words.count("the header `n m [fmt [ncon]]`, which begins with the number of vertices")?;
    let edges_at = words.at;
    let edges = words.count("the number of edges, as in the header `n m [fmt [ncon]]`")?;
    let (fmt_at, fmt) = words.next();
    let flags = match fmt {
        [] => [false; 3],
        _ => {
            flags(fmt).ok_or_else(|| HeaderFlaw::new(fmt_at, "fmt: one to three digits 0 or 1"))?
        }
    };
    let [sizes, vertex_weights, weighted] = flags;
    let constraints = match text::word(line, words.at) {
        [] => 1,
        _ => words.count("ncon, the number of weights of a vertex")?,
    };
    words.end("the end of the line after `n m fmt ncon`")?;
    if edges > u64::MAX / 2 {
        return Err(HeaderFlaw::new(edges_at, "fewer than 2^63 edges"));
    }
    let ids = span(1, vertices, at)?;
    let lists = Lists {
        rows: Rows::Numbered(ids),
        skip: u64::from(sizes) + if vertex_weights { constraints.min(u64::MAX - 1) } else { 0 },
        weighted,
        comment: Some(b'%'),
        mirrored: draft.directed != Some(true),
        once: draft.directed != Some(true),
        words: IdWords::Integers,
    };
    Ok(Step::Header(Body {
        shape: Shape::Lists(lists),
        undirected: true,
        weighted,
        declared: Some(ids),
        claim: Some(if draft.directed == Some(true) {
            Claim::Arcs(edges)
        } else {
            Claim::Mirrored(edges)
        }),
    }))
}

/// The digits of `fmt`, padded with leading zeros.
fn flags(fmt: &[u8]) -> Option<[bool; 3]> {
    let mut flags = [false; 3];
    let offset = flags.len().checked_sub(fmt.len())?;
    for (flag, digit) in flags.iter_mut().skip(offset).zip(fmt) {
        *flag = match digit {
            b'0' => false,
            b'1' => true,
            _ => return None,
        };
    }
    Some(flags)
}

//! `edgelist`: two ids a line, integers or names, perhaps a weight.
//!
//! `#` and `%` begin a comment line. The first data line decides whether there are weights; every later
//! line must agree. In an export of brimful's the first comment is a [`Declaration`], which decides instead.

use super::{Body, Claim, Draft, HeaderFlaw, IdWords, Lines, Shape, Step};
use crate::declaration::Declaration;
use crate::text;

const COMMENTS: &[u8] = b"#%";

/// Lines of `columns` words after source and target, the first of them a weight.
fn lines(comments: &'static [u8], columns: u8) -> Lines {
    Lines { comments, columns, weight: (columns > 0).then_some(0), ..Lines::default() }
}

/// A body of such lines.
pub(super) fn body(comments: &'static [u8], columns: u8) -> Body {
    Body { weighted: columns > 0, ..Body::new(Shape::Lines(lines(comments, columns))) }
}

pub(super) fn header(line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
    let words = IdWords::of(draft.names);
    if let Some(read) = Declaration::of_comment(line) {
        let said = read.map_err(|damage| HeaderFlaw::new(damage.at, damage.expected))?;
        return declared(&said, words, draft).map(Step::Header);
    }
    Ok(match first_line(line, COMMENTS, draft)? {
        Step::Data(Body { shape: Shape::Lines(lines), weighted, .. }) => {
            Step::Data(Body { weighted, ..Body::new(Shape::Lines(Lines { words, ..lines })) })
        }
        step => step,
    })
}

/// The body below a declaration.
fn declared(said: &Declaration, words: IdWords, draft: &mut Draft) -> Result<Body, HeaderFlaw> {
    if words == IdWords::Names && said.first.is_some() {
        let expected =
            "vertices that are listed one by one, as ids are taken for strings; leave --ids string out";
        return Err(HeaderFlaw::new(0, expected));
    }
    let lines = lines(COMMENTS, u8::from(said.weighted));
    draft.columns = Some(lines.columns);
    let lines = Lines { words, ids: said.span(), lists_vertices: true, ..lines };
    Ok(Body {
        undirected: !said.directed && !draft.directed,
        weighted: said.weighted,
        declared: said.span(),
        claim: Some(Claim::Declared(*said)),
        ..Body::new(Shape::Lines(lines))
    })
}

/// Settles the number of columns on the first line that is no comment, or as an earlier file had it.
pub(super) fn first_line(
    line: &[u8],
    comments: &'static [u8],
    draft: &mut Draft,
) -> Result<Step, HeaderFlaw> {
    let at = text::skip(line, 0);
    match line.get(at) {
        None => Ok(Step::Skip),
        Some(byte) if comments.contains(byte) => Ok(Step::Skip),
        Some(_) => {
            let found = u8::from(text::words(line).count() > 2);
            let columns = *draft.columns.get_or_insert(found);
            Ok(Step::Data(body(comments, columns)))
        }
    }
}

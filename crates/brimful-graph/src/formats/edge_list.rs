//! `edgelist`: two ids a line, integers or names, perhaps a weight.
//!
//! `#` and `%` begin a comment line. The first data line decides whether there are weights; every later
//! line must agree.

use super::{Body, Draft, HeaderFlaw, IdWords, Lines, Shape, Step};
use crate::text;

const COMMENTS: &[u8] = b"#%";

/// Lines of `columns` words after source and target, the first of them a weight.
pub(super) fn body(comments: &'static [u8], columns: u8) -> Body {
    let lines = Lines { comments, columns, weight: (columns > 0).then_some(0), ..Lines::default() };
    Body { weighted: columns > 0, ..Body::new(Shape::Lines(lines)) }
}

pub(super) fn header(line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
    let words = IdWords::of(draft.names);
    Ok(match first_line(line, COMMENTS, draft)? {
        Step::Data(Body { shape: Shape::Lines(lines), weighted, .. }) => {
            Step::Data(Body { weighted, ..Body::new(Shape::Lines(Lines { words, ..lines })) })
        }
        step => step,
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

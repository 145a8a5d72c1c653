//! `edgelist`: two ids a line, integers or strings, with an optional weight and other columns.
//!
//! `#` and `%` begin a comment line. The first two lines of data and the user decide which words
//! form the edge, and whether the first line holds column names. In an edge list that brimful
//! exported, the first comment is a [`Declaration`], which decides instead. The first comment of a
//! file of the KONECT collection says whether its edges have a direction.

use super::lines::Picked;
use super::{Body, Claim, Draft, HeaderFlaw, IdWords, Lines, Shape, Step};
use crate::input::columns::{ColumnChoice, Columns, Doubt, Roles};
use crate::input::declaration::Declaration;
use crate::input::text;

const COMMENTS: &[u8] = b"#%";
/// The third words of the first line of files of the KONECT collection.
const KONECT_WEIGHTS: [&[u8]; 9] = [
    b"unweighted",
    b"positive",
    b"posweighted",
    b"signed",
    b"multisigned",
    b"weighted",
    b"multiweighted",
    b"dynamic",
    b"multiposweighted",
];

pub(super) fn header(line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
    let words = IdWords::of(draft.names);
    if let Some(read) = Declaration::of_comment(line) {
        let said = read.map_err(|damage| HeaderFlaw::new(damage.at, damage.expected))?;
        return declared(&said, words, draft).map(Step::Header);
    }
    read_konect(line, draft)?;
    let undirected = draft.is_symmetric;
    let whole = |body| Body { undirected, ..with_words(body, words) };
    Ok(match first_line(line, COMMENTS, draft)? {
        Step::Data(body) => Step::Data(whole(body)),
        Step::Header(body) => Step::Header(whole(body)),
        Step::Skip => Step::Skip,
    })
}

/// Reads the comment `% sym unweighted` with which a file of the KONECT collection begins.
fn read_konect(line: &[u8], draft: &mut Draft) -> Result<(), HeaderFlaw> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (mark, kind, weights) = (words.next(), words.next(), words.next());
    if mark != Some(b"%") || !weights.is_some_and(|word| KONECT_WEIGHTS.contains(&word)) {
        return Ok(());
    }
    match kind {
        Some(b"sym") => draft.is_symmetric = true,
        Some(b"bip") => {
            let expected = "a KONECT file whose columns name vertices of one kind (in a file that \
                            begins with '% bip', 1 and 1 are different vertices; make the ids of \
                            the columns different, and remove this line)";
            return Err(HeaderFlaw::new(2, expected));
        }
        _ => {}
    }
    Ok(())
}

/// The body of a file with a declaration.
fn declared(said: &Declaration, words: IdWords, draft: &mut Draft) -> Result<Body, HeaderFlaw> {
    if words == IdWords::Names && said.first.is_some() {
        let expected = "a declaration that lists each vertex, because --ids string was given; \
                        leave --ids string out";
        return Err(HeaderFlaw::new(0, expected));
    }
    if words == IdWords::NotNames && said.names {
        let expected = "a declaration of integer ids, because the ids are read as integers; \
                        import it with --ids string";
        return Err(HeaderFlaw::new(0, expected));
    }
    draft.columns = Some(Columns {
        source: "1".into(),
        target: "2".into(),
        weight: said.weighted.then(|| "3".into()),
        ignored: Vec::new(),
        header: Some(false),
        delimiter: None,
    });
    let lines = Lines {
        comments: COMMENTS,
        columns: u8::from(said.weighted),
        weight: said.weighted.then_some(0),
        words,
        ids: said.span(),
        lists_vertices: true,
        ..Lines::default()
    };
    Ok(Body {
        undirected: !said.directed,
        weighted: said.weighted,
        declared: said.span(),
        claim: Some(Claim::Declared(*said)),
        ..Body::new(Shape::Lines(lines))
    })
}

fn with_words(body: Body, words: IdWords) -> Body {
    match body.shape {
        Shape::Lines(lines) => Body { shape: Shape::Lines(Lines { words, ..lines }), ..body },
        _ => body,
    }
}

/// Chooses the columns at the first line that is not a comment.
pub(super) fn first_line(
    line: &[u8],
    comments: &'static [u8],
    draft: &mut Draft,
) -> Result<Step, HeaderFlaw> {
    if begins_with(line, comments) {
        return Ok(Step::Skip);
    }
    let (roles, columns) =
        choose_columns(line, draft.second_line.as_deref(), &draft.choice, draft.names)?;
    let has_header = columns.header == Some(true);
    if has_header {
        check_names(line)?;
    }
    draft.columns = Some(columns);
    let body = body(comments, roles);
    Ok(if has_header { Step::Header(body) } else { Step::Data(body) })
}

/// Checks that the names of columns have the positions of their words.
fn check_names(line: &[u8]) -> Result<(), HeaderFlaw> {
    let mut next = text::first_word(line, 0, true);
    loop {
        let expected = "names of all columns (--format csv reads a header with an empty name)";
        let at = next.map_err(|flaw| HeaderFlaw::new(flaw.at, expected))?;
        let name = text::word(line, at);
        if name.is_empty() {
            return Ok(());
        }
        next = text::next_word(line, at + name.len(), true);
    }
}

/// The body of lines in which the words at `roles` are edges.
fn body(comments: &'static [u8], roles: Roles) -> Body {
    let Roles { source, target, weight, .. } = roles;
    let in_order = (source, target) == (0, 1) && weight.is_none_or(|weight| weight == 2);
    let picked = Picked { source, target, weight };
    let lines = Lines {
        comments,
        columns: u8::from(weight.is_some()),
        weight: weight.map(|_| 0),
        picked: (!in_order || roles.ignored().next().is_some()).then_some(picked),
        ..Lines::default()
    };
    Body { weighted: weight.is_some(), ..Body::new(Shape::Lines(lines)) }
}

/// Chooses the columns of lines of words from the first two lines.
pub(crate) fn choose_columns(
    first: &[u8],
    second: Option<&[u8]>,
    choice: &ColumnChoice,
    string_ids: bool,
) -> Result<(Roles, Columns), Doubt> {
    if choice.delimiter.is_some() {
        let problem = "blanks, tabs and commas separate the words of an edge list; leave \
                       --delimiter out, or give --format csv";
        return Err(Doubt::Unsaid(problem.into()));
    }
    let (first, second) = (row(first), second.map(row));
    if first.len() == 1 && *choice == ColumnChoice::default() {
        if let Some(separator) = other_separator(&first, second.as_deref()) {
            let problem = format!(
                "blanks, tabs and commas separate the ids of an edge list, and its first lines \
                 have none; if '{separator}' separates them, give --delimiter '{separator}'"
            );
            return Err(Doubt::Unsaid(problem));
        }
        // The line has no edge; the parser reports its position.
        let roles = Roles { source: 0, target: 1, weight: None, width: 2 };
        return Ok((roles, roles.describe(&first, Some(false), None)));
    }
    let (roles, header) = choice.of_rows(&first, second.as_deref(), string_ids)?;
    Ok((roles, roles.describe(&first, Some(header), None)))
}

/// The character that may separate the ids of the first lines, if each line is one word.
fn other_separator(first: &[String], second: Option<&[String]>) -> Option<char> {
    let splits = |row: &[String], separator| matches!(row, [word] if word.contains(separator));
    [';', '|', ':'].into_iter().find(|&separator| {
        splits(first, separator) && second.is_none_or(|second| splits(second, separator))
    })
}

fn row(line: &[u8]) -> Vec<String> {
    text::words(line).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// True if a line of an edge list has no edge.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    begins_with(line, COMMENTS)
}

/// True if a line is blank or begins with one of `comments`.
fn begins_with(line: &[u8], comments: &[u8]) -> bool {
    line.get(text::skip(line, 0)).is_none_or(|byte| comments.contains(byte))
}

/// The first lines of `start` that have words and are not comments. Without `ended`, the last line
/// may be cut and does not count.
pub(crate) fn data_lines(start: &[u8], ended: bool) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', start) {
        _ if ended => start,
        last => start.get(..last.unwrap_or(0)).unwrap_or_default(),
    };
    whole.split(|&b| b == b'\n').filter(|line| !is_comment(line))
}

//! Delimited text with one edge a record: quoted fields, quoted line ends, CRLF, an optional
//! header.
//!
//! One module separates fields and records, both for the reader that cuts chunks and for the
//! parsers, so that they agree on quotes. Invariant: a chunk consists of whole records; fields
//! outside the edge columns are not stored.

mod fields;

use std::borrow::Cow;

use super::parser::{Output, Work};
use super::{Body, HeaderFlaw, IdWords, Shape};
use crate::error::Result;
use crate::ids::names::LONGEST_NAME;
use crate::input::columns::{ColumnChoice, Columns, Doubt, Roles};
use crate::input::text::{self, Flaw, Id, Reason};
pub(super) use fields::whole;
use fields::{Fields, Rows};

pub(super) const HEADER: &str = "an edge, or the names of the columns";

/// The delimiters that are detected without a user's choice.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Number of records that detection examines.
const LOOKED_AT_RECORDS: usize = 64;
/// Bytes that begin a comment line before the header.
const COMMENTS: &[u8] = b"#%";
/// Bytes for a field, enough to recognize one that is too long for an id.
const FIELD_BYTES: usize = LONGEST_NAME + 2;
/// Bytes for the three fields of an edge, its direction, and a skipped field.
const EDGE_BYTES: usize = 5 * FIELD_BYTES;

/// The layout of such records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Records {
    delimiter: u8,
    roles: Roles,
    words: IdWords,
    direction: Option<Direction>,
}

/// The direction of all edges, as a column `Type` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Direction {
    column: usize,
    undirected: bool,
}

impl Direction {
    /// The value of the column.
    fn word(self) -> &'static str {
        if self.undirected { "Undirected" } else { "Directed" }
    }
}

/// The facts that the beginning of a file of records states.
pub(crate) struct Beginning {
    pub(crate) body: Body,
    pub(crate) columns: Columns,
    /// Bytes before the first record of an edge.
    pub(crate) skip: usize,
    pub(crate) records: Records,
}

/// The text with a line end after its last record, which may lack one if the text `ended`.
pub(crate) fn with_last_line_end(text: &[u8], ended: bool) -> Cow<'_, [u8]> {
    match text.last() {
        Some(last) if ended && *last != b'\n' => Cow::Owned([text, b"\n"].concat()),
        _ => Cow::Borrowed(text),
    }
}

/// Reads the beginning `start` of a file, whose ids are names if `names`; `None` if it contains no
/// record. `directed` is the user's choice of direction; with one, a column `Type` is not read.
///
/// # Errors
/// A first record that does not begin or end within `start`, or a [`Doubt`].
pub(crate) fn begin(
    start: &[u8],
    ended: bool,
    delimiter: Option<u8>,
    choice: &ColumnChoice,
    names: bool,
    directed: Option<bool>,
) -> Result<Option<Beginning>, HeaderFlaw> {
    let mut from = 0;
    while let Some(line) = start.get(from..).filter(|rest| !rest.is_empty()) {
        let end = text::record_line_ends(line).next().map_or(line.len(), |end| end + 1);
        let text = line.get(..end).unwrap_or_default();
        let is_blank = text.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        if !is_blank && !text.first().is_some_and(|byte| COMMENTS.contains(byte)) {
            break;
        }
        from += end;
    }
    let text = with_last_line_end(start.get(from..).unwrap_or_default(), ended);
    if text.is_empty() {
        let missing = HeaderFlaw::new(0, "a record in the first 1 MiB");
        return if ended { Ok(None) } else { Err(missing) };
    }
    let delimiter = match choice.delimiter.or(delimiter) {
        Some(delimiter) => delimiter,
        None => detect(&text)?,
    };
    let mut rows = Rows::new(&text, delimiter);
    let Some(first) = rows.next() else {
        return Err(HeaderFlaw::new(
            from,
            "a record of at most 1 MiB and 65,536 columns with closed quotes",
        ));
    };
    let (names_end, second) = (rows.end(), rows.next());
    let (roles, header) =
        choice.of_rows(&first, second.as_deref(), names).map_err(|mut doubt| {
            if let (Doubt::Unfit(problem) | Doubt::NoColumn { problem, .. }, 1) =
                (&mut doubt, first.len())
            {
                problem.push_str("; give the separator of its columns with --delimiter C");
            }
            doubt
        })?;
    let direction = match header && directed.is_none() {
        true => direction(&first, second.into_iter().chain(rows))?,
        false => None,
    };
    let undirected = direction.is_some_and(|direction| direction.undirected);
    let records = Records { delimiter, roles, words: IdWords::of(names), direction };
    let weighted = roles.weight.is_some();
    let body = Body { undirected, weighted, ..Body::new(Shape::Records(records)) };
    let columns = roles.describe(&first, Some(header), Some(char::from(delimiter).to_string()));
    // A header at the end of the file may lack a line end.
    let skip = (from + if header { names_end } else { 0 }).min(start.len());
    // The names end at the CR of CRLF.
    let is_cut = start.get(skip.wrapping_sub(1)..).is_some_and(|rest| rest.starts_with(b"\r\n"));
    let skip = skip + usize::from(is_cut);
    Ok(Some(Beginning { body, columns, skip, records }))
}

/// The direction that the column `Type` of the first records states, as Gephi writes it. A column
/// with other values states no direction.
fn direction(
    names: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<Option<Direction>, Doubt> {
    let Some(column) = names.iter().position(|name| name.trim().eq_ignore_ascii_case("type"))
    else {
        return Ok(None);
    };
    let (mut directed, mut undirected) = (false, false);
    for row in rows.take(LOOKED_AT_RECORDS) {
        match row.get(column).map(|value| value.trim().to_ascii_lowercase()).as_deref() {
            Some("directed") => directed = true,
            Some("undirected") => undirected = true,
            _ => return Ok(None),
        }
    }
    if directed && undirected {
        return Err(Doubt::Unsaid(format!(
            "its column {} has Directed and Undirected edges, but a graph has only one kind; give \
             --directed to keep the written direction of every edge, --undirected to give none a \
             direction, or import each kind separately",
            names[column]
        )));
    }
    Ok((directed || undirected).then_some(Direction { column, undirected }))
}

/// The delimiter that splits the first record into fields, or all of the first records into the
/// same number of fields.
fn detect(text: &[u8]) -> Result<u8, Doubt> {
    let counts = |delimiter: u8| -> Vec<usize> {
        Rows::new(text, delimiter).take(LOOKED_AT_RECORDS).map(|row| row.len()).collect()
    };
    let splits: Vec<(u8, Vec<usize>)> = DELIMITERS
        .into_iter()
        .map(|delimiter| (delimiter, counts(delimiter)))
        .filter(|(_, counts)| counts.first().is_some_and(|&count| count > 1))
        .collect();
    let even = |counts: &[usize]| counts.iter().all(|count| counts.first() == Some(count));
    let mut certain = splits.iter().filter(|(_, counts)| splits.len() == 1 || even(counts));
    match (splits.len(), certain.next(), certain.next()) {
        // There is one column. Any delimiter will do, because the message about columns reports
        // this.
        (0, ..) => Ok(b','),
        (_, Some((delimiter, _)), None) => Ok(*delimiter),
        _ => {
            let delimiters: Vec<String> = splits
                .iter()
                .map(|(delimiter, _)| format!("{:?}", char::from(*delimiter)))
                .collect();
            Err(Doubt::Unsaid(format!(
                "more than one of {} may separate its columns; choose one with --delimiter C",
                delimiters.join(", ")
            )))
        }
    }
}

/// The span of a field in the buffer, and its offset in the text.
#[derive(Default, Clone, Copy)]
struct FieldSpan {
    begin: usize,
    end: usize,
    at: usize,
}

impl Records {
    /// For each whole record in `text`: whether source and target are integers.
    pub(crate) fn ids<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = [bool; 2]> + use<'t> {
        let Roles { source, target, .. } = self.roles;
        let is_id = |row: &[String], at: usize| {
            row.get(at).is_some_and(|id| text::is_integer(id.as_bytes()))
        };
        Rows::new(text, self.delimiter).map(move |row| [is_id(&row, source), is_id(&row, target)])
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    pub(super) fn parse(
        &self,
        work: &mut Work<'_>,
        out: &mut Output,
        full: &mut impl FnMut(&mut Output) -> Result<()>,
    ) -> Result<()> {
        let bytes = work.bytes();
        let is_text = self.words == IdWords::Names && std::str::from_utf8(bytes).is_ok();
        let mut fields = Fields::new(bytes, work.from(), self.delimiter);
        let mut buffer = vec![0; EDGE_BYTES];
        while let Some(begin) = fields.begin() {
            let Some(spans) = self.record(&mut fields, &mut buffer, begin) else {
                return Err(work.unfinished(begin, "a quote that closes the field"));
            };
            let taken = spans.and_then(|spans| match self.words {
                IdWords::Names => self.push_names(bytes, &buffer, spans, is_text, out),
                _ => self.push_ids(&buffer, spans, out),
            });
            match taken {
                Ok(()) => {
                    let positions = if self.words == IdWords::Names {
                        &mut out.names.positions
                    } else {
                        &mut out.edges.positions
                    };
                    work.note_position(begin, positions);
                }
                Err(flaw) => work.judge(flaw, out)?,
            }
            if out.is_full() {
                full(out)?;
            }
        }
        Ok(())
    }

    /// Reads a record; `None` if the text ends within it.
    #[inline]
    fn record(
        &self,
        fields: &mut Fields<'_>,
        buffer: &mut [u8],
        begin: usize,
    ) -> Option<Result<[FieldSpan; 3], Flaw>> {
        let Roles { source, target, weight, width } = self.roles;
        let (mut spans, mut kept) = ([FieldSpan::default(); 3], 0);
        let (mut misquoted, mut other_direction) = (None, None);
        for column in 0.. {
            let (at, start) = (fields.at(), kept);
            let field = fields.next(buffer.get_mut(start..start + FIELD_BYTES)?)?;
            if field.is_misquoted {
                misquoted = misquoted.or(Some(Flaw { at, reason: Reason::Quotes }));
            }
            for (span, wanted) in spans.iter_mut().zip([Some(source), Some(target), weight]) {
                if wanted == Some(column) {
                    *span = FieldSpan { begin: kept, end: kept + field.length, at };
                    kept += field.length;
                }
            }
            if let Some(direction) = self.direction.filter(|direction| direction.column == column) {
                let value = buffer.get(start..start + field.length)?;
                if !value.trim_ascii().eq_ignore_ascii_case(direction.word().as_bytes()) {
                    other_direction = Some(Flaw { at, reason: Reason::Direction });
                }
            }
            if field.ends_record {
                let wrong = (column + 1 != width).then_some(Reason::Columns);
                let wrong = wrong.map(|reason| Flaw { at: begin, reason });
                return Some(misquoted.or(wrong).or(other_direction).map_or(Ok(spans), Err));
            }
        }
        None
    }

    #[inline]
    fn push_ids(&self, buffer: &[u8], spans: [FieldSpan; 3], out: &mut Output) -> Result<(), Flaw> {
        let (source, target) = (id(buffer, spans[0])?, id(buffer, spans[1])?);
        let weight = self.weight(buffer, spans[2])?;
        out.push(source, target, weight);
        Ok(())
    }

    fn push_names(
        &self,
        bytes: &[u8],
        buffer: &[u8],
        spans: [FieldSpan; 3],
        is_text: bool,
        out: &mut Output,
    ) -> Result<(), Flaw> {
        let weight = self.weight(buffer, spans[2])?;
        let name = |span: FieldSpan| {
            let name = buffer.get(span.begin..span.end).unwrap_or_default();
            match name.len() {
                // Without quotes it is a missing value, as other programs write it.
                0 if bytes.get(span.at) != Some(&b'"') => {
                    Err(Flaw { at: span.at, reason: Reason::Missing })
                }
                LONGEST_NAME.. if name.len() > LONGEST_NAME => {
                    Err(Flaw { at: span.at, reason: Reason::TooLong })
                }
                _ if is_text || std::str::from_utf8(name).is_ok() => Ok(name),
                _ => Err(Flaw { at: span.at, reason: Reason::NotText }),
            }
        };
        let (source, target) = (name(spans[0])?, name(spans[1])?);
        out.names.push(source);
        out.names.push(target);
        out.names.weights.extend(weight);
        out.tally.entries += 1;
        Ok(())
    }

    #[inline]
    fn weight(&self, buffer: &[u8], span: FieldSpan) -> Result<Option<f64>, Flaw> {
        if self.roles.weight.is_none() {
            return Ok(None);
        }
        let word = buffer.get(span.begin..span.end).unwrap_or_default().trim_ascii();
        let weight = text::parse_weight(word);
        weight.map(Some).map_err(|reason| Flaw { at: span.at, reason })
    }

    /// The text that was expected instead of a flaw.
    pub(super) fn expected(&self, reason: Reason) -> String {
        match reason {
            Reason::Columns => format!("{} columns, as the first line has", self.roles.width),
            Reason::Direction => format!(
                "{}, as in the first records (--directed keeps the written direction of every \
                 edge)",
                self.direction.map_or("", Direction::word)
            ),
            Reason::Quotes => {
                "a delimiter or a line end after the quote that closes the field (a quote within \
                 a field is doubled)"
                    .into()
            }
            Reason::Missing => "a vertex id (an empty one is written in quotes)".into(),
            Reason::NotAnId if self.words != IdWords::Names => {
                "an integer vertex id (text is taken as it is with --ids string)".into()
            }
            _ => super::lines::expected(reason, None),
        }
    }

    /// The text of a flaw for messages: its field, or the line of a record that is wrong as a
    /// whole.
    pub(super) fn shown(&self, bytes: &[u8], flaw: Flaw) -> String {
        let rest = bytes.get(flaw.at..).unwrap_or_default();
        let line = rest.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let is_whole = flaw.reason == Reason::Columns || line.first() == Some(&b'"');
        let field =
            line.split(|&byte| byte == self.delimiter && !is_whole).next().unwrap_or_default();
        if field.is_empty() { "an empty field".into() } else { text::shown_word(field) }
    }
}

#[inline]
fn id(buffer: &[u8], span: FieldSpan) -> Result<Id, Flaw> {
    let word = buffer.get(span.begin..span.end).unwrap_or_default().trim_ascii();
    let mut at = 0;
    match text::read_id(word, &mut at) {
        Ok(id) if at == word.len() => Ok(id),
        Err(Flaw { reason: Reason::TooLarge, .. }) => {
            Err(Flaw { at: span.at, reason: Reason::TooLarge })
        }
        _ => Err(Flaw { at: span.at, reason: Reason::NotAnId }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::formats::TextFormat;
    use crate::input::formats::parse::{parse_names, parse_text};
    use crate::input::formats::parser::OnError;

    /// The edges of `text`, for any cut into chunks.
    fn parse(text: &str) -> Vec<(u64, u64, f64)> {
        let read = |chunk_bytes| {
            parse_text(TextFormat::Delimited(None), text.as_bytes(), chunk_bytes, OnError::Fail)
                .unwrap()
        };
        let whole = read(1 << 20);
        for chunk_bytes in 40..80 {
            assert_eq!(read(chunk_bytes), whole, "{text:?} in chunks of {chunk_bytes}");
        }
        whole.edges
    }

    #[test]
    fn records_are_those_of_rfc_4180() {
        let text = "source,target,\"a \"\"quoted\"\" \
                    name\",weight\r\n1,2,\"x\n9,9,9,9\ny\",.5\r\n\r\n\"3\", 4 \
                    ,\"a,b\"\"\",1e3\n5,6,a\"b,7";
        assert_eq!(parse(text), [(1, 2, 0.5), (3, 4, 1000.0), (5, 6, 7.0)]);
        assert_eq!(parse("1;2\n3;4\n"), [(1, 2, 1.0), (3, 4, 1.0)]);
        assert_eq!(parse("\"1\" ,\" 2\" \n"), [(1, 2, 1.0)]);
        // A byte order mark counts only at the beginning of the text.
        let marked = "\u{feff}source|target|x\n1|2|\u{feff}\n3|4|\n".to_owned()
            + &"5|6|\u{feff}y\n".repeat(40);
        assert_eq!(parse(&marked).len(), 42);
    }

    #[test]
    fn every_line_end_is_one_and_counted_once() {
        let lines = ["# a", "# b", "source,target,x", "1,2,\"y", "z\"", "", "3,4,", "5,6,w"];
        for end in ["\n", "\r\n", "\r"] {
            let text = lines.map(|line| line.to_owned() + end).concat();
            assert_eq!(parse(&text), [(1, 2, 1.0), (3, 4, 1.0), (5, 6, 1.0)], "{end:?}");
            for chunk_bytes in 40..80 {
                let wrong = text.clone() + "7,8,v" + end + "9,a,v" + end;
                let format = TextFormat::Delimited(None);
                let refused = parse_text(format, wrong.as_bytes(), chunk_bytes, OnError::Fail);
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains(":10:3: "), "{end:?}, {chunk_bytes}: {refused}");
            }
        }
    }

    #[test]
    fn an_id_of_nothing_is_missing_and_one_in_quotes_is_empty() {
        let read = |text: &str, on_error| {
            parse_names(TextFormat::Delimited(None), text.as_bytes(), 64, on_error)
        };
        let (ends, _) = read("source,target\n\"\",b\na,\"\"\n", OnError::Fail).unwrap();
        assert_eq!(ends, ["", "b", "a", ""]);
        for row in ["a,", ",b", ","] {
            let text = format!("source,target\na,b\n{row}\n");
            let refused = read(&text, OnError::Fail).unwrap_err().to_string();
            assert!(refused.contains(":3:") && refused.contains("in quotes"), "{refused}");
            let (ends, _) = read(&text, OnError::Skip).unwrap();
            assert_eq!(ends, ["a", "b"]);
        }
    }

    #[test]
    fn text_after_a_closing_quote_loses_no_record_in_silence() {
        let read = |text: &str, on_error| {
            parse_text(TextFormat::Delimited(None), text.as_bytes(), 64, on_error)
        };
        // The quote of line 3 ends at that of line 5, and the lines between belong to its field.
        for (misquoted, line) in [
            ("2,3,\"b\n3,4,c\n4,5,\"d\n", 3),
            ("2,3,\"b\n3,4,\"c\"\n", 3),
            ("2,3,\"b\"\"\"c\n", 3),
            ("2,3,\"b\"c\"d\"\n", 3),
            ("2,\"3\"4,c\n", 3),
        ] {
            let text = format!("source,target,x\n1,2,a\n{misquoted}5,6,\"e,\"\"\n\"\n");
            let refused = read(&text, OnError::Fail).unwrap_err().to_string();
            let place = format!(":{line}:");
            assert!(refused.contains(&place) && refused.contains("closes"), "{refused}");
            let skipped = read(&text, OnError::Skip).unwrap();
            assert_eq!(skipped.edges, [(1, 2, 1.0), (5, 6, 1.0)], "{text}");
        }
    }

    #[test]
    fn the_first_record_begins_in_the_first_chunk() {
        let text = "#\n".repeat(1 << 19) + "source,target\n1,2\n";
        let read = |text: &str| {
            parse_text(TextFormat::Delimited(None), text.as_bytes(), 64, OnError::Fail)
        };
        let refused = read(&text).unwrap_err().to_string();
        assert!(refused.contains(":1:1") && refused.contains("first 1 MiB"), "{refused}");
        assert_eq!(read(&text[64..]).unwrap().edges, [(1, 2, 1.0)]);
    }

    #[test]
    fn the_delimiter_is_the_one_that_splits_evenly() {
        for (text, delimiter) in [
            ("a,b\n1,2\n", Some(b',')),
            ("a;b\n1;2,5\n", Some(b';')),
            ("a\tb,c\n1\t2\n", Some(b'\t')),
            ("\"a|b\";c\n", Some(b';')),
            ("a;b,c\n1;2,3\n", None),
        ] {
            assert_eq!(detect(text.as_bytes()).ok(), delimiter, "{text}");
        }
    }
}

//! Words of text: vertex ids and weights, in the notation of all text formats and tables.
//!
//! Blanks, tabs, commas and carriage returns separate words. Invariant: a number is read exactly or
//! not at all; only the text of a message allocates.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The signs of the ids that were read.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub struct Signs {
    /// True if an id is below zero.
    pub negative: bool,
    /// True if an id is 2^63 or more.
    pub huge: bool,
}

impl Signs {
    pub(crate) fn note(&mut self, id: Id) {
        self.negative |= id.negative;
        self.huge |= !id.negative && id.bits >> 63 == 1;
    }

    /// Adds the signs that another worker saw.
    pub fn merge(&mut self, other: Self) {
        self.negative |= other.negative;
        self.huge |= other.huge;
    }
}

/// Returns an error if no single type can hold all ids.
pub fn check_signs(signs: Signs, path: &Path) -> Result<()> {
    if signs.negative && signs.huge {
        let problem = "it has ids below 0 and ids of 2^63 or more; all ids must fit int64, or \
                       all must fit uint64: renumber the vertices";
        return Err(Error::input(path, problem));
    }
    Ok(())
}

/// An integer from a text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) bits: u64,
    pub(crate) negative: bool,
}

/// The ids that a header declares: `count` ids from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) first: u64,
    /// Number of ids.
    pub(crate) count: u64,
}

impl Span {
    #[inline]
    pub(crate) fn contains(self, id: Id) -> bool {
        !id.negative && id.bits.wrapping_sub(self.first) < self.count
    }
}

/// The reason to reject a word or a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Reason {
    /// A line with fewer words than an edge.
    Missing,
    /// A word that is not an integer.
    NotAnId,
    /// An integer that does not fit in 64 bits.
    TooLarge,
    /// An id outside the range that the header declares.
    Outside,
    /// A word after the end of an edge.
    Extra,
    /// A weight that is missing, or not a finite number.
    Weight,
    /// A weight that is an integer between two floats.
    Rounded,
    /// A line that begins with the wrong letter.
    Letter,
    /// A list after the last vertex.
    Row,
    /// A word that is not UTF-8.
    NotText,
    /// A word that is too long for an id.
    TooLong,
    /// A record with more or fewer fields than the first.
    Columns,
    /// A quoted field with text after its closing quote.
    Quotes,
    /// An id that is in no vertex list.
    Undeclared,
    /// A declaration of the graph after its first edge.
    Late,
    /// An edge of the other direction than the edges before, in a column `Type`.
    Direction,
    /// An empty column between two separators.
    Empty,
}

impl Reason {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing id",
            Self::NotAnId => "not an integer id",
            Self::TooLarge => "id beyond 64 bits",
            Self::Outside => "id outside the header's range",
            Self::Extra => "text after the edge",
            Self::Weight => "not a finite weight",
            Self::Rounded => ROUNDED_WEIGHT,
            Self::Letter => "unknown kind of line",
            Self::Row => "list after the last vertex",
            Self::NotText => "id that is not UTF-8",
            Self::TooLong => "id that is too long",
            Self::Columns => "wrong number of columns",
            Self::Quotes => "text after a closing quote",
            Self::Undeclared => "vertex that is not declared",
            Self::Late => "declaration of another graph",
            Self::Direction => "edge of the other direction",
            Self::Empty => "empty column",
        }
    }
}

/// The name of integer weights between two floats in reports.
pub const ROUNDED_WEIGHT: &str = "integer weight between two floats";

/// An invalid place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Offset of the offending word.
    pub(crate) at: usize,
    pub(crate) reason: Reason,
}

#[inline]
pub(crate) fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',' | b'\r')
}

/// The offset of the first byte of `text` from `at` on that is not a separator.
#[inline]
pub(crate) fn skip(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&b| is_separator(b)) {
        at += 1;
    }
    at
}

/// Moves from `at`, the end of a word, to the next word of the line: past blanks with at most one
/// comma. A second comma encloses an empty column, which moves no other word into its place.
/// `tabs`: a second tab does so too.
#[inline]
pub(crate) fn next_word(text: &[u8], at: usize, tabs: bool) -> Result<usize, Flaw> {
    // Most words have one separator between them.
    match text.get(at..) {
        Some([b' ' | b'\t' | b',', next, ..]) if !is_separator(*next) => Ok(at + 1),
        _ => pass_separators(text, at, 1, tabs),
    }
}

/// Moves from `at`, the beginning of a line, to its first word. A comma there encloses an empty
/// column, and a tab if `tabs`.
pub(crate) fn first_word(text: &[u8], at: usize, tabs: bool) -> Result<usize, Flaw> {
    pass_separators(text, at, 0, tabs)
}

/// Moves past separators, with at most `allowed` commas, or tabs, before a word.
fn pass_separators(text: &[u8], at: usize, allowed: usize, tabs: bool) -> Result<usize, Flaw> {
    let end = skip(text, at);
    let count = |byte: u8| text[at..end].iter().filter(|&&b| b == byte).count();
    let is_empty = count(b',') > allowed || tabs && count(b'\t') > allowed;
    // Empty columns at the end of a line move no word.
    match text.get(end) {
        Some(byte) if is_empty && *byte != b'\n' => Err(Flaw { at: end, reason: Reason::Empty }),
        _ => Ok(end),
    }
}

/// The word at `at`: up to the next separator or line end.
pub(crate) fn word(text: &[u8], at: usize) -> &[u8] {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.iter().position(|&b| is_separator(b) || b == b'\n').unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// The offsets of the line ends in records: of LF, and of CR alone.
pub(crate) fn record_line_ends(bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
    let ends = |at: &usize| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n');
    memchr::memchr2_iter(b'\n', b'\r', bytes).filter(ends)
}

/// The number of the line ends of [`record_line_ends`]; counting each LF by itself is fast.
pub(crate) fn record_lines(bytes: &[u8]) -> u64 {
    let is_alone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let alone = memchr::memchr_iter(b'\r', bytes).filter(is_alone).count();
    (memchr::memchr_iter(b'\n', bytes).count() + alone) as u64
}

/// The offset of the text after the first carriage return that is not part of a line end.
pub(crate) fn behind_lone_return(bytes: &[u8]) -> Option<usize> {
    let is_lone = |at: &usize| !matches!(bytes.get(at + 1), None | Some(b'\r' | b'\n'));
    memchr::memchr_iter(b'\r', bytes).find(is_lone).map(|at| at + 1)
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| is_separator(b)).filter(|word| !word.is_empty())
}

/// The text that was expected instead of an integer weight between two floats.
pub const EXACT_WEIGHT: &str =
    "a weight that a float of 64 bits holds (an integer written with a decimal point is rounded)";

/// The word at `at` for messages, shortened.
pub(crate) fn shown(text: &[u8], at: usize) -> String {
    match word(text, at) {
        [] => "the end of the line".into(),
        word => shown_word(word),
    }
}

/// A word in quotes for messages, shortened.
pub fn shown_word(word: &[u8]) -> String {
    let short = String::from_utf8_lossy(word.get(..40).unwrap_or(word));
    if word.len() > 40 { format!("{short:?}...") } else { format!("{short:?}") }
}

/// Reads the id at `at` and moves `at` past it.
#[inline]
pub(crate) fn read_id(text: &[u8], at: &mut usize) -> Result<Id, Flaw> {
    let start = *at;
    match text.get(start..).and_then(parse_id) {
        Some((id, length))
            if text.get(start + length).is_none_or(|&b| is_separator(b) || b == b'\n') =>
        {
            *at = start + length;
            Ok(id)
        }
        _ => Err(id_flaw(text, start)),
    }
}

#[cold]
fn id_flaw(text: &[u8], at: usize) -> Flaw {
    let word = word(text, at);
    let reason = if word.is_empty() {
        Reason::Missing
    } else if is_integer(word) {
        Reason::TooLarge
    } else {
        Reason::NotAnId
    };
    Flaw { at, reason }
}

/// Parses an integer between -2^63 and 2^64 - 1 at the start of `text`. Returns it and its length.
#[inline]
fn parse_id(text: &[u8]) -> Option<(Id, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut value = 0_u64;
    let mut at = start;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        // Nineteen digits always fit; further digits are checked.
        value = if at - start < 19 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        at += 1;
    }
    if at == start || (negative && value > 1 << 63) {
        return None;
    }
    let negative = negative && value != 0;
    let bits = if negative { value.wrapping_neg() } else { value };
    Some((Id { bits, negative }, at))
}

/// True if the whole word is an integer, of any size.
pub fn is_integer(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Appends a field of a CSV file; quotes it if necessary (RFC 4180) or if it is empty.
pub fn push_csv(field: &str, out: &mut String) {
    match field.is_empty() || field.contains([',', '"', '\n', '\r']) {
        true => push_quoted(field, out),
        false => out.push_str(field),
    }
}

/// Appends a field of a CSV file in quotes.
pub fn push_quoted(field: &str, out: &mut String) {
    out.push('"');
    for (at, part) in field.split('"').enumerate() {
        out.push_str(if at > 0 { "\"\"" } else { "" });
        out.push_str(part);
    }
    out.push('"');
}

/// Parses a whole text as an id and records its sign; `None` if it is not an integer of 64 bits.
pub fn parse_number(text: &str, signs: &mut Signs) -> Option<u64> {
    let (id, length) = parse_id(text.as_bytes())?;
    (length == text.len()).then(|| {
        signs.note(id);
        id.bits
    })
}

/// A word as a count: an integer of at least 0.
pub(crate) fn parse_count(word: &[u8]) -> Option<u64> {
    let (id, length) = parse_id(word)?;
    (length == word.len() && !id.negative).then_some(id.bits)
}

/// Reads the weight at `at` and moves `at` past it.
#[inline]
pub(crate) fn read_weight(text: &[u8], at: &mut usize) -> Result<f64, Flaw> {
    let start = *at;
    if let Some((weight, length)) = text.get(start..).and_then(short_decimal)
        && text.get(start + length).is_none_or(|&b| is_separator(b) || b == b'\n')
    {
        *at = start + length;
        return Ok(weight);
    }
    let word = word(text, start);
    let weight = parse_long_weight(word).map_err(|reason| Flaw { at: start, reason })?;
    *at = start + word.len();
    Ok(weight)
}

/// A whole word as a weight: a finite number.
#[inline]
pub(crate) fn parse_weight(word: &[u8]) -> Result<f64, Reason> {
    match short_decimal(word) {
        Some((weight, length)) if length == word.len() => Ok(weight),
        _ => parse_long_weight(word),
    }
}

fn parse_long_weight(word: &[u8]) -> Result<f64, Reason> {
    let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite()).ok_or(Reason::Weight)?;
    if is_rounded(word, number) { Err(Reason::Rounded) } else { Ok(number) }
}

/// True if a word is an integer, and `number`, its nearest float, is a different integer.
///
/// The shortest digits of a float, as exports write them, do not count: 1e23 is written
/// 100000000000000000000000, although this float is less by 8388608.
pub fn is_rounded(word: &[u8], number: f64) -> bool {
    let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    // Every integer of 15 digits is a float.
    if digits.len() <= 15 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits = str::from_utf8(digits).unwrap_or_default().trim_start_matches('0');
    let size = number.abs();
    match digits.parse::<u128>() {
        Ok(integer) if integer == size as u128 => false,
        Ok(_) => size.to_string() != digits,
        Err(_) => size.to_string() != digits && format!("{size:.0}") != digits,
    }
}

/// An integer weight between two floats for messages, with the float nearest to it.
pub fn shown_rounded(shown: &str, number: f64) -> String {
    format!("{shown}, to which {number:.0} is nearest")
}

/// Reads digits with at most one point, few enough that one division is correctly rounded (Clinger,
/// 1990): the mantissa is below 2^53 and the power of ten is exact.
fn short_decimal(text: &[u8]) -> Option<(f64, usize)> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (mut mantissa, mut digits, mut decimals, mut point) = (0_u64, 0, 0, false);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                digits += 1;
                decimals += usize::from(point);
            }
            b'.' if !point => point = true,
            _ => break,
        }
        if digits > 15 {
            return None;
        }
        at += 1;
    }
    let power = POWERS.get(decimals)?;
    (digits > 0).then(|| (mantissa as f64 / power, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<i128> {
        let mut at = 0;
        let id = read_id(text.as_bytes(), &mut at).ok()?;
        assert_eq!(at, word(text.as_bytes(), 0).len());
        Some(if id.negative { i128::from(id.bits.cast_signed()) } else { i128::from(id.bits) })
    }

    #[test]
    fn ids_are_exact_to_both_ends() {
        assert_eq!(number("-9223372036854775808"), Some(i128::from(i64::MIN)));
        assert_eq!(number("18446744073709551615"), Some(i128::from(u64::MAX)));
        assert_eq!(number("007 1"), Some(7));
        assert_eq!(number("-0\n"), Some(0));
        for wrong in ["18446744073709551616", "-9223372036854775809", "-", "", "1x", "1.0", "+1"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn flaws_say_why() {
        let reason = |text: &str| read_id(text.as_bytes(), &mut 0).unwrap_err().reason;
        assert_eq!(reason(""), Reason::Missing);
        assert_eq!(reason("1x"), Reason::NotAnId);
        assert_eq!(reason("-"), Reason::NotAnId);
        assert_eq!(reason("18446744073709551616"), Reason::TooLarge);
    }

    #[test]
    fn weights_are_what_the_standard_parser_says() {
        for text in [
            "0",
            "1",
            "0.5",
            ".5",
            "5.",
            "123456789.123456",
            "123456789012345",
            "0.1",
            "0.3",
            "1234567890123456768",
            "-1234567890123456768",
            "1234567890123456789.0",
            "000000000000000000000000000000000000000000000000000000000000001",
            "9007199254740992",
            "3.14159265358979312",
            "-2.5e3",
            "1e-300",
            "999999999999999",
            "0.000000000000001",
        ] {
            let parsed = read_weight(text.as_bytes(), &mut 0).unwrap();
            assert_eq!(parsed.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        for float in [1e22, 1e23, 2e38, 1.234567e40, f64::MAX, u64::MAX as f64] {
            for text in [float.to_string(), format!("{float:.0}"), format!("-{float}")] {
                assert_eq!(read_weight(text.as_bytes(), &mut 0).unwrap().abs(), float, "{text}");
            }
        }
        for rounded in [
            "9007199254740993",
            "-9007199254740993",
            "+09007199254740993",
            "18446744073709551615",
            "100000000000000000000001",
            "1000000000000000000000000000000000000000000000000000001",
        ] {
            let flaw = Flaw { at: 0, reason: Reason::Rounded };
            assert_eq!(read_weight(rounded.as_bytes(), &mut 0), Err(flaw), "{rounded}");
        }
        for wrong in ["", ".", "nan", "inf", "1e999", "1.2.3", "1,5x", "heavy"] {
            let mut at = 0;
            let read = read_weight(wrong.as_bytes(), &mut at);
            assert!(read.is_err() || at < wrong.len(), "{wrong}");
        }
    }

    #[test]
    fn long_words_are_shortened() {
        assert_eq!(shown(b"abc def", 0), "\"abc\"");
        assert_eq!(shown(b"", 0), "the end of the line");
        assert_eq!(shown(&[b'x'; 100], 0), format!("\"{}\"...", "x".repeat(40)));
    }
}

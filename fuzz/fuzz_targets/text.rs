//! Shared by the targets of text formats: the same checks as `tests/graph/mutations.rs`.

use brimful_graph::columns::ColumnChoice;
use brimful_graph::formats::TextFormat;
use brimful_graph::formats::parse::{has_position, parse_columns};
use brimful_graph::import::OnError;

/// [`check_as`] the format of this name.
#[allow(dead_code, reason = "targets of formats without a name have no use for it")]
pub fn check(name: &str, bytes: &[u8]) {
    check_as(TextFormat::from_name(name).expect("a target is named after a format"), bytes);
}

/// [`check_columns`] with columns that nobody chose.
#[allow(dead_code, reason = "one target chooses columns")]
pub fn check_as(format: TextFormat, bytes: &[u8]) {
    check_columns(format, &ColumnChoice::default(), bytes);
}

/// Reads `bytes` whole, in small chunks, and leaving out what is no edge.
pub fn check_columns(format: TextFormat, choice: &ColumnChoice, bytes: &[u8]) {
    let parse = |chunk, on_error| parse_columns(format, choice, bytes, chunk, on_error);
    let whole = parse(1 << 20, OnError::Fail);
    let cut = parse(200, OnError::Fail);
    let skipped = parse(1 << 20, OnError::Skip);
    match (&whole, &cut) {
        (Ok(whole), Ok(cut)) => {
            assert_eq!(whole, cut);
            assert!(whole.edges.len() + whole.listed.len() <= bytes.len());
            assert_eq!(skipped.as_ref().ok(), Some(whole));
        }
        (Err(error), _) => assert!(has_position(error), "{error}"),
        (Ok(_), Err(error)) => assert!(error.to_string().contains("without an end"), "{error}"),
    }
}

//! The columns of tables of text. The first byte says which kind of text, which delimiter, and whether there is a header; the three
//! lines that follow name the columns of sources, targets and weights, or are empty; the rest is the file.
#![no_main]

use brimful_graph::columns::ColumnChoice;
use brimful_graph::formats::TextFormat;

mod text;

fn choice(kind: u8, lines: &[&[u8]]) -> ColumnChoice {
    let line = |at: usize| lines.get(at).filter(|line| !line.is_empty());
    let column = |at: usize| line(at).map(|line| String::from_utf8_lossy(line).into_owned());
    ColumnChoice {
        source: column(0),
        target: column(1),
        weight: column(2),
        header: [None, Some(true), Some(false)][usize::from(kind >> 2) % 3],
        delimiter: [None, Some(b';'), Some(b'|'), Some(b' ')][usize::from(kind >> 5) % 4],
        ignore_extra: kind >= 128,
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let mut lines: Vec<&[u8]> = rest.splitn(4, |byte| *byte == b'\n').collect();
    let file = if lines.len() == 4 { lines.pop().unwrap_or_default() } else { &[] };
    let choice = choice(kind, &lines);
    let names: Vec<String> =
        file.split(|byte| *byte == b',').map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if let Ok(roles) = choice.of_names(&names) {
        assert!(roles.source != roles.target && roles.source.max(roles.target) < names.len());
        assert_eq!(roles.ignored().count(), names.len() - 2 - usize::from(roles.weight.is_some()));
    }
    let name = ["csv", "tsv", "edgelist", "auto"][usize::from(kind) % 4];
    text::check_columns(TextFormat::from_name(name).expect("a format"), &choice, file);
});

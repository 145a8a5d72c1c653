//! `mtx`: MatrixMarket coordinate files, a square matrix as a graph.
//!
//! An entry `i j [value]` is the edge from i to j. `pattern` has no weights, `integer` and `real`
//! have weights. `general` is directed; `symmetric` is undirected, and an entry is listed once.
//! Skew-symmetric, Hermitian, complex and dense (`array`) matrices are not read as graphs and are
//! refused. Vertices: 1 to the number of rows.
//!
//! Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.

use brimful_store::wording::counted;

use super::{Body, Claim, Draft, HeaderFlaw, HeaderWords, Lines, Shape, Step, span};
use crate::input::text;

pub(super) const HEADER: &str =
    "the line `%%MatrixMarket matrix coordinate ...` and a line `rows columns entries`";
const SIZES: &str = "the sizes `rows columns entries`";

/// The first line of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Banner {
    weighted: bool,
    symmetric: bool,
}

/// True if a file that begins with `word` is a MatrixMarket file.
pub(super) fn is_banner(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"%%MatrixMarket")
}

pub(super) fn header(line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
    let Some(banner) = draft.mtx else {
        draft.mtx = Some(read_banner(line)?);
        return Ok(Step::Skip);
    };
    let mut words = HeaderWords::new(line);
    if matches!(text::word(line, words.at).first(), None | Some(b'%')) {
        return Ok(Step::Skip);
    }
    let at = words.at;
    let rows = words.count(SIZES)?;
    let columns_at = words.at;
    let columns = words.count(SIZES)?;
    let entries = words.count(SIZES)?;
    words.end("the end of the line after `rows columns entries`")?;
    if rows != columns {
        let as_many = counted(rows, "column");
        let expected = format!("{as_many}, as many as rows: only a square matrix is a graph");
        return Err(HeaderFlaw::new(columns_at, expected));
    }
    let declared = span(1, rows, at)?;
    let lines = Lines {
        comments: b"%",
        columns: u8::from(banner.weighted),
        weight: banner.weighted.then_some(0),
        ids: Some(declared),
        ..Lines::default()
    };
    Ok(Step::Header(Body {
        shape: Shape::Lines(lines),
        undirected: banner.symmetric,
        weighted: banner.weighted,
        declared: Some(declared),
        claim: Some(Claim::Entries(entries)),
    }))
}

fn read_banner(line: &[u8]) -> Result<Banner, HeaderFlaw> {
    let mut words = HeaderWords::new(line);
    let mut choice = |options: &[&str], expected: &str| -> Result<usize, HeaderFlaw> {
        let (at, word) = words.next();
        let chosen = options.iter().position(|option| word.eq_ignore_ascii_case(option.as_bytes()));
        chosen.ok_or_else(|| HeaderFlaw::new(at, expected))
    };
    choice(&["%%MatrixMarket"], "`%%MatrixMarket`, with which every MatrixMarket file begins")?;
    choice(&["matrix"], "`matrix`")?;
    choice(
        &["coordinate"],
        "`coordinate`; a dense matrix (`array`) is not a graph, write it sparse",
    )?;
    let field = choice(
        &["pattern", "integer", "real", "double"],
        "`pattern`, `integer` or `real`; complex values are not weights",
    )?;
    let symmetry = choice(
        &["general", "symmetric"],
        "`general` or `symmetric`; write a skew-symmetric or Hermitian matrix as general",
    )?;
    Ok(Banner { weighted: field != 0, symmetric: symmetry == 1 })
}

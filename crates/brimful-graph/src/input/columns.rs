//! The choice of an input's edge columns: one rule for text, Parquet and Arrow.
//!
//! Without flags, columns are taken only if they are beyond doubt: two columns, or one pair of
//! names of [`PAIRS`]; a weight by a name of [`WEIGHTS`]. Invariant: a mapping comes from the user
//! or from a name in these tables, or is the only possible one; everything else is a [`Doubt`].

use std::path::Path;

use brimful_store::wording::counted;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Names of source and target, in lower case without `_ - . :` and blanks. Each may have a suffix
/// of [`ENDINGS`].
pub const PAIRS: [(&str, &str); 17] = [
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("src", "target"),
    ("from", "to"),
    ("u", "v"),
    HEAD_TAIL,
    ("start", "end"),
    ("origin", "destination"),
    ("follower", "followee"),
    ("citing", "cited"),
    ("parent", "child"),
    ("sender", "receiver"),
    ("caller", "callee"),
];
/// Some authors call the end at which an edge begins its tail, so this pair counts only in this
/// order.
const HEAD_TAIL: (&str, &str) = ("head", "tail");
/// Suffixes of the names in [`PAIRS`].
pub const ENDINGS: [&str; 5] = ["id", "node", "nodeid", "vertex", "vertexid"];
/// Names of weights, written like those of [`PAIRS`].
pub const WEIGHTS: [&str; 6] = ["weight", "weights", "w", "wt", "wgt", "edgeweight"];

/// The maximum number of columns and of values that a message lists.
const SHOWN: usize = 12;
/// The maximum number of characters of a column's name or of a value in a message.
const SHOWN_CHARS: usize = 24;
/// The maximum bytes of a column name that is suggested instead of a misspelled one.
const NAME_BYTES: usize = 64;

/// The user's choice of columns.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ColumnChoice {
    /// Name of the source column, or its number from 1.
    pub source: Option<String>,
    /// The same for the target column.
    pub target: Option<String>,
    /// The same for the weight column.
    pub weight: Option<String>,
    /// True if the first line of text holds the names of the columns; `None`: it is decided by
    /// rule.
    pub header: Option<bool>,
    /// The separator of text columns.
    pub delimiter: Option<u8>,
    /// True to ignore columns that are neither source, target nor weight.
    pub ignore_extra: bool,
}

/// The chosen columns, as they are displayed and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// The name of the source column; its number from 1 if columns have no names.
    pub source: String,
    /// The same for the target column.
    pub target: String,
    /// The same for the weight column.
    pub weight: Option<String>,
    /// The other columns.
    pub ignored: Vec<String>,
    /// True if the first line holds the names; `None` if the format always has names or numbers.
    pub header: Option<bool>,
    /// The separator of columns; `None` if the format defines it.
    pub delimiter: Option<String>,
}

/// The most ignored columns that a sentence names.
const SHOWN_COLUMNS: usize = 8;

impl Columns {
    /// The ignored columns as a phrase such as `color, when`; if there are many, the first ones and
    /// the number of the others. `None` if there are none.
    pub fn ignored_names(&self) -> Option<String> {
        let (shown, others) = self.ignored.split_at(self.ignored.len().min(SHOWN_COLUMNS));
        let names = shown.join(", ");
        match (shown, others.len()) {
            ([], _) => None,
            (_, 0) => Some(names),
            (_, more) => Some(format!("{names} and {more} more")),
        }
    }
}

/// The positions of the chosen columns, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// The source column.
    pub source: usize,
    /// The target column.
    pub target: usize,
    /// The weight column.
    pub weight: Option<usize>,
    /// Number of columns.
    pub width: usize,
}

impl Roles {
    /// Columns that are neither source, target nor weight.
    pub fn ignored(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.width)
            .filter(|&at| at != self.source && at != self.target && Some(at) != self.weight)
    }

    /// The columns for display, given the `names` of all columns.
    pub fn describe(
        &self,
        names: &[String],
        header: Option<bool>,
        delimiter: Option<String>,
    ) -> Columns {
        let name = |at: usize| match header {
            Some(false) => (at + 1).to_string(),
            _ => names.get(at).cloned().unwrap_or_default(),
        };
        Columns {
            source: name(self.source),
            target: name(self.target),
            weight: self.weight.map(name),
            ignored: self.ignored().map(name).collect(),
            header,
            delimiter,
        }
    }
}

/// A reason to refuse columns: a sentence with the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The user must give more options.
    Unsaid(String),
    /// The input has too few columns for an edge.
    Unfit(String),
    /// The input lacks a column that the user names.
    NoColumn {
        /// The sentence.
        problem: String,
        /// The name of the missing column.
        column: String,
        /// The names of the input's columns; empty if they have only numbers.
        names: Vec<String>,
    },
}

impl Doubt {
    /// The error for the input at `path`.
    pub fn error(self, path: &Path) -> Error {
        match self {
            Self::Unsaid(problem) => Error::Usage(format!("{}: {problem}", path.display())),
            Self::Unfit(problem) => Error::input(path, problem),
            Self::NoColumn { problem, column, names } => {
                Error::NoColumn { path: path.into(), problem, column, names }
            }
        }
    }
}

impl ColumnChoice {
    /// The columns of a table whose columns have names.
    ///
    /// # Errors
    /// A [`Doubt`].
    pub fn of_names(&self, names: &[String]) -> Result<Roles, Doubt> {
        self.roles(names, true)
    }

    /// The columns of text, from its first two rows, and whether the first row holds names. With
    /// `string_ids` the ids are strings: words above integers are then no sign of names.
    ///
    /// # Errors
    /// A [`Doubt`].
    pub fn of_rows(
        &self,
        first: &[String],
        second: Option<&[String]>,
        string_ids: bool,
    ) -> Result<(Roles, bool), Doubt> {
        if let Some(header) = self.header {
            return Ok((self.roles(first, header)?, header));
        }
        let chosen = [&self.source, &self.target, &self.weight];
        let named = chosen.into_iter().flatten().any(|column| number(column).is_none());
        if named && first.iter().all(|field| is_number(field)) {
            let problem =
                "its first line has numbers instead of column names; number the columns from 1";
            return Err(Doubt::Unsaid(problem.into()));
        }
        if named || !pairs(first).is_empty() {
            return Ok((self.roles(first, true)?, true));
        }
        let (headed, bare) = (self.roles(first, true), self.roles(first, false));
        let Some(roles) = bare.as_ref().or(headed.as_ref()).ok() else {
            return Ok((bare?, false));
        };
        if is_edge(roles, first) {
            return Ok((bare?, false));
        }
        if second.is_some_and(|second| has_numbers(roles, second, string_ids)) {
            return Ok((headed?, true));
        }
        Err(Doubt::Unsaid(format!(
            "the first line ({}) may name the columns or be an edge; give --header or --no-header",
            listed(first.iter().map(String::as_str))
        )))
    }

    /// The roles of columns called `names`; without `header`, `names` are the values of the first
    /// row. Columns that the user names come first, then columns whose names tell their roles; the
    /// others are taken in order.
    fn roles(&self, names: &[String], header: bool) -> Result<Roles, Doubt> {
        let doubt = |problem: &str| {
            Doubt::Unsaid(format!("{problem}; it has {}", describe_columns(names, header)))
        };
        let [mut source, mut target, mut weight] = self.chosen(names, header)?;
        let mut certain = source.is_some() && target.is_some();
        if header && source.is_none() && target.is_none() {
            match *pairs(names) {
                [(first, second)] if weight != Some(first) && weight != Some(second) => {
                    (source, target, certain) = (Some(first), Some(second), true);
                }
                [_, _, ..] => {
                    return Err(doubt("more than one pair of columns may be source and target"));
                }
                _ => {}
            }
        }
        if header && weight.is_none() {
            let is_weight =
                |&at: &usize| ![source, target].contains(&Some(at)) && is_weight_name(&names[at]);
            let mut weights = (0..names.len()).filter(is_weight);
            weight = weights.next();
            if weights.next().is_some() {
                return Err(doubt("more than one column may be the weight"));
            }
        }
        // A column of pandas is an edge column only if it is named.
        let is_taken = |at: usize| {
            [source, target, weight].contains(&Some(at)) || header && is_index(&names[at])
        };
        let free: Vec<usize> = (0..names.len()).filter(|at| !is_taken(*at)).collect();
        let missing = usize::from(source.is_none()) + usize::from(target.is_none());
        if free.len() < missing {
            return Err(match weight {
                Some(at) if names.len() >= 2 => doubt(&format!(
                    "{} {}, which leaves one column for the two ends of an edge",
                    column_name(names, at, header),
                    match self.weight {
                        Some(_) => "is the weight",
                        None => "has the name of a weight",
                    }
                )),
                _ => too_few(names),
            });
        }
        if free.len() > missing && !certain && !self.ignore_extra {
            let (problem, taken) = match missing {
                0 | 1 => ("the column of the other end of an edge is ambiguous", "first other one"),
                _ => ("the columns of the edges are ambiguous", "first two"),
            };
            let ignoring = Self { ignore_extra: true, ..self.clone() };
            return Err(match ignoring.roles(names, header) {
                Ok(_) => Doubt::Unsaid(format!(
                    "{problem}; it has {}, or --ignore-extra to take the {taken} and leave out the \
                     others",
                    describe_columns(names, header)
                )),
                Err(doubt) => doubt,
            });
        }
        let mut free = free.into_iter();
        let ends = source.or_else(|| free.next()).zip(target.or_else(|| free.next()));
        let (source, target) = ends.ok_or_else(|| too_few(names))?;
        if header && missing == 2 && are_swapped(&names[source], &names[target]) {
            return Err(doubt("the columns of the edges are ambiguous"));
        }
        Ok(Roles { source, target, weight, width: names.len() })
    }

    /// The positions of the columns that the user names for source, target and weight.
    fn chosen(&self, names: &[String], header: bool) -> Result<[Option<usize>; 3], Doubt> {
        let position = |column: &Option<String>| {
            column.as_ref().map(|column| find(names, column, header)).transpose()
        };
        let chosen = [position(&self.source)?, position(&self.target)?, position(&self.weight)?];
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            if let Some(column) = chosen[a].filter(|_| chosen[a] == chosen[b]) {
                return Err(Doubt::Unsaid(format!(
                    "{} is named twice; name one column each; it has {}",
                    column_name(names, column, header),
                    describe_columns(names, header)
                )));
            }
        }
        Ok(chosen)
    }
}

/// The position of the column that a user calls `column`.
fn find(names: &[String], column: &str, header: bool) -> Result<usize, Doubt> {
    if header {
        let mut same = (0..names.len()).filter(|&at| names[at] == column);
        match (same.next(), same.next()) {
            (Some(at), None) => return Ok(at),
            (Some(_), Some(_)) => {
                return Err(Doubt::Unsaid(format!(
                    "it has more than one column '{}'; give its number, counted from 1",
                    shown(column)
                )));
            }
            _ => {}
        }
    }
    let at = number(column).and_then(|number| number.checked_sub(1)).filter(|&at| at < names.len());
    at.ok_or_else(|| {
        let problem = match names {
            [] => "it has no columns".into(),
            _ => {
                let columns = describe_columns(names, header);
                format!("it has no column '{}', but {columns}", shown(column))
            }
        };
        // Longer names, and names with control characters, are not suggested for a misspelled one.
        let is_plain =
            |name: &&String| name.len() <= NAME_BYTES && !name.contains(char::is_control);
        let names =
            if header { names.iter().filter(is_plain).cloned().collect() } else { Vec::new() };
        Doubt::NoColumn { problem, column: column.into(), names }
    })
}

fn number(column: &str) -> Option<usize> {
    column.bytes().all(|byte| byte.is_ascii_digit()).then(|| column.parse().ok()).flatten()
}

fn too_few(names: &[String]) -> Doubt {
    let columns = listed(names.iter().map(String::as_str));
    Doubt::Unfit(format!(
        "an edge needs two columns, source and target, and the first line has: {columns}"
    ))
}

/// The columns, with advice on the choice: `2 columns: a, b; give them by name`.
fn describe_columns(names: &[String], header: bool) -> String {
    let values = listed(names.iter().map(String::as_str));
    let values = if header { format!(": {values}") } else { format!(" (first line: {values})") };
    let is_name = |at: usize| !names[..at].contains(&names[at]);
    let by = match header && (0..names.len()).all(is_name) {
        true => "name",
        false => "number, from 1",
    };
    let columns = counted(names.len(), "column");
    format!("{columns}{values}; give them by {by}: --source COL --target COL [--weight COL]")
}

fn listed<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> String {
    let more = texts.clone().count().saturating_sub(SHOWN);
    let mut list = texts.take(SHOWN).map(shown).collect::<Vec<_>>().join(", ");
    if more > 0 {
        list += &format!(" and {more} more");
    }
    list
}

/// A name or value, shortened, with control characters escaped for terminals.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() { short + "..." } else { short }
}

fn column_name(names: &[String], at: usize, header: bool) -> String {
    match names.get(at) {
        Some(name) if header => format!("column '{}'", shown(name)),
        _ => format!("column {}", at + 1),
    }
}

/// A name in the spelling of `PAIRS` and `WEIGHTS`.
fn simple(name: &str) -> String {
    let ignored = |c: &char| !matches!(c, '_' | '-' | '.' | ':' | ' ');
    name.chars().filter(ignored).flat_map(char::to_lowercase).collect()
}

fn is_weight_name(name: &str) -> bool {
    WEIGHTS.contains(&simple(name).as_str())
}

/// True if `name` is `role`, perhaps with a suffix of `ENDINGS`.
fn is_called(name: &str, role: &str) -> bool {
    name.strip_prefix(role).is_some_and(|ending| ending.is_empty() || ENDINGS.contains(&ending))
}

/// The positions of all pairs of columns whose names are in [`PAIRS`].
fn pairs(names: &[String]) -> Vec<(usize, usize)> {
    let names: Vec<String> = names.iter().map(|name| simple(name)).collect();
    let called = |role: &'static str| {
        (0..names.len()).filter(|&at| is_called(&names[at], role)).collect::<Vec<_>>()
    };
    let mut pairs = Vec::new();
    for pair in PAIRS {
        for &source in &called(pair.0) {
            let targets =
                called(pair.1).into_iter().filter(|&target| pair != HEAD_TAIL || source < target);
            pairs.extend(targets.map(|target| (source, target)));
        }
    }
    pairs
}

/// True for the name of a column in which pandas keeps the index of rows.
fn is_index(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_").and_then(|level| level.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if the first of two columns has the name of a target, or the second that of a source.
fn are_swapped(first: &str, second: &str) -> bool {
    let (first, second) = (simple(first), simple(second));
    PAIRS
        .iter()
        .filter(|&&pair| pair != HEAD_TAIL)
        .any(|(source, target)| is_called(&first, target) || is_called(&second, source))
}

fn is_id(text: &str) -> bool {
    crate::input::text::is_integer(text.trim().as_bytes())
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

fn field(row: &[String], at: usize) -> &str {
    row.get(at).map_or("", String::as_str)
}

/// True if a row cannot be the names of its columns, because it has numbers.
fn is_edge(roles: &Roles, row: &[String]) -> bool {
    is_id(field(row, roles.source))
        || is_id(field(row, roles.target))
        || roles.weight.is_some_and(|weight| is_number(field(row, weight)))
}

/// True if a row has numbers in the edge columns; the text row before it then holds names.
fn has_numbers(roles: &Roles, row: &[String], string_ids: bool) -> bool {
    (!string_ids && is_id(field(row, roles.source)) && is_id(field(row, roles.target)))
        || roles.weight.is_some_and(|weight| is_number(field(row, weight)))
}

#[cfg(test)]
mod tests;

//! The parameters of algorithms: their names, their values and the defaults.

use crate::request::{Parameter, Request};
use crate::{Error, Result};

/// A parameter of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct ParameterInfo {
    /// Its name.
    pub name: &'static str,
    /// The values that it accepts.
    pub values: Accepts,
    /// A description of the parameter, for help texts.
    pub meaning: &'static str,
}

/// The values that a parameter accepts, and its default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accepts {
    /// A number.
    Number(f64),
    /// A whole number, at least 0.
    Count(u64),
    /// The same, without a default; the text describes a run without the parameter.
    CountOrNone(&'static str),
    /// A list of numbers.
    Numbers(&'static [f64]),
    /// One of these words; the first is the default.
    Words(&'static [&'static str]),
}

/// The largest whole number of a parameter: all whole numbers up to it are exact.
const LARGEST_COUNT: f64 = 9_007_199_254_740_991.0;

impl ParameterInfo {
    /// The default, as text.
    pub fn default_text(&self) -> String {
        match self.values {
            Accepts::Number(number) => format!("{number:?}"),
            Accepts::Count(count) => count.to_string(),
            Accepts::CountOrNone(without) => format!("none: {without}"),
            Accepts::Numbers(numbers) => Parameter::Numbers(numbers.to_vec()).to_string(),
            Accepts::Words(words) => words.first().copied().unwrap_or_default().to_owned(),
        }
    }

    /// The value in a request as text, such as `1` for 1.0.
    pub(crate) fn text(&self, request: &Request) -> String {
        match (self.given(request), self.values) {
            (Some(value), _) => value.to_string(),
            (None, Accepts::Number(number)) => number.to_string(),
            (None, _) => self.default_text(),
        }
    }

    /// The value that a request gives.
    fn given<'r>(&self, request: &'r Request) -> Option<&'r Parameter> {
        request.parameters.get(self.name)
    }

    /// True if a request gives a value.
    pub(crate) fn is_given(&self, request: &Request) -> bool {
        self.given(request).is_some()
    }

    /// The number in a request, or the default.
    pub(crate) fn number(&self, request: &Request) -> Result<f64> {
        match (self.given(request), self.values) {
            (None, Accepts::Number(default)) => Ok(default),
            (Some(Parameter::Number(number)), _) => Ok(*number),
            (given, _) => Err(self.wrong("a number", given)),
        }
    }

    /// The whole number in a request, or the default.
    pub(crate) fn count(&self, request: &Request) -> Result<u64> {
        match (self.count_or_none(request)?, self.values) {
            (Some(count), _) | (None, Accepts::Count(count)) => Ok(count),
            (None, _) => Err(self.wrong("a whole number", None)),
        }
    }

    /// The whole number in a request, if it gives one.
    pub(crate) fn count_or_none(&self, request: &Request) -> Result<Option<u64>> {
        let number = match self.given(request) {
            None => return Ok(None),
            Some(Parameter::Number(number)) => *number,
            given => return Err(self.wrong("a whole number", given)),
        };
        if number.fract() != 0.0 || !(0.0..=LARGEST_COUNT).contains(&number) {
            // A larger number was rounded when it was read, so the sentence does not repeat it.
            let shown =
                if number > LARGEST_COUNT { String::new() } else { format!(", not {number}") };
            return Err(Error::Usage(format!(
                "{} must be a whole number from 0 to 2^53 - 1{shown}",
                self.name
            )));
        }
        Ok(Some(number as u64))
    }

    /// The list of numbers in a request, or the default.
    pub(crate) fn numbers(&self, request: &Request) -> Result<Vec<f64>> {
        match (self.given(request), self.values) {
            (None, Accepts::Numbers(default)) => Ok(default.to_vec()),
            (Some(Parameter::Numbers(numbers)), _) => Ok(numbers.clone()),
            (given, _) => Err(self.wrong("numbers", given)),
        }
    }

    /// The word in a request, or the default.
    pub(crate) fn word(&self, request: &Request) -> Result<&'static str> {
        let Accepts::Words(words) = self.values else { return Err(self.wrong("a word", None)) };
        let found = match self.given(request) {
            None => words.first(),
            Some(Parameter::Word(word)) => words.iter().find(|one| *one == word),
            Some(_) => None,
        };
        let wrong = || Error::Usage(format!("{} must be {}", self.name, words.join(" or ")));
        found.copied().ok_or_else(wrong)
    }

    fn wrong(&self, kind: &str, given: Option<&Parameter>) -> Error {
        match given {
            Some(other) => Error::Usage(format!("{} must be {kind}, not {other}", self.name)),
            None => Error::Internal(format!("the default of {} is not {kind}", self.name)),
        }
    }
}

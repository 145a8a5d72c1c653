//! External ids: the user's 64-bit integers, or the ranks of the user's strings.
//!
//! Invariant: an external id is represented by 64 bits; only [`IdType`] interprets them.

use serde::{Deserialize, Serialize};

/// The interpretation of the 64 bits of an external id, and the type of ids in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdType {
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    UInt64,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    UInt32,
    /// Strings; the bits are a string's rank in the order of bytes.
    String,
}

/// An external id in the user's notation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExternalId {
    /// An integer.
    Number(i128),
    /// A string.
    Name(String),
}

impl std::fmt::Display for ExternalId {
    /// An integer, the JSON text of another object, or a quoted string.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => match name.strip_prefix(OBJECT) {
                Some(object) if !object.is_empty() => f.write_str(object),
                _ => write!(f, "{name:?}"),
            },
        }
    }
}

impl From<i128> for ExternalId {
    fn from(number: i128) -> Self {
        Self::Number(number)
    }
}

impl IdType {
    /// The name, in Arrow's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Int32 => "int32",
            Self::UInt32 => "uint32",
            Self::String => "string",
        }
    }

    /// True if ids are signed, in two's complement.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int64 | Self::Int32)
    }

    /// A number with the numerical order of ids, from an id's bits.
    pub fn order_key(self, bits: u64) -> u64 {
        bits ^ (u64::from(self.is_signed()) << 63)
    }

    /// The bits of the id with order key `key`.
    pub fn from_order_key(self, key: u64) -> u64 {
        self.order_key(key)
    }

    /// The number that the bits encode: the id, or the rank of a string.
    pub fn number(self, bits: u64) -> i128 {
        if self.is_signed() { i128::from(bits.cast_signed()) } else { i128::from(bits) }
    }

    /// The bits of a number, or `None` if this type cannot hold it.
    pub fn bits(self, number: i128) -> Option<u64> {
        match self {
            Self::Int64 | Self::Int32 => i64::try_from(number).ok().map(i64::cast_unsigned),
            Self::UInt64 | Self::UInt32 | Self::String => u64::try_from(number).ok(),
        }
    }
}

/// The beginning of the name of an object other than a string; a JSON text follows.
const OBJECT: &str = "json:";

/// True if a name is that of a number which is equal to an integer.
pub(crate) fn is_of_integer(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|number| number.parse::<i128>().is_ok())
}

/// The name of an integer in a graph with strings as ids. The string of its digits is another id.
pub fn name_of_number(number: i128) -> String {
    format!("{OBJECT}{number}")
}

/// The ids as options, none of which is missing.
pub fn present(ids: &[u64]) -> Vec<Option<u64>> {
    ids.iter().copied().map(Some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_keys_follow_the_numbers() {
        let ids = [i64::MIN, -1, 0, 1, i64::MAX];
        let keys: Vec<u64> =
            ids.iter().map(|id| IdType::Int64.order_key(id.cast_unsigned())).collect();
        assert!(keys.is_sorted());
        assert!(
            keys.iter()
                .zip(ids)
                .all(|(&k, id)| IdType::Int64.from_order_key(k) == id.cast_unsigned())
        );
        assert_eq!(IdType::UInt64.bits(-1), None);
        assert_eq!(IdType::UInt64.number(u64::MAX), 18_446_744_073_709_551_615);
    }
}

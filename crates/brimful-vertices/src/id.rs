//! Ids of vertices, which keep their type: the number 1 and the string "1" are two vertices.

use std::fmt;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::field::Field;

/// An id of a vertex. Its bytes as a [`Field`] are the key of its record.
///
/// Law: two ids are equal if and only if their bytes are (`conformance::check_ids` tests it).
pub trait Id: Field + Eq + Ord + Hash + fmt::Debug + fmt::Display + Sync {
    /// A number that no other id has; `None` if there is none. Ids with small numbers are found in
    /// arrays, others by their hash.
    #[inline]
    fn number(&self) -> Option<u64> {
        None
    }
}

impl Id for u32 {
    #[inline]
    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }
}
impl Id for u64 {
    #[inline]
    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}
impl Id for i64 {}
impl Id for String {}

/// An id of either kind, for graphs that mix them.
///
/// ```
/// use brimful_vertices::AnyId;
///
/// assert_ne!(AnyId::from(1_u64), AnyId::from("1"));
/// assert_eq!(AnyId::from(1_u64), AnyId::from(1_i64));
/// assert!(AnyId::from(u64::MAX) > AnyId::from(i64::MAX));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AnyId {
    /// An integer below 2^63.
    Integer(i64),
    /// An integer from 2^63 on.
    Large(LargeInteger),
    /// A string.
    Text(String),
}

/// An integer from 2^63 to 2^64 - 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct LargeInteger(u64);

impl TryFrom<u64> for LargeInteger {
    type Error = String;

    fn try_from(id: u64) -> Result<Self, String> {
        match i64::try_from(id) {
            Ok(_) => Err(format!("expected an id from 2^63 on, found {id}")),
            Err(_) => Ok(Self(id)),
        }
    }
}

impl From<LargeInteger> for u64 {
    fn from(id: LargeInteger) -> Self {
        id.0
    }
}

impl Id for AnyId {}

impl From<i64> for AnyId {
    fn from(id: i64) -> Self {
        Self::Integer(id)
    }
}

impl From<u64> for AnyId {
    fn from(id: u64) -> Self {
        LargeInteger::try_from(id).map_or(Self::Integer(id as i64), Self::Large)
    }
}

impl From<String> for AnyId {
    fn from(id: String) -> Self {
        Self::Text(id)
    }
}

impl From<&str> for AnyId {
    fn from(id: &str) -> Self {
        Self::Text(id.to_owned())
    }
}

impl fmt::Display for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(id) => write!(f, "{id}"),
            Self::Large(LargeInteger(id)) => write!(f, "{id}"),
            Self::Text(id) => write!(f, "{id:?}"),
        }
    }
}

const INTEGER: u8 = 0;
const LARGE: u8 = 1;
const TEXT: u8 = 2;

impl Field for AnyId {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(id) => {
                out.push(INTEGER);
                id.write(out);
            }
            Self::Large(LargeInteger(id)) => {
                out.push(LARGE);
                id.write(out);
            }
            Self::Text(id) => {
                out.push(TEXT);
                id.write(out);
            }
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            INTEGER => i64::read(input).map(Self::Integer),
            LARGE => LargeInteger::try_from(u64::read(input)?).ok().map(Self::Large),
            TEXT => String::read(input).map(Self::Text),
            _ => None,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Large(_) => 0,
            Self::Text(id) => id.heap_bytes(),
        }
    }
}

//! Ids of vertices, which keep their type: the number 1 and the text "1" are two vertices.

use std::fmt;
use std::hash::Hash;

use crate::field::Field;

/// What names a vertex. Its bytes as a [`Field`] are the key of its record.
///
/// Law: two ids are equal if and only if their bytes are (`conformance::check_ids` tests it).
pub trait Id: Field + Eq + Ord + Hash + fmt::Debug + fmt::Display + Sync {}

impl Id for u32 {}
impl Id for u64 {}
impl Id for i64 {}
impl Id for String {}

/// An id of either kind, for graphs that mix them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyId {
    /// A number.
    Integer(i64),
    /// A text.
    Text(String),
}

impl Id for AnyId {}

impl fmt::Display for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(id) => write!(f, "{id}"),
            Self::Text(id) => write!(f, "{id:?}"),
        }
    }
}

const INTEGER: u8 = 0;
const TEXT: u8 = 1;

impl Field for AnyId {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(id) => {
                out.push(INTEGER);
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
            TEXT => String::read(input).map(Self::Text),
            _ => None,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Integer(_) => 0,
            Self::Text(id) => id.heap_bytes(),
        }
    }
}

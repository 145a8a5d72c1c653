//! The value column of a result: the conversion from states to the user's values.
//!
//! Inside the engine a value is 64 bits or missing: the bits of a float, of an integer, or the
//! external id of a vertex as an offset (see [`crate::Vertex::external`]).

use std::fmt;
use std::sync::Arc;

use brimful_graph::ids::external::IdType;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use crate::error::Result;

/// The type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit floats.
    Float,
    /// Signed 64-bit integers.
    Integer,
    /// Unsigned 64-bit integers.
    Unsigned,
    /// Vertices.
    Vertex,
}

impl Kind {
    /// The value with these bits; a vertex is the bits of its external id.
    pub fn value(self, raw: u64, id_type: IdType) -> Value {
        match self {
            Self::Float => Value::Float(f64::from_bits(raw)),
            Self::Integer => Value::Integer(raw.cast_signed().into()),
            Self::Unsigned => Value::Integer(raw.into()),
            Self::Vertex => Value::Id(id_type.number(raw)),
        }
    }

    /// A number that sorts like the value with these bits. Floats sort in the total order of IEEE
    /// 754, but all NaN are the least.
    pub fn order_key(self, raw: u64, id_type: IdType) -> u64 {
        match self {
            Self::Float if f64::from_bits(raw).is_nan() => 0,
            Self::Float if raw >> 63 == 1 => !raw,
            Self::Float => raw | 1 << 63,
            Self::Integer => raw ^ 1 << 63,
            Self::Unsigned => raw,
            Self::Vertex => id_type.order_key(raw),
        }
    }
}

/// The value of a vertex without edges, by the offset of its external id.
type OfIsolated = Box<dyn Fn(u64) -> Option<u64> + Send + Sync>;

/// One value per vertex with edges, in internal order, perhaps on disk; and the rule for other
/// vertices.
pub struct Values {
    kind: Kind,
    nullable: bool,
    states: Box<dyn States>,
    isolated: OfIsolated,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("kind", &self.kind).finish_non_exhaustive()
    }
}

trait States: Send + Sync {
    /// Replaces `out` by the values of `count` vertices from `start` on.
    fn read(&self, start: usize, count: usize, out: &mut Vec<Option<u64>>) -> Result<()>;
}

struct Mapped<S, F> {
    states: Arc<ScratchArray<S>>,
    /// See [`crate::Program::state_len`].
    state_len: usize,
    value: F,
}

impl<S: Pod + Send + Sync, F: Fn(&[S]) -> Option<u64> + Send + Sync> States for Mapped<S, F> {
    fn read(&self, start: usize, count: usize, out: &mut Vec<Option<u64>>) -> Result<()> {
        let mut states = vec![S::zeroed(); count * self.state_len];
        self.states.read(start * self.state_len, &mut states)?;
        out.clear();
        out.extend(states.chunks_exact(self.state_len).map(&self.value));
        Ok(())
    }
}

/// Several columns of values may share the states that they are read from.
impl Values {
    fn new<S: Pod + Send + Sync, V: 'static>(
        kind: Kind,
        bits: impl Fn(V) -> u64 + Copy + Send + Sync + 'static,
        states: impl Into<Arc<ScratchArray<S>>>,
        value: impl Fn(S) -> Option<V> + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        let value = move |state: &[S]| value(state[0]).map(bits);
        let states = Box::new(Mapped { states: states.into(), state_len: 1, value });
        let isolated = Box::new(move |id_offset| isolated(id_offset).map(bits));
        Self { kind, nullable: true, states, isolated }
    }

    /// Floats: `value` of each state, and `isolated` of the external id for vertices without edges.
    pub fn floats<S: Pod + Send + Sync>(
        states: impl Into<Arc<ScratchArray<S>>>,
        value: impl Fn(S) -> Option<f64> + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Float, f64::to_bits, states, value, isolated)
    }

    /// Integers; null where the state has none.
    pub fn integers<S: Pod + Send + Sync>(
        states: impl Into<Arc<ScratchArray<S>>>,
        value: impl Fn(S) -> Option<i64> + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Integer, i64::cast_unsigned, states, value, isolated)
    }

    /// Unsigned integers; null where the state has none.
    pub fn unsigned<S: Pod + Send + Sync>(
        states: impl Into<Arc<ScratchArray<S>>>,
        value: impl Fn(S) -> Option<u64> + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Unsigned, std::convert::identity, states, value, isolated)
    }

    /// Vertices, as the offsets of their external ids; null where the state has none.
    pub fn vertices<S: Pod + Send + Sync>(
        states: impl Into<Arc<ScratchArray<S>>>,
        value: impl Fn(S) -> Option<u64> + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Vertex, std::convert::identity, states, value, isolated)
    }

    /// One value of states of `state_len` words: `value` is its bits, and `isolated` the state of a
    /// vertex without edges, by the offset of its external id.
    pub fn of_words(
        kind: Kind,
        (states, state_len): (Arc<ScratchArray<u64>>, usize),
        value: impl Fn(&[u64]) -> u64 + Clone + Send + Sync + 'static,
        isolated: impl Fn(u64) -> Vec<u64> + Send + Sync + 'static,
    ) -> Self {
        let of_isolated = value.clone();
        let value = move |state: &[u64]| Some(value(state));
        let states = Box::new(Mapped { states, state_len, value });
        let isolated = Box::new(move |id_offset| Some(of_isolated(&isolated(id_offset))));
        Self { kind, nullable: false, states, isolated }
    }

    /// The same values, declared to have no null.
    #[must_use]
    pub fn without_nulls(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// The type of the values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// True unless every vertex is known to have a value.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    pub(crate) fn read(
        &self,
        start: usize,
        count: usize,
        out: &mut Vec<Option<u64>>,
    ) -> Result<()> {
        self.states.read(start, count, out)
    }

    pub(crate) fn isolated(&self, id_offset: u64) -> Option<u64> {
        (self.isolated)(id_offset)
    }
}

/// Values of consecutive rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Floats.
    Float(Vec<Option<f64>>),
    /// Integers.
    Integer(Vec<Option<i64>>),
    /// Unsigned integers.
    Unsigned(Vec<Option<u64>>),
    /// Bits of external ids.
    Ids(Vec<Option<u64>>),
    /// Lists of a fixed number of 32-bit floats, one after another.
    Lists(usize, Vec<f32>),
}

impl Column {
    /// The column of raw values of a kind; vertices are the bits of external ids.
    pub fn new(kind: Kind, raw: Vec<Option<u64>>) -> Self {
        match kind {
            Kind::Float => {
                Self::Float(raw.into_iter().map(|raw| raw.map(f64::from_bits)).collect())
            }
            Kind::Integer => {
                Self::Integer(raw.into_iter().map(|raw| raw.map(u64::cast_signed)).collect())
            }
            Kind::Unsigned => Self::Unsigned(raw),
            Kind::Vertex => Self::Ids(raw),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Float(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Unsigned(values) | Self::Ids(values) => values.len(),
            Self::Lists(width, numbers) => numbers.len() / width,
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A value of one row, for display.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A float.
    Float(f64),
    /// An integer.
    Integer(i128),
    /// An external id.
    Id(i128),
}

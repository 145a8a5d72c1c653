//! Conformance tests for authors of stores and serializers.
//!
//! - [`check_records`]: a store of records; [`check_vertices`]: a store of vertices, decorated or
//!   not; [`check_id_types`]: ids that look alike; [`check_serializer`]: a serializer;
//!   [`check_ids`]: a type of ids.
//!
//! Each creates empty stores as needed, and describes the first error in a sentence.
//!
//! ```
//! use brimful_store::Budget;
//! use brimful_vertices::{BytesStore, Serialized, conformance, serializer::Compact};
//!
//! let budget = Budget::new(64 << 20, 0);
//! conformance::check_records(&mut || BytesStore::new(&budget))?;
//! conformance::check_vertices(&mut || Ok(Serialized::new(BytesStore::new(&budget)?, Compact)))?;
//! # Ok::<(), String>(())
//! ```

mod records;
mod serializers;
mod vertices;

pub use records::check_records;
pub use serializers::{check_ids, check_serializer};
pub use vertices::{check_id_types, check_vertices};

use crate::vertex::{Edges, Vertex};

/// The vertices for tests of stores.
pub type SampleVertex = Vertex<u64, f64, f32, f64>;

/// The result of a check: nothing, or a description of the error.
pub type Verdict = Result<(), String>;

/// A case with its name; it gets an empty store.
type Case<T> = (&'static str, fn(&mut T) -> Verdict);

/// Vertices of all shapes: empty, with many edges, signalled or not, with signals. All differ.
pub fn samples() -> Vec<SampleVertex> {
    (0..40)
        .map(|n: u64| {
            let targets = (0..n * 3 % 17)
                .map(|edge| (edge * edge * 77 % 1000 + (n << 30), edge as f32 / 4.0));
            let mut vertex =
                Vertex::new(n * n + 1, n as f64 / 3.0, targets.collect::<Edges<_, _>>());
            vertex.signalled = [None, Some(vertex.state), Some(-1.5)][n as usize % 3];
            (0..n * 5 % 11).for_each(|source| vertex.receive(source << 20, source as f64 - 0.5));
            vertex
        })
        .collect()
}

/// Checks all cases, each with a store of its own.
fn check_cases<T>(cases: &[Case<T>], make: &mut dyn FnMut() -> crate::Result<T>) -> Verdict {
    for (name, case) in cases {
        let mut store = call("making a store", make())?;
        case(&mut store).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

/// Returns the text of `problem` as an error unless `holds`.
fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The value of a call that should succeed, or a sentence about its error.
fn call<T>(problem: &str, result: crate::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{problem} failed: {error}"))
}

/// Pseudo-random numbers with a fixed sequence (Marsaglia's xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

#[cfg(test)]
mod tests;

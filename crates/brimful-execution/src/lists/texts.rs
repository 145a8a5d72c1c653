//! A program for tests of lists.

use brimful_vertices::{Edge, Edges, Loan};

use crate::error::Failure;
use crate::program::{Delivery, VertexOf, VertexProgram};

/// Signals are texts; the combiner keeps the greatest.
pub(super) struct Texts(pub(super) Delivery);

impl VertexProgram for Texts {
    type Id = u64;
    type State = ();
    type Edge = ();
    type Signal = String;

    fn delivery(&self) -> Delivery {
        self.0
    }
    fn combine(&self, waiting: &mut String, signal: String) -> Result<(), Failure> {
        if signal == "poison" {
            return Err("tastes bad".into());
        }
        if signal > *waiting {
            *waiting = signal;
        }
        Ok(())
    }
    fn initial(&self, _: &u64, _: &Edges<u64, ()>) -> Result<(), Failure> {
        Ok(())
    }
    fn signal(&self, _: &VertexOf<Self>, _: Edge<'_, u64, ()>) -> Result<Option<String>, Failure> {
        Ok(None)
    }
    fn collect(&self, _: &mut Loan<'_, VertexOf<Self>>, _: &[String]) -> Result<(), Failure> {
        Ok(())
    }
}

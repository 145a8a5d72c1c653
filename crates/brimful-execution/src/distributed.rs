//! The part of a process in an execution that several processes make together.
//!
//! Each process owns consecutive partitions and runs the loop of supersteps over them. Signals to
//! any partition wait in *relays* while vertices signal: mailboxes that combine and spill like
//! those of vertices. Then the processes exchange the contents of their relays, and vertices
//! collect. After that they exchange figures and aggregates, so that each decides for itself, and
//! equally, how the run continues. The *driver* owns no partition: it follows the run, and
//! receives the states at the end.
//!
//! - `messages`: signals between processes; `results`: states and figures for the driver.
//!
//! Invariant: a vertex receives the signals of processes in their order, and those of a process in
//! the order in which its vertices signal, whatever the memory of the lists. From the second
//! superstep on they signal by ascending ids, so that the order is the same at any number of
//! processes.

mod messages;
mod results;

use brimful_vertices::VertexStore;
use serde::{Deserialize, Serialize};

use crate::Execution;
use crate::error::{Error, Result};
use crate::process_partitions::{failed, malformed};
use crate::program::{VertexOf, VertexProgram};
use crate::stats::SuperstepFigures;

/// The report of a process on a superstep, in addition to its part of the aggregates.
#[derive(Serialize, Deserialize)]
struct Report {
    superstep: u64,
    is_due: bool,
    figures: SuperstepFigures,
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'_, P, S> {
    /// True if a vertex of any process is due; merges the aggregates of all processes.
    pub(crate) fn agree_on(&mut self, is_due: bool) -> Result<bool> {
        Ok(self.agree(is_due, SuperstepFigures::default())?.0)
    }

    /// Merges the reports of all processes on a superstep and the aggregates: true if a vertex of
    /// any process is due, and the figures of all.
    pub(crate) fn agree(
        &mut self,
        is_due: bool,
        figures: SuperstepFigures,
    ) -> Result<(bool, SuperstepFigures)> {
        let Some(connected) = &self.connected else { return Ok((is_due, figures)) };
        let report = Report { superstep: self.supersteps, is_due, figures };
        let owns = !connected.processes.own().is_empty();
        let part = if owns { self.program.contribution().map_err(failed)? } else { Vec::new() };
        let facts = [framed(&report)?, part].concat();
        let all = connected.all_gather(&facts, &self.resources.job)?;
        let mut parts = Vec::with_capacity(all.len());
        let mut merged: Option<Report> = None;
        for one in &all {
            let (theirs, part) = unframed::<Report>((*one.facts).as_ref())?;
            if theirs.superstep != report.superstep {
                return Err(malformed());
            }
            parts.push(part);
            merged = Some(match merged {
                None => theirs,
                Some(before) => Report {
                    is_due: before.is_due || theirs.is_due,
                    figures: before.figures.with(&theirs.figures),
                    ..before
                },
            });
        }
        self.program.merge(&parts).map_err(failed)?;
        let merged = merged.ok_or_else(malformed)?;
        Ok((merged.is_due, merged.figures))
    }
}

/// A value as bytes that begin with their length.
fn framed(value: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(value).map_err(|error| Error::Internal(error.to_string()))?;
    Ok([&(text.len() as u64).to_le_bytes(), text.as_slice()].concat())
}

/// The value that [`framed`] wrote, and the bytes after it.
fn unframed<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<(T, &'b [u8])> {
    let parts = bytes.split_first_chunk().and_then(|(length, rest)| {
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
    });
    let (text, rest) = parts.ok_or_else(malformed)?;
    Ok((serde_json::from_slice(text).map_err(|_| malformed())?, rest))
}

//! The scan of text files with string ids that other processes parse.
//!
//! Files arrive in any order. Invariant: counts, ids and edges are those of [`super::Reader`]
//! reading the same files itself.

use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::ids::names::{InternBuffers, Interner};
use crate::input::formats::TextFile;
use crate::input::formats::parser::{Found, Output, Summary};
use crate::input::kept::{FILE_POSITIONS, check_files};
use crate::input::parsed::{Content, ParsedFiles, content, damaged, end_of};
use crate::input::pump::pump;
use crate::input::scan::{InputScan, Reader, Reading, alone};
use crate::message::Message;

impl Reader<'_> {
    /// Reads the messages of all files.
    pub(crate) fn read_parsed<'i>(
        &self,
        parsed: &mut ParsedFiles<'_>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        let files = alone(parsed.format, &parsed.paths);
        check_files(files.len())?;
        self.begin_text(&files);
        self.check_names()?;
        let bytes = self.names_bytes(0);
        let interner = Interner::new(self.folder, bytes, self.resources)?;
        let take = |out: &mut Output, buffers: &mut InternBuffers| -> Result<()> {
            interner.add_edges(&out.names, buffers)?;
            interner.add_vertices(&out.declared_names, buffers)
        };
        let summary = self.receive(&files, parsed, take)?;
        self.end_names(scan, interner, bytes, summary)
    }

    /// Passes the edges of each message to `take`, with the buffers of a worker; returns the facts
    /// of all files.
    fn receive(
        &self,
        files: &[TextFile],
        parsed: &mut ParsedFiles<'_>,
        take: impl Fn(&mut Output, &mut InternBuffers) -> Result<()> + Sync,
    ) -> Result<Summary> {
        let (job, messages) = (&self.resources.job, &mut *parsed.messages);
        let facts_by_file: Mutex<Vec<Option<Found>>> = Mutex::new(vec![None; files.len()]);
        pump(
            self.resources,
            |next: &mut Option<(usize, Message)>| {
                *next = messages.next(job)?;
                Ok(next.is_some())
            },
            || Ok((Output::default(), InternBuffers::default())),
            |(out, buffers), _, next| {
                let Some((number, message)) = next.take() else { return Ok(()) };
                match content((*message).as_ref(), out)? {
                    Content::Batch { text_bytes } => {
                        let before = number as u64 * FILE_POSITIONS;
                        out.names.positions.iter_mut().for_each(|position| *position += before);
                        take(out, buffers)?;
                        job.advance(text_bytes);
                    }
                    Content::End => {
                        let facts = end_of((*message).as_ref())?.facts;
                        let facts = serde_json::from_slice(&facts).map_err(|_| damaged())?;
                        let mut facts_by_file =
                            facts_by_file.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some(place) = facts_by_file.get_mut(number) {
                            *place = Some(facts);
                        }
                    }
                }
                Ok(())
            },
            |_| Ok(()),
        )?;
        let mut all = Found::default();
        let facts_by_file = facts_by_file.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (file, facts) in files.iter().zip(facts_by_file) {
            let missing = "it was not parsed to its end; please report it";
            all.append(facts.ok_or_else(|| Error::input(&file.path, missing))?);
        }
        let mut summary = all.summary(files)?;
        summary.inputs.iter_mut().for_each(|(_, positions)| *positions = FILE_POSITIONS);
        Ok(summary)
    }
}

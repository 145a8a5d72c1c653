//! The scan of text files that other processes parse.
//!
//! Files arrive in any order. Invariant: counts, ids and edges are those of [`super::Reader`]
//! reading the same files itself.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::edges::Spool;
use crate::error::{Error, Result};
use crate::ids::names::{InternBuffers, Interner};
use crate::input::formats::TextFile;
use crate::input::formats::parser::{Found, Output, Summary};
use crate::input::parsed::{Content, ParsedFiles, content};
use crate::input::pump::pump;
use crate::input::scan::text::summarized;
use crate::input::scan::{InputScan, Reader, Reading, alone, listed_in};
use crate::input::text::Signs;
use crate::message::Message;

/// Positions of each file: more than a file has lines, so that positions are known before the lines
/// of earlier files are.
const FILE_POSITIONS: u64 = 1 << 40;
/// The maximum number of files with positions.
const MAX_FILES: usize = 1 << 23;

impl Reader<'_> {
    /// Reads the messages of all files.
    pub(crate) fn read_parsed<'i>(
        &self,
        parsed: &mut ParsedFiles<'_>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        let files = alone(parsed.format, &parsed.paths);
        if self.positions && files.len() > MAX_FILES {
            return Err(Error::Usage(format!("an import takes at most {MAX_FILES} files")));
        }
        self.begin_text(&files);
        if parsed.names {
            return self.read_parsed_names(&files, parsed, scan);
        }
        let spool = Spool::new(self.folder, &self.resources.job)?;
        let listed = Spool::new(self.folder, &self.resources.job)?;
        let take = |out: &mut Output, buffer: &mut Vec<u8>, undirected: bool| -> Result<()> {
            if undirected {
                scan.take_both_directions();
            }
            self.take_numbers(out, &scan, [&spool, &listed], buffer)
        };
        let (summary, signs) = self.receive(&files, parsed, Vec::new, take)?;
        let declared = self.settle(&scan, summary.numbered(), listed_in(listed))?;
        let seen = summarized(&files, scan, summary, declared, signs)?;
        Ok((Box::new(spool.into_source()), seen))
    }

    fn read_parsed_names<'i>(
        &self,
        files: &[TextFile],
        parsed: &mut ParsedFiles<'_>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        self.check_names()?;
        let bytes = self.names_bytes(0);
        let interner = Interner::new(self.folder, bytes, self.resources)?;
        let take = |out: &mut Output, buffers: &mut InternBuffers, _| -> Result<()> {
            interner.add_edges(&out.names, buffers)?;
            interner.add_vertices(&out.declared_names, buffers)
        };
        let (summary, _) = self.receive(files, parsed, InternBuffers::default, take)?;
        self.end_names(scan, interner, bytes, summary)
    }

    /// Passes the edges of each message to `take`, with the buffers of a worker that `begin` makes;
    /// returns the facts of all files.
    fn receive<B>(
        &self,
        files: &[TextFile],
        parsed: &mut ParsedFiles<'_>,
        begin: impl Fn() -> B + Sync,
        take: impl Fn(&mut Output, &mut B, bool) -> Result<()> + Sync,
    ) -> Result<(Summary, Signs)> {
        let (job, messages) = (&self.resources.job, &mut *parsed.messages);
        let facts_by_file: Mutex<Vec<Option<Found>>> = Mutex::new(vec![None; files.len()]);
        pump(
            self.resources,
            |next: &mut Option<(usize, Message)>| {
                *next = messages.next(job)?;
                Ok(next.is_some())
            },
            || Ok((Output::default(), begin())),
            |(out, buffers), _, next| {
                let Some((number, message)) = next.take() else { return Ok(()) };
                let path = files.get(number).map_or(Path::new("-"), |file| &file.path);
                match content((*message).as_ref(), out, path)? {
                    Content::Batch { undirected, text_bytes } => {
                        let before = number as u64 * FILE_POSITIONS;
                        let positions = [&mut out.edges.positions, &mut out.names.positions];
                        positions.into_iter().flatten().for_each(|position| *position += before);
                        take(out, buffers, undirected)?;
                        job.advance(text_bytes);
                    }
                    Content::End(facts) => {
                        let mut facts_by_file =
                            facts_by_file.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some(place) = facts_by_file.get_mut(number) {
                            *place = Some(*facts);
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
        let signs = all.signs;
        let mut summary = all.summary(files)?;
        summary.inputs.iter_mut().for_each(|(_, positions)| *positions = FILE_POSITIONS);
        Ok((summary, signs))
    }
}

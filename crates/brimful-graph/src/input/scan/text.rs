//! The scan of text: the choice between integers and strings, and text with integer ids.

use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use brimful_store::external::input_len;

use super::{Declared, InputScan, Reader, Reading, ScanSummary, listed_in};
use crate::edges::Spool;
use crate::error::Result;
use crate::ids::external::IdType;
use crate::input::formats::parser::{Output, Summary, TextParser};
use crate::input::formats::reader::{CHUNK_BYTES, TextReader, no_names};
use crate::input::formats::{TextFile, TextFormat};
use crate::input::id_choice::{self, IdChoice};
use crate::input::pump::pump;
use crate::input::text::{Signs, check_signs};
use crate::order::bitmap::IdBitmap;

impl Reader<'_> {
    /// Reads text whose ids are integers or strings, by the user's choice or the text.
    pub(super) fn read_words<'i>(
        &self,
        files: &[TextFile],
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        self.begin_text(files);
        let numbers = files.iter().find(|file| !file.format.may_have_names());
        match (self.ids, numbers, files.first()) {
            (IdChoice::String, Some(file), _) => Err(no_names(&file.path, file.format)),
            (IdChoice::String, None, _) => self.read_named_text(files, None, scan),
            (IdChoice::Auto, None, Some(first)) => {
                let opened = self.open(&first.path)?;
                match id_choice::detect(opened, &first.path, first.format, self.columns)? {
                    (true, opened) => self.read_named_text(files, Some(opened), scan),
                    (false, opened) => self.read_text(files, Some(opened), scan),
                }
            }
            _ => self.read_text(files, None, scan),
        }
    }

    /// Shows progress by the lengths of the files, if they are known.
    pub(super) fn begin_text(&self, files: &[TextFile]) {
        let lengths: Option<u64> = files.iter().map(|file| input_len(&file.path)).sum();
        self.resources.job.begin("read", lengths.unwrap_or(0));
    }

    /// Reads text with integer ids; `first` is the first file if it is already open.
    fn read_text<'i>(
        &self,
        files: &[TextFile],
        first: Option<Box<dyn Read + Send>>,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        // Vertex lists come first, because edges may name only their vertices.
        let (vertices, edges): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| matches!(file.format, TextFormat::Vertices(_)));
        let spool = Spool::new(self.folder, &self.resources.job)?;
        let listed = Spool::new(self.folder, &self.resources.job)?;
        let mut signs = Signs::default();
        let before = match vertices.is_empty() {
            true => None,
            false => {
                let spools = [&spool, &listed];
                Some(self.pump_text(&vertices, None, &scan, spools, &mut signs, None, 0)?)
            }
        };
        let lines = before.as_ref().map_or(0, |summary| summary.lines);
        let all_declared = before.is_some();
        let declare = |listed: Spool, numbered| self.declare(&scan, numbered, listed_in(listed));
        let (summary, declared) = if let Some(before) = before {
            let declared = declare(listed, 0..0)?;
            let members = Some(&scan.bitmap).filter(|bitmap| !bitmap.is_incomplete());
            // Files of edges declare no vertices.
            let none = Spool::new(self.folder, &self.resources.job)?;
            let spools = [&spool, &none];
            let summary =
                self.pump_text(&edges, first, &scan, spools, &mut signs, members, lines)?;
            (summary.after(before), declared)
        } else {
            let spools = [&spool, &listed];
            let summary = self.pump_text(&edges, first, &scan, spools, &mut signs, None, 0)?;
            let declared = declare(listed, summary.numbered())?;
            (summary, declared)
        };
        let seen = summarized(files, scan, summary, declared, signs)?;
        Ok((Box::new(spool.into_source()), ScanSummary { all_declared, ..seen }))
    }

    /// Adds the edges of `out` to the scan and one spool, and its vertices to the other.
    pub(super) fn take_numbers(
        &self,
        out: &mut Output,
        scan: &InputScan,
        [spool, listed]: [&Spool; 2],
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if !out.edges.is_empty() {
            scan.add(&out.edges);
            self.spool(spool, &mut out.edges, buffer)?;
            out.edges.clear();
        }
        if !out.declared.is_empty() {
            listed.append(&out.declared, buffer)?;
            out.declared.clear();
        }
        Ok(())
    }

    /// Reads files on all cores: spools edges among `members` in one spool, vertices in the other.
    fn pump_text(
        &self,
        files: &[TextFile],
        mut first: Option<Box<dyn Read + Send>>,
        scan: &InputScan,
        [spool, listed]: [&Spool; 2],
        signs: &mut Signs,
        members: Option<&IdBitmap>,
        lines: u64,
    ) -> Result<Summary> {
        let resources = self.resources;
        let open = |path: &Path| first.take().map_or_else(|| self.open(path), Ok);
        let reader = TextReader::new(files, self.directed, CHUNK_BYTES, Box::new(open));
        let mut reader = reader.with_columns(self.columns).after_lines(lines);
        let parser =
            TextParser::new(files, self.on_error).noting_positions(self.positions).among(members);
        let all_signs = Mutex::new(signs);
        let take = |out: &mut Output, buffer: &mut Vec<u8>| {
            self.take_numbers(out, scan, [spool, listed], buffer)
        };
        pump(
            resources,
            |chunk| {
                let has_more = reader.next(chunk)?;
                if reader.undirected() {
                    scan.take_both_directions();
                }
                Ok(has_more)
            },
            || Ok((Output::default(), Vec::new())),
            |(out, buffer), _, chunk| parser.parse(chunk, out, &mut |out| take(out, buffer)),
            |(mut out, mut buffer)| {
                all_signs.lock().unwrap_or_else(PoisonError::into_inner).merge(out.signs);
                take(&mut out, &mut buffer)
            },
        )?;
        parser.finish(reader.into_ends())
    }
}

/// The results of the scan of text with integer ids.
pub(super) fn summarized(
    files: &[TextFile],
    scan: InputScan,
    summary: Summary,
    declared: Declared,
    signs: Signs,
) -> Result<ScanSummary> {
    check_signs(signs, files.first().map_or(Path::new("-"), |file| &file.path))?;
    let id_type = if signs.huge { IdType::UInt64 } else { IdType::Int64 };
    Ok(ScanSummary {
        undirected: summary.undirected,
        rejected: summary.rejected,
        rejections: summary.rejections,
        inputs: summary.inputs,
        columns: summary.columns,
        claim: summary.claim,
        ..scan.into_summary(declared, id_type, summary.weighted, summary.lines)
    })
}

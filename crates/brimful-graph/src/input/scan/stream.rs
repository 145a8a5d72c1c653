//! The scan of a stream of edges.

use std::sync::atomic::Ordering;

use super::{Declared, InputScan, Reader, Reading, ScanSummary, listed_in};
use crate::edges::{EdgeBatch, Spool};
use crate::error::Result;
use crate::ids::external::IdType;
use crate::input::formats::parser::VertexClaim;
use crate::input::pump::pump;
use crate::input::stream::EdgeStream;

impl Reader<'_> {
    pub(super) fn read_stream<'i>(
        &self,
        stream: &mut dyn EdgeStream,
        scan: InputScan,
    ) -> Result<Reading<'i>> {
        let resources = self.resources;
        resources.job.begin("read", 0);
        if self.positions {
            stream.note_positions();
        }
        if stream.undirected() && self.directed != Some(true) {
            scan.take_both_directions();
        }
        if stream.has_names() {
            return self.read_named_stream(stream, scan);
        }
        let spool = Spool::new(self.folder, &resources.job)?;
        let listed = Spool::new(self.folder, &resources.job)?;
        pump(
            resources,
            |(edges, vertices)| {
                let more = stream.next(edges)?;
                stream.next_vertices(vertices);
                Ok(more)
            },
            || Ok(Vec::new()),
            |buffer, _, (edges, vertices): &mut (EdgeBatch, EdgeBatch)| {
                scan.add(edges);
                resources.job.advance(edges.len() as u64);
                if !vertices.is_empty() {
                    listed.append(vertices, buffer)?;
                }
                if edges.is_empty() { Ok(()) } else { self.spool(&spool, edges, buffer) }
            },
            |_| Ok(()),
        )?;
        if let Some(more) = stream.listed() {
            let (mut batch, mut buffer) = (EdgeBatch::default(), Vec::new());
            for part in 0..more.parts() {
                more.read_part(part, &mut batch)?;
                listed.append(&batch, &mut buffer)?;
            }
        }
        let declared = self.declare(&scan, stream.declared(), listed_in(listed))?;
        Ok((Box::new(spool.into_source()), self.summary_of_stream(stream, scan, declared)?))
    }

    /// The summary of a stream that has ended.
    pub(super) fn summary_of_stream(
        &self,
        stream: &dyn EdgeStream,
        scan: InputScan,
        declared: Declared,
    ) -> Result<ScanSummary> {
        let edges = scan.edges.load(Ordering::Relaxed);
        let rejections = stream.rejections();
        let rejected = rejections.iter().map(|rejection| rejection.count).sum();
        let claim = self.claim_of(stream, rejected)?;
        let id_type = if stream.has_names() { IdType::String } else { stream.id_type()? };
        let seen = scan.into_summary(declared, id_type, stream.weighted(), edges + rejected);
        let (undirected, inputs, columns) =
            (stream.undirected(), stream.inputs(), stream.columns());
        Ok(ScanSummary { undirected, rejected, rejections, inputs, columns, claim, ..seen })
    }

    /// The number of vertices that a finished stream declares, to be compared when all vertices are
    /// known.
    pub(super) fn claim_of(
        &self,
        stream: &dyn EdgeStream,
        rejected: u64,
    ) -> Result<Option<VertexClaim>> {
        let claimed = stream.check()?.filter(|_| rejected == 0);
        Ok(claimed.map(|vertices| VertexClaim { path: stream.name().into(), line: None, vertices }))
    }
}

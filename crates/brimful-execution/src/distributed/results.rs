//! The states of all vertices and the figures of all processes, for the driver.

use brimful_engine::exchange::{Communicator, Contribution};
use brimful_store::{CacheStats, Job};
use brimful_vertices::VertexStore;
use serde::{Deserialize, Serialize};

use super::{framed, unframed};
use crate::Execution;
use crate::error::{Error, Result};
use crate::process_partitions::{Connected, malformed};
use crate::program::{VertexOf, VertexProgram};
use crate::stats::ExecutionStats;

/// Appends the record of a vertex to a buffer.
type WriteRecord<'f, P> = dyn FnMut(&VertexOf<P>, &mut Vec<u8>) -> Result<()> + 'f;
/// Takes in records, for the program of the driver.
type ReadRecords<'f, P> = dyn FnMut(&mut P, &[u8]) -> Result<()> + 'f;

/// The figures of a process at the end.
#[derive(Serialize, Deserialize)]
struct Totals {
    stats: ExecutionStats,
    /// Hits, misses, evicted and written vertices of each cache, the outermost first.
    caches: Vec<[u64; 4]>,
}

impl Totals {
    fn of(stats: ExecutionStats) -> Self {
        let caches = stats.caches.iter();
        let caches = caches.map(|one| [one.hits, one.misses, one.evicted, one.written]).collect();
        Self { stats, caches }
    }

    fn add_to(&self, all: &mut ExecutionStats) {
        all.add_counts(&self.stats);
        let caches = self.caches.iter().map(|[hits, misses, evicted, written]| CacheStats {
            hits: *hits,
            misses: *misses,
            evicted: *evicted,
            written: *written,
        });
        all.add_caches(&caches.collect::<Vec<_>>());
    }
}

impl Connected {
    /// Sends the driver a part of the records of this process, and whether further parts follow.
    /// Returns the parts of all processes, and true if further parts of any process follow; only
    /// the driver gets parts.
    fn send_records(
        &mut self,
        records: &[u8],
        has_more: bool,
        job: &Job,
    ) -> Result<(Vec<Contribution>, bool)> {
        let excess = records.len().saturating_sub(self.batch_bytes) as u64;
        self.excess.take(excess)?;
        let mut parts: Vec<&[u8]> = vec![&[]; self.processes.communicator.count];
        parts.push(records);
        let all = self.scatter(&[u8::from(has_more)], &parts, job)?;
        self.excess.give(excess);
        let has_more = all.iter().any(|one| (*one.facts).as_ref() == [1]);
        Ok((all, has_more))
    }
}

impl<P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'_, P, S> {
    /// Sends the driver a record of each vertex of this process and its figures, which
    /// [`Execution::stats`] includes there. `write` appends the record of a vertex to a buffer;
    /// `read` receives whole records in the driver, those of each process in their order.
    ///
    /// # Errors
    /// Errors of the exchange, of `write` and of `read`; [`Error::Internal`] in an execution of one
    /// process.
    pub fn gather(
        &mut self,
        write: &mut WriteRecord<'_, P>,
        read: &mut ReadRecords<'_, P>,
    ) -> Result<()> {
        let own = framed(&Totals::of(self.stats()?))?;
        let Some(mut connected) = self.connected.take() else {
            return Err(Error::Internal("an execution of one process has no driver".into()));
        };
        let done = self.gather_by(&mut connected, &own, write, read);
        self.connected = Some(connected);
        done
    }

    fn gather_by(
        &mut self,
        connected: &mut Connected,
        own: &[u8],
        write: &mut WriteRecord<'_, P>,
        read: &mut ReadRecords<'_, P>,
    ) -> Result<()> {
        let job = &self.resources.job;
        let mut totals = ExecutionStats::default();
        for one in connected.all_gather(own, job)? {
            let (theirs, rest) = unframed::<Totals>((*one.facts).as_ref())?;
            theirs.add_to(&mut totals);
            if !rest.is_empty() {
                return Err(malformed());
            }
        }
        let mut records = Vec::new();
        if Communicator::is_driver(&connected.processes.communicator) {
            connected.others = Some(totals);
        } else {
            self.for_each(&mut |vertex| {
                write(vertex, &mut records)?;
                if records.len() >= connected.batch_bytes {
                    connected.send_records(&records, true, job)?;
                    records.clear();
                }
                Ok(())
            })?;
        }
        loop {
            let (parts, has_more) = connected.send_records(&records, false, job)?;
            records.clear();
            parts.iter().try_for_each(|part| read(&mut self.program, (*part.signals).as_ref()))?;
            if !has_more {
                return Ok(());
            }
        }
    }
}

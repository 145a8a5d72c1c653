//! Which segments stay in memory, and how the others stream.
//!
//! The pinned set is fixed for a run and spread evenly over the shards, so that reading and computing
//! overlap throughout a superstep; under a cyclic scan any cache that evicts would only re-read.
//! Invariant: a pinned segment is read and verified once, a streamed one at every use.

use std::sync::{Arc, OnceLock};

use brimful_graph::shards::ShardFile;
use brimful_store::Result;
use brimful_store::read_ahead::{ReadAhead, ReadPool};
use brimful_store::sealed::Buffer;

/// The segments of one shard file.
pub struct Resident {
    shards: Arc<ShardFile>,
    /// `Some` for pinned segments; filled at first use.
    pinned: Vec<Option<OnceLock<Buffer>>>,
}

impl Resident {
    /// Splits `bytes` of pinned memory over files, and within a file evenly.
    pub fn spread(files: Vec<Arc<ShardFile>>, bytes: u64) -> Vec<Self> {
        let length =
            |file: &ShardFile| file.file().entries().iter().map(|e| e.len.next_multiple_of(8)).sum::<u64>();
        let total: u64 = files.iter().map(|file| length(file)).sum();
        let mut credit = 0_u128;
        let mut pin = |len: u64| {
            // Integer arithmetic: everything is pinned exactly when everything fits.
            credit += u128::from(len) * u128::from(bytes.min(total));
            let cost = u128::from(len) * u128::from(total);
            let pinned = cost > 0 && credit >= cost;
            credit -= if pinned { cost } else { 0 };
            pinned
        };
        let mut out = Vec::new();
        for shards in files {
            let entries = shards.file().entries().iter();
            let pinned = entries.map(|e| pin(e.len.next_multiple_of(8)).then(OnceLock::new)).collect();
            out.push(Self { shards, pinned });
        }
        out
    }

    /// The shard file.
    pub fn shards(&self) -> &Arc<ShardFile> {
        &self.shards
    }

    fn in_memory(&self, segment: usize) -> Option<&Buffer> {
        self.pinned[segment].as_ref()?.get()
    }
}

/// One worker's way to segments, in the order it announces them.
pub struct Feed<'r> {
    residents: &'r [Resident],
    reads: ReadAhead<'r>,
    spare: Vec<Buffer>,
}

impl<'r> Feed<'r> {
    /// A feed with nothing announced.
    pub fn new(residents: &'r [Resident], pool: &'r ReadPool) -> Self {
        Self { residents, reads: ReadAhead::new(pool), spare: Vec::new() }
    }

    /// Reads in flight.
    pub fn in_flight(&self) -> usize {
        self.reads.in_flight()
    }

    /// Announces a segment: its read begins now unless it is in memory. True if a read began.
    pub fn announce(&mut self, file: usize, segment: usize) -> bool {
        let resident = &self.residents[file];
        if resident.in_memory(segment).is_some() {
            return false;
        }
        let buffer = if resident.pinned[segment].is_some() { None } else { self.spare.pop() };
        self.reads.push(resident.shards.file(), segment, buffer.unwrap_or_default());
        true
    }

    /// Hands the bytes of an announced segment to `f`. `read` is what `announce` said.
    pub fn with<T>(
        &mut self,
        file: usize,
        segment: usize,
        read: bool,
        f: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let resident = &self.residents[file];
        if !read {
            return Ok(f(resident.in_memory(segment).map_or(&[], Buffer::bytes)));
        }
        let buffer = self.reads.take()?;
        let result = f(buffer.bytes());
        match &resident.pinned[segment] {
            // Each segment belongs to one item of work, so nobody else has filled it meanwhile.
            Some(slot) => drop(slot.set(buffer)),
            None => self.spare.push(buffer),
        }
        Ok(result)
    }
}

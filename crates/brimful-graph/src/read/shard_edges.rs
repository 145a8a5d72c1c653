//! The edges of an index as the source of another one.

use std::sync::{Mutex, PoisonError};

use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use crate::read::segment_reader::SegmentReader;
use crate::read::shards::ShardFile;

/// The edges of a shard file by internal id; each part is a segment.
pub(crate) struct ShardEdges<'g> {
    shards: &'g ShardFile,
    /// Idle readers. Each still holds the unit that probably contains the next part.
    readers: Mutex<Vec<SegmentReader>>,
}

impl<'g> ShardEdges<'g> {
    pub(crate) fn new(shards: &'g ShardFile) -> Self {
        Self { shards, readers: Mutex::default() }
    }
}

impl EdgeSource for ShardEdges<'_> {
    fn parts(&self) -> usize {
        self.shards.segments().len()
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        batch.clear();
        let readers = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = readers().pop().unwrap_or_default();
        let weighted = self.shards.weights_file().is_some();
        reader.for_each_edge(self.shards, part, |source, target, weight| {
            batch.sources.push(source);
            batch.targets.push(target);
            batch.weights.extend(weighted.then_some(weight));
        })?;
        readers().push(reader);
        Ok(())
    }
}

//! Writes segments into the files of an index, unit by unit.
//!
//! Invariant: no segment crosses a unit, and the three files have the same units.

use std::sync::Arc;

use brimful_store::sealed::{Kind, SealedWriter};
use brimful_store::{Folder, Traffic};

use super::{Geometry, Names, PackedSegment, Segment};
use crate::error::Result;

/// Writes the files of an index from segments in order of (interval, window, source).
pub struct ShardWriter {
    shards: SealedWriter,
    weights: Option<SealedWriter>,
    directory: SealedWriter,
    unit: Unit,
    unit_bytes: usize,
    table: Vec<u8>,
    last: Option<(u64, u32)>,
    edges: u64,
}

/// The current unit.
#[derive(Default)]
struct Unit {
    bytes: Vec<u8>,
    weights: Vec<u8>,
    directory: Vec<u8>,
    segments: usize,
}

impl ShardWriter {
    /// Creates the files of the index `name`.
    pub fn create(
        folder: &dyn Folder,
        name: &str,
        weighted: bool,
        geometry: Geometry,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let names = Names::new(name);
        let create = |name: &str, kind| SealedWriter::create(folder, name, kind, 0, traffic);
        Ok(Self {
            shards: create(&names.shards, Kind::Shards)?,
            weights: if weighted { Some(create(&names.weights, Kind::Weights)?) } else { None },
            directory: create(&names.blocks, Kind::Directory)?,
            unit: Unit::default(),
            unit_bytes: geometry.unit_bytes,
            table: Vec::new(),
            last: None,
            edges: 0,
        })
    }

    /// Adds a segment.
    pub fn append(&mut self, segment: &PackedSegment) -> Result<()> {
        let entry = segment.entry;
        let unit = &self.unit;
        let full = unit.bytes.len() + segment.bytes.len() > self.unit_bytes
            || unit.weights.len() + segment.weights.len() > self.unit_bytes;
        // Each window of a shard with several windows has its own units, so that it can be read
        // alone.
        let alone = self.last.is_some_and(|(interval, window)| {
            (interval, window) != (entry.interval, entry.window) && (window > 0 || entry.window > 0)
        });
        if unit.segments > 0 && (full || alone) {
            self.write_unit()?;
        }
        let begins_unit = self.unit.segments == 0;
        self.table.extend_from_slice(&Segment { begins_unit, ..entry }.encode());
        self.unit.bytes.extend_from_slice(&segment.bytes);
        self.unit.weights.extend_from_slice(&segment.weights);
        self.unit.directory.extend_from_slice(&segment.directory);
        self.unit.segments += 1;
        self.last = Some((entry.interval, entry.window));
        self.edges += u64::from(entry.edges);
        Ok(())
    }

    fn write_unit(&mut self) -> Result<()> {
        let Unit { bytes, weights, directory, segments } = &mut self.unit;
        self.shards.append(bytes, &[])?;
        if let Some(file) = &mut self.weights {
            file.append(weights, &[])?;
        }
        self.directory.append(directory, &[])?;
        for part in [bytes, weights, directory] {
            part.clear();
        }
        *segments = 0;
        Ok(())
    }

    /// Makes the files durable. Returns the number of edges and the length in bytes.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        if self.unit.segments > 0 {
            self.write_unit()?;
        }
        // The table of segments is the last block.
        self.shards.append(&self.table, &[])?;
        let mut bytes = self.shards.finish()? + self.directory.finish()?;
        if let Some(weights) = self.weights {
            bytes += weights.finish()?;
        }
        Ok((self.edges, bytes))
    }
}

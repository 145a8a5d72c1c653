//! Reads the segments of an index in sequence, with all checks of their structure.
//!
//! For export, verification and all other work except supersteps. Invariant: a unit is read once
//! while successive requests are for its segments.

use std::sync::Arc;

use brimful_store::sealed::{Buffer, SealedFile};
use brimful_store::{Error as StoreError, Job};

use crate::codec::{Keys, Unpack, directory_rows};
use crate::read::shards::ShardFile;

/// Calls `edge(source, target, weight)` for all edges of `shards`, in order, as the phase `phase`;
/// weights are 1 unless they are `weighted`. Memory: that of a [`SegmentReader`].
///
/// # Errors
/// Errors of reading and of `edge`; [`StoreError::Interrupted`] after a cancellation.
pub fn for_each_edge<E: From<StoreError>>(
    shards: &ShardFile,
    weighted: bool,
    (phase, job): (&str, &Job),
    mut edge: impl FnMut(u64, u64, f64) -> Result<(), E>,
) -> Result<(), E> {
    let (mut reader, mut done) = (SegmentReader::default().with_weights(weighted), Ok(()));
    job.begin(phase, shards.edges());
    for (index, segment) in shards.segments().iter().enumerate() {
        job.check()?;
        reader.for_each_edge(shards, index, |source, target, weight| {
            if done.is_ok() {
                done = edge(source, target, weight);
            }
        })?;
        std::mem::replace(&mut done, Ok(()))?;
        job.advance(u64::from(segment.edges));
    }
    Ok(())
}

/// Reads segments in sequence, outside the engine. Holds a unit and its weights.
#[derive(Debug)]
pub struct SegmentReader {
    unit: Option<usize>,
    bytes: Buffer,
    weights: Buffer,
    /// True if weights are not requested.
    skips_weights: bool,
    buffer: Vec<u8>,
    unpack: Unpack,
}

impl Default for SegmentReader {
    fn default() -> Self {
        let (bytes, weights) = (Buffer::new(), Buffer::new());
        let (buffer, unpack) = (Vec::new(), Unpack::fastest());
        Self { unit: None, bytes, weights, skips_weights: false, buffer, unpack }
    }
}

impl SegmentReader {
    /// Sets whether weights are read. If they are not `wanted`, edges count as unweighted.
    #[must_use]
    pub fn with_weights(self, wanted: bool) -> Self {
        Self { skips_weights: !wanted, ..self }
    }

    /// The file of weights, if weights are requested.
    fn weights_of<'s>(&self, shards: &'s ShardFile) -> Option<&'s Arc<SealedFile>> {
        shards.weights_file().filter(|_| !self.skips_weights)
    }

    fn load(&mut self, shards: &ShardFile, index: usize) -> Result<(), StoreError> {
        let unit = shards.unit(index);
        if self.unit != Some(unit) {
            self.unit = None;
            shards.file().read_block(unit, &mut self.bytes)?;
            if let Some(weights) = self.weights_of(shards) {
                weights.read_block(unit, &mut self.weights)?;
            }
            self.unit = Some(unit);
        }
        Ok(())
    }

    /// Calls `edge(source, target, weight)` for every edge of segment `index`, with weight 1 if
    /// edges have none. Checks the structure: order, ranges and counts. All calls must be for one
    /// index.
    pub fn for_each_edge(
        &mut self,
        shards: &ShardFile,
        index: usize,
        mut edge: impl FnMut(u64, u64, f64),
    ) -> Result<(), StoreError> {
        self.load(shards, index)?;
        let segment = &shards.segments()[index];
        let bits = shards.interval_bits();
        let (target_base, mask) = (segment.interval << bits, (1_u32 << bits) - 1);
        let weights = self.weights_of(shards).map(|_| self.weights.bytes());
        let (mut last, vertices, mut is_beyond) =
            ((segment.first_source, 0), shards.vertices(), false);
        let unit = self.bytes.bytes();
        let decoded = shards.decode(
            index,
            unit,
            weights,
            self.unpack,
            &mut self.buffer,
            |base, keys, weights| {
                keys.iter().zip(weights).all(|(key, &weight)| {
                    let (source, target) = (base + u64::from(key >> bits), key & mask);
                    let ordered = last <= (source, target) && source <= segment.last_source;
                    last = (source, target);
                    let target = target_base + u64::from(target);
                    is_beyond |= target >= vertices;
                    if ordered && !is_beyond {
                        edge(source, target, weight);
                    }
                    ordered && !is_beyond
                })
            },
        );
        if is_beyond {
            return Err(shards
                .file()
                .corrupt(shards.unit(index), "a target is not a vertex with edges"));
        }
        decoded?;
        if last.0 == segment.last_source {
            return Ok(());
        }
        Err(shards
            .file()
            .corrupt(shards.unit(index), "a segment's last source contradicts the table"))
    }

    /// Verifies that the directory of segment `index` holds the starts and checksums of its blocks.
    pub fn verify_directory(
        &mut self,
        shards: &ShardFile,
        directory: &SealedFile,
        index: usize,
    ) -> Result<(), StoreError> {
        self.load(shards, index)?;
        let segment = &shards.segments()[index];
        let mut unit = Buffer::new();
        directory.read_block(shards.unit(index), &mut unit)?;
        let rows = &unit.bytes()[shards.directory_range(index)];
        let plain = shards.plain(index, self.bytes.bytes(), &mut self.buffer)?;
        let bad = |problem: &str| directory.corrupt(shards.unit(index), problem);
        let (bits, mut keys) = (shards.interval_bits(), Vec::new());
        let absolute = |base: u64, batch: Keys<'_>| {
            batch.iter().map(move |key| (base << bits) + u64::from(key)).collect::<Vec<_>>()
        };
        let codec = segment.packing.codec;
        let mut whole =
            codec.decode(plain, segment.edges, bits, self.unpack, &mut |base, batch| {
                keys.extend(absolute(base, batch));
                true
            });
        let mut rest = &keys[..];
        for (block, checksum, bytes) in directory_rows(rows, plain) {
            let before = rest.len();
            whole &= brimful_store::checksum(bytes) as u32 == checksum;
            whole &= codec.decode_block(bytes, block, bits, self.unpack, &mut |base, batch| {
                let same =
                    rest.get(..batch.len()).is_some_and(|keys| keys == absolute(base, batch));
                rest = rest.get(batch.len()..).unwrap_or_default();
                same
            });
            whole &= before - rest.len() == block.edges as usize;
        }
        if !whole || !rest.is_empty() {
            return Err(bad("the directory of a segment contradicts its blocks"));
        }
        Ok(())
    }
}

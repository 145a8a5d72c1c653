//! A segment, as an entry in the table of segments and as input of the writer.
//!
//! Invariant: an entry has one encoding; an unknown codec or weight type is invalid.

use crate::codec::{Packing, WeightType};
use crate::message::{put, take};

/// The table's entry for a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The target interval.
    pub interval: u64,
    /// Source of the first edge.
    pub first_source: u64,
    /// Source of the last edge.
    pub last_source: u64,
    /// The window within the shard, from 0.
    pub window: u32,
    /// Number of edges.
    pub edges: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes of the segment in the unit.
    pub stored: u32,
    /// Bytes of the codec before compression.
    pub plain: u32,
    /// The encoding of edges.
    pub packing: Packing,
    /// The encoding of weights.
    pub weight_type: WeightType,
    /// True if the segment begins a unit.
    pub begins_unit: bool,
}

/// Bytes of an entry.
pub(super) const TABLE_ROW: usize = 48;

impl Segment {
    pub(super) fn encode(&self) -> [u8; TABLE_ROW] {
        let mut out = [0; TABLE_ROW];
        out[0..8].copy_from_slice(&self.interval.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_source.to_le_bytes());
        out[16..24].copy_from_slice(&self.last_source.to_le_bytes());
        out[24..28].copy_from_slice(&self.window.to_le_bytes());
        out[28..32].copy_from_slice(&self.edges.to_le_bytes());
        out[32..36].copy_from_slice(&self.blocks.to_le_bytes());
        out[36..40].copy_from_slice(&self.stored.to_le_bytes());
        out[40..44].copy_from_slice(&self.plain.to_le_bytes());
        out[44..48].copy_from_slice(&[
            self.packing.to_byte(),
            self.weight_type as u8,
            u8::from(self.begins_unit),
            0,
        ]);
        out
    }

    pub(super) fn decode(raw: &[u8; TABLE_ROW]) -> Result<Self, String> {
        let word =
            |at: usize| raw[at..at + 4].iter().rev().fold(0, |sum, &b| sum << 8 | u32::from(b));
        let long =
            |at: usize| raw[at..at + 8].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        let packing = Packing::from_byte(raw[44]).ok_or_else(|| {
            format!("a segment uses codec {}, unknown to this version of brimful", raw[44])
        })?;
        let weight_type = WeightType::from_byte(raw[45]).ok_or_else(|| {
            format!("a segment has weights of type {}, unknown to this version of brimful", raw[45])
        })?;
        Ok(Self {
            interval: long(0),
            first_source: long(8),
            last_source: long(16),
            window: word(24),
            edges: word(28),
            blocks: word(32),
            stored: word(36),
            plain: word(40),
            packing,
            weight_type,
            begins_unit: raw[46] != 0,
        })
    }

    pub(super) fn weight_bytes(&self) -> usize {
        self.edges as usize * self.weight_type.bytes()
    }
}

/// A segment ready to be written.
#[derive(Debug)]
pub struct PackedSegment {
    /// The entry; the writer sets `begins_unit`.
    pub entry: Segment,
    /// Stored bytes.
    pub bytes: Vec<u8>,
    /// Weights, encoded in the entry's weight type.
    pub weights: Vec<u8>,
    /// Block starts, encoded as in the directory.
    pub directory: Vec<u8>,
}

impl PackedSegment {
    /// Appends the segment to a message.
    pub(crate) fn put(&self, message: &mut Vec<u8>) {
        put(message, &self.entry.encode());
        put(message, &self.bytes);
        put(message, &self.weights);
        put(message, &self.directory);
    }

    /// Takes the next segment of a message; `None` if it is damaged.
    pub(crate) fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut parts = [const { Vec::new() }; 4];
        for part in &mut parts {
            take(rest, part)?;
        }
        let [entry, bytes, weights, directory] = parts;
        let entry = Segment::decode(entry.as_slice().try_into().ok()?).ok()?;
        Some(Self { entry, bytes, weights, directory })
    }
}

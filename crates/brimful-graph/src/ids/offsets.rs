//! Offsets of external ids.

use crate::ids::external::IdType;

/// The offsets of a graph's external ids from the smallest one, in the order of the ids.
///
/// Programs compute with offsets, because they are unsigned and, in most graphs, narrow.
#[derive(Debug, Clone, Copy)]
pub struct IdOffsets {
    id_type: IdType,
    /// The order key of the smallest id.
    smallest: u64,
}

impl IdOffsets {
    pub(crate) fn new(id_type: IdType, smallest: u64) -> Self {
        Self { id_type, smallest }
    }

    /// The offset of the id with these bits.
    #[inline]
    pub fn of(self, bits: u64) -> u64 {
        self.id_type.order_key(bits).wrapping_sub(self.smallest)
    }

    /// The bits of the id at an offset.
    #[inline]
    pub fn id(self, offset: u64) -> u64 {
        self.id_type.from_order_key(self.smallest.wrapping_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_back_to_their_ids() {
        let smallest = IdType::Int64.order_key((-5_i64).cast_unsigned());
        let offsets = IdOffsets::new(IdType::Int64, smallest);
        assert_eq!(offsets.of((-5_i64).cast_unsigned()), 0);
        assert_eq!(offsets.of(7), 12);
        assert_eq!(offsets.id(12), 7);
        assert_eq!(offsets.id(offsets.of(i64::MAX.cast_unsigned())), i64::MAX.cast_unsigned());
    }
}

//! Records in large blocks of memory, one after another.
//!
//! A record is rewritten in place if it fits, else it moves. Before the arena allocates a block, it
//! looks for a block that is at least a quarter unused, and compacts that one instead. The arena
//! therefore takes at most about a third more memory than its records.
//!
//! Record: 4 bytes, capacity of the body, the highest bit set if the record is dead; 4 bytes,
//! length of the body; body: length of the key, key, value. (GIRAPH-417's buffers, too, were longer
//! than their content and stored both.)

use std::ops::Range;
use std::sync::Arc;

use brimful_store::{Budget, Reservation};

use crate::error::{Error, Result};
use crate::field::take;
use brimful_store::varint::{read_varint, write_varint};

/// The usual size of a block.
const BLOCK_BYTES: usize = 1 << 20;
/// The smallest size, for stores with little data.
const MIN_BLOCK_BYTES: usize = 4 << 10;
const HEADER: usize = 8;
const DEAD: u32 = 1 << 31;
const PURPOSE: &str = "to hold the records of vertices in memory";

/// A block and an offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    block: u32,
    offset: u32,
}

impl Position {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.block) << 32 | u64::from(self.offset)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { block: (bits >> 32) as u32, offset: bits as u32 }
    }
}

#[derive(Debug)]
struct ArenaBlock {
    bytes: Vec<u8>,
    /// Bytes of all records, including dead ones.
    used: usize,
    /// Bytes of live records, without their spare capacity.
    live: usize,
    _reservation: Reservation,
}

#[derive(Debug, Clone, Copy)]
struct RecordHeader {
    capacity: usize,
    len: usize,
    is_dead: bool,
}

impl ArenaBlock {
    fn word(&self, at: usize) -> u32 {
        self.bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
    }

    fn header(&self, at: usize) -> RecordHeader {
        let capacity = self.word(at);
        RecordHeader {
            capacity: (capacity & !DEAD) as usize,
            len: self.word(at + 4) as usize,
            is_dead: capacity & DEAD != 0,
        }
    }

    fn set_word(&mut self, at: usize, word: usize) {
        self.bytes[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
    }

    fn parts(&self, at: usize) -> (&[u8], &[u8]) {
        parts(&self.bytes[at + HEADER..at + HEADER + self.header(at).len]).unwrap_or_default()
    }

    /// Bytes that compaction of the block would free.
    fn spare(&self) -> usize {
        self.bytes.len() - self.live
    }
}

/// The key and value of a body.
fn parts(mut body: &[u8]) -> Option<(&[u8], &[u8])> {
    let key_len = usize::try_from(read_varint(&mut body)?).ok()?;
    Some((take(&mut body, key_len)?, body))
}

/// The next of adjacent records, all live and without spare capacity; `None` at the end, and for
/// invalid bytes.
pub(crate) fn take_record<'b>(bytes: &mut &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (capacity, len) = header.split_at(4);
    if capacity != len || capacity.last()? & 0x80 != 0 {
        return None;
    }
    let len = u32::from_le_bytes(*len.first_chunk()?) as usize;
    let (body, rest) = rest.split_at_checked(len)?;
    let found = parts(body)?;
    *bytes = rest;
    Some(found)
}

/// Appends a record in the format of [`take_record`].
///
/// # Errors
/// [`Error::Usage`] if it has 2 GiB or more.
pub(crate) fn write_record(key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    write_varint(key.len() as u64, out);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    let len = out.len() - start - HEADER;
    check_len(len, len)?;
    let bytes = (len as u32).to_le_bytes();
    out[start..start + 4].copy_from_slice(&bytes);
    out[start + 4..start + HEADER].copy_from_slice(&bytes);
    Ok(())
}

/// Checks that a record of `len` bytes with `capacity` can be encoded.
fn check_len(len: usize, capacity: usize) -> Result<()> {
    if capacity < DEAD as usize {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "a record of {len} bytes is longer than the limit of {} bytes; split the vertex",
        DEAD - 1
    )))
}

/// Called for each record when its block is compacted: key, old and new position.
pub(crate) type OnMoved<'f> = dyn FnMut(&[u8], Position, Position) + 'f;

/// Records in blocks of memory.
#[derive(Debug)]
pub(crate) struct Arena {
    budget: Arc<Budget>,
    /// `None` for a released block.
    blocks: Vec<Option<ArenaBlock>>,
    /// The block to which records are added.
    open: usize,
    bytes: u64,
    /// The length of a key, while a record is added.
    prefix: Vec<u8>,
}

impl Arena {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            blocks: Vec::new(),
            open: 0,
            bytes: 0,
            prefix: Vec::new(),
        }
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block(&self, index: u32) -> &ArenaBlock {
        match self.blocks.get(index as usize) {
            Some(Some(block)) => block,
            _ => unreachable!("positions are those of records"),
        }
    }

    fn block_mut(&mut self, index: u32) -> &mut ArenaBlock {
        match self.blocks.get_mut(index as usize) {
            Some(Some(block)) => block,
            _ => unreachable!("positions are those of records"),
        }
    }

    /// The key and value of a record.
    pub(crate) fn record(&self, position: Position) -> (&[u8], &[u8]) {
        self.block(position.block).parts(position.offset as usize)
    }

    /// Replaces the value of a record, if it fits in its capacity.
    pub(crate) fn rewrite(&mut self, position: Position, value: &[u8]) -> bool {
        let at = position.offset as usize;
        let block = self.block_mut(position.block);
        let header = block.header(at);
        let start = header.len - block.parts(at).1.len();
        let len = start + value.len();
        if len > header.capacity {
            return false;
        }
        block.live = block.live + len - header.len;
        block.set_word(at + 4, len);
        block.bytes[at + HEADER + start..at + HEADER + len].copy_from_slice(value);
        true
    }

    /// Marks a record as dead.
    pub(crate) fn free(&mut self, position: Position) {
        let (index, at) = (position.block, position.offset as usize);
        let is_open = index as usize == self.open;
        let block = self.block_mut(index);
        let header = block.header(at);
        block.set_word(at, header.capacity | DEAD as usize);
        block.live -= HEADER + header.len;
        if block.live > 0 {
            return;
        }
        block.used = 0;
        if !is_open {
            self.bytes -= block.bytes.len() as u64;
            self.blocks[index as usize] = None;
        }
    }

    /// Adds a record, with `slack` bytes for it to grow. Blocks in `closed` are not changed;
    /// records of others may move, and `moved` is called for them.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has 2 GiB or more, and budget errors; then nothing has changed.
    pub(crate) fn add(
        &mut self,
        (key, value): (&[u8], &[u8]),
        slack: usize,
        closed: &Range<usize>,
        moved: &mut OnMoved<'_>,
    ) -> Result<Position> {
        self.prefix.clear();
        write_varint(key.len() as u64, &mut self.prefix);
        let len = self.prefix.len() + key.len() + value.len();
        let capacity = len + slack;
        check_len(len, capacity)?;
        let index = self.block_with(HEADER + capacity, closed, moved)?;
        self.open = index;
        let prefix = std::mem::take(&mut self.prefix);
        let block = self.block_mut(index as u32);
        let at = block.used;
        block.used += HEADER + capacity;
        block.live += HEADER + len;
        block.set_word(at, capacity);
        block.set_word(at + 4, len);
        let body = &mut block.bytes[at + HEADER..at + HEADER + len];
        let (head, tail) = body.split_at_mut(prefix.len());
        head.copy_from_slice(&prefix);
        let (head, tail) = tail.split_at_mut(key.len());
        head.copy_from_slice(key);
        tail.copy_from_slice(value);
        self.prefix = prefix;
        Ok(Position { block: index as u32, offset: at as u32 })
    }

    /// A block with `needed` free bytes at its end.
    fn block_with(
        &mut self,
        needed: usize,
        closed: &Range<usize>,
        moved: &mut OnMoved<'_>,
    ) -> Result<usize> {
        let is_free = |block: &&ArenaBlock| block.bytes.len() - block.used >= needed;
        if !closed.contains(&self.open) && self.get(self.open).as_ref().is_some_and(is_free) {
            return Ok(self.open);
        }
        if let Some(index) = self.emptiest(needed, 4, closed) {
            self.push_together(index, moved);
            return Ok(index);
        }
        match self.new_block(needed, closed) {
            // At the limit of memory, a smaller gain or a smaller block is enough.
            Err(refused) => match self.emptiest(needed, 64, closed) {
                Some(index) => {
                    self.push_together(index, moved);
                    Ok(index)
                }
                None => self.block_of(needed, closed).map_err(|_| refused),
            },
            made => made,
        }
    }

    fn get(&self, index: usize) -> Option<&ArenaBlock> {
        self.blocks.get(index)?.as_ref()
    }

    /// The block with the most spare bytes, if these are at least `needed` and at least 1/`parts`
    /// of the block.
    fn emptiest(&self, needed: usize, parts: usize, closed: &Range<usize>) -> Option<usize> {
        (0..self.blocks.len())
            .filter(|index| !closed.contains(index))
            .filter_map(|index| Some((self.get(index)?, index)))
            .filter(|(block, _)| block.spare() >= needed.max(block.bytes.len() / parts))
            .max_by_key(|(block, _)| block.spare())
            .map(|(_, index)| index)
    }

    fn new_block(&mut self, needed: usize, closed: &Range<usize>) -> Result<usize> {
        let usual = (self.bytes as usize / 8).clamp(MIN_BLOCK_BYTES, BLOCK_BYTES);
        self.block_of(usual.max(needed), closed)
    }

    fn block_of(&mut self, bytes: usize, closed: &Range<usize>) -> Result<usize> {
        let reservation = self.budget.reserve(bytes as u64, PURPOSE)?;
        let vacant = (0..self.blocks.len())
            .find(|index| !closed.contains(index) && self.blocks[*index].is_none());
        let index = vacant.unwrap_or(self.blocks.len());
        if vacant.is_none() {
            self.blocks.push(None);
        }
        self.blocks[index] =
            Some(ArenaBlock { bytes: vec![0; bytes], used: 0, live: 0, _reservation: reservation });
        self.bytes += bytes as u64;
        Ok(index)
    }

    /// Compacts the records of a block, without spare capacity.
    fn push_together(&mut self, index: usize, moved: &mut OnMoved<'_>) {
        let block = self.block_mut(index as u32);
        let position = |offset: usize| Position { block: index as u32, offset: offset as u32 };
        let (mut from, mut to) = (0, 0);
        while from < block.used {
            let header = block.header(from);
            if !header.is_dead {
                let len = HEADER + header.len;
                block.bytes.copy_within(from..from + len, to);
                block.set_word(to, header.len);
                if from != to {
                    moved(block.parts(to).0, position(from), position(to));
                }
                to += len;
            }
            from += HEADER + header.capacity;
        }
        block.used = to;
        debug_assert_eq!(block.used, block.live, "live bytes are counted right");
    }

    /// Number of blocks, including released ones.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The first live record at or after `from` in its block.
    pub(crate) fn next(&self, block: usize, from: usize) -> Option<(Position, usize)> {
        let mut at = from;
        let found = self.get(block)?;
        while at < found.used {
            let header = found.header(at);
            let end = at + HEADER + header.capacity;
            if !header.is_dead {
                return Some((Position { block: block as u32, offset: at as u32 }, end));
            }
            at = end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Range<usize> = 0..0;

    #[test]
    fn records_move_within_a_block_and_empty_blocks_are_given_back() {
        let budget = Budget::new(64 << 20, 0);
        let mut arena = Arena::new(&budget);
        let mut positions = Vec::new();
        for n in 0..1000_u32 {
            let value = vec![n as u8; 100];
            positions.push(
                arena
                    .add((&n.to_le_bytes(), &value), 0, &NOBODY, &mut |_, _, _| unreachable!())
                    .unwrap(),
            );
        }
        let full = arena.bytes();
        assert_eq!(budget.free(), (64 << 20) - full);
        // Every second record is removed; the others are where `moved` reports them.
        (0..1000).step_by(2).for_each(|n| arena.free(positions[n]));
        for n in 1000..1400_u32 {
            let key = n.to_le_bytes();
            let new = arena.add((&key, &[n as u8; 100]), 0, &NOBODY, &mut |key, from, to| {
                let n = u32::from_le_bytes(key.try_into().unwrap()) as usize;
                assert_eq!(positions[n], from);
                positions[n] = to;
            });
            let new = new.unwrap();
            positions.push(new);
        }
        assert_eq!(arena.bytes(), full, "the holes were used");
        for n in (1..1000).step_by(2).chain(1000..1400) {
            assert_eq!(
                arena.record(positions[n]),
                ((n as u32).to_le_bytes().as_slice(), [n as u8; 100].as_slice())
            );
        }
        (1..1000).step_by(2).chain(1000..1400).for_each(|n| arena.free(positions[n]));
        assert!(arena.bytes() <= BLOCK_BYTES as u64, "all but the open block was given back");
        assert_eq!(budget.free(), (64 << 20) - arena.bytes());
    }

    #[test]
    fn where_memory_ends_the_last_holes_are_used_and_then_the_figure_is_named() {
        let budget = Budget::new(64 << 10, 0);
        let mut arena = Arena::new(&budget);
        let mut positions = Vec::new();
        let refused = loop {
            match arena.add((b"key", &[1; 500]), 0, &NOBODY, &mut |_, _, _| {}) {
                Ok(position) => positions.push(position),
                Err(refused) => break refused,
            }
        };
        let Error::Store(brimful_store::Error::Budget { needed, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(needed > 64 << 10);
        assert!(positions.len() * 500 > 48 << 10, "the budget was used");
        arena.free(positions[3]);
        arena.add((b"key", &[2; 500]), 0, &NOBODY, &mut |_, _, _| {}).unwrap();
        assert!(arena.add((b"key", &[2; 500]), 0, &NOBODY, &mut |_, _, _| {}).is_err());
        assert!(budget.peak() <= 64 << 10);
    }
}

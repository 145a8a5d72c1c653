//! Arrays of mostly ascending numbers, packed as gaps: external ids in internal order, and running
//! sums of degrees.
//!
//! A sealed file with blocks of up to 2^14 numbers. Invariant: numbers ascend within a block; a
//! number that is smaller than the previous one begins a new block.

mod packed;

use std::ops::Range;
use std::sync::Arc;

use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Folder, Traffic};

use crate::codec::gaps::Gaps;
use crate::codec::{Code, Unpack};
use crate::error::{Error, Result};

pub(crate) use packed::PackedBlock;

/// The maximum count of numbers in a block.
pub(crate) const BLOCK_NUMBERS: usize = 1 << 14;
/// Bytes of a block's metadata: position of the first number, first and last number, count, form.
const META_BYTES: usize = 32;

/// The storage form of a block's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Form {
    /// Packed gaps without target bits, relative to the first number.
    Gaps = 0,
    /// Plain numbers of 8 bytes, for a block that spans 2^32 or more.
    Plain = 1,
}

/// The table's entry for a block.
#[derive(Debug, Clone, Copy)]
struct NumberBlock {
    start: u64,
    first: u64,
    last: u64,
    count: u32,
    form: Form,
}

impl NumberBlock {
    fn encode(&self) -> [u8; META_BYTES] {
        let mut out = [0; META_BYTES];
        out[0..8].copy_from_slice(&self.start.to_le_bytes());
        out[8..16].copy_from_slice(&self.first.to_le_bytes());
        out[16..24].copy_from_slice(&self.last.to_le_bytes());
        out[24..28].copy_from_slice(&self.count.to_le_bytes());
        out[28..32].copy_from_slice(&(self.form as u32).to_le_bytes());
        out
    }

    fn decode(raw: &[u8]) -> Option<Self> {
        let long =
            |at: usize| raw[at..at + 8].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
        let count = u32::try_from(long(24) & u64::from(u32::MAX)).ok()?;
        let form = match long(24) >> 32 {
            0 => Form::Gaps,
            1 => Form::Plain,
            _ => return None,
        };
        let block = Self { start: long(0), first: long(8), last: long(16), count, form };
        ((1..=BLOCK_NUMBERS as u32).contains(&count) && block.first <= block.last).then_some(block)
    }
}

/// Writes an array.
#[derive(Debug)]
pub(crate) struct AscendingWriter {
    file: SealedWriter,
    pending: Vec<u64>,
    len: u64,
    buffer: Vec<u8>,
}

impl AscendingWriter {
    /// Creates the file `name`.
    pub(crate) fn create(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = SealedWriter::create(folder, name, kind, META_BYTES, traffic)?;
        Ok(Self { file, pending: Vec::with_capacity(BLOCK_NUMBERS), len: 0, buffer: Vec::new() })
    }

    /// Appends a number.
    pub(crate) fn push(&mut self, number: u64) -> Result<()> {
        let descends = self.pending.last().is_some_and(|last| *last > number);
        if descends || self.pending.len() == BLOCK_NUMBERS {
            self.flush()?;
        }
        self.pending.push(number);
        self.len += 1;
        Ok(())
    }

    /// Numbers written so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn flush(&mut self) -> Result<()> {
        let (Some(&first), Some(&last)) = (self.pending.first(), self.pending.last()) else {
            return Ok(());
        };
        let form = if last - first < 1 << 32 { Form::Gaps } else { Form::Plain };
        let count = self.pending.len() as u32;
        let block = NumberBlock { start: self.len - u64::from(count), first, last, count, form };
        self.buffer.clear();
        match form {
            Form::Gaps => {
                self.pending.iter_mut().for_each(|number| *number -= first);
                Gaps::encode(&self.pending, 0, &mut self.buffer, &mut Vec::new());
            }
            Form::Plain => self.buffer.extend_from_slice(bytemuck::cast_slice(&self.pending)),
        }
        self.pending.clear();
        Ok(self.file.append(&self.buffer, &block.encode())?)
    }

    /// Makes the array durable; returns the file's length in bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.file.finish()?)
    }
}

/// Reads any range of an array, with one block in memory at a time.
#[derive(Debug)]
pub(crate) struct AscendingFile {
    file: SealedFile,
    blocks: Vec<NumberBlock>,
    /// Ranges of blocks through which numbers ascend.
    stretches: Vec<Range<usize>>,
    len: u64,
}

impl AscendingFile {
    /// Opens the file `name`, which must hold `len` numbers.
    pub(crate) fn open(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        len: u64,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = SealedFile::open(folder, name, kind, META_BYTES, traffic)?;
        let mut blocks: Vec<NumberBlock> = Vec::with_capacity(file.entries().len());
        let mut stretches: Vec<Range<usize>> = Vec::new();
        let mut next = 0;
        for index in 0..file.entries().len() {
            let block = NumberBlock::decode(file.meta(index)).filter(|block| block.start == next);
            let block =
                block.ok_or_else(|| file.corrupt(index, "a block contradicts the array"))?;
            next += u64::from(block.count);
            match (blocks.last(), stretches.last_mut()) {
                (Some(before), Some(stretch)) if before.last <= block.first => stretch.end += 1,
                _ => stretches.push(index..index + 1),
            }
            blocks.push(block);
        }
        if next != len {
            let problem = format!("expected {}, found {next}", counted(len, "number"));
            return Err(StoreError::corrupt(file.path(), 0, problem).into());
        }
        Ok(Self { file, blocks, stretches, len })
    }

    /// Fills `out` with the numbers from `start` on.
    ///
    /// # Panics
    /// If the range exceeds the array.
    pub(crate) fn read(&self, start: u64, out: &mut [u64]) -> Result<()> {
        assert!(start + out.len() as u64 <= self.len, "range within the array");
        let mut index = self.block_of(start);
        let (mut buffer, mut numbers) = (Buffer::new(), Vec::new());
        let mut done = 0;
        while done < out.len() {
            self.block(index, &mut buffer, &mut numbers)?;
            let skip = (start + done as u64 - self.blocks[index].start) as usize;
            let from = &numbers[skip..];
            let count = from.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&from[..count]);
            done += count;
            index += 1;
        }
        Ok(())
    }

    /// The position of `number`, or `None`. Reads each block that may hold it.
    pub(crate) fn find(&self, number: u64) -> Result<Option<u64>> {
        let (mut buffer, mut numbers) = (Buffer::new(), Vec::new());
        for index in self.candidates(number) {
            self.block(index, &mut buffer, &mut numbers)?;
            if let Ok(at) = numbers.binary_search(&number) {
                return Ok(Some(self.blocks[index].start + at as u64));
            }
        }
        Ok(None)
    }

    /// The blocks that may hold `number`: in each ascending stretch, the blocks whose first and
    /// last number enclose it.
    pub(crate) fn candidates(&self, number: u64) -> impl Iterator<Item = usize> {
        self.stretches.iter().flat_map(move |stretch| {
            let blocks = &self.blocks[stretch.clone()];
            let begin = blocks.partition_point(|block| block.last < number);
            let length = blocks[begin..].partition_point(|block| block.first <= number);
            let first = stretch.start + begin;
            first..first + length
        })
    }

    /// The block that contains position `place`.
    pub(crate) fn block_of(&self, place: u64) -> usize {
        self.blocks.partition_point(|block| block.start <= place).saturating_sub(1)
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The first and the last number of a block, its smallest and its greatest one.
    pub(crate) fn bounds(&self, index: usize) -> (u64, u64) {
        (self.blocks[index].first, self.blocks[index].last)
    }

    /// The positions of the numbers of a block.
    pub(crate) fn places(&self, index: usize) -> Range<u64> {
        let block = self.blocks[index];
        block.start..block.start + u64::from(block.count)
    }

    /// Reads and verifies a block, and keeps it packed.
    pub(crate) fn packed_block(&self, index: usize) -> Result<PackedBlock> {
        let mut buffer = Buffer::new();
        self.block(index, &mut buffer, &mut Vec::new())?;
        PackedBlock::new(self.blocks[index], buffer.bytes()).ok_or_else(|| self.broken(index))
    }

    /// Replaces `numbers` by the numbers of a block.
    fn block(&self, index: usize, buffer: &mut Buffer, numbers: &mut Vec<u64>) -> Result<()> {
        self.file.read_block(index, buffer)?;
        let block = &self.blocks[index];
        numbers.clear();
        let exact = decode(block, buffer.bytes(), numbers)
            && numbers.len() == block.count as usize
            && numbers.is_sorted()
            && numbers.first() == Some(&block.first)
            && numbers.last() == Some(&block.last);
        if exact { Ok(()) } else { Err(self.broken(index)) }
    }

    fn broken(&self, index: usize) -> Error {
        self.file.corrupt(index, "a block contradicts its entry in the table").into()
    }

    /// The underlying sealed file, for verification.
    pub(crate) fn sealed(&self) -> &SealedFile {
        &self.file
    }
}

/// Appends the numbers in the bytes of a block; false if the bytes are broken.
fn decode(block: &NumberBlock, bytes: &[u8], numbers: &mut Vec<u64>) -> bool {
    match block.form {
        Form::Gaps => Gaps::decode(bytes, block.count, 0, Unpack::fastest(), &mut |base, keys| {
            // A sum that wraps is out of order, which the caller finds.
            let number = |key| block.first.wrapping_add(base + u64::from(key));
            numbers.extend(keys.iter().map(number));
            true
        }),
        Form::Plain => bytemuck::try_cast_slice(bytes).is_ok_and(|plain| {
            numbers.extend_from_slice(plain);
            true
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_store::DiskFolder;

    #[test]
    fn numbers_come_back_wherever_they_descend_or_jump() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, traffic) = (DiskFolder::new(folder.path()), Arc::default());
        let mut numbers: Vec<u64> = (0..40_000).map(|i| i * 3 + i % 2).collect();
        numbers.extend([5, 5, 7, 1 << 40, u64::MAX, 0, (1 << 32) - 1, 1 << 32]);
        numbers.extend((0..20_000).map(|i| i << 50 >> 2));
        let mut writer = AscendingWriter::create(&folder, "a", Kind::Ids, &traffic).unwrap();
        numbers.iter().for_each(|&number| writer.push(number).unwrap());
        assert_eq!(writer.len(), numbers.len() as u64);
        writer.finish().unwrap();
        let file =
            AscendingFile::open(&folder, "a", Kind::Ids, numbers.len() as u64, &traffic).unwrap();
        let mut out = vec![0; numbers.len()];
        file.read(0, &mut out).unwrap();
        assert!(out == numbers);
        for start in [0, 1, 16_383, 16_384, 39_999, 40_000, 40_005, 50_000] {
            let mut out = vec![0; 100];
            file.read(start, &mut out).unwrap();
            assert_eq!(out, numbers[start as usize..start as usize + 100]);
        }
        for at in [0, 1, 20_000, 39_999, 40_003, 40_004, 59_000] {
            let found = file.find(numbers[at]).unwrap().unwrap();
            assert_eq!(numbers[found as usize], numbers[at]);
        }
        for index in 0..file.blocks.len() {
            let (block, places) = (file.packed_block(index).unwrap(), file.places(index));
            let other = numbers[places.end as usize - 1].wrapping_add(1);
            assert_eq!((block.get(places.end), block.find(other)), (None, None));
            assert_eq!(block.unpacked(), numbers[places.start as usize..places.end as usize]);
            for place in places.step_by(7) {
                let number = numbers[place as usize];
                assert_eq!(block.get(place), Some(number));
                assert_eq!(block.find(number).map(|at| numbers[at as usize]), Some(number));
            }
        }
        assert_eq!(file.find(2).unwrap(), None);
        assert!(AscendingFile::open(&folder, "a", Kind::Ids, 3, &traffic).is_err());
    }

    #[test]
    fn an_empty_array_is_an_array() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, traffic) = (DiskFolder::new(folder.path()), Arc::default());
        AscendingWriter::create(&folder, "a", Kind::Ids, &traffic).unwrap().finish().unwrap();
        let file = AscendingFile::open(&folder, "a", Kind::Ids, 0, &traffic).unwrap();
        file.read(0, &mut []).unwrap();
        assert_eq!(file.find(0).unwrap(), None);
    }
}

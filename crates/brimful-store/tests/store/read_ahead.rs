//! Prefetched reads: in order, verified, each error in the place of its block.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::pinned::PinnedBlock;
use brimful_store::read_ahead::{ReadAhead, ReadPool};
use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::{Error, Folder};

use crate::{assert_io, contents, eio, noise, replace, traffic};

const BLOCKS: usize = 50;

fn block(index: usize) -> Vec<u8> {
    noise(index * 37 % 400, index as u64)
}

fn folder() -> FaultFolder {
    let folder = FaultFolder::new();
    let mut writer = SealedWriter::create(&folder, "f", Kind::Shards, 0, &traffic()).unwrap();
    (0..BLOCKS).for_each(|index| writer.append(&block(index), &[]).unwrap());
    writer.finish().unwrap();
    folder
}

fn open(folder: &dyn Folder) -> Arc<SealedFile> {
    Arc::new(SealedFile::open(folder, "f", Kind::Shards, 0, &traffic()).unwrap())
}

#[test]
fn blocks_come_in_the_order_asked_for() {
    for (threads, depth) in [(0, 1), (1, 1), (1, 7), (4, 1), (4, 16)] {
        let folder = folder();
        folder.set_plan(FaultPlan::new().varying(50, 2));
        let file = open(&folder);
        let pool = ReadPool::new(threads).unwrap();
        // Two consumers share the pool; one reads forwards, the other backwards.
        std::thread::scope(|scope| {
            for backwards in [false, true] {
                let (pool, file) = (&pool, &file);
                scope.spawn(move || {
                    let at = |i: usize| if backwards { BLOCKS - 1 - i } else { i };
                    let mut ahead = ReadAhead::new(pool);
                    let (mut asked, mut spare) = (0, Vec::new());
                    for taken in 0..BLOCKS {
                        while asked < BLOCKS && ahead.in_flight() < depth {
                            ahead.push(file, at(asked), spare.pop().unwrap_or_default());
                            asked += 1;
                        }
                        let buffer = ahead.take().unwrap().unwrap();
                        assert_eq!(buffer.bytes(), block(at(taken)));
                        spare.push(buffer);
                    }
                    assert_eq!(ahead.in_flight(), 0);
                });
            }
        });
    }
}

#[test]
fn an_error_comes_at_its_place_and_the_rest_still_comes() {
    let folder = folder();
    let mut bytes = contents(&folder, "f");
    let file = open(&folder);
    let offset = file.entries()[3].offset;
    bytes[offset as usize] ^= 1;
    replace(&folder, "f", &bytes);
    let file = open(&folder);
    let pool = ReadPool::new(2).unwrap();
    let mut ahead = ReadAhead::new(&pool);
    (1..6).for_each(|index| ahead.push(&file, index, Buffer::new()));
    for index in 1..6 {
        match ahead.take() {
            Ok(buffer) => {
                assert_eq!((index == 3, buffer.unwrap().bytes()), (false, &block(index)[..]))
            }
            Err(Error::Corrupt { offset: found, .. }) => assert_eq!((index, found), (3, offset)),
            Err(error) => panic!("{error:?}"),
        }
    }
    // One thread, so that the reads happen in order and the second one asked for fails.
    let pool = ReadPool::new(1).unwrap();
    let mut ahead = ReadAhead::new(&pool);
    folder.set_plan(FaultPlan::new().fail(Operation::Read, 2, Fault::Io));
    [1, 2, 4].iter().for_each(|&index| ahead.push(&file, index, Buffer::new()));
    assert_eq!(ahead.take().unwrap().unwrap().bytes(), block(1));
    assert_io(ahead.take(), "f", "read", eio());
    assert_eq!(ahead.take().unwrap().unwrap().bytes(), block(4));
}

#[test]
fn a_consumer_may_leave_early() {
    let folder = folder();
    let file = open(&folder);
    let pool = ReadPool::new(2).unwrap();
    for _ in 0..20 {
        let mut ahead = ReadAhead::new(&pool);
        (0..BLOCKS).for_each(|index| ahead.push(&file, index, Buffer::new()));
        assert_eq!(ahead.take().unwrap().unwrap().bytes(), block(0));
    }
    // The readers survived that, and the pool ends although no consumer takes these reads.
    let mut ahead = ReadAhead::new(&pool);
    (10..20).for_each(|index| ahead.push(&file, index, Buffer::new()));
    assert_eq!(ahead.take().unwrap().unwrap().bytes(), block(10));
    drop(ahead);
    drop(pool);
    drop(file);
    assert_eq!(folder.open_files(), 0, "nothing holds the file any more");
}

#[test]
fn a_kept_block_is_read_once_however_many_ask() {
    let folder = folder();
    let count = traffic();
    let file = Arc::new(SealedFile::open(&folder, "f", Kind::Shards, 0, &count).unwrap());
    let bytes = |pinned: &PinnedBlock| pinned.get().map(|buffer| buffer.bytes().to_vec());
    for index in [1, 5, 9] {
        let pinned = Arc::new(PinnedBlock::new(&file, index));
        let before = count.bytes_read();
        let pool = ReadPool::new(3).unwrap();
        std::thread::scope(|scope| {
            for ahead in [true, true, false, false] {
                let (pool, pinned) = (&pool, &pinned);
                scope.spawn(move || {
                    if ahead {
                        let mut ahead = ReadAhead::new(pool);
                        ahead.push_pinned(pinned);
                        assert!(ahead.take().unwrap().is_none());
                    } else {
                        pinned.load().unwrap();
                    }
                });
            }
        });
        assert_eq!(bytes(&pinned).unwrap(), block(index));
        assert_eq!(count.bytes_read() - before, block(index).len() as u64);
    }
    // A block that could not be read is read again.
    let pinned = PinnedBlock::new(&file, 2);
    folder.set_plan(FaultPlan::new().fail(Operation::Read, 1, Fault::Io));
    assert_io(pinned.load().map(drop), "f", "read", eio());
    assert_eq!(bytes(&pinned), None);
    assert_eq!(pinned.load().unwrap().bytes(), block(2));
}

#[test]
fn asking_for_a_block_that_is_not_there_harms_only_the_caller() {
    let folder = folder();
    let file = open(&folder);
    let pool = ReadPool::new(1).unwrap();
    let mut ahead = ReadAhead::new(&pool);
    let asked = catch_unwind(AssertUnwindSafe(|| ahead.push(&file, BLOCKS, Buffer::new())));
    assert!(asked.is_err());
    ahead.push(&file, 1, Buffer::new());
    assert_eq!(ahead.take().unwrap().unwrap().bytes(), block(1));
}

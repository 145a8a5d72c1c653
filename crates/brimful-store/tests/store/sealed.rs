//! Sealed files and arrays: they return exactly the data written.

use std::io::ErrorKind;

use brimful_store::array::{ArrayFile, ArrayWriter};
use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter, VERSION};
use brimful_store::{Error, Folder, Job, Result, checksum};

use crate::{assert_io, contents, eio, mix, noise, replace, traffic};

fn write(folder: &dyn Folder, blocks: &[Vec<u8>]) -> Result<u64> {
    let mut writer = SealedWriter::create(folder, "f", Kind::Shards, 3, &traffic())?;
    for (index, block) in blocks.iter().enumerate() {
        writer.append(block, &[index as u8, 7, 9])?;
    }
    writer.finish()
}

fn open(folder: &dyn Folder) -> Result<SealedFile> {
    SealedFile::open(folder, "f", Kind::Shards, 3, &traffic())
}

/// Checks everything that opening and verification read.
fn check(folder: &dyn Folder) -> Result<()> {
    open(folder)?.verify(&Job::new())
}

/// Lengths around the padding, an empty block among them.
fn blocks() -> Vec<Vec<u8>> {
    [5, 0, 8, 13, 1].iter().map(|&len| noise(len, len as u64)).collect()
}

#[test]
fn blocks_and_their_metadata_come_back() {
    for blocks in [blocks(), vec![], vec![vec![]], vec![noise(100_000, 1), vec![], noise(7, 2)]] {
        for plan in [FaultPlan::new(), FaultPlan::new().varying(4000, 1)] {
            let folder = FaultFolder::new();
            folder.set_plan(plan);
            let length = write(&folder, &blocks).unwrap();
            let file = open(&folder).unwrap();
            assert_eq!((file.len().unwrap(), file.is_empty()), (length, blocks.is_empty()));
            assert_eq!(file.entries().len(), blocks.len());
            let mut buffer = Buffer::new();
            for (index, block) in blocks.iter().enumerate().rev() {
                file.read_block(index, &mut buffer).unwrap();
                assert_eq!(buffer.bytes(), block);
                assert_eq!(file.meta(index), [index as u8, 7, 9]);
                assert_eq!(file.entries()[index].offset % 8, 0);
            }
            let job = Job::new();
            file.verify(&job).unwrap();
            assert_eq!(job.progress().done, blocks.iter().map(|b| b.len() as u64).sum::<u64>());
        }
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    check(&folder).unwrap();
    let whole = contents(&folder, "f");
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        replace(&folder, "f", &bytes);
        match check(&folder) {
            Err(Error::Corrupt { path, .. }) => assert!(path.ends_with("f")),
            other => panic!("bit {} of byte {}: {other:?}", bit % 8, bit / 8),
        }
    }
}

#[test]
fn every_truncation_and_extension_is_detected() {
    let folder = FaultFolder::new();
    for blocks in [blocks(), vec![]] {
        folder.remove("f").ok();
        write(&folder, &blocks).unwrap();
        let whole = contents(&folder, "f");
        for len in (0..whole.len()).chain([whole.len() + 1, whole.len() + 27]) {
            let mut bytes = whole.clone();
            bytes.resize(len, 0);
            replace(&folder, "f", &bytes);
            assert!(
                matches!(open(&folder), Err(Error::Corrupt { .. })),
                "{len} of {} bytes",
                whole.len()
            );
        }
    }
}

#[test]
fn a_block_is_not_handed_out_before_its_checksum_holds() {
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    let mut bytes = contents(&folder, "f");
    bytes[64] ^= 1;
    replace(&folder, "f", &bytes);
    let file = open(&folder).unwrap();
    let mut buffer = Buffer::new();
    match file.read_block(0, &mut buffer) {
        Err(Error::Corrupt { offset: 64, path, .. }) => assert!(path.ends_with("f")),
        other => panic!("{other:?}"),
    }
    file.read_block(3, &mut buffer).unwrap();
}

/// Changes a header field, and its checksum with it.
fn with_header(folder: &FaultFolder, at: usize, field: &[u8]) {
    let mut bytes = contents(folder, "f");
    bytes[at..at + field.len()].copy_from_slice(field);
    let sum = checksum(&bytes[..56]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    replace(folder, "f", &bytes);
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    with_header(&folder, 8, &7_u32.to_le_bytes());
    match open(&folder) {
        Err(Error::Version { path, found: 7, supported: VERSION }) => assert!(path.ends_with("f")),
        other => panic!("{other:?}"),
    }
    // With a wrong checksum the header counts as damaged.
    let mut bytes = contents(&folder, "f");
    bytes[60] ^= 1;
    replace(&folder, "f", &bytes);
    assert!(matches!(open(&folder), Err(Error::Corrupt { .. })));
    with_header(&folder, 8, &0_u32.to_le_bytes());
    assert!(matches!(open(&folder), Err(Error::Corrupt { .. })));
}

#[test]
fn another_kind_or_metadata_size_is_refused() {
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    let error = SealedFile::open(&folder, "f", Kind::Ids, 3, &traffic()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset: 12, .. }), "{error}");
    assert!(error.to_string().contains("Ids"), "{error}");
    let error = SealedFile::open(&folder, "f", Kind::Shards, 4, &traffic()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset: 40, .. }), "{error}");
}

/// Rewrites the table and every checksum over it, so that only the structure is wrong.
fn with_table(folder: &FaultFolder, change: impl Fn(&mut [u8])) {
    let mut bytes = contents(folder, "f");
    let table = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    change(&mut bytes[table..]);
    let sum = checksum(&bytes[table..]);
    replace(folder, "f", &bytes);
    with_header(folder, 24, &sum.to_le_bytes());
}

#[test]
fn hostile_lengths_are_refused_before_memory_is_asked_for() {
    let hostile = [u64::MAX, u64::MAX / 27, 1 << 60, 1 << 40, 6, 4, 0];
    for value in hostile {
        for at in [16, 32] {
            let folder = FaultFolder::new();
            write(&folder, &blocks()).unwrap();
            with_header(&folder, at, &value.to_le_bytes());
            assert!(matches!(open(&folder), Err(Error::Corrupt { .. })), "{value} at byte {at}");
        }
        // Offset and length of the second block, which are 72 and 0: `value` always differs from
        // both.
        for at in [27, 35] {
            let folder = FaultFolder::new();
            write(&folder, &blocks()).unwrap();
            let value = if value == 0 { 8 } else { value };
            with_table(&folder, |table| table[at..at + 8].copy_from_slice(&value.to_le_bytes()));
            assert!(
                matches!(open(&folder), Err(Error::Corrupt { .. })),
                "{value} in the table at {at}"
            );
        }
    }
    // Blocks that end before the table, and blocks that end after its start.
    for len in [9_u64, 17] {
        let folder = FaultFolder::new();
        let last = if len == 9 { noise(17, 1) } else { noise(9, 1) };
        write(&folder, &[last]).unwrap();
        with_table(&folder, |table| table[8..16].copy_from_slice(&len.to_le_bytes()));
        assert!(matches!(open(&folder), Err(Error::Corrupt { .. })), "a block of {len} bytes");
    }
    // Without a change the helpers leave a good file.
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    with_table(&folder, |_| ());
    check(&folder).unwrap();
}

#[test]
fn a_writer_that_fails_leaves_nothing_that_opens() {
    let pass = FaultFolder::new();
    write(&pass, &blocks()).unwrap();
    let (writes, length) = (pass.count(Operation::Write), pass.used_bytes());
    assert!(writes > 5 && length > 100);
    for number in 1..=writes {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().fail(Operation::Write, number, Fault::Io));
        assert_io(write(&folder, &blocks()), "f", "write", eio());
        assert!(matches!(open(&folder), Err(Error::Corrupt { .. })), "write {number} failed");
    }
    for capacity in 0..length {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().capacity(capacity));
        assert_io(write(&folder, &blocks()), "f", "write", ErrorKind::StorageFull);
        assert!(matches!(open(&folder), Err(Error::Corrupt { .. })), "{capacity} bytes of room");
    }
    let folder = FaultFolder::new();
    folder.set_plan(FaultPlan::new().capacity(length).fail(Operation::Sync, 1, Fault::Io));
    assert_io(write(&folder, &blocks()), "f", "sync", eio());
}

#[test]
fn a_torn_file_is_whole_or_refused() {
    let blocks: Vec<Vec<u8>> = (0..6).map(|i| noise(700, i)).collect();
    let (mut whole, mut refused) = (0, 0);
    for seed in 0..300 {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().torn(seed).freeze_from_sync(2));
        // As if the name had become durable early.
        replace(&folder, "f", b"");
        folder.sync().unwrap();
        folder.remove("f").unwrap();
        write(&folder, &blocks).unwrap();
        folder.sync().unwrap();
        let after = folder.crash();
        match check(&after) {
            Ok(()) => {
                whole += 1;
                assert_eq!(contents(&after, "f"), contents(&folder, "f"));
            }
            Err(Error::Corrupt { .. }) => refused += 1,
            // The new name may not have survived.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(refused > 100, "{whole} whole, {refused} refused");
}

#[test]
fn verifying_stops_when_cancelled_and_says_what_cannot_be_read() {
    let folder = FaultFolder::new();
    write(&folder, &blocks()).unwrap();
    let file = open(&folder).unwrap();
    let job = Job::new();
    job.cancel();
    assert!(matches!(file.verify(&job), Err(Error::Interrupted)));
    folder.set_plan(FaultPlan::new().fail(Operation::Read, 2, Fault::Io));
    assert_io(file.verify(&Job::new()), "f", "read", eio());
}

#[test]
fn buffers_hold_no_more_than_the_largest_block() {
    let mut buffer = Buffer::new();
    for len in [1, 1000, 1001, 900, 2000, 1024, 2500] {
        buffer.resize(len);
        assert_eq!((buffer.bytes().len(), buffer.bytes_mut().len()), (len, len));
    }
    assert!(buffer.capacity() < 2500 + 8, "{} bytes held", buffer.capacity());
}

#[test]
#[should_panic(expected = "within the format's limit")]
fn a_block_that_no_reader_accepts_is_not_written() {
    let folder = FaultFolder::new();
    let mut writer = SealedWriter::create(&folder, "f", Kind::Shards, 0, &traffic()).unwrap();
    let _ = writer.append(&vec![0; (1 << 30) + 1], &[]);
}

fn array(folder: &dyn Folder, len: u64) -> ArrayFile<u32> {
    let mut writer = ArrayWriter::<u32>::create(folder, "a", Kind::Degrees, &traffic()).unwrap();
    (0..len).for_each(|i| writer.push(mix(i) as u32).unwrap());
    assert_eq!(writer.len(), len);
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes, contents(folder, "a").len() as u64);
    ArrayFile::open(folder, "a", Kind::Degrees, len, &traffic()).unwrap()
}

#[test]
fn any_range_of_an_array_comes_back() {
    // 16,384 records per block.
    for len in [0, 1, 16_383, 16_384, 16_385, 40_000] {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().varying(100_000, len));
        let array = array(&folder, len);
        let expected: Vec<u32> = (0..len).map(|i| mix(i) as u32).collect();
        assert_eq!((array.len(), array.is_empty()), (len, len == 0));
        for (start, end) in
            [(0, len), (len / 2, len), (16_000.min(len), 16_400.min(len)), (len, len)]
        {
            let mut out = vec![0; (end - start) as usize];
            array.read(start, &mut out).unwrap();
            assert_eq!(out, expected[start as usize..end as usize]);
        }
        if len > 0 {
            assert_eq!(array.get(len - 1).unwrap(), expected[len as usize - 1]);
        }
        array.sealed().verify(&Job::new()).unwrap();
    }
}

#[test]
fn an_array_of_another_length_or_record_is_refused() {
    let folder = FaultFolder::new();
    array(&folder, 20_000);
    for len in [0, 1, 19_999, 20_001, 1 << 40, u64::MAX] {
        let found = ArrayFile::<u32>::open(&folder, "a", Kind::Degrees, len, &traffic());
        assert!(matches!(found, Err(Error::Corrupt { .. })), "{len}");
    }
    // The right total of bytes, in blocks of 3,616 and 16,384 records: not the sizes that a reader
    // computes.
    let mut writer = SealedWriter::create(&folder, "b", Kind::Degrees, 0, &traffic()).unwrap();
    writer.append(&noise(14_464, 1), &[]).unwrap();
    writer.append(&noise(65_536, 1), &[]).unwrap();
    writer.finish().unwrap();
    let found = ArrayFile::<u32>::open(&folder, "b", Kind::Degrees, 20_000, &traffic());
    assert!(matches!(found, Err(Error::Corrupt { .. })));
}

//! `StoreFile`: exact transfers, typed errors, counters, refusal after a failed sync.

use std::io::ErrorKind;

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::{Content, Error, Folder, StoreFile};

use crate::{assert_io, contents, eio, noise, traffic};

#[test]
fn short_and_interrupted_transfers_change_nothing() {
    let data = noise(1000, 5);
    let plans = [
        FaultPlan::new().at_most(1),
        FaultPlan::new().varying(97, 3),
        FaultPlan::new().at_most(100).fail(Operation::Read, 3, Fault::Interrupted).fail(
            Operation::Write,
            4,
            Fault::Interrupted,
        ),
    ];
    for plan in plans {
        let (folder, traffic) = (FaultFolder::new(), traffic());
        folder.set_plan(plan);
        let file = StoreFile::create(&folder, "a", &traffic).unwrap();
        file.write_all_at(&data, 10).unwrap();
        let mut read = vec![0; 1000];
        file.read_exact_at(&mut read, 10).unwrap();
        assert_eq!(read, data);
        assert_eq!((traffic.bytes_written(), traffic.bytes_read()), (1000, 1000));
        // One transfer counts once, however many pieces it consists of.
        assert_eq!((traffic.moved().writes().count, traffic.moved().reads().count), (1, 1));
        assert!(folder.count(Operation::Read) > 10 && folder.count(Operation::Write) > 10);
        assert_eq!(file.len().unwrap(), 1010);
    }
}

#[test]
fn traffic_sums_over_files_and_counts_bytes_once() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let a = StoreFile::create(&folder, "a", &traffic).unwrap();
    let b = StoreFile::scratch(&folder, &traffic).unwrap();
    a.write_all_at(&[1; 30], 0).unwrap();
    b.write_all_at(&[1; 12], 0).unwrap();
    a.read_exact_at(&mut [0; 7], 0).unwrap();
    let again = StoreFile::open(&folder, "a", &traffic).unwrap();
    again.read_exact_at(&mut [0; 4], 0).unwrap();
    assert_eq!((traffic.bytes_written(), traffic.bytes_read()), (42, 11));
    let before = traffic.moved();
    assert_eq!((before.writes().count, before.reads().count), (2, 2));
    assert!(before.writes().seconds() > 0.0 && before.reads().nanoseconds > 0);
    again.read_exact_at(&mut [0; 4], 0).unwrap();
    let later = traffic.moved() - before;
    assert_eq!((later.writes().count, later.reads().count), (0, 1));
}

#[test]
fn traffic_is_told_apart_by_what_the_bytes_are() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let mut edges = SealedWriter::create(&folder, "e", Kind::Shards, 0, &traffic).unwrap();
    edges.append(&[1; 800], &[]).unwrap();
    let length = edges.finish().unwrap();
    let before = traffic.moved();
    assert_eq!((before.written(Content::Edges), before.bytes_written()), (length, length));
    let edges = SealedFile::open(&folder, "e", Kind::Shards, 0, &traffic).unwrap();
    edges.read_block(0, &mut Buffer::new()).unwrap();
    edges.count_found(0);
    let states = StoreFile::scratch(&folder, &traffic).unwrap().counted_as(Content::States);
    states.write_all_at(&[1; 12], 0).unwrap();
    states.read_exact_at(&mut [0; 5], 0).unwrap();
    StoreFile::scratch(&folder, &traffic).unwrap().write_all_at(&[1; 3], 0).unwrap();
    let moved = traffic.moved() - before;
    assert_eq!((moved.written(Content::States), moved.read(Content::States)), (12, 5));
    assert_eq!((moved.written(Content::Working), moved.written(Content::Edges)), (3, 0));
    assert_eq!((moved.read(Content::Edges), moved.found(Content::Edges)), (length, 800));
    assert_eq!(
        (moved.bytes_read(), moved.bytes_written(), moved.bytes_found()),
        (length + 5, 15, 800)
    );
}

#[test]
fn reading_beyond_the_end_says_where_the_file_ends() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let file = StoreFile::create(&folder, "a", &traffic).unwrap();
    file.write_all_at(&[1; 10], 0).unwrap();
    match file.read_exact_at(&mut [0; 8], 4) {
        Err(Error::Corrupt { path, offset: 10, problem, .. }) => {
            assert!(path.ends_with("a"));
            assert!(problem.contains("2 bytes"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn opening_and_creating_fail_by_name() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    assert_io(StoreFile::open(&folder, "a", &traffic), "a", "open", ErrorKind::NotFound);
    StoreFile::create(&folder, "a", &traffic).unwrap();
    match StoreFile::create(&folder, "a", &traffic) {
        Err(Error::Exists { path }) => assert!(path.ends_with("a")),
        other => panic!("{other:?}"),
    }
    folder.set_plan(
        FaultPlan::new()
            .fail(Operation::Create, 1, Fault::Full)
            .fail(Operation::Create, 2, Fault::Io)
            .fail(Operation::Open, 1, Fault::Io),
    );
    assert_io(StoreFile::create(&folder, "b", &traffic), "b", "create", ErrorKind::StorageFull);
    let in_folder = StoreFile::scratch(&folder, &traffic);
    assert_io(in_folder, "(memory)", "create a scratch file in", eio());
    assert_io(StoreFile::open(&folder, "a", &traffic), "a", "open", eio());
}

#[test]
fn failed_transfers_name_path_and_operation() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let file = StoreFile::create(&folder, "a", &traffic).unwrap();
    file.write_all_at(&[1; 10], 0).unwrap();
    folder.set_plan(FaultPlan::new().capacity(15).fail(Operation::Read, 1, Fault::Io));
    assert_io(file.read_exact_at(&mut [0; 4], 0), "a", "read", eio());
    assert_io(file.write_all_at(&[2; 10], 10), "a", "write", ErrorKind::StorageFull);
    assert_eq!(contents(&folder, "a").len(), 15, "as much as fitted");
    let message = file.write_all_at(&[2; 10], 15).unwrap_err().to_string();
    assert!(message.contains("disk is full"), "{message}");
    // After a full disk the file is not refused: space may become free.
    folder.set_plan(FaultPlan::new());
    file.write_all_at(&[2; 10], 10).unwrap();
    file.sync().unwrap();
}

#[test]
fn a_failed_sync_refuses_the_file_until_it_is_reopened() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let file = StoreFile::create(&folder, "a", &traffic).unwrap();
    file.write_all_at(&[1; 10], 0).unwrap();
    folder.set_plan(FaultPlan::new().fail(Operation::Sync, 1, Fault::Io));
    assert_io(file.sync(), "a", "sync", eio());
    let refusals = [file.sync(), file.write_all_at(b"x", 0), file.read_exact_at(&mut [0], 0)];
    for refusal in refusals {
        assert!(
            matches!(&refusal, Err(Error::Poisoned { path }) if path.ends_with("a")),
            "{refusal:?}"
        );
    }
    assert_eq!(
        folder.count(Operation::Sync),
        1,
        "a second sync, which would succeed, is not tried"
    );
    assert_eq!(folder.count(Operation::Write), 0);
    let reopened = StoreFile::open(&folder, "a", &traffic).unwrap();
    reopened.read_exact_at(&mut [0; 10], 0).unwrap();
    // The bytes read are not durable: that is why the file was refused.
    folder.sync().unwrap();
    assert!(contents(&folder.crash(), "a").is_empty());
}

#[test]
fn the_remedy_of_a_cut_file_fits_its_use() {
    let (folder, traffic) = (FaultFolder::new(), traffic());
    let named = StoreFile::create(&folder, "a", &traffic).unwrap();
    let scratch = StoreFile::scratch(&folder, &traffic).unwrap();
    for (file, remedy) in
        [(named, "import the graph again"), (scratch, "check the disk and start again")]
    {
        let cut = file.read_exact_at(&mut [0; 9], 0).unwrap_err().to_string();
        assert!(cut.contains("the file ends 9 bytes too early"), "{cut}");
        assert!(cut.ends_with(remedy), "{cut}");
    }
}

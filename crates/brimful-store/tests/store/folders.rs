//! The behavior of every folder, on disk and in memory, and of the fault folder alone.

use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brimful_store::device::{open_files, open_files_limit};
use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::{Device, DiskFolder, Folder};

use crate::{contents, eio, noise, replace};

/// A turn with real files, which are counted for the whole process.
pub(crate) fn turn_with_real_files() -> MutexGuard<'static, ()> {
    static REAL_FILES: Mutex<()> = Mutex::new(());
    REAL_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

fn names(folder: &dyn Folder) -> Vec<String> {
    let mut names = folder.list().unwrap();
    names.sort();
    names
}

fn conforms(folder: &dyn Folder) {
    assert_eq!(names(folder), [""; 0]);
    assert_eq!(kind(folder.open("a")), ErrorKind::NotFound);
    assert_eq!(kind(folder.remove("a")), ErrorKind::NotFound);
    assert_eq!(kind(folder.rename("a", "b")), ErrorKind::NotFound);

    let a = folder.create("a").unwrap();
    assert_eq!(kind(folder.create("a")), ErrorKind::AlreadyExists);
    assert!(a.is_empty().unwrap());
    assert_eq!(a.read_at(&mut [0; 4], 0).unwrap(), 0);
    assert_eq!(a.write_at(b"cde", 2).unwrap(), 3);
    assert_eq!(a.write_at(b"", 9).unwrap(), 0);
    assert_eq!(contents(folder, "a"), b"\0\0cde");
    let mut some = [7; 4];
    assert_eq!(a.read_at(&mut some, 3).unwrap(), 2);
    assert_eq!(&some, b"de\x07\x07");
    assert_eq!(a.read_at(&mut some, 5).unwrap(), 0);
    assert_eq!(a.read_at(&mut some, 1 << 40).unwrap(), 0);
    a.start_reading(0, 0);
    a.start_reading(1, 100);
    a.start_writing(0, 0);
    a.start_writing(0, 5);
    a.sync().unwrap();
    assert_eq!(contents(folder, "a"), b"\0\0cde");
    assert!(folder.open("a").unwrap().write_at(b"x", 0).is_err(), "opened for reading");

    replace(folder, "b", b"old");
    let old = folder.open("b").unwrap();
    folder.rename("a", "b").unwrap();
    folder.sync().unwrap();
    assert_eq!(names(folder), ["b"]);
    assert_eq!(contents(folder, "b"), b"\0\0cde");
    assert_eq!(old.len().unwrap(), 3, "an open file outlives its name");
    a.write_at(b"!", 5).unwrap();
    assert_eq!(contents(folder, "b"), b"\0\0cde!", "an open file follows its new name");

    let (one, two) = (folder.scratch().unwrap(), folder.scratch().unwrap());
    one.write_at(b"1", 0).unwrap();
    assert_eq!((one.len().unwrap(), two.len().unwrap()), (1, 0));
    assert_eq!(names(folder), ["b"], "scratch files have no name");
    folder.remove("b").unwrap();
    assert_eq!(names(folder), [""; 0]);
}

#[test]
fn both_folders_conform() {
    let _turn = turn_with_real_files();
    let disk = tempfile::tempdir().unwrap();
    conforms(&DiskFolder::new(disk.path()));
    assert_eq!(open_files(), 0);
    let memory = FaultFolder::new();
    conforms(&memory);
    assert_eq!((memory.open_files(), memory.used_bytes()), (0, 0));
}

#[test]
fn the_limit_of_open_files_is_refused_and_recovers() {
    let _turn = turn_with_real_files();
    let disk = tempfile::tempdir().unwrap();
    let folder = DiskFolder::new(disk.path());
    let mut open: Vec<Box<dyn Device>> =
        (0..open_files_limit()).map(|_| folder.scratch().unwrap()).collect();
    let refused = folder.create("one more").map(drop).unwrap_err();
    assert!(
        refused.to_string().contains(&format!("more than {} files", open_files_limit())),
        "{refused}"
    );
    assert!(names(&folder).is_empty(), "a refused file is not made");
    assert!(folder.open("missing").is_err());
    open.pop();
    // A failed open must not count as an open file.
    assert_eq!(kind(folder.open("missing")), ErrorKind::NotFound);
    assert_eq!(open_files(), open_files_limit() - 1);
    folder.create("one more").unwrap();
    drop(open);
    assert_eq!(open_files(), 0);
}

#[test]
fn only_what_was_synced_survives() {
    let folder = FaultFolder::new();
    let file = folder.create("a").unwrap();
    file.write_at(&noise(2000, 1), 0).unwrap();
    file.sync().unwrap();
    assert_eq!(names(&folder.crash()), [""; 0], "a synced file, its name not");
    folder.sync().unwrap();
    file.write_at(&noise(2000, 2), 1000).unwrap();
    folder.rename("a", "b").unwrap();
    let after = folder.crash();
    assert_eq!(names(&after), ["a"], "the rename was not synced");
    assert_eq!(contents(&after, "a"), noise(2000, 1));
    folder.sync().unwrap();
    assert_eq!(
        contents(&folder.crash(), "b"),
        noise(2000, 1),
        "syncing the folder does not sync the file"
    );
    folder.remove("b").unwrap();
    drop(file);
    assert_eq!(contents(&folder.crash(), "b"), noise(2000, 1), "the removal was not synced");
    folder.sync().unwrap();
    assert_eq!(names(&folder.crash()), [""; 0]);
}

#[test]
fn durability_freezes_at_the_sync_chosen() {
    for freeze in 1..=3 {
        let folder = FaultFolder::new();
        folder.set_plan(FaultPlan::new().freeze_from_sync(freeze));
        let file = folder.create("a").unwrap();
        folder.sync().unwrap();
        file.write_at(b"one", 0).unwrap();
        file.sync().unwrap();
        file.write_at(b"two", 0).unwrap();
        file.sync().unwrap();
        folder.remove("a").unwrap();
        folder.sync().unwrap();
        assert_eq!(folder.count(Operation::Sync), 4);
        let after = folder.crash();
        let survivor = names(&after).first().map(|name| contents(&after, name));
        let expected: [Option<&[u8]>; 3] = [None, Some(b""), Some(b"one")];
        assert_eq!(survivor.as_deref(), expected[freeze as usize - 1], "frozen at sync {freeze}");
    }
}

#[test]
fn torn_writes_survive_by_whole_sectors() {
    let (old, new) = (noise(4096, 1), noise(4096, 2));
    let (mut kept, mut lost, mut longer, mut renamed) = (0, 0, 0, 0);
    for seed in 0..40 {
        let folder = FaultFolder::new();
        let file = folder.create("a").unwrap();
        file.write_at(&old[..3000], 0).unwrap();
        file.sync().unwrap();
        folder.sync().unwrap();
        folder.set_plan(FaultPlan::new().torn(seed));
        file.write_at(&new, 0).unwrap();
        folder.rename("a", "b").unwrap();
        let after = folder.crash();
        let name = names(&after).remove(0);
        renamed += usize::from(name == "b");
        let bytes = contents(&after, &name);
        assert!((3000..=4096).contains(&bytes.len()));
        longer += usize::from(bytes.len() > 3000);
        for (sector, found) in bytes[..2560].chunks(512).enumerate() {
            let range = sector * 512..(sector + 1) * 512;
            match (found == &new[range.clone()], found == &old[range]) {
                (true, false) => kept += 1,
                (false, true) => lost += 1,
                _ => panic!("sector {sector} is neither the old nor the new one"),
            }
        }
    }
    assert!(kept > 60 && lost > 60, "{kept} kept, {lost} lost of 200");
    assert!(
        (5..40).contains(&longer) && (5..35).contains(&renamed),
        "{longer} longer, {renamed} renamed"
    );
}

#[test]
fn what_a_failed_sync_lost_stays_lost() {
    let folder = FaultFolder::new();
    let file = folder.create("a").unwrap();
    folder.sync().unwrap();
    folder.set_plan(FaultPlan::new().fail(Operation::Sync, 1, Fault::Io));
    file.write_at(&[1; 512], 0).unwrap();
    assert_eq!(kind(file.sync()), eio());
    file.write_at(&[2; 512], 512).unwrap();
    file.sync().unwrap();
    assert_eq!(contents(&folder, "a")[..512], [1; 512], "readers still see it");
    let after = contents(&folder.crash(), "a");
    assert_eq!((&after[..512], &after[512..]), (&[0; 512][..], &[2; 512][..]));
}

#[test]
fn the_operation_chosen_fails_and_no_other() {
    let all = [
        Operation::Read,
        Operation::Write,
        Operation::Sync,
        Operation::Create,
        Operation::Open,
        Operation::Rename,
        Operation::Remove,
        Operation::List,
    ];
    for class in all {
        let folder = FaultFolder::new();
        let file = folder.create("0").unwrap();
        ["1", "2", "3"].iter().for_each(|name| replace(&folder, name, b""));
        folder.set_plan(FaultPlan::new().fail(class, 2, Fault::Full));
        let mut failed = Vec::new();
        let mut note = |class, result: std::io::Result<()>| {
            if let Err(error) = result {
                assert_eq!(error.raw_os_error(), Some(28));
                failed.push(class);
            }
        };
        // The failing removal is that of the second name, so later ones find their files.
        for round in ["1", "2", "3"] {
            note(Operation::Write, file.write_at(b"x", 0).map(drop));
            note(Operation::Read, file.read_at(&mut [0], 0).map(drop));
            note(Operation::Sync, file.sync());
            note(Operation::Open, folder.open("0").map(drop));
            note(Operation::List, folder.list().map(drop));
            note(Operation::Rename, folder.rename("0", "0"));
            note(Operation::Create, folder.scratch().map(drop));
            note(Operation::Remove, folder.remove(round));
        }
        assert_eq!(failed, [class]);
    }
}

#[test]
fn a_full_disk_cuts_the_write_and_refuses_the_next() {
    let folder = FaultFolder::new();
    folder.set_plan(FaultPlan::new().capacity(10));
    let (a, b) = (folder.create("a").unwrap(), folder.scratch().unwrap());
    assert_eq!(a.write_at(&[1; 6], 0).unwrap(), 6);
    assert_eq!(b.write_at(&[2; 6], 0).unwrap(), 4);
    assert_eq!(kind(b.write_at(&[2; 6], 4)), ErrorKind::StorageFull);
    assert_eq!(a.write_at(&[3; 6], 0).unwrap(), 6, "overwriting needs no space");
    drop(b);
    assert_eq!(folder.used_bytes(), 6);
    folder.remove("a").unwrap();
    assert_eq!(folder.used_bytes(), 6, "an open file keeps its space");
    drop(a);
    assert_eq!(folder.used_bytes(), 0);
}

#[test]
fn transfers_are_cut_as_planned() {
    let folder = FaultFolder::new();
    let file = folder.create("a").unwrap();
    folder.set_plan(FaultPlan::new().at_most(3));
    assert_eq!(file.write_at(&[1; 10], 0).unwrap(), 3);
    assert_eq!(file.write_at(&[1; 2], 3).unwrap(), 2);
    assert_eq!(file.read_at(&mut [0; 10], 0).unwrap(), 3);
    folder.set_plan(FaultPlan::new().varying(4, 9));
    let lengths: Vec<usize> = (0..64).map(|_| file.write_at(&[1; 10], 0).unwrap()).collect();
    for length in 1..=4 {
        assert!(lengths.contains(&length), "never {length} of {lengths:?}");
    }
    assert!(lengths.iter().all(|n| (1..=4).contains(n)));
    folder.set_plan(FaultPlan::new().varying(4, 9));
    assert!(lengths.iter().all(|n| file.write_at(&[1; 10], 0).unwrap() == *n), "the seed decides");
}

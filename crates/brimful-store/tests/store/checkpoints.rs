//! Checkpoints, with a power failure at every sync, a failure of every operation, and a kill of the
//! process at each.

use std::path::Path;
use std::sync::Arc;

use brimful_store::checkpoint::{Checkpoints, discard, discard_in, newest};
use brimful_store::fault::{
    Fault, FaultFolder, FaultPlan, MortalFolder, Operation, child, killed_in_child,
};
use brimful_store::scratch::ScratchArray;
use brimful_store::{Budget, DiskFolder, Error, ErrorKind, Folder, Job, Resources, Result};

use crate::{contents, mix, replace, traffic};

const WINDOW: usize = 300;
const LENGTH: usize = 1000;

fn resources(threads: usize) -> Resources {
    Resources::new(Budget::new(1 << 20, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// The numbers of run `run` at step `step`.
fn numbers(run: u64, step: u64) -> Vec<u64> {
    (0..LENGTH as u64).map(|i| mix(run << 40 | step << 20 | i)).collect()
}

/// Bytes of an odd length in each window.
fn letters(step: u64) -> Vec<u8> {
    (0..LENGTH as u64).map(|i| mix(step << 20 | i) as u8).collect()
}

fn open(folder: &dyn Folder) -> Result<Checkpoints> {
    Checkpoints::open_folder(folder.shared(), 2, &traffic())
}

/// Writes the checkpoint of a step and waits for it.
fn write(checkpoints: &mut Checkpoints, run: u64, step: u64, resources: &Resources) -> Result<()> {
    let mut draft = checkpoints.begin()?;
    draft.array(&ScratchArray::of(numbers(run, step).into(), WINDOW), resources)?;
    draft.records(&letters(step), WINDOW, resources)?;
    checkpoints.publish(draft, format!("{run} {step}").into_bytes())?;
    checkpoints.wait()
}

/// Run and step of checkpoint `number`, after checking that it has their content.
fn read(checkpoints: &Checkpoints, number: u64, resources: &Resources) -> Result<(u64, u64)> {
    let mut saved = checkpoints.read(number)?;
    let payload = String::from_utf8(saved.payload().to_vec()).unwrap();
    let (run, step) = payload.split_once(' ').unwrap();
    let (run, step) = (run.parse().unwrap(), step.parse().unwrap());
    let mut array = ScratchArray::<u64>::resident(LENGTH, WINDOW);
    let mut bytes = vec![0; LENGTH];
    saved.array(&mut array, resources)?;
    saved.records(&mut bytes, WINDOW, resources)?;
    let mut found = vec![0; LENGTH];
    array.read(0, &mut found)?;
    assert!(found == numbers(run, step) && bytes == letters(step), "another's arrays");
    Ok((run, step))
}

/// Run and step of the checkpoints found, newest first.
fn found(folder: &dyn Folder, resources: &Resources) -> Vec<(u64, u64)> {
    let checkpoints = open(folder).unwrap();
    checkpoints.existing().map(|number| read(&checkpoints, number, resources).unwrap()).collect()
}

#[test]
fn the_last_ones_are_kept_and_hold_what_was_written() {
    for threads in [1, 3] {
        let (folder, resources) = (FaultFolder::new(), resources(threads));
        let mut checkpoints = open(&folder).unwrap();
        assert_eq!(checkpoints.existing().count(), 0);
        for step in 1..=4 {
            write(&mut checkpoints, 1, step, &resources).unwrap();
        }
        drop(checkpoints);
        assert_eq!(found(&folder, &resources), [(1, 4), (1, 3)]);
        assert_eq!(found(&folder.crash(), &resources)[..2], [(1, 4), (1, 3)]);
        let mut names = folder.list().unwrap();
        names.sort();
        assert_eq!(names, ["arrays-3", "arrays-4", "current", "manifest-3", "manifest-4"]);
        assert_eq!(newest(&folder, &traffic()).unwrap().unwrap(), b"1 4");
        // Resume from the second-newest: the newest no longer belongs to this run.
        let mut checkpoints = open(&folder).unwrap();
        let older = checkpoints.existing().nth(1).unwrap();
        checkpoints.resume_after(older);
        write(&mut checkpoints, 2, 4, &resources).unwrap();
        drop(checkpoints);
        assert_eq!(found(&folder, &resources), [(2, 4), (1, 3)]);
        // Another run replaces them once it has a checkpoint of its own, not before.
        let mut checkpoints = open(&folder).unwrap();
        drop(checkpoints.begin().unwrap());
        assert_eq!(found(&folder, &resources), [(2, 4), (1, 3)]);
        write(&mut checkpoints, 3, 1, &resources).unwrap();
        drop(checkpoints);
        assert_eq!(found(&folder, &resources), [(3, 1)]);
        discard_in(&folder).unwrap();
        assert!(folder.list().unwrap().is_empty());
    }
}

#[test]
fn arrays_on_disk_are_checkpointed_and_filled_as_those_in_memory() {
    let _turn = crate::folders::turn_with_real_files();
    let disk = tempfile::tempdir().unwrap();
    let (folder, resources) = (FaultFolder::new(), resources(2));
    let paged = || {
        ScratchArray::paged(LENGTH, WINDOW, &DiskFolder::new(disk.path()), &resources.job).unwrap()
    };
    let mut array = paged();
    for index in 0..array.window_count() {
        let range = array.window_range(index);
        let fill = |window: &mut [u64]| window.copy_from_slice(&numbers(7, 7)[range]);
        array.windows().overwrite(index, &mut Vec::new(), fill).unwrap();
    }
    let mut checkpoints = open(&folder).unwrap();
    let mut draft = checkpoints.begin().unwrap();
    draft.array(&array, &resources).unwrap();
    checkpoints.publish(draft, Vec::new()).unwrap();
    checkpoints.wait().unwrap();
    let checkpoints = open(&folder).unwrap();
    let (mut again, mut read) = (paged(), vec![0; LENGTH]);
    checkpoints.read(1).unwrap().array(&mut again, &resources).unwrap();
    again.read(0, &mut read).unwrap();
    assert_eq!(read, numbers(7, 7));
    // An array of another type or length is refused, not filled with other data.
    let mut wide = ScratchArray::<[u64; 2]>::resident(LENGTH, WINDOW);
    let error = checkpoints.read(1).unwrap().array(&mut wide, &resources).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let mut long = vec![0_u64; LENGTH + 1];
    let error = checkpoints.read(1).unwrap().records(&mut long, WINDOW, &resources).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn one_that_a_killed_process_left_beyond_those_to_keep_goes_at_the_opening() {
    let (folder, resources) = (FaultFolder::new(), resources(1));
    let mut checkpoints = Checkpoints::open_folder(folder.shared(), 3, &traffic()).unwrap();
    for step in 1..=3 {
        write(&mut checkpoints, 1, step, &resources).unwrap();
    }
    drop(checkpoints);
    // Between a publication and the removal after it there are as many, of a run that keeps two.
    assert_eq!(folder.list().unwrap().len(), 2 * 3 + 1);
    assert_eq!(found(&folder, &resources), [(1, 3), (1, 2)]);
    assert_eq!(folder.list().unwrap().len(), 2 * 2 + 1);
}

#[test]
fn a_crash_at_any_sync_leaves_the_last_complete_ones() {
    let resources = resources(1);
    let run = |plan: FaultPlan| {
        let folder = FaultFolder::new();
        folder.set_plan(plan);
        let mut checkpoints = open(&folder).unwrap();
        let syncs: Vec<u64> = (1..=4)
            .map(|step| {
                write(&mut checkpoints, 1, step, &resources).unwrap();
                folder.count(Operation::Sync)
            })
            .collect();
        (folder, syncs)
    };
    let (_, syncs) = run(FaultPlan::new());
    assert!(syncs[0] >= 5, "arrays, manifest, pointer, folder before and after the rename");
    let plans =
        [FaultPlan::new()].into_iter().chain((0..20).map(|seed| FaultPlan::new().torn(seed)));
    for (number, plan) in plans.enumerate() {
        for freeze in 1..=syncs[3] {
            let (folder, _) = run(plan.clone().freeze_from_sync(freeze));
            let survivor = folder.crash();
            let complete = syncs.iter().filter(|sync| **sync < freeze).count() as u64;
            let steps: Vec<u64> =
                found(&survivor, &resources).into_iter().map(|(_, step)| step).collect();
            let last = steps.first().copied().unwrap_or(0);
            assert!(
                (complete..=complete + 1).contains(&last),
                "plan {number}, sync {freeze}: {steps:?}"
            );
            assert!(last < 2 || steps.contains(&(last - 1)), "the one before is kept: {steps:?}");
            // No unfinished file stays, and the run continues.
            let mut checkpoints = open(&survivor).unwrap();
            assert_eq!(survivor.list().unwrap().len(), 2 * steps.len() + usize::from(last > 0));
            write(&mut checkpoints, 2, 9, &resources).unwrap();
            // Removals need not be durable: the checkpoints that come back are older.
            assert_eq!(found(&survivor.crash(), &resources)[0], (2, 9));
        }
    }
}

#[test]
fn a_failing_operation_comes_back_and_the_one_before_stays() {
    let resources = resources(1);
    let prepared = || {
        let folder = FaultFolder::new();
        let mut checkpoints = open(&folder).unwrap();
        write(&mut checkpoints, 1, 1, &resources).unwrap();
        write(&mut checkpoints, 1, 2, &resources).unwrap();
        folder.set_plan(FaultPlan::new());
        (folder, checkpoints)
    };
    let (counted, mut checkpoints) = prepared();
    write(&mut checkpoints, 1, 3, &resources).unwrap();
    for class in
        [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename, Operation::Remove]
    {
        assert!(counted.count(class) > 0);
        for number in 1..=counted.count(class) {
            let (folder, mut checkpoints) = prepared();
            folder.set_plan(FaultPlan::new().fail(class, number, Fault::Full));
            let error = write(&mut checkpoints, 1, 3, &resources).unwrap_err();
            let named = matches!(&error, Error::Io { path, .. } if path.starts_with("(memory)"));
            assert!(named, "{class:?} {number}: {error}");
            drop(checkpoints);
            folder.set_plan(FaultPlan::new());
            let steps = found(&folder.crash(), &resources);
            assert!(
                steps.contains(&(1, 2)) || steps.contains(&(1, 3)),
                "{class:?} {number}: {steps:?}"
            );
        }
    }
}

#[test]
fn damage_is_found_and_the_one_before_can_be_read() {
    let (folder, resources) = (FaultFolder::new(), resources(1));
    let mut checkpoints = open(&folder).unwrap();
    write(&mut checkpoints, 1, 1, &resources).unwrap();
    write(&mut checkpoints, 1, 2, &resources).unwrap();
    drop(checkpoints);
    for name in ["arrays-2", "manifest-2"] {
        let whole = contents(&folder, name);
        for byte in (0..whole.len()).step_by(97) {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x20;
            replace(&folder, name, &bytes);
            let checkpoints = open(&folder).unwrap();
            let error = read(&checkpoints, 2, &resources);
            match error {
                Err(Error::Corrupt { path, remedy, .. }) => {
                    assert!(path.ends_with(name) && remedy.contains("checkpoints"), "{remedy}");
                }
                Err(Error::Version { .. }) => {}
                // Padding between blocks belongs to no block.
                Ok(_) if name == "arrays-2" => assert_eq!(whole[byte], 0),
                other => panic!("byte {byte} of {name}: {other:?}"),
            }
            assert_eq!(read(&checkpoints, 1, &resources).unwrap(), (1, 1));
        }
        replace(&folder, name, &whole);
    }
    // Swap older and newer files.
    for name in ["arrays", "manifest"] {
        let [older, newer] = [1, 2].map(|number| contents(&folder, &format!("{name}-{number}")));
        replace(&folder, &format!("{name}-1"), &newer);
        replace(&folder, &format!("{name}-2"), &older);
    }
    let error = read(&open(&folder).unwrap(), 2, &resources).unwrap_err();
    assert!(error.to_string().contains("is not the one that `current` names"), "{error}");
}

#[test]
fn what_is_whole_is_found_without_its_pointer() {
    let resources = resources(1);
    let lose = |folder: &FaultFolder| folder.remove("current").unwrap();
    let damage = |folder: &FaultFolder| replace(folder, "current", b"something else");
    for harm in [&lose as &dyn Fn(&FaultFolder), &damage] {
        let folder = FaultFolder::new();
        let mut checkpoints = open(&folder).unwrap();
        write(&mut checkpoints, 1, 1, &resources).unwrap();
        write(&mut checkpoints, 1, 2, &resources).unwrap();
        drop(checkpoints);
        // Unfinished when the process ended.
        replace(&folder, "arrays-3", &contents(&folder, "arrays-2")[..999]);
        replace(&folder, "manifest-3", &contents(&folder, "manifest-2"));
        harm(&folder);
        // A file that cannot be read now does not count as unfinished.
        let failures = (1..100).map_while(|number| {
            folder.set_plan(FaultPlan::new().fail(Operation::Read, number, Fault::Io));
            open(&folder).err().map(|error| assert_eq!(error.kind(), ErrorKind::Io, "{error}"))
        });
        assert!((6..99).contains(&failures.count()));
        folder.set_plan(FaultPlan::new());
        harm(&folder);
        assert_eq!(found(&folder, &resources), [(1, 2), (1, 1)]);
        assert_eq!(
            newest(&folder, &traffic()).unwrap().unwrap(),
            b"1 2",
            "the pointer is made again"
        );
        assert_eq!(folder.list().unwrap().len(), 5);
        // If its manifest is missing, the newest checkpoint is still reported.
        folder.remove("manifest-2").unwrap();
        let checkpoints = open(&folder).unwrap();
        assert_eq!(checkpoints.existing().collect::<Vec<_>>(), [2, 1]);
        assert_eq!(checkpoints.read(2).unwrap_err().kind(), ErrorKind::Corrupt);
        drop(checkpoints);
        for name in ["manifest-1", "arrays-1", "arrays-2"] {
            folder.remove(name).unwrap();
        }
        harm(&folder);
        match open(&folder) {
            Ok(checkpoints) => {
                assert_eq!(checkpoints.existing().count(), 0, "there is nothing at all")
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
    }
}

#[test]
fn a_process_that_only_reads_changes_no_folder() {
    let (folder, resources) = (tempfile::tempdir().unwrap(), resources(1));
    let path = folder.path().join("checkpoints");
    let mut checkpoints = Checkpoints::open(&path, 2, &traffic()).unwrap();
    write(&mut checkpoints, 1, 1, &resources).unwrap();
    drop(checkpoints);
    std::fs::remove_file(path.join("current")).unwrap();
    let reading = Checkpoints::open_to_read(&path, &traffic()).unwrap();
    assert_eq!(reading.existing().collect::<Vec<_>>(), [1]);
    assert_eq!(read(&reading, 1, &resources).unwrap(), (1, 1));
    assert!(!path.join("current").exists());
    drop(Checkpoints::open(&path, 2, &traffic()).unwrap());
    assert!(path.join("current").exists());
}

const LAST_STEP: u64 = 4;

/// Writes the checkpoints of some steps and discards them; the operation `last` ends the process.
/// Returns the number of operations until the last checkpoint was written, and the total.
fn live(path: &Path, last: u64) -> (u64, u64) {
    let mortal = MortalFolder::new(&DiskFolder::new(path), last);
    let resources = resources(1);
    let mut checkpoints = open(&mortal).unwrap();
    for step in 1..=LAST_STEP {
        write(&mut checkpoints, 1, step, &resources).unwrap();
    }
    drop(checkpoints);
    let of_writing = mortal.spent();
    discard_in(&mortal).unwrap();
    (of_writing, mortal.spent())
}

/// Runs in its own process.
#[test]
#[ignore = "the child of another test"]
fn child_that_makes_checkpoints() {
    let (_, folder, last) = child().unwrap();
    live(&folder, last);
}

#[test]
fn a_kill_at_any_operation_leaves_the_last_complete_ones() {
    let _turn = crate::folders::turn_with_real_files();
    let resources = resources(1);
    let undisturbed = tempfile::tempdir().unwrap();
    let (of_writing, operations) = live(undisturbed.path(), 0);
    assert!(operations > 40, "{operations} operations");
    let mut newest_seen = Vec::new();
    for at in 1..=operations {
        let folder = tempfile::tempdir().unwrap();
        let test = "checkpoints::child_that_makes_checkpoints";
        assert!(killed_in_child(test, "", folder.path(), at).unwrap(), "not killed at {at}");
        let disk = DiskFolder::new(folder.path());
        let steps: Vec<u64> = found(&disk, &resources).into_iter().map(|(_, step)| step).collect();
        let last = steps.first().copied().unwrap_or(0);
        let is_of = |kept: usize| (1..=last).rev().take(kept).eq(steps.iter().copied());
        // One more until a new one is complete. During the discard any subset may be left.
        assert!(is_of(2) || is_of(3) || at > of_writing, "killed at {at}: {steps:?}");
        let files = disk.list().unwrap().len();
        assert_eq!(
            files,
            2 * steps.len() + usize::from(last > 0),
            "killed at {at}: something unfinished stays"
        );
        newest_seen.push(last);
        let mut checkpoints = open(&disk).unwrap();
        write(&mut checkpoints, 2, 9, &resources).unwrap();
        assert_eq!(found(&disk, &resources)[0], (2, 9));
    }
    newest_seen.truncate(of_writing as usize);
    assert!(newest_seen.is_sorted(), "what was complete is lost: {newest_seen:?}");
    newest_seen.dedup();
    assert_eq!(newest_seen, [0, 1, 2, 3, 4]);
}

#[test]
fn a_folder_is_one_process_s_and_goes_with_its_checkpoints() {
    let _turn = crate::folders::turn_with_real_files();
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("checkpoints");
    discard(&path).unwrap();
    let resources = resources(2);
    let mut checkpoints = Checkpoints::open(&path, 2, &traffic()).unwrap();
    write(&mut checkpoints, 1, 1, &resources).unwrap();
    let error = Checkpoints::open(&path, 2, &traffic()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(discard(&path).unwrap_err().kind(), ErrorKind::Io);
    drop(checkpoints);
    std::fs::write(path.join("notes.txt"), "mine").unwrap();
    discard(&path).unwrap();
    let left: Vec<_> = std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
    let error = Checkpoints::open(&path, 2, &traffic()).unwrap_err();
    assert!(error.to_string().contains("it contains notes.txt"), "{error}");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    std::fs::remove_file(path.join("notes.txt")).unwrap();
    discard(&path).unwrap();
    assert!(!path.exists());
}

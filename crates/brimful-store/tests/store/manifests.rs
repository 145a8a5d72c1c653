//! Publishing a manifest, with a power failure at every sync.

use std::io::ErrorKind;

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::manifest::{publish, read, sweep};
use brimful_store::{Error, Folder, Result};

use crate::{assert_io, contents, eio, noise, replace, traffic};

fn payload(number: u64) -> Vec<u8> {
    // Several sectors, so that it can tear.
    noise(3000 + number as usize, number)
}

fn put(folder: &FaultFolder, number: u64) -> Result<()> {
    publish(folder, number, &payload(number), &traffic())
}

/// The number of the manifest found, after checking that its payload belongs to that number.
fn found(folder: &FaultFolder) -> Result<u64> {
    read(folder, &traffic()).map(|(number, bytes)| {
        assert!(bytes == payload(number), "manifest {number} has another's payload");
        number
    })
}

#[test]
fn the_last_manifest_published_is_read() {
    for plan in [FaultPlan::new(), FaultPlan::new().varying(100, 4)] {
        let folder = FaultFolder::new();
        folder.set_plan(plan);
        assert_io(found(&folder), "current", "open", ErrorKind::NotFound);
        for number in [1, 2, 9, 10] {
            put(&folder, number).unwrap();
            assert_eq!(found(&folder).unwrap(), number);
            assert_eq!(found(&folder.crash()).unwrap(), number, "durable once published");
        }
        replace(&folder, "manifest-x", b"somebody else's");
        sweep(&folder, 10).unwrap();
        let mut names = folder.list().unwrap();
        names.sort();
        assert_eq!(names, ["current", "manifest-10", "manifest-x"]);
        assert_eq!(found(&folder).unwrap(), 10);
    }
}

/// Publishes 1 to `last` with a power failure at every sync in turn; calls `f` with the surviving
/// folder, the number published before the one under way, and that one.
fn at_every_sync(last: u64, plan: &FaultPlan, mut f: impl FnMut(&FaultFolder, u64, u64)) {
    let run = |freeze: Option<u64>| {
        let folder = FaultFolder::new();
        folder.set_plan(freeze.map_or(FaultPlan::new(), |n| plan.clone().freeze_from_sync(n)));
        let syncs: Vec<u64> = (1..=last)
            .map(|number| {
                put(&folder, number).unwrap();
                sweep(&folder, number).unwrap();
                folder.count(Operation::Sync)
            })
            .collect();
        (folder, syncs)
    };
    let (_, syncs) = run(None);
    assert_eq!(syncs.len() as u64, last);
    let total = *syncs.last().unwrap();
    assert!(total >= 4 * last, "manifest, pointer, folder before and after the rename");
    for freeze in 1..=total {
        let (folder, _) = run(Some(freeze));
        let complete = syncs.iter().filter(|&&s| s < freeze).count() as u64;
        f(&folder.crash(), complete, complete + 1);
    }
}

#[test]
fn a_crash_at_any_sync_leaves_the_old_manifest_or_the_new_one() {
    let mut crashes = 0;
    at_every_sync(3, &FaultPlan::new(), |after, old, _| {
        crashes += 1;
        match old {
            0 => assert_io(found(after), "current", "open", ErrorKind::NotFound),
            _ => assert_eq!(found(after).unwrap(), old, "nothing unsynced survives here"),
        }
    });
    assert!(crashes >= 12);
}

#[test]
fn torn_writes_leave_the_old_manifest_or_the_new_one() {
    let (mut olds, mut news) = (0, 0);
    for seed in 0..200 {
        at_every_sync(3, &FaultPlan::new().torn(seed), |after, old, new| match found(after) {
            Ok(number) if number == old => olds += 1,
            Ok(number) if number == new => news += 1,
            Err(Error::Io { source, .. }) if old == 0 && source.kind() == ErrorKind::NotFound => {}
            other => panic!("seed {seed}, between {old} and {new}: {other:?}"),
        });
    }
    assert!(olds > 100 && news > 100, "{olds} old, {news} new: both outcomes occur");
}

#[test]
fn publishing_goes_on_after_a_crash() {
    for seed in 0..50 {
        at_every_sync(2, &FaultPlan::new().torn(seed), |after, old, new| {
            // The remains of `new` after the crash are replaced, unless it became current.
            if found(after).ok() != Some(new) {
                put(after, new).unwrap();
            }
            assert_eq!(found(&after.crash()).unwrap(), new, "after {old}");
        });
    }
}

#[test]
fn a_failing_operation_comes_back_and_loses_nothing() {
    let counted = FaultFolder::new();
    put(&counted, 1).unwrap();
    counted.set_plan(FaultPlan::new());
    put(&counted, 2).unwrap();
    let classes = [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename];
    for class in classes {
        assert!(counted.count(class) > 0);
        for number in 1..=counted.count(class) {
            for fault in [Fault::Io, Fault::Full] {
                let folder = FaultFolder::new();
                put(&folder, 1).unwrap();
                folder.set_plan(FaultPlan::new().fail(class, number, fault));
                let error = put(&folder, 2).unwrap_err();
                assert!(matches!(error, Error::Io { .. }), "{error:?}");
                // Only the last sync fails after the rename.
                let moved = class == Operation::Sync && number == counted.count(class);
                assert_eq!(found(&folder).unwrap(), if moved { 2 } else { 1 });
                assert_eq!(found(&folder.crash()).unwrap(), 1);
            }
        }
    }
}

#[test]
fn the_current_manifest_is_not_replaced() {
    let folder = FaultFolder::new();
    put(&folder, 4).unwrap();
    match publish(&folder, 4, b"other", &traffic()) {
        Err(Error::Internal(problem)) => assert!(problem.contains("manifest-4 is current")),
        other => panic!("{other:?}"),
    }
    assert_eq!(found(&folder).unwrap(), 4);
}

#[test]
fn damage_to_pointer_or_manifest_is_detected() {
    let folder = FaultFolder::new();
    put(&folder, 1).unwrap();
    for name in ["current", "manifest-1"] {
        let whole = contents(&folder, name);
        for byte in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x10;
            replace(&folder, name, &bytes);
            match read(&folder, &traffic()) {
                Err(Error::Corrupt { path, .. } | Error::Version { path, .. }) => {
                    assert!(path.ends_with(name))
                }
                other => panic!("byte {byte} of {name}: {other:?}"),
            }
        }
        replace(&folder, name, &whole);
    }
    assert_eq!(found(&folder).unwrap(), 1);
    // A whole manifest, but not the one that the pointer names.
    let other = FaultFolder::new();
    publish(&other, 1, b"another graph's", &traffic()).unwrap();
    replace(&folder, "manifest-1", &contents(&other, "manifest-1"));
    let error = read(&folder, &traffic()).unwrap_err();
    assert!(error.to_string().contains("current"), "{error}");
    assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with("manifest-1")));
    folder.remove("manifest-1").unwrap();
    assert_io(read(&folder, &traffic()), "manifest-1", "open", ErrorKind::NotFound);
}

#[test]
fn sweeping_reports_what_it_cannot_do() {
    let folder = FaultFolder::new();
    put(&folder, 1).unwrap();
    put(&folder, 2).unwrap();
    folder.set_plan(FaultPlan::new().fail(Operation::Remove, 1, Fault::Io).fail(
        Operation::List,
        2,
        Fault::Io,
    ));
    assert_io(sweep(&folder, 2), "manifest-1", "remove", eio());
    assert_io(sweep(&folder, 2), "(memory)", "list", eio());
    sweep(&folder, 2).unwrap();
    assert_eq!(found(&folder).unwrap(), 2);
}

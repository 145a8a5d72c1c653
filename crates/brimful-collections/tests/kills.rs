//! Collections whose process is killed at operations that change their file, within updates, syncs
//! and compaction. The next process finds the state of the last completed sync, or of the one under
//! way, and continues from there.
//!
//! `BRIMFUL_KILLS=all` kills at every operation; otherwise at a sample of them.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::path::Path;
use std::sync::Arc;

use brimful_collections::{DiskMap, Error, FrequencyCounter, Options, RecordBag, RecordBox};
use brimful_store::fault::{self, MortalFolder, killed_in_child, kills};
use brimful_store::{Budget, DiskFolder, Folder, Job, Resources};

/// Kills per collection, unless all are requested.
const SAMPLED: u64 = 10;
/// Rounds of changes, each followed by a sync or a compaction.
const ROUNDS: u64 = 4;

type Outcome<T> = Result<T, Error>;

/// The content of a collection as one number.
type Digest = u64;

/// A kind of collection.
struct Kind {
    name: &'static str,
    /// Makes the changes of round `round`, and makes them durable.
    round: fn(&dyn Folder, u64) -> Outcome<()>,
    digest: fn(&dyn Folder) -> Outcome<Digest>,
    verify: fn(&dyn Folder) -> Outcome<u64>,
}

fn digest(parts: impl Iterator<Item = Vec<u8>>) -> Digest {
    parts.fold(0, |sum: u64, part| sum.rotate_left(7).wrapping_add(brimful_store::checksum(&part)))
}

fn options() -> Options {
    let resources =
        Resources::new(Budget::new(24 << 20, 0), Arc::new(Job::new()), Some(1)).unwrap();
    Options { page_bytes: 4096, ..Options::new(&Arc::new(resources)).memory(20 << 20) }
}

fn a_box(folder: &dyn Folder) -> Outcome<RecordBox> {
    RecordBox::open_in(folder, 32, b"x", options())
}

fn a_bag(folder: &dyn Folder) -> Outcome<RecordBag> {
    RecordBag::open_in(folder, b"x", options())
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "box",
        round: |folder, round| {
            let records = a_box(folder)?;
            records.extend(&vec![round as u8; 32 * 2000])?;
            (0..records.len())
                .step_by(37)
                .try_for_each(|id| records.store(id, &[round as u8 + 100; 32]))?;
            if round % 2 == 0 { records.sync() } else { records.compact() }
        },
        digest: |folder| {
            let records = a_box(folder)?;
            let all = (0..records.len()).map(|id| records.fetch(id, <[u8]>::to_vec));
            Ok(digest(all.collect::<Outcome<Vec<_>>>()?.into_iter()))
        },
        verify: |folder| a_box(folder)?.verify(),
    },
    Kind {
        name: "bag",
        round: |folder, round| {
            let bag = a_bag(folder)?;
            let records: Vec<_> =
                (0..300).map(|i| vec![round as u8; (i * 37 % 900) as usize]).collect();
            bag.extend(&records)?;
            bag.append(&vec![round as u8; 20_000])?;
            (0..bag.len()).filter(|id| id % 3 == round % 3).try_for_each(|id| {
                match bag.contains(id)? {
                    true if id % 2 == 0 => bag.remove(id),
                    true => bag.append_to(id, &[7; 50]),
                    false => bag.store(id, b"again"),
                }
            })?;
            if round % 2 == 0 { bag.sync() } else { bag.compact() }
        },
        digest: |folder| {
            let bag = a_bag(folder)?;
            let all = (0..bag.len()).map(|id| match bag.get(id) {
                Err(Error::Removed { .. }) => Ok(b"removed".to_vec()),
                record => record,
            });
            Ok(digest(all.collect::<Outcome<Vec<_>>>()?.into_iter()))
        },
        verify: |folder| a_bag(folder)?.verify(),
    },
    Kind {
        name: "counter",
        round: |folder, round| {
            let counter = FrequencyCounter::open_in(folder, options())?;
            counter.add_many(&(0..5000).map(|i| i * (round + 3) % 4001).collect::<Vec<_>>())?;
            counter.sync()
        },
        digest: |folder| {
            let (counter, mut all) = (FrequencyCounter::open_in(folder, options())?, Vec::new());
            counter.for_each(|key, count| {
                all.push([key.to_le_bytes(), count.to_le_bytes()].concat());
                Ok(())
            })?;
            Ok(digest(all.into_iter()))
        },
        verify: |folder| FrequencyCounter::open_in(folder, options())?.verify(),
    },
    Kind {
        name: "map",
        round: |folder, round| {
            let map = DiskMap::open_in(folder, options())?;
            for key in 0..300_u64 {
                match key % 5 {
                    0 => drop(map.remove(&(key * round).to_le_bytes())?),
                    1 => map.chain(&key.to_le_bytes(), b"more")?,
                    _ => map.insert(
                        &(key + round * 100).to_le_bytes(),
                        &vec![round as u8; key as usize],
                    )?,
                }
            }
            if round % 2 == 0 { map.sync() } else { map.compact() }
        },
        digest: |folder| {
            let (map, mut all) = (DiskMap::open_in(folder, options())?, Vec::new());
            for key in 0..800_u64 {
                all.extend(map.get_all(&key.to_le_bytes())?);
                all.push(key.to_le_bytes().to_vec());
            }
            Ok(digest(all.into_iter()))
        },
        verify: |folder| DiskMap::open_in(folder, options())?.verify(),
    },
];

/// Plays the rounds from `first` on; the folder ends the process at its operation `last`. Returns
/// the number of operations, and the digest after each round.
fn play(kind: &Kind, path: &Path, last: u64, first: u64) -> Outcome<(u64, Vec<Digest>)> {
    let mortal = MortalFolder::new(&DiskFolder::new(path), last);
    let mut digests = Vec::new();
    for round in first..ROUNDS {
        (kind.round)(&mortal, round)?;
        digests.push((kind.digest)(&DiskFolder::new(path))?);
    }
    Ok((mortal.spent(), digests))
}

/// Runs in its own process: see [`a_killed_collection_is_what_it_was_at_a_sync`].
#[test]
#[ignore = "the child of another test"]
fn child() {
    let (name, folder, last) = fault::child().unwrap();
    let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
    play(kind, &folder, last, 0).unwrap();
}

#[test]
fn a_killed_collection_is_what_it_was_at_a_sync() {
    for kind in &KINDS {
        let undisturbed = tempfile::tempdir().unwrap();
        let (operations, digests) = play(kind, undisturbed.path(), 0, 0).unwrap();
        assert!(operations > 2 * SAMPLED, "{}: {operations} operations", kind.name);
        let empty = tempfile::tempdir().unwrap();
        let states =
            [&[(kind.digest)(&DiskFolder::new(empty.path())).unwrap()], digests.as_slice()]
                .concat();
        assert!(
            states.windows(2).all(|two| two[0] != two[1]),
            "{}: every round changes something",
            kind.name
        );
        let (mut seen, mut last_state) = (Vec::new(), 0);
        for at in kills(operations, SAMPLED) {
            let folder = tempfile::tempdir().unwrap();
            let killed = killed_in_child("child", kind.name, folder.path(), at).unwrap();
            assert!(killed, "{}: not killed at {at} of {operations}", kind.name);
            let disk = DiskFolder::new(folder.path());
            let found = (kind.digest)(&disk).unwrap();
            let state = states.iter().position(|state| *state == found);
            let state = state
                .unwrap_or_else(|| panic!("{}: killed at {at}: none of its states", kind.name));
            // Data that was durable before a later kill stays durable.
            assert!(
                state >= last_state,
                "{}: killed at {at}: state {state} after {last_state}",
                kind.name
            );
            last_state = state;
            seen.push(state);
            // The next process reaches the same end.
            let (_, again) = play(kind, folder.path(), 0, state as u64).unwrap();
            assert_eq!(
                again.last().or(states.last()),
                states.last(),
                "{}: killed at {at}",
                kind.name
            );
            if let Err(error) = (kind.verify)(&disk) {
                // The kill came during the write of the second copy, the only write after the last
                // sync.
                assert!(
                    error.to_string().contains("the next sync writes this one again"),
                    "{}: {error}",
                    kind.name
                );
                assert_eq!(
                    state as u64, ROUNDS,
                    "{}: killed at {at}: not written again",
                    kind.name
                );
            }
        }
        seen.dedup();
        assert!(seen.len() > 2, "{}: kills met states {seen:?} alone", kind.name);
    }
}

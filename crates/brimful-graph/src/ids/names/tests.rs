//! Tests the dictionary against `BTreeMap` and sorted vectors.

use std::collections::BTreeSet;
use std::sync::Arc;

use brimful_store::{Budget, DiskFolder, Job, Resources};

use super::batch::NameBatch;
use super::file::{NameFile, NameWriter};
use super::interner::{InternBuffers, Interner};
use crate::edges::{EdgeBatch, EdgeSource};
use crate::random::Random;

fn resources(threads: usize) -> Resources {
    Resources::new(Budget::new(1 << 30, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// Strings of several kinds: short, with long common prefixes, outside ASCII, and empty.
fn strings(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::of(seed, 0);
    let mut next = |below: u64| random.next() % below;
    let long = "https://example.org/".repeat(20);
    let mut out = vec![String::new(), "\0".into(), "\u{10ffff}".into(), long.clone()];
    for _ in 0..count {
        let number = next(count as u64);
        out.push(match next(6) {
            0 => number.to_string(),
            1 => format!("{long}{number}"),
            2 => format!("é{number:x}ß"),
            3 => "x".repeat(next(700) as usize),
            4 => format!("{}{}", long, "y".repeat(next(300) as usize)),
            _ => format!("user-{number:012}"),
        });
    }
    out
}

fn write(folder: &DiskFolder, names: &BTreeSet<&str>) -> NameFile {
    let job = Job::new();
    let mut writer = NameWriter::create(folder, job.traffic()).unwrap();
    names.iter().for_each(|name| writer.push(name.as_bytes()).unwrap());
    writer.finish().unwrap();
    NameFile::open(folder, names.len() as u64, job.traffic()).unwrap()
}

#[test]
fn every_name_is_found_both_ways() {
    for (seed, count) in [(1, 0), (2, 3), (3, 500), (4, 4_000)] {
        let folder = tempfile::tempdir().unwrap();
        let all = strings(seed, count);
        let names: BTreeSet<&str> = all.iter().map(String::as_str).collect();
        let file = write(&DiskFolder::new(folder.path()), &names);
        file.verify(&Job::new()).unwrap();
        for (rank, name) in (0..).zip(&names) {
            let block = file.read_block(file.block_of(rank)).unwrap();
            assert_eq!(block.name(rank), Some(*name));
            assert_eq!(file.find(name).unwrap(), Some(rank), "{name}");
            let absent = format!("{name}!");
            assert_eq!(file.find(&absent).unwrap().is_some(), names.contains(absent.as_str()));
        }
        assert_eq!(file.longest(), names.iter().map(|name| name.len()).max().unwrap());
        assert_eq!(file.find("\u{10ffff}~").unwrap(), None);
    }
}

#[test]
fn no_name_is_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&DiskFolder::new(folder.path()), &BTreeSet::new());
    assert_eq!(file.find("").unwrap(), None);
    file.verify(&Job::new()).unwrap();
}

#[test]
fn a_flipped_byte_is_found_by_verify_and_by_opening_or_looking_up() {
    let folder = tempfile::tempdir().unwrap();
    let all = strings(9, 2_000);
    let names: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    write(&DiskFolder::new(folder.path()), &names);
    let (path, job) = (folder.path().join("names"), Job::new());
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 150 + 1) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let opened =
            NameFile::open(&DiskFolder::new(folder.path()), names.len() as u64, job.traffic());
        let Ok(file) = opened else { continue };
        let verified =
            file.sealed().verify(&job).map_err(Into::into).and_then(|()| file.verify(&job));
        assert!(verified.is_err(), "byte {at}");
        let block = file.sealed().entries().partition_point(|entry| entry.offset <= at as u64) - 1;
        // Padding is not part of any block.
        if at as u64 >= file.sealed().entries()[block].offset + file.sealed().entries()[block].len {
            continue;
        }
        assert!(names.iter().any(|name| file.find(name).is_err()), "byte {at}");
    }
}

/// All edges by rank, from the interner and the merge.
fn ranked(names: &[String], bytes: u64, threads: usize) -> (Vec<(u64, u64)>, Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (folder, resources) = (DiskFolder::new(folder.path()), resources(threads));
    let interner = Interner::new(&folder, bytes, &resources).unwrap();
    let (next, step) = (std::sync::atomic::AtomicUsize::new(0), 500);
    resources.broadcast(|_| {
        let (mut batch, mut buffers) = (NameBatch::default(), InternBuffers::default());
        loop {
            let at = next.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
            let Some(part) = names.get(at..(at + step).min(names.len())) else { return };
            batch.clear();
            part.iter().for_each(|name| batch.push(name.as_bytes()));
            interner.add_edges(&batch, &mut buffers).unwrap();
        }
    });
    let (runs, locals, generations) = interner.finish().unwrap();
    let mut sorted = Vec::new();
    let keep = |name: &[u8]| {
        sorted.push(String::from_utf8(name.to_vec()).unwrap());
        Ok(())
    };
    let tables = runs.merge(&folder, 1 << 20, &resources, keep).unwrap();
    let (mut edges, mut batch) = (Vec::new(), EdgeBatch::default());
    for (run, generation) in generations.iter().enumerate() {
        let mut table = vec![0; generation.locals];
        tables.load(run, &mut table).unwrap();
        for part in generation.parts.clone() {
            locals.read_part(part, &mut batch).unwrap();
            let rank = |local: &u64| u64::from(table[*local as usize]);
            edges.extend(batch.sources.iter().map(rank).zip(batch.targets.iter().map(rank)));
        }
    }
    edges.sort_unstable();
    (edges, sorted, generations.len())
}

#[test]
fn ranks_do_not_depend_on_generations_or_threads() {
    let mut names = strings(5, 12_000);
    names.truncate(names.len() / 500 * 500);
    let model: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let rank: std::collections::BTreeMap<&str, u64> = model.iter().copied().zip(0..).collect();
    let mut expected: Vec<(u64, u64)> = names
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[s, t]| (rank[s.as_str()], rank[t.as_str()]))
        .collect();
    expected.sort_unstable();
    let mut most = 0;
    for (bytes, threads) in
        [(1 << 30, 1), (1 << 30, 3), (2 << 20, 2), (200 << 10, 1), (200 << 10, 4), (1, 2)]
    {
        let (edges, sorted, generations) = ranked(&names, bytes, threads);
        assert!(sorted.iter().map(String::as_str).eq(model.iter().copied()));
        assert_eq!(edges, expected, "{bytes} bytes, {threads} threads");
        most = most.max(generations);
    }
    assert!(most > 10, "{most} generations");
}

#[test]
fn too_many_runs_for_the_memory_are_a_budget_error() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, resources) = (DiskFolder::new(folder.path()), resources(1));
    let interner = Interner::new(&folder, 1, &resources).unwrap();
    let (mut batch, mut buffers) = (NameBatch::default(), InternBuffers::default());
    for name in 0..200 {
        batch.clear();
        batch.push(name.to_string().as_bytes());
        interner.add_vertices(&batch, &mut buffers).unwrap();
    }
    let (runs, ..) = interner.finish().unwrap();
    let error = runs.merge(&folder, 1 << 20, &resources, |_| Ok(())).err().unwrap();
    assert!(error.to_string().contains("too small to sort the names of the vertices"), "{error}");
}

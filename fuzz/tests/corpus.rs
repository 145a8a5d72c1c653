//! Every target on its corpus and on seeded mutations of it.
//!
//! cargo-fuzz explores for hours; this repeats in seconds and always the same. `make nightly` sets
//! `BRIMFUL_MUTATIONS` to try more.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use brimful_fuzz::{TARGETS, Target};

const MUTATIONS: u64 = 3000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound.max(1) as u64) as usize
    }
}

/// One to four small changes: what people, disks and networks do to files.
fn mutate(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [&[u8]; 16] = [
        b"-1",
        b"0",
        b"18446744073709551616",
        b"9223372036854775808",
        b"18446744073709551615",
        b"\n",
        b"\n\n",
        b" ",
        b"%",
        b"#",
        b"c ",
        b"1.5e308",
        b"nan",
        b"\r\n",
        b"\0",
        b"\xff\xfe",
    ];
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() + 1);
        let end = (at + random.below(12)).min(out.len());
        match random.below(7) {
            0 if at < out.len() => out[at] ^= 1 << random.below(8),
            1 => drop(out.drain(at..end)),
            2 => out.truncate(at),
            3 => drop(out.splice(at..end, WORDS[random.below(16)].iter().copied())),
            4 => drop(out.splice(at..at, out[at..end].to_vec())),
            5 if !other.is_empty() => {
                let from = random.below(other.len());
                out.splice(at..end, other[from..(from + 20).min(other.len())].iter().copied());
            }
            _ => drop(out.splice(at..at, [b'0' + random.below(10) as u8])),
        }
    }
    out
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no corpus");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Checks the corpus of a target, then mutations of it.
fn run(target: &Target, mutations: u64) {
    let Target { name, check } = *target;
    let corpus = corpus(name);
    let mut random = Random(name.len() as u64);
    let (mut accepted, mut refused) = (0, 0);
    let mutated = (0..mutations).map(|number| {
        let chosen = &corpus[number as usize % corpus.len()];
        let other = &corpus[random.below(corpus.len())];
        mutate(chosen, other, &mut random)
    });
    for bytes in corpus.iter().cloned().chain(mutated) {
        match catch_unwind(AssertUnwindSafe(|| check(&bytes))) {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("{name} fails on {}", bytes.escape_ascii()),
        }
    }
    // Mutations that are all broken, or all harmless, would find nothing.
    assert!(accepted >= 10 && refused >= 10, "{name}: {accepted} accepted, {refused} refused");
}

#[test]
fn every_target_holds_on_its_corpus_and_on_mutations() {
    let mutations =
        std::env::var("BRIMFUL_MUTATIONS").map_or(MUTATIONS, |text| text.parse().unwrap());
    thread::scope(|scope| {
        for target in &TARGETS {
            scope.spawn(move || run(target, mutations));
        }
    });
}

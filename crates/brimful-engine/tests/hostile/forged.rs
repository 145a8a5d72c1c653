//! Deliberate damage: contents that contradict each other under correct checksums.
//!
//! No checksum can find it, so a run may give a wrong answer; but it ends, with an answer or a
//! typed error, within the memory that the files justify.

use std::sync::Arc;

use brimful_store::fault::FaultFolder;
use brimful_store::manifest;
use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::{ErrorKind, Folder};

use super::{BUDGET, Case, Files, cases, is_nightly, turn};

/// Changes of a file in `make nightly`; everyday a third.
const FORGERIES: u64 = 250;

/// Kind and bytes of metadata of a sealed file by its name.
fn format_of(file: &str) -> (Kind, usize) {
    match file {
        "ids" => (Kind::Ids, 32),
        "degrees" => (Kind::Degrees, 32),
        "strengths" => (Kind::Strengths, 0),
        "names" => (Kind::Names, 16),
        _ if file.ends_with(".shards") => (Kind::Shards, 0),
        _ if file.ends_with(".weights") => (Kind::Weights, 0),
        _ => (Kind::Directory, 0),
    }
}

/// The blocks of a sealed file, each with its metadata.
type Blocks = Vec<(Vec<u8>, Vec<u8>)>;

fn blocks_of(folder: &dyn Folder, file: &str) -> Blocks {
    let (kind, meta_bytes) = format_of(file);
    let sealed = SealedFile::open(folder, file, kind, meta_bytes, &Arc::default()).unwrap();
    let mut buffer = Buffer::new();
    let mut block = |index| {
        sealed.read_block(index, &mut buffer).unwrap();
        (buffer.bytes().to_vec(), sealed.meta(index).to_vec())
    };
    (0..sealed.entries().len()).map(&mut block).collect()
}

fn write_blocks(folder: &dyn Folder, file: &str, blocks: &Blocks) {
    let (kind, meta_bytes) = format_of(file);
    folder.remove(file).unwrap();
    let mut writer = SealedWriter::create(folder, file, kind, meta_bytes, &Arc::default()).unwrap();
    blocks.iter().for_each(|(block, meta)| writer.append(block, meta).unwrap());
    writer.finish().unwrap();
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound.max(1) as u64) as usize
    }
}

/// Numbers that break arithmetic.
const NUMBERS: [u64; 8] = [0, 1, 255, 1 << 16, 1 << 31, u32::MAX as u64, 1 << 62, u64::MAX];

fn forge(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    let end = bytes.len().min(at + [1, 2, 4, 8][random.below(4)]);
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.extend_from_within(at..),
        2 if at < end => bytes[at] ^= 1 << random.below(8),
        _ => {
            let number =
                NUMBERS[random.below(8)].wrapping_sub(random.below(3) as u64).to_le_bytes();
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
    }
}

/// Runs on the graph end: nothing panics, and every error is one of its files.
fn assert_ends(case: &Case, files: &Files, problem: &str, most: usize) {
    let is_expected =
        |kind| matches!(kind, ErrorKind::Corrupt | ErrorKind::Input | ErrorKind::Budget);
    match case.examine(files, problem, most) {
        Err(error) => assert!(is_expected(error.kind()), "{}: {problem}: {error}", case.name),
        Ok((verified, answers)) => {
            if let Err(error) = verified {
                assert!(is_expected(error.kind()), "{}: {problem}: {error}", case.name);
            }
            for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
                assert!(is_expected(error.kind()), "{}: {problem}: {error}", case.name);
            }
        }
    }
}

/// The files with a manifest without seals, as in older versions.
fn without_seals(files: &Files) -> Files {
    let folder = FaultFolder::of(files);
    let (number, payload) = manifest::read(&folder, &Arc::default()).unwrap();
    let text = String::from_utf8(payload).unwrap();
    let start = text.find("\"seals\"").unwrap();
    let end = start + text[start..].find('}').unwrap() + 2;
    let text = text.replace(&text[start..end], "").replace("\"format\": 2", "\"format\": 1");
    manifest::publish(&folder, number + 1, text.as_bytes(), &Arc::default()).unwrap();
    manifest::sweep(&folder, number + 1).unwrap();
    folder.files()
}

#[test]
fn a_graph_of_the_first_format_is_read() {
    let _turn = turn();
    let case = &cases()[0];
    let (verified, answers) =
        case.examine(&without_seals(&case.files), "without seals", case.enough()).unwrap();
    verified.unwrap();
    assert_eq!(answers.map(Result::unwrap), case.answers);
}

#[test]
fn forged_files_are_refused_or_read_within_their_memory() {
    let _turn = turn();
    for case in &cases() {
        let base = without_seals(&case.files);
        for file in base.keys().filter(|file| *file != "current" && !file.starts_with("manifest")) {
            let blocks = blocks_of(&FaultFolder::of(&base), file);
            let mut random = Random(file.len() as u64);
            for number in 0..if is_nightly() { FORGERIES } else { FORGERIES / 3 } {
                let mut blocks = blocks.clone();
                for _ in 0..=random.below(2) {
                    let index = random.below(blocks.len());
                    match (random.below(8), blocks.get_mut(index)) {
                        (0, Some(_)) => drop(blocks.remove(index)),
                        (1, Some(block)) => {
                            let copy = block.clone();
                            blocks.push(copy);
                        }
                        (2..=4, Some((_, meta))) if !meta.is_empty() => {
                            let len = meta.len();
                            forge(meta, &mut random);
                            meta.resize(len, 0);
                        }
                        // The table of segments is the last block, and the most important.
                        (5, Some(_)) => {
                            blocks.last_mut().into_iter().for_each(|(b, _)| forge(b, &mut random))
                        }
                        (_, Some((block, _))) => forge(block, &mut random),
                        (_, None) => {}
                    }
                }
                let folder = FaultFolder::of(&base);
                write_blocks(&folder, file, &blocks);
                assert_ends(
                    case,
                    &folder.files(),
                    &format!("{file}: forgery {number}"),
                    case.enough(),
                );
            }
        }
    }
}

#[test]
fn forged_manifests_are_refused_or_read_within_their_memory() {
    let _turn = turn();
    for case in &cases() {
        let base = without_seals(&case.files);
        let (number, payload) = manifest::read(&FaultFolder::of(&base), &Arc::default()).unwrap();
        let text = String::from_utf8(payload).unwrap();
        // Each number of the manifest becomes each of `NUMBERS`.
        let digits = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
        let starts = (1..text.len()).filter(|at| digits(at) && !digits(&(at - 1)));
        for start in starts {
            let end = (start..text.len()).find(|at| !digits(at)).unwrap();
            for wrong in NUMBERS.iter().chain(&[2, 3, 20, 40, 64]) {
                let forged = format!("{}{wrong}{}", &text[..start], &text[end..]);
                let folder = FaultFolder::of(&base);
                manifest::publish(&folder, number + 1, forged.as_bytes(), &Arc::default()).unwrap();
                let problem = format!(
                    "manifest with {wrong} at {start}: {}",
                    &forged[start.saturating_sub(30)..start]
                );
                // Intervals may be long; the budget has room for them.
                assert_ends(case, &folder.files(), &problem, BUDGET);
            }
        }
    }
}

//! Collections with damaged or forged files: each is refused with a typed error, or has the content
//! of the undamaged one. None uses more memory than its content justifies, and nothing panics.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_collections::{
    BloomFilter, DiskLists, DiskMap, Error, FrequencyCounter, MembershipSet, Options, RecordBag,
    RecordBox,
};
use brimful_store::durable::{PAGE_BYTES, PageFile, PageId, Purpose, STREAMS};
use brimful_store::fault::FaultFolder;
use brimful_store::{Budget, ErrorKind, Folder, Job, Resources};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const PAGES: &str = "pages";
const PAGE: usize = 4096;
const MEMORY: u64 = 24 << 20;
/// Memory that a reader may use beyond twice that of the undamaged collection.
const SLACK_BYTES: usize = 256 << 10;

/// The heap is counted for the whole process: one test at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The content of a collection, in an order of its own.
type Contents = Vec<(Vec<u8>, Vec<u8>)>;

/// A kind of collection, with functions to fill and read it.
struct Kind {
    name: &'static str,
    /// Its number in the root.
    number: u32,
    fill: fn(&FaultFolder, Options) -> Result<(), Error>,
    read: fn(&FaultFolder, Options) -> Result<Contents, Error>,
    verify: fn(&FaultFolder, Options) -> Result<u64, Error>,
}

fn bytes(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "box",
        number: 1,
        fill: |folder, options| {
            let records = RecordBox::open_in(folder, 24, b"x", options)?;
            records.extend(&(0..24 * 500).map(|i| (i * 7 % 251) as u8).collect::<Vec<_>>())?;
            records.sync()?;
            records.store(3, &[9; 24])?;
            records.sync()
        },
        read: |folder, options| {
            let records = RecordBox::open_in(folder, 24, b"x", options)?;
            // A box may claim more records than it can have: read only the first.
            let len = records.len().min(1000);
            (0..len).map(|id| Ok((bytes(id), records.fetch(id, <[u8]>::to_vec)?))).collect()
        },
        verify: |folder, options| RecordBox::open_in(folder, 24, b"x", options)?.verify(),
    },
    Kind {
        name: "bag",
        number: 2,
        fill: |folder, options| {
            let bag = RecordBag::open_in(folder, b"x", options)?;
            let record = |id: usize| {
                vec![
                    id as u8;
                    [id * 3, 300 + id, 6000]
                        [usize::from(id.is_multiple_of(10)) + usize::from(id.is_multiple_of(40))]
                ]
            };
            bag.extend(&(0..80).map(record).collect::<Vec<_>>())?;
            bag.sync()?;
            (0..80).step_by(7).try_for_each(|id| bag.remove(id))?;
            bag.append_to(5, &[1; 100])?;
            bag.sync()
        },
        read: |folder, options| {
            let bag = RecordBag::open_in(folder, b"x", options)?;
            let mut found = Contents::new();
            for id in 0..bag.len().min(1000) {
                match bag.get(id) {
                    Ok(record) => found.push((bytes(id), record)),
                    Err(Error::Removed { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        },
        verify: |folder, options| RecordBag::open_in(folder, b"x", options)?.verify(),
    },
    Kind {
        name: "counter",
        number: 3,
        fill: |folder, options| {
            let counter = FrequencyCounter::open_in(folder, options)?;
            counter.add_many(&(0..2000).map(|i| i * i % 900).collect::<Vec<_>>())?;
            counter.sync()
        },
        read: |folder, options| {
            let (counter, mut found) =
                (FrequencyCounter::open_in(folder, options)?, Contents::new());
            counter.for_each(|key, count| {
                found.push((bytes(key), bytes(count)));
                Ok(())
            })?;
            counter.count_many(&(0..50).collect::<Vec<_>>())?;
            Ok(found)
        },
        verify: |folder, options| FrequencyCounter::open_in(folder, options)?.verify(),
    },
    Kind {
        name: "set",
        number: 4,
        fill: |folder, options| {
            let set = MembershipSet::open_in(folder, options)?;
            set.add_many(&(0..1500).map(|i| i * 3).collect::<Vec<_>>())?;
            set.sync()?;
            set.remove(30)?;
            set.sync()
        },
        read: |folder, options| {
            let (set, mut found) = (MembershipSet::open_in(folder, options)?, Contents::new());
            set.for_each(|key| {
                found.push((bytes(key), Vec::new()));
                Ok(())
            })?;
            Ok(found)
        },
        verify: |folder, options| MembershipSet::open_in(folder, options)?.verify(),
    },
    Kind {
        name: "filter",
        number: 5,
        fill: |folder, options| {
            let filter = BloomFilter::open_in(folder, 3000, 0.01, options)?;
            filter.add_many(&(0..3000).collect::<Vec<_>>())?;
            filter.sync()
        },
        read: |folder, options| {
            let filter = BloomFilter::open_in(folder, 3000, 0.01, options)?;
            let found = filter.contains_many(&(0..4000).collect::<Vec<_>>())?;
            Ok(vec![(bytes(filter.added()), found.into_iter().map(u8::from).collect())])
        },
        verify: |folder, options| BloomFilter::open_in(folder, 3000, 0.01, options)?.verify(),
    },
    Kind {
        name: "map",
        number: 2,
        fill: |folder, options| {
            let map = DiskMap::open_in(folder, options)?;
            (0..200)
                .try_for_each(|i: u64| map.insert(&bytes(i), &vec![i as u8; i as usize * 2]))?;
            map.sync()?;
            (0..50).try_for_each(|i: u64| map.chain(&bytes(i), b"more"))?;
            map.remove(&bytes(77))?;
            map.sync()
        },
        read: |folder, options| {
            let (map, mut found) = (DiskMap::open_in(folder, options)?, Contents::new());
            for key in (0..200).map(bytes) {
                for value in map.get_all(&key)? {
                    found.push((key.clone(), value));
                }
            }
            Ok(found)
        },
        verify: |folder, options| DiskMap::open_in(folder, options)?.verify(),
    },
];

struct Case {
    kind: &'static Kind,
    bytes: Vec<u8>,
    contents: Contents,
    peak_bytes: usize,
    resources: Arc<Resources>,
}

fn options(resources: &Arc<Resources>) -> Options {
    Options { page_bytes: PAGE, ..Options::new(resources) }
}

fn with_peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let result = work();
    (result, HEAP.peak_usage().saturating_sub(before))
}

impl Case {
    fn new(kind: &'static Kind) -> Self {
        let job = Arc::new(Job::new());
        let resources = Arc::new(Resources::new(Budget::new(MEMORY, 0), job, Some(2)).unwrap());
        let folder = FaultFolder::new();
        (kind.fill)(&folder, options(&resources)).unwrap();
        let bytes = {
            let device = folder.open(PAGES).unwrap();
            let mut bytes = vec![0; device.len().unwrap() as usize];
            assert_eq!(device.read_at(&mut bytes, 0).unwrap(), bytes.len());
            bytes
        };
        let (contents, peak_bytes) = with_peak(|| {
            assert!((kind.verify)(&folder, options(&resources)).unwrap() > 0);
            (kind.read)(&folder, options(&resources)).unwrap()
        });
        assert!(!contents.is_empty());
        Self { kind, bytes, contents, peak_bytes, resources }
    }

    /// The results of reading and of verifying a collection with these bytes.
    fn examine(
        &self,
        bytes: &[u8],
        problem: &str,
    ) -> (Result<Contents, Error>, Result<u64, Error>) {
        let folder = FaultFolder::new();
        folder.create(PAGES).unwrap().write_at(bytes, 0).unwrap();
        self.examine_folder(&folder, problem)
    }

    fn examine_folder(
        &self,
        folder: &FaultFolder,
        problem: &str,
    ) -> (Result<Contents, Error>, Result<u64, Error>) {
        let (examined, peak_bytes) = with_peak(|| {
            let read = (self.kind.read)(folder, options(&self.resources));
            (read, (self.kind.verify)(folder, options(&self.resources)))
        });
        let most = 2 * self.peak_bytes + SLACK_BYTES;
        assert!(
            peak_bytes <= most,
            "{}: {problem}: {peak_bytes} bytes at once, {most} are enough",
            self.kind.name
        );
        examined
    }

    /// Checks that the content read is right or refused, and that it is right if `verify` finds no
    /// damage. True if `verify` found it.
    fn assert_found_or_harmless(&self, bytes: &[u8], problem: &str) -> bool {
        let name = self.kind.name;
        let refused = |error: &Error| {
            let is_expected = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Input);
            assert!(is_expected, "{name}: {problem}: {error}");
        };
        let (read, verified) = self.examine(bytes, problem);
        match &read {
            Ok(contents) => {
                assert!(*contents == self.contents, "{name}: {problem}: other contents")
            }
            Err(error) => refused(error),
        }
        verified.as_ref().err().into_iter().for_each(refused);
        assert!(read.is_ok() || verified.is_err(), "{name}: {problem}: `verify` does not find it");
        verified.is_err()
    }
}

#[test]
fn damage_to_any_kind_of_collection_is_found_or_harmless() {
    let _turn = turn();
    let (mut found, mut harmless) = (0, 0);
    for case in KINDS.iter().map(Case::new) {
        let bytes = &case.bytes;
        let mut check = |problem: String, change: &dyn Fn(&mut Vec<u8>)| {
            let mut damaged = bytes.clone();
            change(&mut damaged);
            if damaged != *bytes {
                let is_found = case.assert_found_or_harmless(&damaged, &problem);
                *(if is_found { &mut found } else { &mut harmless }) += 1;
            }
        };
        let in_root = |at: &usize| *at < 200 || (4096..4296).contains(at);
        for at in (0..bytes.len()).filter(|at| in_root(at) || at % 211 == 0).take(700) {
            check(format!("bit flipped at {at}"), &|b| b[at] ^= 1 << (at % 8));
        }
        for page in 0..bytes.len() / PAGE {
            let (from, other) = (page * PAGE, (page + 1) % (bytes.len() / PAGE) * PAGE);
            check(format!("page {page} zeroed"), &|b| b[from..from + PAGE].fill(0));
            check(format!("page {page} exchanged"), &|b| {
                let (one, two) = (b[from..from + PAGE].to_vec(), b[other..other + PAGE].to_vec());
                b[from..from + PAGE].copy_from_slice(&two);
                b[other..other + PAGE].copy_from_slice(&one);
            });
            check(format!("cut at page {page}"), &|b| b.truncate(from));
            check(format!("cut in page {page}"), &|b| b.truncate(from + 100));
        }
        check("longer".into(), &|b| b.resize(b.len() + 3 * PAGE, 7));
    }
    // Free slots and the ends of pages are never read.
    assert!(found > 1000 && found > harmless, "{found} found, {harmless} harmless");
}

#[test]
fn a_broken_copy_of_the_root_is_found_and_written_again() {
    let _turn = turn();
    for case in KINDS.iter().map(Case::new) {
        for at in [40, 4096 + 40] {
            let mut damaged = case.bytes.clone();
            damaged[at] ^= 1;
            let folder = FaultFolder::new();
            folder.create(PAGES).unwrap().write_at(&damaged, 0).unwrap();
            let (read, verified) = case.examine_folder(&folder, "a copy of the root");
            assert_eq!(read.unwrap(), case.contents);
            let error = verified.unwrap_err().to_string();
            assert!(
                error.contains("two copies of the root") && error.contains("next sync"),
                "{error}"
            );
            let purpose = Purpose { name: PAGES, kind: case.kind.number, page_bytes: PAGE };
            let memory = case.resources.budget.reserve(1 << 20, "here").unwrap();
            let (pages, meta) = PageFile::open(&folder, &purpose, memory, &Arc::default()).unwrap();
            pages.sync(&meta).unwrap();
            drop(pages);
            let (read, verified) = case.examine_folder(&folder, "mended");
            assert_eq!(read.unwrap(), case.contents);
            verified.unwrap();
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Numbers that break arithmetic.
const NUMBERS: [u64; 9] = [0, 1, 47, 255, 1 << 31, u32::MAX as u64, 1 << 48, 1 << 62, u64::MAX];

/// Writes a number of 1 to 8 bytes near the front, where the headers are, or anywhere.
fn forge(bytes: &mut [u8], random: &mut Random) {
    let within = if random.below(2) == 0 { 64 } else { bytes.len() as u64 };
    let at = random.below(within.min(bytes.len() as u64)) as usize & !3;
    let end = bytes.len().min(at + [1, 2, 4, 8][random.below(4) as usize]);
    let number = NUMBERS[random.below(9) as usize].wrapping_sub(random.below(3)).to_le_bytes();
    bytes[at..end].copy_from_slice(&number[..end - at]);
}

#[test]
fn forged_collections_end_with_contents_or_a_typed_error() {
    let _turn = turn();
    for case in KINDS.iter().map(Case::new) {
        let mut random = Random(u64::from(case.kind.number));
        for number in 0..600 {
            let folder = FaultFolder::new();
            folder.create(PAGES).unwrap().write_at(&case.bytes, 0).unwrap();
            let purpose = Purpose { name: PAGES, kind: case.kind.number, page_bytes: PAGE };
            let memory = case.resources.budget.reserve(1 << 20, "here").unwrap();
            let (pages, mut meta) =
                PageFile::open(&folder, &purpose, memory, &Arc::default()).unwrap();
            for _ in 0..=random.below(2) {
                let stream = random.below(STREAMS as u64) as u8;
                match pages.pages(stream) {
                    0 => forge(&mut meta, &mut random),
                    count => {
                        let page = PageId::new(stream, random.below(count));
                        pages
                            .update(&pages.write(), page, |page| {
                                forge(page.bytes_mut(), &mut random)
                            })
                            .unwrap();
                    }
                }
            }
            // Sync writes valid checksums.
            pages.sync(&meta).unwrap();
            drop(pages);
            let (read, verified) = case.examine_folder(&folder, &format!("forgery {number}"));
            for error in [read.err(), verified.err()].into_iter().flatten() {
                let is_expected = matches!(
                    error.kind(),
                    ErrorKind::Corrupt | ErrorKind::Input | ErrorKind::Budget
                );
                assert!(is_expected, "{}: forgery {number}: {error}", case.kind.name);
            }
        }
    }
}

#[test]
fn lists_are_verified_with_their_bag() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists");
    let resources =
        Resources::new(Budget::new(64 << 20, 0), Arc::new(Job::new()), Some(2)).unwrap();
    let resources = Arc::new(resources);
    let lists = DiskLists::open(&path, 40, Options::new(&resources)).unwrap();
    lists.append_many(&[0, 7, 7, 39], &[1, 2, 3, 4]).unwrap();
    lists.sync().unwrap();
    assert!(lists.verify().unwrap() >= 3 * PAGE_BYTES as u64);
    drop(lists);
    let file = path.join(PAGES);
    let mut bytes = std::fs::read(&file).unwrap();
    // The first page after the roots and the gap.
    bytes[PAGE_BYTES + 1] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let opened = DiskLists::open(&path, 40, Options::new(&resources));
    let error = opened.and_then(|lists| lists.verify()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

//! Durable pages: a model, crashes at every sync, failures of every operation, damaged files.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use brimful_store::durable::{PageFile, PageId, Purpose, minimum_bytes};
use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::{Budget, DiskFolder, Error, Folder, Reservation, checksum};

use crate::{contents, mix, replace, traffic};

const PAGE: usize = 4096;
const PURPOSE: Purpose<'static> = Purpose { name: "pages", kind: 7, page_bytes: PAGE };

/// The content of every page: the number that fills it.
type Model = BTreeMap<PageId, u64>;

fn memory(bytes: u64) -> Reservation {
    Budget::new(bytes, 0).reserve(bytes, "here").unwrap()
}

fn create(folder: &dyn Folder) -> Result<PageFile, Error> {
    PageFile::create(folder, &PURPOSE, b"empty", memory(minimum_bytes(PAGE)), &traffic())
}

fn open(folder: &dyn Folder) -> Result<(PageFile, Vec<u8>), Error> {
    PageFile::open(folder, &PURPOSE, memory(minimum_bytes(PAGE)), &traffic())
}

fn put(pages: &PageFile, page: PageId, value: u64) -> Result<(), Error> {
    pages.update(&pages.write(), page, |page| {
        page.bytes_mut()
            .chunks_exact_mut(8)
            .for_each(|word| word.copy_from_slice(&value.to_le_bytes()));
    })
}

fn get(pages: &PageFile, page: PageId) -> Result<u64, Error> {
    pages.read(page, |bytes| {
        let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert!(
            bytes.chunks_exact(8).all(|word| word == first.to_le_bytes()),
            "a page is of one piece"
        );
        first
    })
}

/// One of the pages of two streams, which exceed the cache.
fn some_page(random: u64) -> PageId {
    PageId::new((random >> 8) as u8 % 2, (random >> 16) % 80)
}

fn assert_holds(pages: &PageFile, model: &Model) {
    for stream in 0..2 {
        for number in 0..80 {
            let page = PageId::new(stream, number);
            assert_eq!(
                get(pages, page).unwrap(),
                model.get(&page).copied().unwrap_or(0),
                "{page:?}"
            );
        }
    }
}

/// Changes, discards, syncs and compacts; returns the model at the start of each sync, the last one
/// last.
fn work(pages: &PageFile, seed: u64, steps: u64) -> Result<Vec<Model>, (Vec<Model>, Error)> {
    let (mut model, mut synced) = (Model::new(), vec![Model::new()]);
    for step in 0..steps {
        let random = mix(seed << 32 | step);
        let page = some_page(random);
        let done = match random % 64 {
            0 => {
                synced.push(model.clone());
                pages.sync(format!("{}", synced.len()).as_bytes())
            }
            1 => {
                synced.push(model.clone());
                pages.compact(|_| Ok(format!("{}", synced.len()).into_bytes()))
            }
            2..=8 => pages.discard(&pages.write(), page).map(|()| {
                model.remove(&page);
            }),
            9..=20 => get(pages, page)
                .map(|found| assert_eq!(found, model.get(&page).copied().unwrap_or(0))),
            _ => put(pages, page, random).map(|()| {
                model.insert(page, random);
            }),
        };
        if let Err(error) = done {
            return Err((synced, error));
        }
    }
    synced.push(model);
    Ok(synced)
}

#[test]
fn pages_agree_with_a_model_across_syncs_and_reopening() {
    let _turn = crate::folders::turn_with_real_files();
    let folder = tempfile::tempdir().unwrap();
    let folder = DiskFolder::new(folder.path());
    drop(create(&folder).unwrap());
    let (pages, meta) = open(&folder).unwrap();
    assert_eq!(meta, b"empty");
    let model = work(&pages, 1, 4000).unwrap().pop().unwrap();
    assert_holds(&pages, &model);
    pages.sync(b"last").unwrap();
    drop(pages);
    let (pages, meta) = open(&folder).unwrap();
    assert_eq!(meta, b"last");
    assert_holds(&pages, &model);
}

#[test]
fn what_was_not_synced_is_gone_and_what_was_stays() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    // More pages than the cache holds, so that many were evicted to the file before the crash.
    (0..80).for_each(|n| put(&pages, PageId::new(0, n), 1).unwrap());
    pages.sync(b"one").unwrap();
    (0..80).for_each(|n| put(&pages, PageId::new(0, n), 2).unwrap());
    for seed in 0..20 {
        folder.set_plan(FaultPlan::new().torn(seed));
        let (pages, meta) = open(&folder.crash()).unwrap();
        assert_eq!(meta, b"one");
        (0..80).for_each(|n| assert_eq!(get(&pages, PageId::new(0, n)).unwrap(), 1));
    }
}

#[test]
fn a_crash_at_any_sync_leaves_all_or_nothing_of_it() {
    for seed in 0..6 {
        let folder = FaultFolder::new();
        let pages = create(&folder).unwrap();
        folder.set_plan(FaultPlan::new());
        work(&pages, seed, 500).unwrap();
        drop(pages);
        let syncs = folder.count(Operation::Sync);
        assert!(syncs > 8, "{syncs} syncs");
        for at in 1..=syncs {
            for torn in 0..3 {
                let folder = FaultFolder::new();
                let pages = create(&folder).unwrap();
                let plan = FaultPlan::new().freeze_from_sync(at);
                folder.set_plan(if torn > 0 { plan.torn(at * 8 + torn) } else { plan });
                let synced = work(&pages, seed, 500).unwrap();
                let (pages, meta) = open(&folder.crash()).unwrap();
                // `meta` names the surviving sync: the frozen one or the one before.
                let number = if meta == b"empty" {
                    1
                } else {
                    String::from_utf8(meta).unwrap().parse().unwrap()
                };
                assert_holds(&pages, &synced[number - 1]);
                // The surviving file can be used and made durable again.
                put(&pages, PageId::new(1, 3), 99).unwrap();
                pages.sync(b"after").unwrap();
                assert_eq!(get(&pages, PageId::new(1, 3)).unwrap(), 99);
            }
        }
    }
}

#[test]
fn a_crash_while_it_is_made_leaves_nothing_or_an_empty_file() {
    let folder = FaultFolder::new();
    drop(create(&folder).unwrap());
    for at in 1..=folder.count(Operation::Sync) {
        for seed in 0..8 {
            let folder = FaultFolder::new();
            folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(seed));
            create(&folder).unwrap();
            let after = folder.crash();
            match open(&after) {
                Ok((_, meta)) => assert_eq!(meta, b"empty"),
                Err(Error::Io { source, .. }) => {
                    assert_eq!(source.kind(), ErrorKind::NotFound);
                    create(&after).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn after_a_failed_sync_everything_is_refused_until_reopened() {
    for at in 1..=2 {
        let folder = FaultFolder::new();
        let pages = create(&folder).unwrap();
        let page = PageId::new(0, 1);
        put(&pages, page, 1).unwrap();
        pages.sync(b"1").unwrap();
        put(&pages, page, 2).unwrap();
        folder.set_plan(FaultPlan::new().fail(Operation::Sync, at, Fault::Io));
        assert!(matches!(pages.sync(b"2"), Err(Error::Io { operation: "sync", .. })));
        assert!(matches!(get(&pages, page), Err(Error::Poisoned { .. })));
        assert!(matches!(put(&pages, page, 3), Err(Error::Poisoned { .. })));
        assert!(matches!(pages.sync(b"3"), Err(Error::Poisoned { .. })));
        drop(pages);
        let (pages, _) = open(&folder.crash()).unwrap();
        assert_eq!(get(&pages, page).unwrap(), 1);
    }
}

#[test]
fn a_failed_write_or_read_anywhere_is_an_error_and_loses_nothing() {
    for operation in [Operation::Write, Operation::Read] {
        for number in (1..400).step_by(3) {
            let folder = FaultFolder::new();
            let pages = create(&folder).unwrap();
            folder.set_plan(FaultPlan::new().fail(operation, number, Fault::Io));
            let Err((synced, error)) = work(&pages, number, 600) else {
                continue;
            };
            assert!(matches!(error, Error::Io { .. }), "{error}");
            // A change or a sync may have failed: another sync succeeds and keeps all stored data.
            pages.sync(b"again").unwrap();
            drop(pages);
            let (pages, meta) = open(&folder.crash()).unwrap();
            assert_eq!(meta, b"again");
            let last = synced.last().unwrap();
            let kept =
                last.iter().filter(|(page, value)| get(&pages, **page).unwrap() == **value).count();
            assert!(kept * 2 >= last.len() || last.len() < 8, "{kept} of {}", last.len());
        }
    }
}

#[test]
fn a_full_disk_is_an_error_that_says_so_and_ends_when_there_is_room() {
    let mut refused = 0;
    for pages_free in 0..60 {
        let folder = FaultFolder::new();
        let pages = create(&folder).unwrap();
        (0..40).for_each(|n| put(&pages, PageId::new(0, n), 1).unwrap());
        pages.sync(b"1").unwrap();
        let capacity = folder.used_bytes() + pages_free * PAGE as u64 + 100;
        folder.set_plan(FaultPlan::new().capacity(capacity));
        let store = |value| {
            (0..40)
                .try_for_each(|n| put(&pages, PageId::new(0, n), value))
                .and_then(|()| pages.sync(b"2"))
        };
        let Err(error) = store(2) else {
            continue;
        };
        refused += 1;
        assert!(
            matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
        );
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let (survivor, _) = open(&folder.crash()).unwrap();
        (0..40).for_each(|n| assert_eq!(get(&survivor, PageId::new(0, n)).unwrap(), 1));
        folder.set_plan(FaultPlan::new());
        store(3).unwrap();
        let (survivor, _) = open(&folder.crash()).unwrap();
        (0..40).for_each(|n| assert_eq!(get(&survivor, PageId::new(0, n)).unwrap(), 3));
    }
    assert!(refused > 20, "{refused} refused");
}

#[test]
fn short_transfers_change_nothing() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    folder.set_plan(FaultPlan::new().varying(1000, 5));
    let model = work(&pages, 9, 400).unwrap().pop().unwrap();
    pages.sync(b"end").unwrap();
    assert_holds(&open(&folder.crash()).unwrap().0, &model);
}

/// Reads everything; `Ok` means that everything equals `model`.
fn read_all(folder: &FaultFolder, model: &Model) -> Result<(), Error> {
    let (pages, _) = open(folder)?;
    for (page, value) in model {
        assert_eq!(get(&pages, *page)?, *value);
    }
    Ok(())
}

fn synced_file() -> (Vec<u8>, Model) {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    let model: Model = (0..20).map(|n| (PageId::new(0, n), n + 1)).collect();
    model.iter().for_each(|(page, value)| put(&pages, *page, *value).unwrap());
    pages.sync(b"x").unwrap();
    (contents(&folder, "pages"), model)
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let (bytes, model) = synced_file();
    let (mut found, mut harmless) = (0, 0);
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let folder = FaultFolder::new();
        replace(&folder, "pages", &damaged);
        match read_all(&folder, &model) {
            Err(Error::Corrupt { .. }) => found += 1,
            // In one of the two roots, in free slots, or in the table's unused end.
            Ok(()) => harmless += 1,
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(found > 20 * PAGE / 97, "{found} found, {harmless} harmless");
}

#[test]
fn both_roots_must_be_damaged_to_lose_the_file() {
    let (bytes, model) = synced_file();
    let damage = |places: &[usize]| {
        let (mut damaged, folder) = (bytes.clone(), FaultFolder::new());
        places.iter().for_each(|at| damaged[*at] ^= 0x40);
        replace(&folder, "pages", &damaged);
        read_all(&folder, &model)
    };
    assert!(damage(&[30]).is_ok() && damage(&[4096 + 30]).is_ok());
    assert!(matches!(damage(&[30, 4096 + 30]), Err(Error::Corrupt { .. })));
    assert!(matches!(damage(&[0, 4096]), Err(Error::Corrupt { offset: 0, .. })));
}

#[test]
fn a_cut_file_is_corrupt() {
    let (bytes, model) = synced_file();
    for len in [0, 1, 4095, 4096, 8191, 8192, 9000, bytes.len() / 2, bytes.len() - PAGE - 1] {
        let folder = FaultFolder::new();
        replace(&folder, "pages", &bytes[..len]);
        match read_all(&folder, &model) {
            Err(Error::Corrupt { path, .. }) => assert!(path.ends_with("pages")),
            other => panic!("{len} bytes: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_open_is_filled_again() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    (0..80).for_each(|number| put(&pages, PageId::new(0, number), number).unwrap());
    pages.sync(b"").unwrap();
    let (pages, _) = open(&folder).unwrap();
    folder.open_to_change("pages").unwrap().set_len(3 * PAGE as u64).unwrap();
    let cut = get(&pages, PageId::new(0, 79)).unwrap_err();
    assert!(matches!(&cut, Error::Corrupt { .. }));
    assert!(cut.to_string().ends_with("from a copy or fill it again"), "{cut}");
}

#[test]
fn another_kind_and_a_newer_version_are_refused() {
    let folder = FaultFolder::new();
    drop(create(&folder).unwrap());
    let other = Purpose { kind: 8, ..PURPOSE };
    let refused = PageFile::open(&folder, &other, memory(minimum_bytes(PAGE)), &traffic());
    assert!(matches!(refused, Err(Error::PageKind { found: 7, expected: 8, .. })));
    let whole = contents(&folder, "pages");
    let mut bytes = whole.clone();
    (bytes[8], bytes[4096 + 8]) = (2, 2);
    replace(&folder, "pages", &bytes);
    assert!(
        matches!(open(&folder), Err(Error::Corrupt { .. })),
        "a damaged version is no newer one"
    );
    for root in bytes[..2 * 4096].as_chunks_mut::<4096>().0 {
        let sum = checksum(&root[..4088]);
        root[4088..].copy_from_slice(&sum.to_le_bytes());
    }
    let newer = bytes[..4096].to_vec();
    let (first, second) = ([&newer, &whole[4096..]].concat(), [&whole[..4096], &newer].concat());
    for bytes in [bytes, first, second] {
        replace(&folder, "pages", &bytes);
        assert!(matches!(open(&folder), Err(Error::Version { found: 2, supported: 1, .. })));
    }
    assert!(matches!(create(&folder), Err(Error::Exists { .. })));
}

#[test]
fn too_little_memory_is_refused_with_what_works() {
    let folder = FaultFolder::new();
    let refused = PageFile::create(&folder, &PURPOSE, b"", memory(10_000), &traffic());
    let Err(Error::Budget { needed, .. }) = refused else { panic!("{refused:?}") };
    PageFile::create(&folder, &PURPOSE, b"", memory(needed), &traffic()).unwrap();
}

#[test]
fn space_is_reused_and_given_back() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    let used = 400 * PAGE as u64;
    for round in 1..=10 {
        (0..400)
            .for_each(|n| put(&pages, PageId::new(0, mix(round << 16 | n) % 400), round).unwrap());
        (0..400).for_each(|n| put(&pages, PageId::new(0, n), round).unwrap());
        pages.sync(b"").unwrap();
        let bytes = pages.file_bytes().unwrap();
        assert!(bytes < used * 7 / 4, "round {round}: {bytes} for {used}");
    }
    pages.compact(|_| Ok(Vec::new())).unwrap();
    assert!(pages.file_bytes().unwrap() < used * 5 / 4, "{}", pages.file_bytes().unwrap());
    (0..350).for_each(|n| pages.discard(&pages.write(), PageId::new(0, n)).unwrap());
    pages.compact(|_| Ok(Vec::new())).unwrap();
    assert!(pages.file_bytes().unwrap() < 90 * PAGE as u64, "{}", pages.file_bytes().unwrap());
    (350..400).for_each(|n| assert_eq!(get(&pages, PageId::new(0, n)).unwrap(), 10));
    (0..350).for_each(|n| assert_eq!(get(&pages, PageId::new(0, n)).unwrap(), 0));
}

#[test]
fn syncs_that_fail_at_their_root_lose_no_space() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    let page = PageId::new(0, 0);
    for round in 0..100 {
        put(&pages, page, round).unwrap();
        // The page, its part of the table and the directory are written before the root.
        folder.set_plan(FaultPlan::new().fail(Operation::Write, 4, Fault::Io));
        assert!(matches!(pages.sync(b""), Err(Error::Io { operation: "write", .. })));
        folder.set_plan(FaultPlan::new());
        assert_eq!(get(&open(&folder.crash()).unwrap().0, page).unwrap(), 0);
    }
    pages.sync(b"").unwrap();
    assert!(pages.file_bytes().unwrap() < 40 * PAGE as u64, "{}", pages.file_bytes().unwrap());
    assert_eq!(get(&open(&folder.crash()).unwrap().0, page).unwrap(), 99);
}

#[test]
fn many_threads_read_change_and_sync_at_once() {
    let _turn = crate::folders::turn_with_real_files();
    let folder = tempfile::tempdir().unwrap();
    let folder = DiskFolder::new(folder.path());
    let pages = Arc::new(create(&folder).unwrap());
    let threads = 4;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let pages = &pages;
            scope.spawn(move || {
                let mut scanner = pages.scanner();
                for round in 1..=30 {
                    let mine = (thread..120).step_by(threads as usize).map(|n| PageId::new(0, n));
                    scanner.load(mine.clone()).unwrap();
                    mine.clone().for_each(|page| put(pages, page, round).unwrap());
                    let mut seen = 0;
                    scanner
                        .visit(mine, |_, bytes| {
                            assert_eq!(bytes[..8], round.to_le_bytes());
                            assert!(bytes.chunks_exact(8).all(|word| word == &bytes[..8]));
                            seen += 1;
                            Ok(())
                        })
                        .unwrap();
                    assert_eq!(seen, 30);
                    if round % 8 == thread {
                        pages.sync(b"some").unwrap();
                    }
                }
            });
        }
    });
    pages.sync(b"all").unwrap();
    drop(pages);
    let (pages, _) = open(&folder).unwrap();
    (0..120).for_each(|n| assert_eq!(get(&pages, PageId::new(0, n)).unwrap(), 30));
}

#[test]
fn a_second_crash_after_recovery_leaves_all_or_nothing_too() {
    for seed in 0..40 {
        let folder = FaultFolder::new();
        let pages = create(&folder).unwrap();
        folder.set_plan(FaultPlan::new().freeze_from_sync(5 + seed % 7).torn(seed));
        work(&pages, seed, 500).unwrap();
        for at in 1..=2 {
            // Its second root may be missing, torn, or older than the first.
            let folder = folder.crash();
            let (pages, meta) = open(&folder).unwrap();
            let all = (0..160).map(|n| PageId::new((n % 2) as u8, n / 2));
            let before: Model = all.map(|page| (page, get(&pages, page).unwrap())).collect();
            folder.set_plan(FaultPlan::new().freeze_from_sync(at).torn(seed * 2 + at));
            let after: Model = before.keys().map(|page| (*page, 1000 + seed)).collect();
            after.iter().for_each(|(page, value)| put(&pages, *page, *value).unwrap());
            pages.sync(b"second").unwrap();
            let (pages, found) = open(&folder.crash()).unwrap();
            assert!(found == meta || found == b"second");
            assert_holds(&pages, if found == meta { &before } else { &after });
        }
    }
}

#[test]
fn a_page_whose_table_exceeds_the_memory_is_refused_before_it_changes() {
    let folder = FaultFolder::new();
    let pages = create(&folder).unwrap();
    put(&pages, PageId::new(0, 3), 7).unwrap();
    for far in [1 << 20, 1 << 40, (1 << 60) - 1] {
        let refused = put(&pages, PageId::new(0, far), 8).unwrap_err();
        let Error::Budget { needed, .. } = refused else { panic!("{refused:?}") };
        assert!(needed >= far * 16, "{needed} for page {far}");
    }
    pages.sync(b"done").unwrap();
    drop(pages);
    let (pages, _) = open(&folder).unwrap();
    assert_eq!((pages.pages(0), get(&pages, PageId::new(0, 3)).unwrap()), (4, 7));
    assert_eq!(get(&pages, PageId::new(0, 1 << 40)).unwrap(), 0);
}

#[test]
fn pages_between_those_that_were_written_are_zeros() {
    let folder = FaultFolder::new();
    let memory = || memory(minimum_bytes(PAGE) + (1 << 20));
    let pages = PageFile::create(&folder, &PURPOSE, b"", memory(), &traffic()).unwrap();
    put(&pages, PageId::new(0, 1), 7).unwrap();
    pages.sync(b"").unwrap();
    // In another page of the table, and without a change.
    put(&pages, PageId::new(0, 5000), 8).unwrap();
    pages.update(&pages.write(), PageId::new(0, 5010), |_| ()).unwrap();
    pages.update(&pages.write(), PageId::new(1, 20), |_| ()).unwrap();
    pages.sync(b"").unwrap();
    drop(pages);
    let (pages, _) = PageFile::open(&folder, &PURPOSE, memory(), &traffic()).unwrap();
    for (number, value) in [(0, 0), (1, 7), (2, 0), (255, 0), (4000, 0), (5000, 8), (5010, 0)] {
        assert_eq!(get(&pages, PageId::new(0, number)).unwrap(), value, "page {number}");
    }
    assert_eq!(get(&pages, PageId::new(1, 20)).unwrap(), 0);
    pages.verify(&brimful_store::Job::new()).unwrap();
}

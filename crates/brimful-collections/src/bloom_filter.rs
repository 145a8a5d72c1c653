//! A Bloom filter (Bloom 1970): a few bits per key, with a small rate of false positives.
//!
//! All bits of a key are in one page, which its mixed bits select, so a look-up costs one read. The
//! bits of a key are an arithmetic progression, and progressions within a page may overlap. This
//! adds 3e-6 to the rate of false positives in pages of 16 KiB, and twice as much in pages half as
//! large: a filter for a rate below this would not keep it, and is not made. Invariant: a key that
//! was added is always found.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_store::durable::{PageFile, PageId, Scanner, resident_bytes};
use brimful_store::external::FolderLock;
use brimful_store::wording::counted;
use brimful_store::{Error as StoreError, Folder};

use crate::by_range::{Asked, by_range, question_len, visit_pages};
use crate::error::{Error, Result};
use crate::fields::u64_at;
use crate::folder::{Kind, folder_of, is_new, lock_folder, open_pages, window};
use crate::hash_pages::{mix, unmix};
use crate::options::Options;
use crate::partition_log::PartitionLog;

/// The least rate of false positives, times the bytes of a page. At the least rate of pages of 16
/// KiB, 1e-5, the true rate is 1.33e-5.
const LEAST_RATE: f64 = 1e-5 * 16384.0;

/// A Bloom filter of 64-bit keys, larger than memory.
#[derive(Debug)]
pub struct BloomFilter {
    pages: PageFile,
    log: PartitionLog,
    options: Options,
    page_count: u64,
    probes: u32,
    /// The number of keys, and the f64 bits of the rate, for which the filter was made.
    made_for: [u64; 2],
    /// Number of keys added, including repeats.
    added: AtomicU64,
    /// `None` for a folder that is not of the file system.
    _lock: Option<FolderLock>,
}

impl BloomFilter {
    /// Opens the filter at `path`, or makes it for `keys` keys. After `keys` additions, a key that
    /// was not added is found with probability `false_positives`: at least 1e-5 in pages of 16 KiB,
    /// twice as much in pages half as large, and so on.
    ///
    /// # Errors
    /// [`Error::Usage`] for 0 keys, a rate that is not between 0 and 1, or a new filter with a
    /// lower rate than its pages can have; [`Error::RecordType`] if the filter was made for other
    /// values.
    pub fn open(path: &Path, keys: u64, false_positives: f64, options: Options) -> Result<Self> {
        let (folder, lock) = lock_folder(path)?;
        let mut opened = Self::open_in(&folder, keys, false_positives, options)?;
        opened._lock = Some(lock);
        Ok(opened)
    }

    /// Like [`BloomFilter::open`], in any folder; the caller ensures that no other process has it
    /// open.
    pub fn open_in(
        folder: &dyn Folder,
        keys: u64,
        false_positives: f64,
        options: Options,
    ) -> Result<Self> {
        if keys == 0 || !(false_positives > 0.0 && false_positives < 1.0) {
            return Err(Error::Usage(format!(
                "a Bloom filter needs at least 1 key and a false-positive rate between 0 and 1, \
                 not {keys} and {false_positives}"
            )));
        }
        let (memory, options) = PartitionLog::reserve(options)?;
        // m = -n ln p / (ln 2)^2 bits and k = m/n ln 2 probes (Bloom 1970).
        let bits_per_key = -false_positives.ln() / std::f64::consts::LN_2.powi(2);
        let probes = (bits_per_key * std::f64::consts::LN_2).round().clamp(1.0, 32.0) as u64;
        let bits = (keys as f64 * bits_per_key).ceil() as u64;
        let count_pages = |page_bytes: usize| bits.div_ceil(page_bytes as u64 * 8).max(1);
        let made = [count_pages(options.page_bytes), probes, 0, keys, false_positives.to_bits()];
        let meta: Vec<u8> = made.iter().flat_map(|field| field.to_le_bytes()).collect();
        let require_table = |page_bytes: usize| {
            let bytes = resident_bytes(count_pages(page_bytes), page_bytes);
            let purpose = format!("for a Bloom filter for {}", counted(keys, "key"));
            options.require(Options::memory_for_pages(bytes), &purpose)
        };
        // A filter that is refused must not be made.
        if is_new(folder)? {
            let least = LEAST_RATE / options.page_bytes as f64;
            if false_positives < least {
                return Err(Error::Usage(format!(
                    "a Bloom filter needs a false-positive rate of at least {least:e} in pages of \
                     {} bytes, not {false_positives:e}; a set has no false positives",
                    options.page_bytes
                )));
            }
            require_table(options.page_bytes)?;
        }
        let (pages, meta) = open_pages(folder, Kind::BloomFilter, &options, (&meta, 40))?;
        let (found_keys, found_rate) = (u64_at(&meta, 24), f64::from_bits(u64_at(&meta, 32)));
        if (found_keys, found_rate) != (keys, false_positives) {
            let name = |keys: u64, rate: f64| {
                format!("a Bloom filter for {} at a rate of {rate}", counted(keys, "key"))
            };
            let (expected, found) = (name(keys, false_positives), name(found_keys, found_rate));
            return Err(Error::RecordType { path: folder.path().into(), expected, found });
        }
        let (page_count, found_probes) = (u64_at(&meta, 0), u64_at(&meta, 8));
        // The result of a logarithm may differ slightly between machines.
        let is_near = |found: u64, made: u64| found > 0 && found.abs_diff(made) <= 1;
        if !is_near(page_count, count_pages(pages.page_bytes())) || !is_near(found_probes, probes) {
            let problem = format!(
                "a filter for {} cannot have {} and {}",
                counted(keys, "key"),
                counted(page_count, "page"),
                counted(found_probes, "probe")
            );
            return Err(StoreError::corrupt_pages(pages.path(), 0, problem).into());
        }
        require_table(pages.page_bytes())?;
        let log = PartitionLog::new(folder, &options, memory)?;
        Ok(Self {
            pages,
            log,
            options,
            page_count,
            probes: found_probes as u32,
            made_for: [keys, false_positives.to_bits()],
            added: AtomicU64::new(u64_at(&meta, 16)),
            _lock: None,
        })
    }

    /// Number of pending keys: the next query applies them first, which may take long.
    pub fn pending(&self) -> u64 {
        self.log.len()
    }

    /// Number of keys accepted since the filter was opened, including repeats.
    pub fn accepted(&self) -> u64 {
        self.log.accepted()
    }

    /// The path of the filter.
    pub fn path(&self) -> &Path {
        folder_of(&self.pages)
    }

    /// Size of the bit array, in bytes.
    pub fn bytes(&self) -> u64 {
        self.page_count * self.pages.page_bytes() as u64
    }

    /// Number of bits probed per key.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Number of keys added, including repeats.
    pub fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    fn page_of(&self, mixed: u64) -> u64 {
        ((u128::from(mixed) * u128::from(self.page_count)) >> 64) as u64
    }

    /// The byte and the bit mask of each probe of a key within its page.
    fn places(&self, mixed: u64) -> impl Iterator<Item = (usize, u8)> + use<> {
        // Two hashes give all probes (Kirsch and Mitzenmacher 2006).
        let second = mix(mixed);
        let (mut at, step) = (second as u32, (second >> 32) as u32 | 1);
        let mask = (self.pages.page_bytes() as u64 * 8 - 1) as u32;
        (0..self.probes).map(move |_| {
            let bit = at & mask;
            at = at.wrapping_add(step);
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }

    /// Adds all keys, or none after a failure. The keys may stay pending until the next query or
    /// sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        // Applies before it accepts these keys, because a cancellation may interrupt `apply`.
        if self.log.is_full() {
            self.apply()?;
        }
        self.log.push(keys, mix, &self.options)?;
        self.added.fetch_add(keys.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn apply(&self) -> Result<()> {
        // Setting a bit twice is harmless: an interrupted piece is applied again from its start.
        self.log.drain(&self.options, mix, unmix, |keys| {
            self.set_bits(keys).map_err(|error| (0, error))
        })
    }

    fn set_bits(&self, keys: &[u64]) -> Result<()> {
        let writing = self.pages.write();
        let groups: Vec<&[u64]> =
            keys.chunk_by(|a, b| self.page_of(*a) == self.page_of(*b)).collect();
        let page =
            |group: &&[u64]| PageId::new(0, group.first().map_or(0, |key| self.page_of(*key)));
        for groups in groups.chunks(window(&self.pages, &self.options.resources)) {
            self.options.resources.job.check()?;
            self.pages.scanner().load(groups.iter().map(page))?;
            for group in groups {
                self.pages.update(&writing, page(group), |page| {
                    let bytes = page.bytes_mut();
                    for (at, bit) in group.iter().flat_map(|key| self.places(*key)) {
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte |= bit;
                        }
                    }
                })?;
            }
        }
        Ok(())
    }

    fn may_be(&self, bytes: &[u8], mixed: u64) -> bool {
        self.places(mixed).all(|(at, bit)| bytes.get(at).is_some_and(|byte| byte & bit != 0))
    }

    /// False if `key` was never added, except for false positives; true if it was added.
    pub fn contains(&self, key: u64) -> Result<bool> {
        self.apply()?;
        let mixed = mix(key);
        Ok(self
            .pages
            .read(PageId::new(0, self.page_of(mixed)), |bytes| self.may_be(bytes, mixed))?)
    }

    /// The number of keys per query for callers that copy keys and answers: as many as the budget
    /// has memory for. Other callers should ask for all keys at once, which costs no copy.
    pub fn question_len(&self) -> usize {
        question_len(&self.options)
    }

    /// Like [`BloomFilter::contains`], for each of `keys`, in the order of `keys`.
    pub fn contains_many(&self, keys: &[u64]) -> Result<Vec<bool>> {
        self.apply()?;
        by_range(&self.options, keys, false, mix, || {
            let mut scanner = self.pages.scanner();
            move |sorted, found| self.find(&mut scanner, sorted, found)
        })
    }

    /// Pushes the indices of the keys that may have been added.
    fn find(
        &self,
        scanner: &mut Scanner<'_>,
        sorted: &[Asked],
        found: &mut Vec<(u32, bool)>,
    ) -> Result<()> {
        let page_of = |mixed| PageId::new(0, self.page_of(mixed));
        visit_pages(scanner, &self.options.resources.job, sorted, page_of, |bytes, group| {
            let there = group.iter().filter(|asked| self.may_be(bytes, asked.mixed));
            found.extend(there.map(|asked| (asked.index, true)));
        })
    }

    /// Reads everything on disk and verifies its checksums. Returns the number of bytes read.
    ///
    /// # Errors
    /// Corruption; the error names the offset.
    pub fn verify(&self) -> Result<u64> {
        Ok(self.pages.verify(&self.options.resources.job)?)
    }

    /// Makes all added keys durable.
    pub fn sync(&self) -> Result<()> {
        self.apply()?;
        Ok(self.pages.sync_with(|_| Ok(self.describe()))?)
    }

    fn describe(&self) -> Vec<u8> {
        let [keys, rate] = self.made_for;
        let fields = [self.page_count, self.probes.into(), self.added(), keys, rate];
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    }
}

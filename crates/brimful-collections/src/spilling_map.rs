//! A map of live objects with a memory limit: values that were not used recently are in a bag.
//!
//! Eviction uses the clock algorithm: an object is evicted if it was not used since the hand last
//! passed it. Invariant: an object is live, in the bag, or both; then both copies are equal.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use crate::bag::RecordBag;
use crate::disk_bag::{Codec, Postcard};
use crate::error::{Error, Result};
use crate::options::Options;

/// The maximum number of objects evicted together, as one batch for the bag.
const BATCH: usize = 256;

#[derive(Debug)]
struct Live<V> {
    value: V,
    /// The record of the bag that equals the value, plus 1, if there is one. A compact type,
    /// because every byte next to a value slows each `get`.
    record: Option<NonZeroU64>,
    /// The number of its entry in the clock; entries with other numbers are obsolete.
    entry: u64,
    used: bool,
}

impl<V> Live<V> {
    fn record(&self) -> Option<u64> {
        self.record.map(|record| record.get() - 1)
    }
}

/// A map that keeps up to a limit of bytes of its values as live objects and the rest in a bag. The
/// keys stay in memory.
///
/// It is a cache, not a store: it begins empty, and its folder may be removed after it is dropped.
#[derive(Debug)]
pub struct SpillingMap<K, V, C = Postcard> {
    live: HashMap<K, Live<V>>,
    spilled: HashMap<K, u64>,
    /// The live keys with the numbers of their entries, in the order of the clock's hand.
    clock: VecDeque<(K, u64)>,
    /// The number of the next entry.
    next_entry: u64,
    bag: RecordBag,
    /// Unused records of the bag.
    unused: Vec<u64>,
    weigh: fn(&K, &V) -> usize,
    limit: usize,
    weight: usize,
    codec: std::marker::PhantomData<fn() -> C>,
}

impl<K: Hash + Eq + Clone, V, C: Codec<V>> SpillingMap<K, V, C> {
    /// A map that keeps values of up to `limit` bytes live, as `weigh` counts bytes, and the others
    /// in a bag at `path`.
    ///
    /// # Errors
    /// [`Error::Usage`] if the bag at `path` has records; otherwise as [`RecordBag::open`].
    pub fn create(
        path: &Path,
        limit: usize,
        weigh: fn(&K, &V) -> usize,
        options: Options,
    ) -> Result<Self> {
        let bag = RecordBag::open(path, C::NAME.as_bytes(), options)?;
        if !bag.is_empty() {
            return Err(Error::Usage(format!(
                "{} already holds a collection; name a new folder for the cache",
                path.display()
            )));
        }
        Ok(Self {
            live: HashMap::new(),
            spilled: HashMap::new(),
            clock: VecDeque::new(),
            next_entry: 0,
            bag,
            unused: Vec::new(),
            weigh,
            limit,
            weight: 0,
            codec: std::marker::PhantomData,
        })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.live.len() + self.spilled.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of live values.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Bytes of live values, as `weigh` counts them.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Inserts a value and drops the old one, if any.
    ///
    /// # Errors
    /// `Error::Usage` if a value to spill cannot be encoded.
    pub fn insert(&mut self, key: K, value: V) -> Result<()> {
        self.weight += (self.weigh)(&key, &value);
        let record = self.spilled.remove(&key);
        self.unused.extend(record);
        match self.live.get_mut(&key) {
            Some(old) => {
                self.weight -= (self.weigh)(&key, &old.value);
                self.unused.extend(old.record());
                *old = Live { value, record: None, used: true, ..*old };
            }
            None => {
                let entry = self.enter(&key);
                self.live.insert(key, Live { value, record: None, entry, used: false });
            }
        }
        self.shrink()
    }

    /// Passes the value of `key` to `f`, after making it live; `None` if there is no such key.
    /// Takes one look-up if the value is live already.
    #[inline]
    pub fn view<Q: Hash + Eq + ?Sized, R>(
        &mut self,
        key: &Q,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>>
    where
        K: Borrow<Q>,
    {
        if let Some(live) = self.live.get_mut(key) {
            live.used = true;
            return Ok(Some(f(&live.value)));
        }
        Ok(self.get(key)?.map(f))
    }

    /// The value of `key`, which becomes live; `None` if there is no such key.
    ///
    /// # Errors
    /// `Error::Codec` if the spilled value cannot be decoded; `Error::Usage` if another value
    /// cannot be encoded.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Result<Option<&V>>
    where
        K: Borrow<Q>,
    {
        if !self.live.contains_key(key) && !self.bring_back(key)? {
            return Ok(None);
        }
        Ok(self.live.get_mut(key).map(|live| {
            live.used = true;
            &live.value
        }))
    }

    /// Passes the value of `key` to `f` to change it; `None` if there is no such key. If `f`
    /// panics, the key keeps the value as `f` left it.
    ///
    /// # Errors
    /// As [`SpillingMap::get`]. If the error is that another value cannot be spilled, which follows
    /// the change, the value stays changed and the result of `f` is lost.
    pub fn update<Q: Hash + Eq + ?Sized, R>(
        &mut self,
        key: &Q,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>>
    where
        K: Borrow<Q>,
    {
        if !self.live.contains_key(key) && !self.bring_back(key)? {
            return Ok(None);
        }
        let Some((key, mut live)) = self.live.remove_entry(key) else {
            return Ok(None);
        };
        self.weight -= (self.weigh)(&key, &live.value);
        // The entry returns to the map before a panic goes on.
        let result = catch_unwind(AssertUnwindSafe(|| f(&mut live.value)));
        self.weight += (self.weigh)(&key, &live.value);
        self.unused.extend(live.record());
        (live.record, live.used) = (None, true);
        self.live.insert(key, live);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        self.shrink()?;
        Ok(Some(result))
    }

    /// Removes a key; false if it did not exist.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let record = match self.live.remove_entry(key) {
            Some((key, live)) => {
                self.weight -= (self.weigh)(&key, &live.value);
                // Its entry in the clock is skipped later; see `shrink`.
                self.unused.extend(live.record());
                return true;
            }
            None => self.spilled.remove(key),
        };
        self.unused.extend(record);
        record.is_some()
    }

    /// Makes a spilled value live; false if there is none.
    fn bring_back<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Result<bool>
    where
        K: Borrow<Q>,
    {
        let Some((key, record)) = self.spilled.remove_entry(key) else {
            return Ok(false);
        };
        let read = self.bag.fetch(record, |bytes| C::decode(bytes));
        let value = match read {
            Ok(Ok(value)) => value,
            Ok(Err(problem)) => {
                self.spilled.insert(key, record);
                return Err(Error::Codec { path: self.bag.path().into(), id: record, problem });
            }
            Err(error) => {
                self.spilled.insert(key, record);
                return Err(error);
            }
        };
        self.weight += (self.weigh)(&key, &value);
        let (entry, record) = (self.enter(&key), NonZeroU64::new(record + 1));
        // Marked as used, and last in the clock, so that all others are evicted before it.
        self.live.insert(key, Live { value, record, entry, used: true });
        self.shrink()?;
        Ok(true)
    }

    /// Spills values until the live ones are within the limit; at least one stays live.
    fn shrink(&mut self) -> Result<()> {
        if self.clock.len() > 2 * self.live.len() + BATCH {
            let live = &self.live;
            self.clock.retain(|(key, entry)| live.get(key).is_some_and(|one| one.entry == *entry));
        }
        if self.weight <= self.limit {
            return Ok(());
        }
        // Spills a little more than necessary, so that the bag receives larger batches.
        let enough = self.limit - self.limit / 64;
        while self.weight > enough && self.live.len() > 1 {
            let leaving = self.evict(enough);
            if leaving.is_empty() {
                break;
            }
            match self.records_of(&leaving) {
                Ok(records) => {
                    let keys = leaving.into_iter().map(|(key, _)| key);
                    self.spilled.extend(keys.zip(records));
                }
                Err(error) => {
                    leaving.into_iter().for_each(|(key, live)| self.keep(key, live));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes up to a batch of values out of the live ones, until these weigh `enough`.
    fn evict(&mut self, enough: usize) -> Vec<(K, Live<V>)> {
        let mut leaving = Vec::new();
        let mut turns = 2 * self.clock.len();
        while self.weight > enough && leaving.len() < BATCH && self.live.len() > 1 && turns > 0 {
            turns -= 1;
            let Some((key, entry)) = self.clock.pop_front() else {
                break;
            };
            let Some(live) = self.live.get_mut(&key).filter(|live| live.entry == entry) else {
                continue;
            };
            if std::mem::take(&mut live.used) {
                self.clock.push_back((key, entry));
                continue;
            }
            if let Some((key, live)) = self.live.remove_entry(&key) {
                self.weight -= (self.weigh)(&key, &live.value);
                leaving.push((key, live));
            }
        }
        leaving
    }

    /// The records of values in the bag, after writing those that have none.
    fn records_of(&mut self, values: &[(K, Live<V>)]) -> Result<Vec<u64>> {
        let mut bytes = Vec::new();
        for (_, live) in values.iter().filter(|(_, live)| live.record.is_none()) {
            let mut record = Vec::new();
            C::encode(&live.value, &mut record).map_err(|problem| {
                Error::Usage(format!("the serializer refuses a value: {problem}"))
            })?;
            bytes.push(record);
        }
        // Unused records are overwritten first; the remaining ones are appended.
        let left = self.unused.len().saturating_sub(bytes.len());
        let (old, new) = bytes.split_at(self.unused.len() - left);
        self.bag.store_batch(&self.unused[left..], old)?;
        let first = self.bag.extend(new)?;
        let overwritten = self.unused.split_off(left);
        let mut written = overwritten.into_iter().chain(first..first + new.len() as u64);
        Ok(values.iter().filter_map(|(_, live)| live.record().or_else(|| written.next())).collect())
    }

    /// Makes a value live that could not be spilled.
    fn keep(&mut self, key: K, live: Live<V>) {
        self.weight += (self.weigh)(&key, &live.value);
        let entry = self.enter(&key);
        self.live.insert(key, Live { entry, ..live });
    }

    /// Adds an entry to the clock; returns its number.
    fn enter(&mut self, key: &K) -> u64 {
        let entry = self.next_entry;
        self.next_entry += 1;
        self.clock.push_back((key.clone(), entry));
        entry
    }
}

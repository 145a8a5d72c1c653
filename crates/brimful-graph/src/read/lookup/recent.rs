//! A cache with second chance (Corbató 1969), which keeps values that are used repeatedly.
//!
//! Invariant: cached values take at most the given bytes, unless the newest alone takes more.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by key, shared between threads. A value in use elsewhere outlives its eviction.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    max_bytes: u64,
    state: Mutex<CacheState<K, V>>,
}

#[derive(Debug)]
struct CacheState<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// Keys in the order of candidates for eviction.
    queue: VecDeque<K>,
    bytes: u64,
}

#[derive(Debug)]
struct Slot<V> {
    value: Arc<V>,
    bytes: u64,
    /// True if the value was used since it was last a candidate.
    used: bool,
}

impl<K: Copy + Eq + Hash, V> Recent<K, V> {
    /// An empty cache of at most `max_bytes`.
    pub(super) fn new(max_bytes: u64) -> Self {
        let state = CacheState { slots: HashMap::new(), queue: VecDeque::new(), bytes: 0 };
        Self { max_bytes, state: Mutex::new(state) }
    }

    /// The value of `key`; if it is not cached, `load` reads it. `bytes` gives the size of a value.
    ///
    /// Nothing is locked during the reading: two threads may read the same value, and one of the
    /// two is kept.
    pub(super) fn get<E>(
        &self,
        key: K,
        load: impl FnOnce() -> Result<V, E>,
        bytes: impl FnOnce(&V) -> u64,
    ) -> Result<Arc<V>, E> {
        let state = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = state().slots.get_mut(&key) {
            slot.used = true;
            return Ok(Arc::clone(&slot.value));
        }
        let value = Arc::new(load()?);
        state().insert(key, &value, bytes(&value), self.max_bytes);
        Ok(value)
    }
}

impl<K: Copy + Eq + Hash, V> CacheState<K, V> {
    fn insert(&mut self, key: K, value: &Arc<V>, bytes: u64, max_bytes: u64) {
        if self.slots.contains_key(&key) {
            return;
        }
        while self.bytes + bytes > max_bytes {
            let Some(oldest) = self.queue.pop_front() else { break };
            match self.slots.get_mut(&oldest) {
                Some(slot) if slot.used => {
                    slot.used = false;
                    self.queue.push_back(oldest);
                }
                _ => self.bytes -= self.slots.remove(&oldest).map_or(0, |slot| slot.bytes),
            }
        }
        self.bytes += bytes;
        self.queue.push_back(key);
        self.slots.insert(key, Slot { value: Arc::clone(value), bytes, used: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_again_stays_and_the_bound_holds() {
        let cache = Recent::new(30);
        let get = |key: u32, bytes: u64| {
            let mut loaded = false;
            let load = || -> Result<u32, ()> {
                loaded = true;
                Ok(key * 2)
            };
            assert_eq!(*cache.get(key, load, |_| bytes).unwrap(), key * 2);
            assert!(cache.state.lock().unwrap().bytes <= 30.max(bytes));
            loaded
        };
        assert!([1, 2, 3].map(|key| get(key, 10)).iter().all(|loaded| *loaded));
        assert!(!get(1, 10));
        // 2 is the oldest value that was not used again.
        assert!(get(4, 10));
        assert!(!get(1, 10));
        assert!(get(2, 10));
        // A value larger than the cache evicts all others.
        assert!(get(9, 50));
        assert!(!get(9, 50));
        assert!(get(1, 10));
        assert!(cache.get(77, || Err("unreadable"), |_| 1).is_err());
        assert!(get(77, 1));
    }
}

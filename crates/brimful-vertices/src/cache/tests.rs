use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::conformance::{SampleVertex, check_id_types, check_vertices};
use crate::record_store::{RecordStore, Visitor};
use crate::serializer::{Compact, Native};
use crate::vertex::Edges;
use crate::{BytesStore, MemoryStore, Serialized};

type Bytes = Serialized<BytesStore, Compact, SampleVertex>;

/// The memory of a cache alone over a store that shares the budget.
fn memory(budget: &Arc<Budget>) -> CacheMemory<'_> {
    CacheMemory { budget, partitions: 1, is_of_store: true }
}

fn bytes(budget: &Arc<Budget>) -> Result<Bytes> {
    Ok(Serialized::new(BytesStore::new(budget)?, Compact))
}

fn vertex(id: u64) -> SampleVertex {
    SampleVertex::new(id, id as f64, Edges::default())
}

fn touch(store: &mut (impl VertexStore<SampleVertex> + ?Sized), id: u64) {
    assert!(store.lend(&id, &mut |_| Ok(())).unwrap());
}

fn state(store: &mut (impl VertexStore<SampleVertex> + ?Sized), id: u64) -> f64 {
    let mut state = f64::NAN;
    assert!(
        store
            .lend(&id, &mut |vertex| {
                state = vertex.state;
                Ok(())
            })
            .unwrap()
    );
    state
}

fn lru(capacity: usize) -> Cache<Bytes, SampleVertex, Lru> {
    let budget = Budget::new(64 << 20, 0);
    Cache::new(bytes(&budget).unwrap(), capacity, Lru::default(), memory(&budget)).unwrap()
}

#[test]
fn caches_of_any_size_over_any_store_and_over_each_other_conform() {
    let budget = Budget::new(64 << 20, 0);
    for capacity in [1, 2, 7, 1000] {
        check_vertices(&mut || {
            Cache::new(bytes(&budget)?, capacity, Lru::default(), memory(&budget))
        })
        .unwrap();
        check_vertices(&mut || {
            Cache::new(bytes(&budget)?, capacity, Score::default(), memory(&budget))
        })
        .unwrap();
        check_vertices(&mut || {
            Cache::new(MemoryStore::new(&budget)?, capacity, Score::default(), memory(&budget))
        })
        .unwrap();
        check_vertices(&mut || {
            let inner = Serialized::new(BytesStore::new(&budget)?, Native);
            let inner = Cache::new(inner, 3 * capacity, Lru::default(), memory(&budget))?;
            Cache::new(inner, capacity, Score::default(), memory(&budget))
        })
        .unwrap();
    }
    let store = Serialized::new(BytesStore::new(&budget).unwrap(), Compact);
    check_id_types(Cache::new(store, 2, Lru::default(), memory(&budget)).unwrap()).unwrap();
    assert_eq!(budget.free(), 64 << 20, "everything was given back");
}

#[test]
fn caches_by_name_conform_and_names_that_say_nothing_are_refused() {
    let budget = Budget::new(64 << 20, 0);
    for name in ["lru:9", "score:9"] {
        let choice = name.parse::<Choice>().unwrap();
        let memory = CacheMemory { partitions: 4, ..memory(&budget) };
        check_vertices(&mut || choice.over(Box::new(bytes(&budget)?), None, memory)).unwrap();
    }
    for name in ["", "lru", "lru:", "lru:0", "lru:-1", "lru:many", "LRU:5", "fifo:5"] {
        let refused = name.parse::<Choice>().unwrap_err();
        assert!(refused.to_string().contains("write lru:N or score:N"), "{refused}");
    }
}

#[test]
fn the_least_recently_used_one_leaves() {
    let mut cache = lru(4);
    (0..5).for_each(|id| assert!(cache.insert(vertex(id)).unwrap()));
    assert!(!cache.holds(&0) && (1..5).all(|id| cache.holds(&id)));

    let mut cache = lru(4);
    (0..4).for_each(|id| assert!(cache.insert(vertex(id)).unwrap()));
    touch(&mut cache, 0);
    cache.insert(vertex(4)).unwrap();
    assert!(!cache.holds(&1) && [0, 2, 3, 4].iter().all(|id| cache.holds(id)));
}

#[test]
fn a_vertex_that_is_read_is_admitted() {
    let mut cache = lru(2);
    (0..5).for_each(|id| assert!(cache.insert(vertex(id)).unwrap()));
    [1, 2].into_iter().for_each(|id| touch(&mut cache, id));
    assert!(cache.holds(&1) && cache.holds(&2));
    cache.stats = CacheStats::default();
    [3, 3, 4, 3].into_iter().for_each(|id| touch(&mut cache, id));
    assert!(cache.holds(&3) && cache.holds(&4));
    let stats = cache.stats().unwrap().caches;
    assert_eq!((stats[0].hits, stats[0].misses, stats[0].evicted), (2, 2, 2));
    assert_eq!(stats[0].hit_ratio(), 0.5);
    assert!(!cache.lend(&9, &mut |_| Ok(())).unwrap(), "nobody has this id");
    assert_eq!(cache.stats().unwrap().caches[0].misses, 2);
}

/// The thesis, section 3.4: cached vertices are not written before they leave.
#[test]
fn loading_fills_the_cache_with_vertices_that_are_written_when_they_leave() {
    let mut cache = lru(10);
    assert_eq!(cache.load(&mut (0..100).chain(5..15).map(vertex)).unwrap(), 10);
    assert!((0..10).all(|id| cache.holds(&id)) && (10..100).all(|id| !cache.holds(&id)));
    assert_eq!((cache.len(), cache.store.len()), (100, 90));
    let double = &mut |vertex: &mut crate::Loan<'_, SampleVertex>| {
        vertex.state *= 2.0;
        Ok(())
    };
    // Neither scans nor loans without edges write or evict cached vertices.
    cache.for_each(double).unwrap();
    (0..100).for_each(|id| assert!(cache.lend_without_edges(&id, double).unwrap()));
    let stats = cache.stats().unwrap().caches[0];
    assert_eq!((stats.hits, stats.misses, stats.written), (20, 180, 0));
    assert_eq!(cache.store.len(), 90);
    // A vertex that leaves is written once, and again only if it changed.
    (10..20).for_each(|id| touch(&mut cache, id));
    assert_eq!(cache.stats().unwrap().caches[0].written, 10);
    (0..10).for_each(|id| touch(&mut cache, id));
    cache.sync().unwrap();
    assert_eq!(cache.stats().unwrap().caches[0].written, 10);
    assert_eq!((cache.len(), cache.store.len()), (100, 100));
    assert!((0..100).all(|id| state(&mut cache, id) == 4.0 * id as f64));
    assert!(cache.remove(&99).unwrap() && cache.remove(&0).unwrap() && !cache.remove(&0).unwrap());
    assert_eq!(cache.len(), 98);
}

/// Without the reservation for its record, a cached vertex could not leave a full budget.
#[test]
fn a_filled_cache_gives_way_to_the_records_of_the_store_below() {
    let large = |id| SampleVertex::new(id, 0.0, (0..1000).map(|target| (target, 0.5)).collect());
    let load = |bytes: u64, capacity: Option<usize>| {
        let budget = Budget::new(bytes, 0);
        let below = self::bytes(&budget).unwrap();
        let mut store: Box<dyn VertexStore<SampleVertex>> = match capacity {
            None => Box::new(below),
            Some(most) => {
                Box::new(Cache::new(below, most, Lru::default(), memory(&budget)).unwrap())
            }
        };
        for first in (0..500).step_by(20) {
            store.load(&mut (first..first + 20).map(large))?;
        }
        (0..500).try_for_each(|id| store.lend(&id, &mut |_| Ok(())).map(drop))?;
        (0..500).for_each(|id| assert_eq!(state(&mut *store, id), 0.0));
        Ok::<u64, Error>(store.len())
    };
    let least = (1..).map(|step| step << 17).find(|bytes| load(*bytes, None).is_ok()).unwrap();
    for capacity in [1, 100, 1000] {
        assert_eq!(load(least + least / 8, Some(capacity)).unwrap(), 500, "{capacity}");
    }
}

#[test]
fn updates_survive_evictions_of_either_cache() {
    let budget = Budget::new(64 << 20, 0);
    let caches: [Box<dyn VertexStore<SampleVertex>>; 2] = [
        Box::new(lru(10)),
        Box::new(
            Cache::new(bytes(&budget).unwrap(), 10, Score::default(), memory(&budget)).unwrap(),
        ),
    ];
    for mut cache in caches {
        cache.load(&mut (0..100).map(vertex)).unwrap();
        for round in 0..3 {
            for id in 0..100 {
                cache
                    .lend(&id, &mut |vertex| {
                        vertex.state += 1000.0;
                        Ok(())
                    })
                    .unwrap();
            }
            assert!(
                (0..100)
                    .all(|id| state(&mut cache, id) == id as f64 + 1000.0 * f64::from(round + 1))
            );
        }
        let stats = cache.stats().unwrap().caches[0];
        assert!(stats.written >= 290, "{stats:?}");
        assert!(stats.evicted >= stats.written, "{stats:?}");
    }
}

#[test]
fn those_below_the_average_leave_in_one_pass() {
    let budget = Budget::new(64 << 20, 0);
    let mut cache =
        Cache::new(bytes(&budget).unwrap(), 6, Score::default(), memory(&budget)).unwrap();
    let loans = [1, 2, 3, 4, 5, 9];
    loans.into_iter().for_each(|id| assert!(cache.insert(vertex(id)).unwrap()));
    // The average is 4.
    loans.into_iter().for_each(|id| (0..id).for_each(|_| touch(&mut cache, id)));
    cache.insert(vertex(0)).unwrap();
    assert!([1, 2, 3].iter().all(|id| !cache.holds(id)));
    assert!([4, 5, 9, 0].iter().all(|id| cache.holds(id)));
    assert_eq!(cache.stats().unwrap().caches[0].evicted, 3);

    // Of vertices with equal scores every second one leaves.
    let mut cache =
        Cache::new(bytes(&budget).unwrap(), 4, Score::default(), memory(&budget)).unwrap();
    (0..5).for_each(|id| assert!(cache.insert(vertex(id)).unwrap()));
    assert_eq!(cache.stats().unwrap().caches[0].evicted, 2);
}

#[test]
fn what_was_used_long_ago_leaves_the_score_cache() {
    let budget = Budget::new(64 << 20, 0);
    let mut cache =
        Cache::new(bytes(&budget).unwrap(), 8, Score::default(), memory(&budget)).unwrap();
    cache.load(&mut (0..1000).map(vertex)).unwrap();
    (0..100).for_each(|_| touch(&mut cache, 0));
    (1..20).for_each(|id| touch(&mut cache, id));
    assert!(cache.holds(&0));
    (0..2000).for_each(|n| touch(&mut cache, 1 + n % 4));
    (100..200).for_each(|id| touch(&mut cache, id));
    assert!(!cache.holds(&0));
}

#[test]
fn a_budget_below_the_capacity_makes_the_cache_smaller() {
    let budget = Budget::new(1 << 20, 0);
    let mut store = bytes(&Budget::new(64 << 20, 0)).unwrap();
    let large = |id| SampleVertex::new(id, 0.0, (0..1000).map(|target| (target, 0.5)).collect());
    store.load(&mut (0..500).map(large)).unwrap();
    let mut cache = Cache::new(store, 1000, Lru::default(), memory(&budget)).unwrap();
    for round in 0..2 {
        for id in 0..500 {
            cache
                .lend(&id, &mut |vertex| {
                    assert_eq!((vertex.state, vertex.edges().len()), (f64::from(round), 1000));
                    vertex.state += 1.0;
                    Ok(())
                })
                .unwrap();
        }
    }
    assert!(budget.peak() <= 1 << 20);
    assert!(cache.stats().unwrap().caches[0].evicted > 900);
}

/// A store whose writes fail while `fails` is set.
struct Failing {
    inner: BytesStore,
    fails: Arc<AtomicBool>,
}

impl RecordStore for Failing {
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        self.inner.get(key, found)
    }
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::Usage("on purpose".to_owned()));
        }
        self.inner.put(key, record)
    }
    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.inner.remove(key)
    }
    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()> {
        self.inner.for_each(visitor)
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn sync(&mut self) -> Result<()> {
        self.inner.sync()
    }
    fn bytes(&self) -> Result<(u64, u64)> {
        self.inner.bytes()
    }
}

#[test]
fn a_write_that_fails_comes_out_of_the_loan_and_loses_nothing() {
    let budget = Budget::new(64 << 20, 0);
    let fails = Arc::new(AtomicBool::new(false));
    let failing = || {
        let inner = BytesStore::new(&budget).unwrap();
        Serialized::<_, _, SampleVertex>::new(Failing { inner, fails: Arc::clone(&fails) }, Compact)
    };
    let add = &mut |vertex: &mut crate::Loan<'_, SampleVertex>| {
        vertex.state += 0.5;
        Ok(())
    };
    let mut store = failing();
    store.insert(vertex(0)).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(store.lend(&0, add).is_err());
    assert_eq!(state(&mut store, 0), 0.0);

    fails.store(false, Ordering::Relaxed);
    let mut cache = Cache::new(failing(), 2, Lru::default(), memory(&budget)).unwrap();
    cache.load(&mut (0..5).map(vertex)).unwrap();
    cache.lend(&0, add).unwrap();
    cache.lend(&1, add).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(cache.lend(&2, &mut |_| Ok(())).is_err(), "vertex 0 cannot be written, so it stays");
    assert!(cache.sync().is_err());
    fails.store(false, Ordering::Relaxed);
    cache.sync().unwrap();
    assert_eq!([0, 1, 2].map(|id| state(&mut cache, id)), [0.5, 1.5, 2.0]);
}

#[test]
fn a_score_function_that_fails_costs_no_memory() {
    let budget = Budget::new(64 << 20, 0);
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let function: ScoreFunction<SampleVertex> = Arc::new(move |vertex| {
        if failing.load(Ordering::Relaxed) { Err("on purpose".into()) } else { Ok(vertex.state) }
    });
    let large = |id| SampleVertex::new(id, 1.0, (0..1000).map(|target| (target, 0.5)).collect());
    let below = bytes(&budget).unwrap();
    let mut cache = Cache::new(below, 5, Score::new(Some(function)), memory(&budget)).unwrap();

    // The first call also gets the memory of slots, which stays.
    assert!(cache.load(&mut (0..10).map(large)).is_err());
    let free = budget.free();
    (0..100).for_each(|_| assert!(cache.load(&mut (0..10).map(large)).is_err()));
    assert_eq!((budget.free(), cache.len()), (free, 0));

    fails.store(false, Ordering::Relaxed);
    cache.load(&mut (0..10).map(large)).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert!(cache.lend(&7, &mut |_| Ok(())).is_err());
    let free = budget.free();
    (0..100).for_each(|_| assert!(cache.lend(&7, &mut |_| Ok(())).is_err()));
    assert_eq!(budget.free(), free);

    fails.store(false, Ordering::Relaxed);
    assert!((0..10).all(|id| state(&mut cache, id) == 1.0));
}

#[test]
fn a_vertex_that_comes_back_as_another_is_never_written() {
    let mut cache = lru(4);
    cache.load(&mut (0..5).map(vertex)).unwrap();
    cache.sync().unwrap();
    let changed = cache.lend(&1, &mut |loan| {
        **loan = SampleVertex::new(3, 99.0, Edges::default());
        Ok(())
    });
    assert!(changed.is_err());
    cache.sync().unwrap();
    assert_eq!([1, 3].map(|id| state(&mut cache, id)), [1.0, 3.0]);
}

#[test]
fn a_borrower_that_panics_leaves_stores_of_use() {
    let budget = Budget::new(64 << 20, 0);
    let stores: [Box<dyn VertexStore<SampleVertex>>; 3] = [
        Box::new(bytes(&budget).unwrap()),
        Box::new(MemoryStore::new(&budget).unwrap()),
        Box::new(Cache::new(bytes(&budget).unwrap(), 4, Lru::default(), memory(&budget)).unwrap()),
    ];
    for mut store in stores {
        store.load(&mut (0..10).map(vertex)).unwrap();
        let mut panics = |scans: bool| {
            let borrow = AssertUnwindSafe(|| {
                let mut borrower = |loan: &mut crate::Loan<'_, SampleVertex>| match *loan.id() {
                    5 => panic!("on purpose"),
                    _ => Ok(()),
                };
                if scans {
                    store.for_each(&mut borrower)
                } else {
                    store.lend(&5, &mut borrower).map(drop)
                }
            });
            assert!(catch_unwind(borrow).is_err());
        };
        panics(false);
        panics(true);
        assert!((0..10).all(|id| state(&mut store, id) == id as f64));
        assert_eq!(store.len(), 10);
    }
}

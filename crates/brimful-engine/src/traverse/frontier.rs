//! The frontier: the vertices that signal next, in the modes where not all vertices do.
//!
//! It is a map of blocks of vertices, which dense supersteps write and read, or a list, which
//! sparse supersteps write and read. Invariant: the signal of a vertex outside the frontier is
//! [`crate::Combiner::SILENCE`].

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Vertices per entry of the activity map.
pub(crate) const ACTIVITY_BITS: u32 = 12;

/// The entries of the activity map for `vertices`.
pub(crate) fn entries(vertices: Range<u64>) -> Range<usize> {
    (vertices.start >> ACTIVITY_BITS) as usize..vertices.end.div_ceil(1 << ACTIVITY_BITS) as usize
}

/// The part of `vertices` that an entry of the activity map represents.
pub(crate) fn block(entry: usize, vertices: &Range<usize>) -> Range<usize> {
    let (start, end) = (entry << ACTIVITY_BITS, (entry + 1) << ACTIVITY_BITS);
    start.max(vertices.start)..end.min(vertices.end)
}

/// True if any of `vertices` may signal, by the activity map.
pub(crate) fn is_any_marked(map: &[AtomicBool], vertices: Range<u64>) -> bool {
    map[entries(vertices)].iter().any(|active| active.load(Ordering::Relaxed))
}

/// The vertices that signal.
#[derive(Debug)]
pub(crate) struct Frontier {
    vertices: usize,
    count: u64,
    /// For each block of vertices, whether any of them signals; `None` if only the list is known.
    map: Option<Vec<AtomicBool>>,
    /// The vertices, ascending; `None` if only the map is known.
    list: Option<Vec<u64>>,
}

impl Frontier {
    /// Bytes of the maps of this frontier and the next.
    pub(crate) fn memory_bytes(vertices: u64) -> u64 {
        2 * vertices.div_ceil(1 << ACTIVITY_BITS)
    }

    /// The frontier of `count` vertices in the marked blocks.
    pub(crate) fn marked(vertices: usize, map: Vec<AtomicBool>, count: u64) -> Self {
        Self { vertices, count, map: Some(map), list: None }
    }

    pub(crate) fn empty_map(vertices: usize) -> Vec<AtomicBool> {
        (0..vertices.div_ceil(1 << ACTIVITY_BITS)).map(|_| AtomicBool::new(false)).collect()
    }

    /// Replaces the frontier by `list`, ascending; returns the previous list.
    pub(crate) fn replace(&mut self, list: Vec<u64>) -> Vec<u64> {
        self.count = list.len() as u64;
        self.map = None;
        self.list.replace(list).unwrap_or_default()
    }

    /// Number of vertices that signal.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The activity map, which is made from the list if only the list is known.
    pub(crate) fn map(&mut self) -> &[AtomicBool] {
        let (vertices, list) = (self.vertices, &self.list);
        self.map.get_or_insert_with(|| {
            let map = Self::empty_map(vertices);
            for &vertex in list.iter().flatten() {
                map[vertex as usize >> ACTIVITY_BITS].store(true, Ordering::Relaxed);
            }
            map
        })
    }

    /// The vertices, ascending; `signals(vertex)` finds them if they are not listed yet.
    pub(crate) fn list(&mut self, signals: impl Fn(usize) -> bool) -> &[u64] {
        let (vertices, count, map) = (self.vertices, self.count as usize, &self.map);
        self.list.get_or_insert_with(|| {
            let mut list = Vec::with_capacity(count);
            for (entry, _) in
                map.iter().flatten().enumerate().filter(|(_, on)| on.load(Ordering::Relaxed))
            {
                let range = block(entry, &(0..vertices));
                list.extend(range.filter(|vertex| signals(*vertex)).map(|vertex| vertex as u64));
            }
            list
        })
    }
}

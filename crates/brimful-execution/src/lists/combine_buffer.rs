//! The combine buffer: merges signals to one target before they are serialized.
//!
//! A vertex with many in-edges collects one signal. Serializing each signal, and reading the
//! earlier one back, took most of the time of a superstep. Invariant: a vertex has at most one
//! signal here. The buffer stays within its limit, except for the growth of signals while a batch
//! is combined.

use brimful_vertices::Field;

use crate::error::{Error, Result, catch};
use crate::lists::places::{Key, Places};
use crate::program::VertexProgram;

/// A signal to a vertex.
pub type SignalTo<P> = (<P as VertexProgram>::Id, <P as VertexProgram>::Signal);

/// The work that waits for a vertex.
enum Waiting<S> {
    /// Nothing: the vertex was taken out.
    Nothing,
    /// A requested collect, without signals.
    Collect,
    /// The combined signals.
    Signal(S),
}

impl<S> Waiting<S> {
    fn is_some(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    fn signal(self) -> Option<S> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Nothing | Self::Collect => None,
        }
    }
}

/// A vertex, and the work that waits for it.
type Entry<P> = (<P as VertexProgram>::Id, Waiting<<P as VertexProgram>::Signal>);

/// A vertex that is taken out, with its signal if it received one.
pub(super) type Taken<P> = (<P as VertexProgram>::Id, Option<<P as VertexProgram>::Signal>);

/// Signals by vertex, in the order in which the vertices first received one.
pub(super) struct CombineBuffer<P: VertexProgram> {
    limit: usize,
    places: Places,
    entries: Vec<Entry<P>>,
    /// Entries that wait.
    len: usize,
    /// Heap bytes of ids and signals.
    heap_bytes: usize,
    /// Key and entry of each signal of a batch.
    look_ups: Vec<(Key, Option<u32>)>,
    /// The open generation, by ascending ids, and its bytes; `None` if none is open.
    open: Option<(std::vec::IntoIter<Entry<P>>, usize)>,
}

impl<P: VertexProgram> CombineBuffer<P> {
    /// A buffer that takes up to `limit` bytes, of memory that the caller has reserved. Most ids
    /// have numbers from `first` on.
    pub(super) fn new(limit: usize, first: u64) -> Self {
        // Entries are numbered with 32 bits. The system reserves unused memory without pages, but
        // may refuse a larger reservation.
        let limit = limit.min(u32::MAX as usize);
        Self {
            limit,
            places: Places::new(limit, first),
            entries: Vec::new(),
            len: 0,
            heap_bytes: 0,
            look_ups: Vec::new(),
            open: None,
        }
    }

    /// True if no vertex waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0 && self.open.as_ref().is_none_or(|(left, _)| left.as_slice().is_empty())
    }

    /// True if the signals fit, for any targets.
    pub(super) fn fits(&self, signals: &[SignalTo<P>]) -> bool {
        let heap = signals.iter().map(|(id, signal)| id.heap_bytes() + signal.heap_bytes()).sum();
        self.bytes_with(signals.iter().map(|(id, _)| id), heap) <= self.limit
    }

    /// Bytes in use with entries for `ids` that take `heap` bytes.
    fn bytes_with<'i>(&self, ids: impl ExactSizeIterator<Item = &'i P::Id>, heap: usize) -> usize {
        let entries = (self.entries.len() + ids.len()) * size_of::<Entry<P>>();
        let open = self.open.as_ref().map_or(0, |(_, bytes)| *bytes);
        entries + self.places.bytes_with(ids) + heap + self.heap_bytes + open
    }

    /// Reserves the memory of entries, unless that is done.
    fn prepare(&mut self) {
        if self.entries.capacity() == 0 {
            // The system provides pages at first use. A growing vector would exist twice for a
            // moment.
            self.entries.reserve_exact(self.limit / size_of::<Entry<P>>().max(1));
        }
    }

    /// Adds signals that fit; returns how many were combined with an earlier one.
    ///
    /// # Errors
    /// [`Error::Program`] of a combiner that fails.
    pub(super) fn add(&mut self, program: &P, signals: &mut Vec<SignalTo<P>>) -> Result<u64> {
        self.prepare();
        let Self { places, entries, len, heap_bytes, look_ups, .. } = self;
        // The look-ups are independent, so their waits for memory overlap.
        look_ups.clear();
        look_ups.extend(signals.iter().map(|(id, _)| {
            let key = places.key(id);
            (key, find::<P>(places, entries, key, id))
        }));
        let (mut combined, mut last) = (0, 0);
        let done = catch(|| {
            for ((id, signal), (key, place)) in signals.drain(..).zip(&*look_ups) {
                // The target may have arrived in this batch.
                let Some(place) = place.or_else(|| find::<P>(places, entries, *key, &id)) else {
                    places.insert(*key, entries.len() as u32, |at| &entries[at as usize].0);
                    *heap_bytes += id.heap_bytes() + signal.heap_bytes();
                    *len += 1;
                    entries.push((id, Waiting::Signal(signal)));
                    continue;
                };
                last = place as usize;
                match &mut entries[last].1 {
                    Waiting::Signal(waiting) => {
                        let before = waiting.heap_bytes();
                        program.combine(waiting, signal)?;
                        *heap_bytes = *heap_bytes + waiting.heap_bytes() - before;
                        combined += 1;
                    }
                    other => {
                        *heap_bytes += signal.heap_bytes();
                        *len += usize::from(!other.is_some());
                        *other = Waiting::Signal(signal);
                    }
                }
            }
            Ok(())
        });
        match done.flatten() {
            Ok(()) => Ok(combined),
            Err(failure) => Err(Error::program(&entries[last].0, "combine signals", failure)),
        }
    }

    /// Requests a collect of a vertex; false if it does not fit.
    pub(super) fn request(&mut self, id: &P::Id) -> bool {
        if self.bytes_with(std::iter::once(id), id.heap_bytes()) > self.limit {
            return false;
        }
        self.prepare();
        let Self { places, entries, .. } = self;
        let key = places.key(id);
        let Some(place) = find::<P>(places, entries, key, id) else {
            places.insert(key, entries.len() as u32, |at| &entries[at as usize].0);
            self.heap_bytes += id.heap_bytes();
            self.len += 1;
            entries.push((id.clone(), Waiting::Collect));
            return true;
        };
        let waiting = &mut entries[place as usize].1;
        if !waiting.is_some() {
            self.len += 1;
            *waiting = Waiting::Collect;
        }
        true
    }

    /// Takes out the signal to a vertex that collects.
    #[inline]
    pub(super) fn take(&mut self, id: &P::Id) -> Option<P::Signal> {
        if self.len == 0 {
            return None;
        }
        let place = find::<P>(&self.places, &self.entries, self.places.key(id), id)?;
        let taken = std::mem::replace(&mut self.entries[place as usize].1, Waiting::Nothing);
        self.len -= usize::from(taken.is_some());
        let signal = taken.signal()?;
        self.heap_bytes -= signal.heap_bytes();
        Some(signal)
    }

    /// Takes out all vertices by ascending ids, the order of vertices in a store.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Taken<P>> {
        self.sort();
        let waiting = |(_, waiting): &Entry<P>| waiting.is_some();
        self.entries.drain(..).filter(waiting).map(|(id, waiting)| (id, waiting.signal()))
    }

    /// Opens a generation of the vertices that wait.
    pub(super) fn begin_in_order(&mut self) {
        let bytes = self.bytes_with(std::iter::empty(), 0);
        self.sort();
        self.open = Some((std::mem::take(&mut self.entries).into_iter(), bytes));
    }

    /// True while a generation is being taken out.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes the next vertex of the open generation; `None` at its end.
    pub(super) fn next_in_order(&mut self) -> Option<Taken<P>> {
        let (left, _) = self.open.as_mut()?;
        match left.find(|(_, waiting)| waiting.is_some()) {
            Some((id, waiting)) => Some((id, waiting.signal())),
            None => {
                self.open = None;
                None
            }
        }
    }

    /// Up to `most` vertices of the open generation that are taken next.
    pub(super) fn upcoming(&self, most: usize) -> impl Iterator<Item = &P::Id> {
        let left = self.open.iter().flat_map(|(left, _)| left.as_slice());
        left.filter(|(_, waiting)| waiting.is_some()).map(|(id, _)| id).take(most)
    }

    /// Sorts the entries by ids, and forgets their places.
    fn sort(&mut self) {
        self.places.clear(self.entries.iter().map(|(id, _)| id));
        (self.len, self.heap_bytes) = (0, 0);
        self.entries.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    }
}

#[inline]
fn find<P: VertexProgram>(
    places: &Places,
    entries: &[Entry<P>],
    key: Key,
    id: &P::Id,
) -> Option<u32> {
    places.find(key, |place| entries[place as usize].0 == *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::texts::Texts;
    use crate::program::Delivery;

    const GREATEST: Texts = Texts(Delivery::Combined);

    #[test]
    fn a_vertex_has_one_signal_and_what_was_taken_out_begins_anew() {
        let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(1 << 20, 0);
        let mut signals: Vec<_> = (0..30).map(|number| (number % 10, number.to_string())).collect();
        assert!(buffer.fits(&signals));
        assert_eq!(buffer.add(&GREATEST, &mut signals).unwrap(), 20);
        assert_eq!(buffer.take(&3).unwrap(), "3");
        assert_eq!((buffer.take(&3), buffer.take(&10), buffer.len), (None, None, 9));
        assert_eq!(buffer.add(&GREATEST, &mut vec![(3, "x".into()), (3, "y".into())]).unwrap(), 1);
        let all: Vec<_> = buffer.drain().collect();
        assert_eq!(all.len(), 10);
        assert_eq!((&all[3], &all[9]), (&(3, Some("y".into())), &(9, Some("9".into()))));
        assert_eq!((buffer.len, buffer.heap_bytes, buffer.take(&3)), (0, 0, None));
    }

    #[test]
    fn a_generation_is_taken_by_ascending_ids_with_requests_and_without_what_was_taken() {
        let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(1 << 20, 0);
        let ids = [5, 300, 128, 1 << 40, 129, 7];
        buffer.add(&GREATEST, &mut ids.map(|id: u64| (id, id.to_string())).into()).unwrap();
        assert!(buffer.request(&200) && buffer.request(&7) && buffer.request(&5));
        buffer.take(&129).unwrap();
        buffer.begin_in_order();
        let waiting: Vec<_> = buffer.upcoming(3).copied().collect();
        assert_eq!((waiting, buffer.is_open()), (vec![5, 7, 128], true));
        // A signal that arrives meanwhile belongs to the next generation.
        buffer.add(&GREATEST, &mut vec![(300, "late".into())]).unwrap();
        let all: Vec<_> = std::iter::from_fn(|| buffer.next_in_order()).collect();
        let taken = [5, 7, 128, 200, 300, 1 << 40];
        let expected = taken.map(|id: u64| (id, (id != 200).then(|| id.to_string())));
        assert_eq!(all, expected);
        assert!(!buffer.is_open() && !buffer.is_empty());
        buffer.begin_in_order();
        assert_eq!(buffer.next_in_order(), Some((300, Some("late".into()))));
        assert!(buffer.is_empty() && buffer.next_in_order().is_none());
    }

    #[test]
    fn ids_before_the_first_number_are_found_by_hash() {
        let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(1 << 12, 1000);
        let ids = [1000, 7, 1001, 1 << 40, 999];
        let signals = |text: &str| -> Vec<_> { ids.map(|id: u64| (id, text.to_owned())).into() };
        assert_eq!(buffer.add(&GREATEST, &mut signals("a")).unwrap(), 0);
        assert_eq!(buffer.add(&GREATEST, &mut signals("b")).unwrap(), 5);
        assert!(ids.iter().all(|id| buffer.take(id).as_deref() == Some("b")));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_request_that_does_not_fit_is_refused() {
        let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(1 << 12, 0);
        let taken = (0..1 << 12).take_while(|id| buffer.request(id)).count();
        assert!(taken > 16 && taken < 1 << 9, "{taken}");
    }

    #[test]
    fn it_is_full_before_it_takes_more_than_its_limit() {
        for limit in [0, 1 << 10, 1 << 16, 3 << 20] {
            let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(limit, 0);
            let batch = |first: u64| -> Vec<_> {
                (first..first + 64).map(|id| (id, "text".into())).collect()
            };
            let mut first = 0;
            while buffer.fits(&batch(first)) {
                buffer.add(&GREATEST, &mut batch(first)).unwrap();
                first += 64;
            }
            let bytes = buffer.bytes_with(std::iter::empty(), 0);
            assert!(bytes <= limit, "{bytes} of {limit}");
            assert!(limit < 1 << 16 || bytes > limit / 4, "{bytes} of {limit}");
        }
    }
}

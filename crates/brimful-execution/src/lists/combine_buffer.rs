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

/// Signals by vertex, in the order in which the vertices first received one.
pub(super) struct CombineBuffer<P: VertexProgram> {
    limit: usize,
    places: Places,
    /// `None`: the signal was taken out.
    entries: Vec<(P::Id, Option<P::Signal>)>,
    /// Entries that have a signal.
    len: usize,
    /// Heap bytes of ids and signals.
    heap_bytes: usize,
    /// Key and entry of each signal of a batch.
    found: Vec<(Key, Option<u32>)>,
}

impl<P: VertexProgram> CombineBuffer<P> {
    /// A buffer that takes up to `limit` bytes, of memory that the caller has reserved.
    pub(super) fn new(limit: usize) -> Self {
        // Entries are numbered with 32 bits. The system reserves unused memory without pages, but
        // may refuse a larger reservation.
        let limit = limit.min(u32::MAX as usize);
        Self {
            limit,
            places: Places::new(limit),
            entries: Vec::new(),
            len: 0,
            heap_bytes: 0,
            found: Vec::new(),
        }
    }

    /// Number of signals.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// True if the signals fit, for any targets.
    pub(super) fn fits(&self, signals: &[SignalTo<P>]) -> bool {
        let entry = size_of::<(P::Id, Option<P::Signal>)>();
        let heap: usize =
            signals.iter().map(|(id, signal)| id.heap_bytes() + signal.heap_bytes()).sum();
        let entries = self.entries.len() + signals.len();
        let places = self.places.bytes_with(signals.iter().map(|(id, _)| id));
        entries * entry + places + heap + self.heap_bytes <= self.limit
    }

    /// Adds signals that fit; returns how many were combined with an earlier one.
    ///
    /// # Errors
    /// [`Error::Program`] of a combiner that fails.
    pub(super) fn add(&mut self, program: &P, signals: &mut Vec<SignalTo<P>>) -> Result<u64> {
        if self.entries.capacity() == 0 {
            // The system provides pages at first use. A growing vector would exist twice for a
            // moment.
            let most = self.limit / size_of::<(P::Id, Option<P::Signal>)>().max(1);
            self.entries.reserve_exact(most);
        }
        let Self { places, entries, len, heap_bytes, found, .. } = self;
        // The look-ups are independent, so their waits for memory overlap.
        found.clear();
        found.extend(signals.iter().map(|(id, _)| {
            let key = places.key(id);
            (key, find::<P>(places, entries, key, id))
        }));
        let (mut combined, mut last) = (0, 0);
        let done = catch(|| {
            for ((id, signal), (key, place)) in signals.drain(..).zip(&*found) {
                // The target may have arrived in this batch.
                let Some(place) = place.or_else(|| find::<P>(places, entries, *key, &id)) else {
                    places.insert(*key, entries.len() as u32, |at| &entries[at as usize].0);
                    *heap_bytes += id.heap_bytes() + signal.heap_bytes();
                    *len += 1;
                    entries.push((id, Some(signal)));
                    continue;
                };
                last = place as usize;
                match &mut entries[last].1 {
                    Some(held) => {
                        let before = held.heap_bytes();
                        program.combine(held, signal)?;
                        *heap_bytes = *heap_bytes + held.heap_bytes() - before;
                        combined += 1;
                    }
                    none => {
                        *heap_bytes += signal.heap_bytes();
                        *len += 1;
                        *none = Some(signal);
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

    /// Takes out the signal to a vertex.
    #[inline]
    pub(super) fn take(&mut self, id: &P::Id) -> Option<P::Signal> {
        if self.len == 0 {
            return None;
        }
        let place = find::<P>(&self.places, &self.entries, self.places.key(id), id)?;
        let signal = self.entries[place as usize].1.take()?;
        self.heap_bytes -= signal.heap_bytes();
        self.len -= 1;
        Some(signal)
    }

    /// Takes out all signals by ascending ids: vertices in a store lie in this order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = SignalTo<P>> {
        self.places.clear(self.entries.iter().map(|(id, _)| id));
        (self.len, self.heap_bytes) = (0, 0);
        self.entries.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        self.entries.drain(..).filter_map(|(id, signal)| Some((id, signal?)))
    }
}

#[inline]
fn find<P: VertexProgram>(
    places: &Places,
    entries: &[(P::Id, Option<P::Signal>)],
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
        let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(1 << 20);
        let mut signals: Vec<_> = (0..30).map(|number| (number % 10, number.to_string())).collect();
        assert!(buffer.fits(&signals));
        assert_eq!(buffer.add(&GREATEST, &mut signals).unwrap(), 20);
        assert_eq!(buffer.take(&3).unwrap(), "3");
        assert_eq!((buffer.take(&3), buffer.take(&10), buffer.len()), (None, None, 9));
        assert_eq!(buffer.add(&GREATEST, &mut vec![(3, "x".into()), (3, "y".into())]).unwrap(), 1);
        let all: Vec<_> = buffer.drain().collect();
        assert_eq!(all.len(), 10);
        assert_eq!((&all[3], &all[9]), (&(3, "y".into()), &(9, "9".into())));
        assert_eq!((buffer.len(), buffer.heap_bytes, buffer.take(&3)), (0, 0, None));
    }

    #[test]
    fn it_is_full_before_it_takes_more_than_its_limit() {
        for limit in [0, 1 << 10, 1 << 16, 3 << 20] {
            let mut buffer: CombineBuffer<Texts> = CombineBuffer::new(limit);
            let batch = |first: u64| -> Vec<_> {
                (first..first + 64).map(|id| (id, "text".into())).collect()
            };
            let mut first = 0;
            while buffer.fits(&batch(first)) {
                buffer.add(&GREATEST, &mut batch(first)).unwrap();
                first += 64;
            }
            let entries = buffer.entries.len() * size_of::<(u64, Option<String>)>();
            let bytes = entries
                + buffer.places.bytes_with([].iter().map(|id: &u64| id))
                + buffer.heap_bytes;
            assert!(bytes <= limit, "{bytes} of {limit}");
            assert!(limit < 1 << 16 || bytes > limit / 4, "{bytes} of {limit}");
        }
    }
}

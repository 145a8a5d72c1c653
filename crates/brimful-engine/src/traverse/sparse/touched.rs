//! Sums of the targets of an interval, of which few are touched.

use super::TargetSums;
use crate::vertex::combiner::Combiner;

/// Sums of targets, of which few are touched.
pub(crate) struct Touched<S> {
    pub(super) sums: Vec<S>,
    /// A bit for each target that has a sum.
    marks: Vec<u64>,
    targets: Vec<u32>,
}

impl<S> Default for Touched<S> {
    fn default() -> Self {
        Self { sums: Vec::new(), marks: Vec::new(), targets: Vec::new() }
    }
}

impl<S: Copy> Touched<S> {
    /// Bytes for `targets`, all of them touched, with sums of `sum` bytes.
    pub(crate) fn memory_bytes(targets: u64, sum: u64) -> u64 {
        // The list grows by doubling.
        targets * (sum + 2 * 4) + targets.div_ceil(8)
    }

    /// The sum of `target`, one of `targets`.
    #[inline]
    pub(crate) fn at<C: Combiner<Sum = S>>(&mut self, target: u32, targets: usize) -> &mut S {
        if self.sums.is_empty() {
            self.sums = vec![C::IDENTITY; targets];
            self.marks = vec![0; targets.div_ceil(64)];
        }
        let (word, bit) = (&mut self.marks[target as usize / 64], 1 << (target % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.targets.push(target);
        }
        &mut self.sums[target as usize]
    }

    /// Moves the sums, if there are any, to the end of `windows`.
    pub(crate) fn drain_into<C: Combiner<Sum = S>>(&mut self, windows: &mut Vec<TargetSums<S>>) {
        if self.targets.is_empty() {
            return;
        }
        if self.targets.len() < self.marks.len() {
            self.targets.sort_unstable();
        } else {
            self.targets.clear();
            let of_word = |(place, word): (usize, &u64)| {
                let (base, word) = (place as u32 * 64, *word);
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
            };
            self.targets.extend(self.marks.iter().enumerate().flat_map(of_word));
        }
        let target_sums = self.targets.drain(..).map(|target| {
            self.marks[target as usize / 64] = 0;
            (target, std::mem::replace(&mut self.sums[target as usize], C::IDENTITY))
        });
        windows.push(target_sums.collect());
    }
}

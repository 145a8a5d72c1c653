//! Counts of arcs, and sums of their weights, of a range of sources.

use std::ops::Range;

use brimful_store::Job;

use crate::error::Result;
use crate::read::segment_reader::SegmentReader;
use crate::read::shards::ShardFile;

/// Counts the arcs from a range of sources.
#[derive(Debug, Default)]
pub(crate) struct DegreeCounter {
    start: u64,
    pub(crate) degrees: Vec<u64>,
    /// Empty if edges have no weights.
    pub(crate) strengths: Vec<f64>,
}

impl DegreeCounter {
    /// A counter for `sources`, at zero.
    pub(crate) fn new(sources: Range<u64>, weighted: bool) -> Self {
        let length = (sources.end - sources.start) as usize;
        let strengths = if weighted { vec![0.0; length] } else { Vec::new() };
        Self { start: sources.start, degrees: vec![0; length], strengths }
    }

    /// Counts arcs of `source` and sums their weights, if `source` is in the range.
    #[inline]
    pub(crate) fn add(&mut self, source: u64, count: u64, weights: impl Iterator<Item = f64>) {
        // For sources below the range, the difference wraps to a number beyond its end.
        let at = source.wrapping_sub(self.start) as usize;
        if let Some(degree) = self.degrees.get_mut(at) {
            *degree += count;
            if let Some(strength) = self.strengths.get_mut(at) {
                *strength = weights.fold(*strength, |sum, weight| sum + weight);
            }
        }
    }

    /// Counts the arcs of `sources` in `shards`.
    pub(crate) fn count(
        shards: &ShardFile,
        sources: Range<u64>,
        weighted: bool,
        job: &Job,
    ) -> Result<Self> {
        let mut counter = Self::new(sources.clone(), weighted);
        let mut reader = SegmentReader::default();
        for (index, segment) in shards.segments().iter().enumerate() {
            if segment.last_source < sources.start || segment.first_source >= sources.end {
                continue;
            }
            job.check()?;
            reader.for_each_edge(shards, index, |source, _, weight| {
                counter.add(source, 1, std::iter::once(weight));
            })?;
        }
        Ok(counter)
    }
}

//! The adjacency matrix of a graph in memory, in compressed sparse rows.
//!
//! Degrees give the start of each row. One pass over the shards puts every arc into its row; then
//! rows are sorted and arcs with equal ends summed. Invariant: rows and columns are the ranks of
//! vertices by external id; within a row, columns ascend and are distinct.

use std::ops::AddAssign;

use brimful_store::Job;
use bytemuck::cast_slice_mut;

use crate::error::Result;
use crate::read::external_order::ranks;
use crate::read::graph::Graph;
use crate::read::segment_reader::SegmentReader;

/// A matrix with a layout of rows and without entries. Memory: 16 bytes a vertex.
#[derive(Debug)]
pub struct Matrix<'g> {
    graph: &'g Graph,
    /// The ranks, by internal id.
    ranks: Vec<u64>,
    /// The start of each row, and the number of arcs.
    starts: Vec<u64>,
}

impl<'g> Matrix<'g> {
    /// Computes the layout of the rows for `graph`.
    pub fn new(graph: &'g Graph) -> Result<Self> {
        let ranks = ranks(graph)?;
        let mut degrees = vec![0; ranks.len()];
        graph.degrees(0, &mut degrees)?;
        let mut starts = vec![0; ranks.len() + 1];
        for (rank, degree) in ranks.iter().zip(degrees) {
            starts[*rank as usize + 1] = degree;
        }
        let mut sum = 0_u64;
        for start in &mut starts {
            // Filling the rows detects forged degrees.
            sum = sum.saturating_add(*start);
            *start = sum;
        }
        Ok(Self { graph, ranks, starts })
    }

    /// Number of rows and of columns.
    pub fn rows(&self) -> usize {
        self.ranks.len()
    }

    /// Number of arcs, which is the number of entries before equal ends are summed.
    pub fn arcs(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// True if row starts and columns fit in 31 bits.
    pub fn is_narrow(&self) -> bool {
        self.arcs().max(self.rows() as u64) < 1 << 31
    }

    /// [`Matrix::fill`] for slices of bytes. Integers have 32 bits if the matrix is narrow,
    /// otherwise 64. Values have 64 bits: floats if `weighted`, otherwise integers.
    ///
    /// # Errors
    /// As [`Matrix::fill`].
    ///
    /// # Panics
    /// As [`Matrix::fill`], and if the bytes are not aligned.
    pub fn fill_bytes(
        self,
        starts: &mut [u8],
        columns: &mut [u8],
        values: &mut [u8],
        weighted: bool,
        job: &Job,
    ) -> Result<u64> {
        let one = |_: f64| 1_i64;
        if self.is_narrow() {
            let (starts, columns) = (cast_slice_mut(starts), cast_slice_mut(columns));
            let narrow = |number: u64| number as i32;
            match weighted {
                true => {
                    self.fill(starts, columns, cast_slice_mut(values), narrow, |weight| weight, job)
                }
                false => self.fill(starts, columns, cast_slice_mut(values), narrow, one, job),
            }
        } else {
            let (starts, columns) = (cast_slice_mut(starts), cast_slice_mut(columns));
            let narrow = u64::cast_signed;
            match weighted {
                true => {
                    self.fill(starts, columns, cast_slice_mut(values), narrow, |weight| weight, job)
                }
                false => self.fill(starts, columns, cast_slice_mut(values), narrow, one, job),
            }
        }
    }

    /// Fills in the entries: `starts` (rows + 1 items), and `columns` and `values` (one item an
    /// arc). A value is the sum of the weights of equal arcs, or their number without weights.
    /// Returns the number of entries.
    ///
    /// # Errors
    /// Corruption if the shards contradict the degrees.
    ///
    /// # Panics
    /// If a slice has the wrong length.
    pub fn fill<C: Copy + Ord, V: Copy + AddAssign>(
        mut self,
        starts: &mut [C],
        columns: &mut [C],
        values: &mut [V],
        narrow: impl Fn(u64) -> C,
        value: impl Fn(f64) -> V,
        job: &Job,
    ) -> Result<u64> {
        let arcs = self.arcs() as usize;
        assert!(starts.len() == self.starts.len() && columns.len() == arcs && values.len() == arcs);
        self.scatter(columns, values, &narrow, &value, job)?;
        let (mut entries, mut buffer) = (0, Vec::new());
        starts[0] = narrow(0);
        for row in 0..self.rows() {
            // Filling has moved each start to the start of the next row.
            let range = row.checked_sub(1).map_or(0, |before| self.starts[before] as usize)
                ..self.starts[row] as usize;
            sort(&mut columns[range.clone()], &mut values[range.clone()], &mut buffer);
            let first = entries;
            for at in range {
                if entries > first && columns[entries - 1] == columns[at] {
                    let more = values[at];
                    values[entries - 1] += more;
                } else {
                    (columns[entries], values[entries]) = (columns[at], values[at]);
                    entries += 1;
                }
            }
            starts[row + 1] = narrow(entries as u64);
        }
        Ok(entries as u64)
    }

    /// Puts every arc at the start of its row and advances that start.
    fn scatter<C, V>(
        &mut self,
        columns: &mut [C],
        values: &mut [V],
        narrow: impl Fn(u64) -> C,
        value: impl Fn(f64) -> V,
        job: &Job,
    ) -> Result<()> {
        let shards = self.graph.forward();
        let ends = self.starts.clone();
        let mut reader = SegmentReader::default();
        for index in 0..shards.segments().len() {
            job.check()?;
            let mut fits = true;
            reader.for_each_edge(shards, index, |source, target, weight| {
                let ranks = self.ranks.get(source as usize).zip(self.ranks.get(target as usize));
                let place = ranks.and_then(|(row, column)| {
                    let (next, end) =
                        (self.starts.get_mut(*row as usize)?, ends.get(*row as usize + 1)?);
                    (*next < *end).then(|| (std::mem::replace(next, *next + 1) as usize, *column))
                });
                match place {
                    Some((at, column)) => {
                        (columns[at], values[at]) = (narrow(column), value(weight))
                    }
                    None => fits = false,
                }
            })?;
            if !fits {
                return Err(shards.contradiction(index).into());
            }
        }
        if ends.get(1..) == self.starts.get(..self.rows()) {
            return Ok(());
        }
        Err(self
            .graph
            .degree_sums()
            .sealed()
            .corrupt(0, "the degrees contradict the shards")
            .into())
    }
}

/// Sorts the entries of a row by column; entries with equal columns keep their order.
fn sort<C: Copy + Ord, V: Copy>(columns: &mut [C], values: &mut [V], buffer: &mut Vec<(C, V)>) {
    if columns.is_sorted() {
        return;
    }
    buffer.clear();
    buffer.extend(columns.iter().copied().zip(values.iter().copied()));
    buffer.sort_by_key(|(column, _)| *column);
    for ((column, value), (to_column, to_value)) in
        buffer.iter().zip(columns.iter_mut().zip(values))
    {
        (*to_column, *to_value) = (*column, *value);
    }
}

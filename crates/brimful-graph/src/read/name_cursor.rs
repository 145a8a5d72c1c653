//! Looks up the strings of vertices for display: many at once, with one read per block of the file.

use std::collections::HashMap;
use std::sync::Arc;

use brimful_store::Error as StoreError;
use brimful_store::wording::counted;

use crate::error::{Error, Result};
use crate::ids::names::{NameBlock, NameFile};
use crate::read::graph::{Graph, IDS};

/// The approximate limit of decoded blocks in the cache, in bytes.
const CACHE_BYTES: usize = 12 << 20;

/// Bytes of the names of rows that are looked up together, unless a single row needs more.
const ROWS_BYTES: usize = 1 << 20;
/// Number of rows that are first looked up together.
const FIRST_ROWS: usize = 1 << 10;
/// The maximum number of rows that are looked up together.
const MAX_ROWS: usize = 1 << 16;

/// Looks up names and caches blocks.
#[derive(Debug)]
pub struct NameCursor {
    blocks: HashMap<usize, Arc<NameBlock>>,
    bytes: usize,
    last: Option<Arc<NameBlock>>,
    /// Number of rows that the next [`NameCursor::rows`] tries.
    rows: usize,
}

impl Default for NameCursor {
    fn default() -> Self {
        Self { blocks: HashMap::new(), bytes: 0, last: None, rows: FIRST_ROWS }
    }
}

/// Names, in the order of the request.
#[derive(Debug, Default)]
pub struct Labels {
    text: String,
    /// Start and end of each name.
    places: Vec<(usize, usize)>,
}

impl Labels {
    /// Name number `at`; empty if there are fewer.
    pub fn get(&self, at: usize) -> &str {
        self.places.get(at).and_then(|(start, end)| self.text.get(*start..*end)).unwrap_or_default()
    }

    /// All names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.places.len()).map(|at| self.get(at))
    }

    /// Total bytes of all names; a repeated name counts each time.
    fn bytes(&self) -> usize {
        self.places.iter().map(|(start, end)| end - start).sum()
    }
}

impl NameCursor {
    /// The maximum memory of a cursor, in bytes, including the names of the rows that it returns.
    pub const MEMORY_BYTES: u64 = (CACHE_BYTES + 4 * ROWS_BYTES + 48 * MAX_ROWS) as u64;

    /// The names of the first rows of a table, column by column, and the number of these rows. The
    /// columns hold vertices, as in [`NameCursor::labels`], or are empty. The names of all these
    /// rows have at most 1 MiB, unless a single row has more.
    ///
    /// # Errors
    /// As [`NameCursor::labels`].
    pub fn rows(
        &mut self,
        graph: &Graph,
        columns: &[&[Option<u64>]],
    ) -> Result<(usize, Vec<Labels>)> {
        let length = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        let mut rows = self.rows.min(length);
        loop {
            let (mut named, mut bytes_left) = (Vec::with_capacity(columns.len()), ROWS_BYTES);
            for column in columns {
                let most = if rows > 1 { bytes_left } else { usize::MAX };
                let Some(labels) = self.labels_within(graph, &column[..rows], most)? else { break };
                bytes_left = bytes_left.saturating_sub(labels.bytes());
                named.push(labels);
            }
            if named.len() == columns.len() {
                if bytes_left >= ROWS_BYTES / 2 {
                    self.rows = self.rows.max(rows * 2).min(MAX_ROWS);
                }
                return Ok((rows, named));
            }
            rows = rows.div_ceil(2);
            self.rows = rows;
        }
    }

    /// The names of the vertices with these bits of external ids, all of which must exist.
    ///
    /// # Errors
    /// [`Error::Usage`] if ids are integers; corruption, with the file.
    pub fn labels(&mut self, graph: &Graph, ids: &[u64]) -> Result<Labels> {
        let ids: Vec<Option<u64>> = ids.iter().copied().map(Some).collect();
        Ok(self.labels_within(graph, &ids, usize::MAX)?.unwrap_or_default())
    }

    /// [`NameCursor::labels`], with empty names for missing ids; `None` if the names exceed `most`
    /// bytes.
    fn labels_within(
        &mut self,
        graph: &Graph,
        ids: &[Option<u64>],
        most: usize,
    ) -> Result<Option<Labels>> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        if !ids.is_sorted() {
            order.sort_unstable_by_key(|at| ids[*at as usize]);
        }
        let mut labels = Labels { text: String::new(), places: vec![(0, 0); ids.len()] };
        let (mut last, mut bytes) = (None, 0);
        for at in order {
            let Some(id) = ids[at as usize] else { continue };
            let place = match last {
                Some((before, place)) if before == id => place,
                _ => {
                    let start = labels.text.len();
                    self.with(graph, id, |name| labels.text.push_str(name))?;
                    (start, labels.text.len())
                }
            };
            last = Some((id, place));
            labels.places[at as usize] = place;
            bytes += place.1 - place.0;
            if bytes > most {
                return Ok(None);
            }
        }
        Ok(Some(labels))
    }

    /// The name of one vertex, with the errors of [`NameCursor::labels`].
    pub fn label(&mut self, graph: &Graph, id: u64) -> Result<String> {
        let mut text = String::new();
        self.with(graph, id, |name| text.push_str(name))?;
        Ok(text)
    }

    fn with(&mut self, graph: &Graph, rank: u64, take: impl FnOnce(&str)) -> Result<()> {
        let missing = || -> Error {
            let problem =
                format!("an id is the rank {rank} among {}", counted(graph.vertices(), "name"));
            StoreError::corrupt(graph.path().join(IDS), 0, problem).into()
        };
        if let Some(name) = self.last.as_ref().and_then(|block| block.name(rank)) {
            take(name);
            return Ok(());
        }
        let Some(file) = graph.names() else {
            return Err(Error::Usage("the ids of this graph are integers".into()));
        };
        if rank >= graph.vertices() {
            return Err(missing());
        }
        let block = self.block(file, file.block_of(rank))?;
        take(block.name(rank).ok_or_else(missing)?);
        self.last = Some(block);
        Ok(())
    }

    /// The rank of `name`, or `None`.
    pub(crate) fn find(&mut self, file: &NameFile, name: &str) -> Result<Option<u64>> {
        file.find_with(name, |number| self.block(file, number))
    }

    /// A block, from the cache or read into it.
    fn block(&mut self, file: &NameFile, number: usize) -> Result<Arc<NameBlock>> {
        if let Some(block) = self.blocks.get(&number) {
            return Ok(Arc::clone(block));
        }
        let block = Arc::new(file.read_block(number)?);
        if self.bytes + block.memory_bytes() > CACHE_BYTES {
            self.blocks.clear();
            self.bytes = 0;
        }
        self.bytes += block.memory_bytes();
        self.blocks.insert(number, Arc::clone(&block));
        Ok(block)
    }
}

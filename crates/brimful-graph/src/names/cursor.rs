//! Strings of vertices for whoever shows them: many at once, each block of the file read once for all.

use std::collections::HashMap;
use std::sync::Arc;

use super::file::{Block, NameFile};
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Most bytes of decoded blocks that a cursor keeps, about.
const CACHE_BYTES: usize = 12 << 20;

/// Looks names up, and keeps blocks for the next look.
#[derive(Debug, Default)]
pub struct NameCursor {
    blocks: HashMap<usize, Arc<Block>>,
    bytes: usize,
    last: Option<Arc<Block>>,
}

/// Names, in the order in which they were asked for.
#[derive(Debug, Default)]
pub struct Labels {
    text: String,
    /// Start and end of each.
    places: Vec<(usize, usize)>,
}

impl Labels {
    /// Name number `at`; empty if there are fewer.
    pub fn get(&self, at: usize) -> &str {
        self.places.get(at).and_then(|(start, end)| self.text.get(*start..*end)).unwrap_or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.places.len()).map(|at| self.get(at))
    }
}

impl NameCursor {
    /// Most bytes of memory that a cursor takes beside what it returns.
    pub const MEMORY_BYTES: u64 = CACHE_BYTES as u64 + (2 << 20);

    /// The names of the vertices whose external ids have the bits `ids`, all of which must exist.
    ///
    /// # Errors
    /// [`Error::Usage`] if ids are integers; corruption by file.
    pub fn labels(&mut self, graph: &Graph, ids: &[u64]) -> Result<Labels> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        if !ids.is_sorted() {
            order.sort_unstable_by_key(|at| ids[*at as usize]);
        }
        let mut labels = Labels { text: String::new(), places: vec![(0, 0); ids.len()] };
        let mut last = None;
        for at in order {
            let id = ids[at as usize];
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
        }
        Ok(labels)
    }

    /// The name of one vertex, as [`NameCursor::labels`].
    pub fn label(&mut self, graph: &Graph, id: u64) -> Result<String> {
        let mut text = String::new();
        self.with(graph, id, |name| text.push_str(name))?;
        Ok(text)
    }

    fn with(&mut self, graph: &Graph, rank: u64, take: impl FnOnce(&str)) -> Result<()> {
        let missing = || Error::NoSuchVertex { vertex: format!("of rank {rank}") };
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

    /// The rank of `name`, if it is there.
    pub(crate) fn find(&mut self, file: &NameFile, name: &str) -> Result<Option<u64>> {
        file.find_with(name, |number| self.block(file, number))
    }

    /// A block, kept for the next look.
    fn block(&mut self, file: &NameFile, number: usize) -> Result<Arc<Block>> {
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

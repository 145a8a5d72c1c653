//! Processes that keep the edges of files, all of them in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use brimful_graph::build::divided::{RecordSink, Sorters};
use brimful_graph::build::mapping::map_edges;
use brimful_graph::input::kept::{KeptEdges, rank_range, ranking_bytes};
use brimful_graph::input::parsed::{BATCH, END, RANGES};
use brimful_graph::message::{Message, Messages};
use brimful_graph::{Error, Result};
use brimful_store::Job;

use super::divided::{Here, InOrder};
use super::resources;

/// The messages of files, and what becomes of them.
#[derive(Debug)]
pub(crate) struct Kept {
    ends: Mutex<Vec<(usize, Vec<u8>)>>,
    batches: Vec<(usize, Vec<u8>)>,
    /// By range.
    ids: BTreeMap<usize, Vec<Vec<u8>>>,
    pub(crate) sorters: Arc<Here>,
    /// Memory of a process that ranks.
    pub(crate) ranking_bytes: u64,
    /// The number of batches that are mapped together.
    pub(crate) together: usize,
}

impl Kept {
    /// Keeps messages, each with its file and its label.
    pub(crate) fn new(messages: Vec<(usize, usize, Vec<u8>)>, folder: &Path) -> Self {
        let sorters = Arc::new(Here::new(5, 1 << 28, folder, None));
        let mut kept = Self {
            ends: Mutex::default(),
            batches: Vec::new(),
            ids: BTreeMap::new(),
            sorters,
            ranking_bytes: ranking_bytes(),
            together: 2,
        };
        for (file, label, message) in messages {
            match label {
                BATCH => kept.batches.push((file, message)),
                END => kept.ends.get_mut().unwrap().push((file, message)),
                _ => kept.ids.entry(label - RANGES).or_default().push(message),
            }
        }
        kept
    }
}

fn boxed(message: &[u8]) -> Message {
    Box::new(message.to_vec())
}

impl KeptEdges for Kept {
    fn next(&self, _: &Job) -> Result<Option<(usize, Message)>> {
        // The last file first.
        let end = self.ends.lock().unwrap().pop();
        Ok(end.map(|(file, message)| (file, boxed(&message))))
    }

    fn batches(&self) -> Result<usize> {
        Ok(self.batches.len())
    }

    fn batch(&self, at: usize) -> Result<(usize, Message)> {
        let (file, message) = &self.batches[at];
        Ok((*file, boxed(message)))
    }

    fn rank(&self, task: &[u8], declared: &[usize]) -> Result<Box<dyn Messages>> {
        let mut ranges: Vec<usize> = self.ids.keys().chain(declared).copied().collect();
        ranges.sort_unstable();
        ranges.dedup();
        let rank = |range: usize| {
            let mut ids = self.ids.get(&range).into_iter().flatten().rev();
            let next = || Ok(ids.next().map(|message| boxed(message)));
            Ok((range, rank_range(task, range, &resources(1, self.ranking_bytes), next)?))
        };
        // The last range first.
        let messages: Vec<_> = ranges.into_iter().rev().map(rank).collect::<Result<_>>()?;
        Ok(Box::new(InOrder(messages.into_iter())))
    }

    fn map(&self, task: &[u8], table: [&[u8]; 2], _: bool) -> Result<Box<dyn Messages>> {
        let map = |(number, batches): (usize, &[(usize, Vec<u8>)])| {
            let mut left = batches.iter();
            let next = || Ok(left.next().map(|(file, message)| (*file, boxed(message))));
            let send = |part, records: Vec<u8>| self.sorters.put(part, &records);
            Ok((number, map_edges(task, table, &resources(1, 1 << 26), next, send)?))
        };
        let groups = self.batches.chunks(self.together).enumerate();
        let messages: Vec<_> = groups.map(map).collect::<Result<_>>()?;
        Ok(Box::new(InOrder(messages.into_iter())))
    }
}

/// The sorters of kept edges.
pub(crate) fn sorters_of(kept: &Arc<Kept>) -> Option<Arc<dyn Sorters>> {
    Some(Arc::clone(&kept.sorters) as Arc<dyn Sorters>)
}

/// True if an error is about a budget.
pub(crate) fn is_small(error: &Error) -> bool {
    matches!(error, Error::Store(brimful_store::Error::Budget { .. }))
}

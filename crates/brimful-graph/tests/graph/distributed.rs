//! Processes that keep the edges of files, all of them in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use brimful_graph::build::mapping::map_edges;
use brimful_graph::build::numbering::number_ids;
use brimful_graph::input::distributed::{DistributedEdges, rank_range, ranking_bytes};
use brimful_graph::input::parsed::{BATCH, END, RANGES};
use brimful_graph::input::sending::replace_numbers;
use brimful_graph::message::{Message, Messages};
use brimful_graph::{Error, Result};
use brimful_store::Job;

use super::divided::{Here, InOrder};
use super::resources;

/// The messages of files.
#[derive(Debug, Default)]
struct State {
    ends: Vec<(usize, Vec<u8>)>,
    batches: Vec<(usize, Vec<u8>)>,
    /// By range.
    ids: BTreeMap<usize, Vec<Vec<u8>>>,
}

/// A file, and the names and the edges of a generation.
type Generation = (usize, Vec<Vec<u8>>, Vec<Vec<u8>>);

/// Processes that keep edges.
#[derive(Debug)]
pub(crate) struct Distributed {
    state: Mutex<State>,
    pub(crate) generations: Vec<Generation>,
    /// The generations of numbered ids, and the memory of a process that numbers.
    numbered: Mutex<Vec<Generation>>,
    pub(crate) numbering_bytes: u64,
    pub(crate) sorters: Here,
    /// Memory of a process that ranks.
    pub(crate) ranking_bytes: u64,
    /// The number of batches that are mapped together.
    pub(crate) together: usize,
}

impl Distributed {
    /// Keeps messages, each with its file and its label; `has_names`: ids are strings.
    pub(crate) fn new(
        messages: Vec<(usize, usize, Vec<u8>)>,
        has_names: bool,
        folder: &Path,
    ) -> Self {
        let mut kept = Self {
            state: Mutex::default(),
            generations: Vec::new(),
            numbered: Mutex::default(),
            numbering_bytes: 1 << 28,
            sorters: Here::new(5, 1 << 28, folder, None),
            ranking_bytes: ranking_bytes(),
            together: 2,
        };
        let mut generations = BTreeMap::new();
        for (file, label, message) in messages {
            if label < RANGES || !has_names {
                kept.state.get_mut().unwrap().keep(file, label, message);
                continue;
            }
            let generation = (file, (label - RANGES) / 2);
            let (names, edges) = generations.entry(generation).or_insert((Vec::new(), Vec::new()));
            if label % 2 == RANGES % 2 { names } else { edges }.push(message);
        }
        let generations = generations.into_iter();
        kept.generations =
            generations.map(|((file, _), (names, edges))| (file, names, edges)).collect();
        kept
    }
}

impl State {
    fn keep(&mut self, file: usize, label: usize, message: Vec<u8>) {
        match label {
            BATCH => self.batches.push((file, message)),
            END => self.ends.push((file, message)),
            _ => self.ids.entry(label - RANGES).or_default().push(message),
        }
    }
}

fn boxed(message: &[u8]) -> Message {
    Box::new(message.to_vec())
}

impl DistributedEdges for Distributed {
    fn next(&self, _: &Job) -> Result<Option<(usize, Message)>> {
        // The last file first.
        let end = self.state.lock().unwrap().ends.pop();
        Ok(end.map(|(file, message)| (file, boxed(&message))))
    }

    fn names(&self) -> Result<Box<dyn Messages>> {
        let numbered = self.generations.iter().enumerate();
        let pieces =
            numbered.flat_map(|(at, (_, names, _))| names.iter().map(move |one| (at, one.clone())));
        Ok(Box::new(InOrder(pieces.collect::<Vec<_>>().into_iter())))
    }

    fn number(&self, task: &[u8]) -> Result<Box<dyn Messages>> {
        let batches = std::mem::take(&mut self.state.lock().unwrap().batches);
        let mut ids = Vec::new();
        // Positions are those of all files.
        let mut numbered = self.numbered.lock().unwrap();
        for group in batches.chunks(self.together) {
            let mut left = group.iter();
            let next = || Ok(left.next().map(|(file, message)| (*file, boxed(message))));
            let limits = resources(1, self.numbering_bytes);
            number_ids(task, &limits, next, |label, message| {
                match label % 2 == RANGES % 2 {
                    true => {
                        ids.push((numbered.len(), message));
                        numbered.push((0, Vec::new(), Vec::new()));
                    }
                    false => numbered.last_mut().unwrap().2.push(message),
                }
                Ok(())
            })?;
        }
        Ok(Box::new(InOrder(ids.into_iter())))
    }

    fn replace(&self, task: &[u8], generation: usize, table: &[u8]) -> Result<()> {
        let numbered = self.numbered.lock().unwrap();
        let generations = if numbered.is_empty() { &self.generations } else { &*numbered };
        let (file, _, edges) = &generations[generation];
        let mut left = edges.iter();
        let next = || Ok(left.next().map(|message| boxed(message)));
        replace_numbers(task, table, &resources(1, 1 << 28), next, |label, message| {
            self.state.lock().unwrap().keep(*file, label, message);
            Ok(())
        })
    }

    fn batches(&self) -> Result<usize> {
        Ok(self.state.lock().unwrap().batches.len())
    }

    fn parts(&self) -> Result<usize> {
        Ok(self.sorters.parts)
    }

    fn sort(&self, task: &[u8], parts: usize) -> Result<Box<dyn Messages>> {
        self.sorters.sort(task, parts)
    }

    fn rank(&self, task: &[u8], declared: &[usize]) -> Result<Box<dyn Messages>> {
        let ids = &self.state.lock().unwrap().ids;
        let mut ranges: Vec<usize> = ids.keys().chain(declared).copied().collect();
        ranges.sort_unstable();
        ranges.dedup();
        let rank = |range: usize| {
            let mut ids = ids.get(&range).into_iter().flatten().rev();
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
            let send = |part, records| self.sorters.put(part, records);
            Ok((number, map_edges(task, table, &resources(1, 1 << 26), next, send)?))
        };
        let batches = &self.state.lock().unwrap().batches;
        let groups = batches.chunks(self.together).enumerate();
        let messages: Vec<_> = groups.map(map).collect::<Result<_>>()?;
        Ok(Box::new(InOrder(messages.into_iter())))
    }
}

/// True if an error is about a budget.
pub(crate) fn is_small(error: &Error) -> bool {
    matches!(error, Error::Store(brimful_store::Error::Budget { .. }))
}

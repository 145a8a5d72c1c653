//! Numbers of shortest paths from one vertex: a superstep for each level, in which a vertex that
//! has no level yet adds up the paths of its neighbors on the level before.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::input::{Input, Loaded};
use crate::{Result, SOURCE};

/// The level of a vertex that none was found for.
const NOWHERE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
struct Paths {
    level: u64,
    count: u64,
}

impl Paths {
    fn first(vertex: &Loaded<u32>) -> Self {
        match vertex.number == SOURCE {
            true => Self { level: 0, count: 1 },
            false => Self { level: NOWHERE, count: 0 },
        }
    }

    fn on(&self, level: u64) -> u64 {
        if self.level == level { self.count } else { 0 }
    }
}

pub(crate) fn in_memory(input: &Input) -> Result<Vec<f64>> {
    let mut states = input.states(Paths::first)?;
    let edges: Vec<Vec<u32>> = input.edges()?;
    let (mut level, mut changed) = (0, true);
    while std::mem::take(&mut changed) {
        for (vertex, edges) in edges.iter().enumerate() {
            let mut paths = states[vertex];
            if paths.level == NOWHERE {
                let mut count = 0;
                for neighbor in edges {
                    count += states[*neighbor as usize].on(level);
                }
                if count > 0 {
                    paths = Paths { level: level + 1, count };
                    changed = true;
                }
            }
            states[vertex] = paths;
        }
        level += 1;
    }
    Ok(states.iter().map(|paths| paths.count as f64).collect())
}

pub(crate) fn decoupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let states = disk.states(input, Paths::first)?;
    let edges = disk.edges::<u32>(input)?;
    let (mut level, mut changed) = (0, true);
    while std::mem::take(&mut changed) {
        states.process(&edges, |mut paths, edges| {
            if paths.level == NOWHERE {
                let mut count = 0;
                for neighbor in edges {
                    count += states.fetch(*neighbor)?.on(level);
                }
                if count > 0 {
                    paths = Paths { level: level + 1, count };
                    changed = true;
                }
            }
            Ok(paths)
        })?;
        level += 1;
    }
    states.map(|paths| paths.count as f64)
}

pub(crate) fn coupled(input: &Input, disk: &Disk<'_>) -> Result<Vec<f64>> {
    let vertices = disk.vertices(input, Paths::first)?;
    let (mut level, mut changed) = (0, true);
    while std::mem::take(&mut changed) {
        vertices.process(|mut paths, edges| {
            if paths.level == NOWHERE {
                let mut count = 0;
                for neighbor in edges {
                    count += vertices.fetch(*neighbor)?.state.on(level);
                }
                if count > 0 {
                    paths = Paths { level: level + 1, count };
                    changed = true;
                }
            }
            Ok(paths)
        })?;
        level += 1;
    }
    vertices.map(|paths| paths.count as f64)
}

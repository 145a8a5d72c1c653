//! The least external ids of sets of vertices, such as components.

use brimful_engine::Result;
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use super::propagation::Label;

/// Vertices labeled at once.
pub(crate) const WINDOW: usize = 1 << 16;

/// For each vertex with edges, the least offset of the external ids in its component; `component`
/// returns the number of a vertex's component, which is below the number of vertices.
pub(crate) fn labels<L: Label>(
    graph: &Graph,
    component: &(dyn Fn(u32) -> u32 + Sync),
    resources: &Resources,
) -> Result<ScratchArray<L>> {
    let sets = graph.connected() as usize;
    let label = |vertex, least: &dyn Fn(u32) -> L| least(component(vertex));
    least_of_sets(graph, sets, component, label, resources)
}

/// Returns `state` for each vertex with edges. `set` assigns each vertex to one of `sets` sets;
/// `state` gets the vertex, and the least offset of an external id in each set.
pub(crate) fn least_of_sets<L: Label, S: Pod + Send + Sync>(
    graph: &Graph,
    sets: usize,
    set: &(dyn Fn(u32) -> u32 + Sync),
    state: impl Fn(u32, &dyn Fn(u32) -> L) -> S + Sync,
    resources: &Resources,
) -> Result<ScratchArray<S>> {
    let vertices = graph.connected() as usize;
    let offsets = graph.id_offsets()?;
    let least: Vec<L::Atomic> = (0..sets).map(|_| L::atomic()).collect();
    let windows = vertices.div_ceil(WINDOW);
    resources.job.begin("label", 2 * windows as u64);
    resources.parallel_map(windows, |window, id_offsets: &mut Vec<u64>| -> Result<()> {
        let start = window * WINDOW;
        id_offsets.resize(WINDOW.min(vertices - start), 0);
        graph.external_offsets(offsets, start as u64, id_offsets)?;
        for (at, id_offset) in id_offsets.iter().enumerate() {
            L::lower(&least[set((start + at) as u32) as usize], *id_offset);
        }
        resources.job.advance(1);
        Ok(())
    })?;
    let mut states = ScratchArray::resident(vertices, WINDOW);
    let out = states.windows();
    let least = |set: u32| L::get(&least[set as usize]);
    resources.parallel_map(windows, |window, (): &mut ()| -> Result<()> {
        let start = window * WINDOW;
        let fill = |states: &mut [S]| {
            for (at, out) in states.iter_mut().enumerate() {
                *out = state((start + at) as u32, &least);
            }
        };
        out.overwrite(window, &mut Vec::new(), fill)?;
        resources.job.advance(1);
        Ok(())
    })?;
    drop(out);
    Ok(states)
}

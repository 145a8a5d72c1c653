//! Names of components: the least external id of each.

use brimful_engine::Result;
use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

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
    let vertices = graph.connected() as usize;
    let offsets = graph.id_offsets()?;
    let least: Vec<L::Atomic> = (0..vertices).map(|_| L::atomic()).collect();
    let windows = vertices.div_ceil(WINDOW);
    resources.job.begin("label", 2 * windows as u64);
    resources.share(windows, |window, places: &mut Vec<u64>| -> Result<()> {
        let start = window * WINDOW;
        places.resize(WINDOW.min(vertices - start), 0);
        graph.external_offsets(offsets, start as u64, places)?;
        for (at, place) in places.iter().enumerate() {
            L::lower(&least[component((start + at) as u32) as usize], *place);
        }
        resources.job.advance(1);
        Ok(())
    })?;
    let mut labels = ScratchArray::resident(vertices, WINDOW);
    let out = labels.windows();
    resources.share(windows, |window, (): &mut ()| -> Result<()> {
        let start = window * WINDOW;
        let fill = |labels: &mut [L]| {
            for (at, label) in labels.iter_mut().enumerate() {
                *label = L::get(&least[component((start + at) as u32) as usize]);
            }
        };
        out.overwrite(window, &mut Vec::new(), fill)?;
        resources.job.advance(1);
        Ok(())
    })?;
    drop(out);
    Ok(labels)
}

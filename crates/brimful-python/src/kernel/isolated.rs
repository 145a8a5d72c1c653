//! First states of vertices without edges, which a run never asks for.
//!
//! Invariant: [`initial_state`] repeats only calls that [`check_isolated`] has made without an
//! error.

use brimful::engine::vertex::attributes::VertexAttributes;
use brimful::engine::vertex::kernel::{ABI_VERSION, AGGREGATES, Context, NO_SIGNAL};
use brimful::engine::vertex::program::BATCH;
use brimful::engine::vertex::slot::Slot;
use brimful::engine::{Aggregate, Error, Kernel, KernelArguments, Vertex};
use brimful::graph::Graph;

/// Numbers of words of a state, and of a signal.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordCounts {
    pub(super) state: usize,
    pub(super) signal: usize,
}

/// Checks that vertices without edges have first states: the run never asks for them.
pub(super) fn check_isolated(
    kernel: Kernel,
    parameters: &[f64],
    words: WordCounts,
    graph: &Graph,
) -> std::result::Result<(), Error> {
    let offsets = graph.id_offsets()?;
    let (mut attributes, mut states) = (VertexAttributes::default(), vec![0; BATCH * words.state]);
    for first in (graph.connected()..graph.vertices()).step_by(BATCH) {
        let range = first as usize..graph.vertices().min(first + BATCH as u64) as usize;
        attributes.read_external(graph, Some(offsets), &range)?;
        let vertices: Vec<Vertex> =
            (0..range.len()).map(|at| attributes.vertex(range.start, at)).collect();
        let done = set_first_states(kernel, parameters, words, &vertices, &mut states);
        if let Err((status, failed)) = done {
            let received = KernelArguments {
                degree: 0,
                superstep: 0,
                state: None,
                sum: None,
                aggregate: vec![0; 2 * AGGREGATES],
            };
            let vertex = (failed < BATCH as u64).then_some(first + failed);
            let received = Some(Box::new(received));
            return Err(Error::Kernel { status, call: "first states", vertex, received });
        }
    }
    Ok(())
}

/// The first state of a vertex without edges, by the place of its external id. [`check_isolated`]
/// has made the same call without an error, and a kernel is a pure function.
pub(super) fn initial_state(
    kernel: Kernel,
    parameters: &[f64],
    words: WordCounts,
    place: u64,
) -> Vec<u64> {
    let vertex = Vertex { id: 0, degree: 0, strength: 0.0, external: place };
    let mut state = vec![0; words.state];
    let done = set_first_states(kernel, parameters, words, &[vertex], &mut state);
    assert_eq!(done, Ok(()), "the same call succeeded before");
    state
}

/// Sets the first states of vertices without edges. The error is the status of the kernel, and the
/// position of the vertex that failed.
#[expect(unsafe_code, reason = "a call to a function that is known by its address alone")]
fn set_first_states(
    kernel: Kernel,
    parameters: &[f64],
    words: WordCounts,
    vertices: &[Vertex],
    states: &mut [u64],
) -> std::result::Result<(), (i32, u64)> {
    let (mut from, mut is_silent) = (0, false);
    loop {
        let remaining = &vertices[from..];
        let states = &mut states[from * words.state..vertices.len() * words.state];
        let mut signals = vec![0_u64; remaining.len() * words.signal];
        let (mut partial, aggregate) = ([Slot::NOTHING; AGGREGATES], [Slot::NOTHING; AGGREGATES]);
        let mut context = Context {
            abi_version: ABI_VERSION,
            size: size_of::<Context>() as u32,
            call: 0,
            state_words: words.state as u32,
            count: remaining.len() as u64,
            // A signal that cannot be computed has no edge to pass.
            failed: if is_silent { 0 } else { u64::MAX },
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len() as u64,
            vertices: remaining.as_ptr(),
            states: states.as_mut_ptr(),
            signals: signals.as_mut_ptr(),
            vertex_count: vertices.len() as u64,
            aggregate: aggregate.as_ptr(),
            partial: partial.as_mut_ptr(),
            ..bytemuck::Zeroable::zeroed()
        };
        // SAFETY: as in `program_of`; every pointer is null or to an array of the length that the
        // call names.
        let status = unsafe { kernel(&raw mut context) };
        let failed = usize::try_from(context.failed).unwrap_or(usize::MAX).saturating_add(from);
        match status {
            0 => return Ok(()),
            NO_SIGNAL if failed < vertices.len() && !(is_silent && failed == from) => {
                (from, is_silent) = (failed, true);
            }
            _ => return Err((status, failed as u64)),
        }
    }
}

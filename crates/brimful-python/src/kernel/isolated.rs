//! First states of vertices without edges, which a run never asks for.
//!
//! Invariant: [`initial_state`] repeats only calls that [`check_isolated`] has made without an
//! error.

use brimful::engine::vertex::attributes::VertexAttributes;
use brimful::engine::vertex::kernel::{ABI_VERSION, AGGREGATES, Context, NO_SIGNAL};
use brimful::engine::vertex::program::BATCH;
use brimful::engine::vertex::slot::Slot;
use brimful::engine::{Aggregate, Error, Kernel, Received, Vertex};
use brimful::graph::Graph;

use super::shapes::State;

/// Checks that vertices without edges have first states: the run never asks for them.
/// `signal_words` is the number of words of a signal.
pub(super) fn check_isolated<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    signal_words: usize,
    graph: &Graph,
) -> std::result::Result<(), Error> {
    let offsets = graph.id_offsets()?;
    let (mut attributes, mut states) = (VertexAttributes::default(), vec![[0; WORDS]; BATCH]);
    for first in (graph.connected()..graph.vertices()).step_by(BATCH) {
        let range = first as usize..graph.vertices().min(first + BATCH as u64) as usize;
        attributes.read_external(graph, Some(offsets), &range)?;
        let vertices: Vec<Vertex> =
            (0..range.len()).map(|at| attributes.vertex(range.start, at)).collect();
        let done = set_first_states(kernel, parameters, signal_words, &vertices, &mut states);
        if let Err((status, failed)) = done {
            let received = Received {
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
pub(super) fn initial_state<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    signal_words: usize,
    place: u64,
) -> State<WORDS> {
    let vertex = Vertex { id: 0, degree: 0, strength: 0.0, external: place };
    let mut states = [[0; WORDS]];
    let done = set_first_states(kernel, parameters, signal_words, &[vertex], &mut states);
    debug_assert!(done.is_ok(), "the same call succeeded before");
    states[0]
}

/// Sets the first states of vertices without edges. The error is the status of the kernel, and the
/// position of the vertex that failed.
#[expect(unsafe_code, reason = "a call to a function that is known by its address alone")]
fn set_first_states<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    signal_words: usize,
    vertices: &[Vertex],
    states: &mut [State<WORDS>],
) -> std::result::Result<(), (i32, u64)> {
    let (mut from, mut is_silent) = (0, false);
    loop {
        let (remaining, states) = (&vertices[from..], &mut states[from..vertices.len()]);
        let mut signals = vec![0_u64; remaining.len() * signal_words];
        let (mut partial, aggregate) = ([Slot::NOTHING; AGGREGATES], [Slot::NOTHING; AGGREGATES]);
        let mut context = Context {
            abi_version: ABI_VERSION,
            size: size_of::<Context>() as u32,
            call: 0,
            state_words: WORDS as u32,
            count: remaining.len() as u64,
            // A signal that cannot be computed has no edge to pass.
            failed: if is_silent { 0 } else { u64::MAX },
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len() as u64,
            vertices: remaining.as_ptr(),
            states: states.as_mut_ptr().cast(),
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

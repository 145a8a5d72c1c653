//! Kernels: programs that are compiled functions behind a C interface, called once per batch.
//!
//! `docs/kernel-abi.md` describes the input and the duties of a kernel. A [`Shape`] gives the
//! engine the types and the mode at compile time; the engine merges sums, and handles silence, the
//! frontier and the order of all calls. Invariant: a kernel receives slices of the engine, borrowed
//! for the call. This is the only module of the crate with `unsafe`.

mod abi;

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use brimful_graph::Graph;
use bytemuck::{Pod, Zeroable};

pub use self::abi::{ABI_VERSION, AGGREGATES, Call, Context, Kernel, NO_SIGNAL};
use crate::error::{Error, KernelArguments, Result};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{BATCH, Batched, Edges, Vertices};
use crate::vertex::program::{Globals, Mode, Program, SignalOf, SumOf, Vertex};
use crate::vertex::slot::{Slot, rule};
use crate::vertex::turn::Turn;

/// The compile-time properties of a kernel. Signals and sums have multiples of 8 bytes.
pub trait Shape: Send + Sync + 'static {
    /// The combiner, with signals and sums of numbers of 64 bits. The kernel must combine in the
    /// same way.
    type Combiner: Combiner;
    /// How signals relate to states.
    const MODE: Mode;
    /// See [`Program::NEEDS_EXTERNAL`].
    const NEEDS_EXTERNAL: bool = false;
    /// See [`Program::ASYNCHRONOUS`].
    const ASYNCHRONOUS: bool = false;
    /// See [`Program::SELF_LOOPS`].
    const SELF_LOOPS: bool = true;
    /// See [`Program::KEEPS_SILENCE`]; for [`Shape::along`].
    const KEEPS_SILENCE: bool = false;
    /// True if the kernel merges sums, so that its combiner needs no merge.
    const MERGES: bool = false;

    /// `signal` after passing an edge, for programs with [`KernelProgram::with_along`].
    #[inline]
    fn along(
        along: Along,
        signal: <Self::Combiner as Combiner>::Signal,
        weight: f64,
    ) -> <Self::Combiner as Combiner>::Signal {
        let _ = (along, weight);
        signal
    }
}

/// A change of a signal by the weight of an edge, which needs no call of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The signal itself.
    Unchanged,
    /// Signal + weight.
    Plus,
    /// Signal * weight.
    Times,
    /// The smaller of signal and weight.
    Least,
    /// The greater of signal and weight.
    Greatest,
}

/// Acts between the supersteps of a kernel, as the master of Pregel does.
///
/// It sees the contributions of vertices to the aggregate in the last superstep, and replaces them
/// by the values that vertices see in the next one.
pub trait Master: Debug + Send + Sync {
    /// Sets the values that vertices see in the call *initial*.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn begin(&self, aggregate: &mut [Slot; AGGREGATES]) -> Result<()>;

    /// Acts before the next superstep, after `done` of them; false ends the run.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn next_superstep(&self, done: u64, aggregate: &mut [Slot; AGGREGATES]) -> Result<bool>;

    /// Its own data, for a checkpoint.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn save(&self) -> Result<String>;

    /// Restores the data that [`Master::save`] returned.
    ///
    /// # Errors
    /// Any error that must end the run.
    fn restore(&self, saved: &str) -> Result<()>;
}

/// The aggregate in calls that see none.
static NO_AGGREGATE: [Slot; AGGREGATES] = [Slot::NOTHING; AGGREGATES];

/// A program with one kernel for all functions. Its states are words of 64 bits, and its aggregate
/// [`AGGREGATES`] values.
#[derive(Debug, Clone)]
pub struct KernelProgram<S> {
    kernel: Kernel,
    state_words: usize,
    parameters: Vec<f64>,
    until: Vec<(usize, f64)>,
    along: Option<Along>,
    needs_degrees: bool,
    begins_with_superstep: bool,
    graph: Option<Arc<Graph>>,
    master: Option<Arc<dyn Master>>,
    shape: PhantomData<S>,
}

impl<S: Shape> KernelProgram<S> {
    /// The program of `kernel`, which was compiled for version `abi_version` of the ABI, and whose
    /// states have `state_words` words. Every call passes `parameters`.
    ///
    /// # Errors
    /// [`Error::Usage`] if that version is not [`ABI_VERSION`], or states have no word.
    ///
    /// # Safety
    /// The kernel must follow that version of `docs/kernel-abi.md`, on any number of threads at
    /// once: it reads and writes only the memory of its context, and does not unwind.
    #[expect(unsafe_code, reason = "nobody but the caller can vouch for the kernel")]
    pub unsafe fn new(
        kernel: Kernel,
        abi_version: u32,
        state_words: usize,
        parameters: Vec<f64>,
    ) -> Result<Self> {
        const {
            assert!(
                align_of::<<S::Combiner as Combiner>::Signal>() == 8,
                "a signal is made of numbers of 64 bits"
            );
            assert!(
                align_of::<<S::Combiner as Combiner>::Sum>() == 8,
                "a sum is made of numbers of 64 bits"
            );
        }
        if abi_version != ABI_VERSION {
            return Err(Error::Usage(format!(
                "the kernel was compiled for version {abi_version} of the kernel interface, but \
                 this brimful has version {ABI_VERSION}; compile the kernel again"
            )));
        }
        if state_words == 0 {
            return Err(Error::Usage("a state of a kernel has at least one word".into()));
        }
        Ok(Self {
            kernel,
            state_words,
            parameters,
            until: Vec::new(),
            along: None,
            needs_degrees: false,
            begins_with_superstep: false,
            graph: None,
            master: None,
            shape: PhantomData,
        })
    }

    /// The run converges when the float at `place` of the aggregate (0 if no vertex contributed) is
    /// at most `limit`. Each call adds a condition; one of them ends the run.
    ///
    /// # Errors
    /// [`Error::Usage`] if the aggregate has no such place.
    pub fn until(mut self, place: usize, limit: f64) -> Result<Self> {
        if place >= AGGREGATES {
            return Err(Error::Usage(format!(
                "a kernel has {AGGREGATES} values: there is none at {place}"
            )));
        }
        self.until.push((place, limit));
        Ok(self)
    }

    /// Lets signals change along edges by [`Shape::along`], in the engine's own loop; the kernel is
    /// then never called for edges.
    #[must_use]
    pub fn with_along(self, along: Along) -> Self {
        Self { along: Some(along), ..self }
    }

    /// Passes degrees, or strengths in weighted runs, to the kernel.
    #[must_use]
    pub fn with_degrees(self) -> Self {
        Self { needs_degrees: true, ..self }
    }

    /// Makes the call *initial* count as a superstep. The first value of the aggregate then shows
    /// whether any vertex acted: a superstep without a contribution to this value does not count.
    #[must_use]
    pub fn beginning_with_superstep(self) -> Self {
        Self { begins_with_superstep: true, ..self }
    }

    /// Looks up in `graph` whether a vertex whose signal cannot be computed has edges for it.
    #[must_use]
    pub fn with_graph(self, graph: Arc<Graph>) -> Self {
        Self { graph: Some(graph), ..self }
    }

    /// Lets `master` act between supersteps. Then the engine adds 1 to the first value of the
    /// aggregate if a vertex sends a signal along an edge. So `until(0, 0.0)` ends the run before
    /// the master is called for a superstep without signals. The kernel itself adds only the
    /// vertices that act without sending a signal.
    #[must_use]
    pub fn with_master(self, master: Arc<dyn Master>) -> Self {
        Self { master: Some(master), ..self }
    }

    /// Counts one vertex that sends a signal along an edge, if there is one and a master.
    fn count_sender(&self, vertices: &mut Vertices<'_, Self>) -> Result<()> {
        if self.master.is_none() || vertices.aggregate[0].float() > 0.0 {
            return Ok(());
        }
        let silence = S::Combiner::SILENCE;
        for (vertex, signal) in vertices.vertices.iter().zip(&*vertices.signals) {
            let is_silent = bytemuck::bytes_of(signal) == bytemuck::bytes_of(&silence);
            if !is_silent && !self.has_no_edges(vertex.id)? {
                let one = Slot { rule: rule::SUM_FLOAT, value: 1.0_f64.to_bits() };
                vertices.aggregate[0] = vertices.aggregate[0].merge(one);
                break;
            }
        }
        Ok(())
    }

    /// True if a vertex is known to have no out-edges.
    fn has_no_edges(&self, vertex: u64) -> Result<bool> {
        let Some(graph) = &self.graph else { return Ok(false) };
        let mut degree = [0];
        graph.degrees(vertex, &mut degree)?;
        Ok(degree == [0])
    }

    /// The fields that every call has.
    fn context(&self, call: Call, count: usize) -> Context {
        Context {
            abi_version: ABI_VERSION,
            size: size_of::<Context>() as u32,
            call: call as u32,
            state_words: self.state_words as u32,
            count: count as u64,
            failed: u64::MAX,
            parameters: self.parameters.as_ptr(),
            parameter_count: self.parameters.len() as u64,
            silence: words_of(S::Combiner::SILENCE)[0],
            aggregate: NO_AGGREGATE.as_ptr(),
            ..Context::zeroed()
        }
    }

    /// Calls the kernel; `vertex` returns the vertex of an item of the batch, if the item has one.
    #[expect(unsafe_code, reason = "a call to a function that is known by its address alone")]
    fn call(
        &self,
        call: Call,
        context: &mut Context,
        vertex: impl FnOnce(usize) -> Option<u64>,
    ) -> Result<()> {
        // SAFETY: the caller of `new` promised that the kernel keeps to its interface. The pointers
        // are null or point to slices that the callers below borrow until this call returns,
        // mutably where the interface lets the kernel write, and of the lengths that it names.
        let status = unsafe { (self.kernel)(context) };
        if status == 0 {
            return Ok(());
        }
        let vertex = usize::try_from(context.failed).ok().and_then(vertex);
        Err(Error::Kernel { status, call: call.name(), vertex, received: None })
    }
}

impl<S: Shape> Batched<Self> for KernelProgram<S> {
    fn state_len(&self) -> usize {
        self.state_words
    }

    fn takes_edges(&self) -> bool {
        self.along.is_none()
    }

    fn edges(&self, edges: Edges<'_, Self>) -> Result<()> {
        let mut context = Context {
            sources: edges.sources.as_ptr(),
            targets: edges.targets.as_ptr(),
            weights: edges.weights.map_or(std::ptr::null(), <[f64]>::as_ptr),
            first_source: edges.first_source,
            first_target: edges.first_target,
            source_signals: edges.signals.as_ptr().cast(),
            sums: edges.sums.as_mut_ptr().cast(),
            ..self.context(Call::Edges, edges.sources.len())
        };
        self.call(Call::Edges, &mut context, |at| {
            edges.sources.get(at).map(|source| edges.first_source + u64::from(*source))
        })
    }

    fn vertices(&self, mut vertices: Vertices<'_, Self>) -> Result<()> {
        // The position from which the kernel acts, and whether it acts there without a signal.
        let (mut from, mut is_silent) = (0, false);
        loop {
            let (call, sums) = match vertices.turn {
                Turn::First => (Call::Initial, std::ptr::null()),
                Turn::Collect(sums) => (Call::Collect, sums[from..].as_ptr()),
                Turn::Round => unreachable!("a kernel has one round"),
            };
            let remaining = &vertices.vertices[from..];
            let states = &mut vertices.states[from * Batched::state_len(self)..];
            let mut context = Context {
                failed: if is_silent { 0 } else { u64::MAX },
                // The kernel only reads the sums.
                sums: sums.cast_mut().cast(),
                vertices: remaining.as_ptr(),
                states: states.as_mut_ptr(),
                signals: vertices.signals[from..].as_mut_ptr().cast(),
                vertex_count: vertices.globals.vertices,
                superstep: vertices.globals.superstep,
                aggregate: vertices.globals.aggregate.as_ptr(),
                partial: vertices.aggregate.as_mut_ptr(),
                signal_threshold: vertices.thresholds.signal,
                collect_threshold: vertices.thresholds.collect,
                score: *vertices.score,
                ..self.context(call, remaining.len())
            };
            let done =
                self.call(call, &mut context, |at| remaining.get(at).map(|vertex| vertex.id));
            *vertices.score = context.score;
            let failed = (context.failed as usize).saturating_add(from);
            match done {
                Err(Error::Kernel { status: NO_SIGNAL, vertex: Some(vertex), .. })
                    if !(is_silent && failed == from) && self.has_no_edges(vertex)? =>
                {
                    (from, is_silent) = (failed, true);
                }
                Err(error) => {
                    return Err(with_received(error, failed, Batched::state_len(self), &vertices));
                }
                Ok(()) => return self.count_sender(&mut vertices),
            }
        }
    }
}

/// The words of a value, which consists of numbers of 64 bits.
fn words_of<T: Pod>(value: T) -> Vec<u64> {
    bytemuck::pod_collect_to_vec(&[value])
}

/// The error of a kernel, with the arguments that it received for the vertex at a position of its
/// batch.
fn with_received<S: Shape>(
    mut error: Error,
    at: usize,
    state_len: usize,
    vertices: &Vertices<'_, KernelProgram<S>>,
) -> Error {
    if let Error::Kernel { received, .. } = &mut error
        && let Some(vertex) = vertices.vertices.get(at)
        && let Some(state) = vertices.states.chunks(state_len).nth(at)
    {
        let sum = match vertices.turn {
            Turn::Collect(sums) => sums.get(at).map(|sum| words_of(*sum)),
            Turn::First | Turn::Round => None,
        };
        let state = match vertices.turn {
            Turn::First => None,
            Turn::Round | Turn::Collect(_) => Some(state.to_vec()),
        };
        *received = Some(Box::new(KernelArguments {
            degree: vertex.degree,
            superstep: vertices.globals.superstep,
            state,
            sum,
            aggregate: bytemuck::pod_collect_to_vec(&vertices.globals.aggregate[..]),
        }));
    }
    error
}

impl<S: Shape> Program for KernelProgram<S> {
    type State = u64;
    type Combiner = S::Combiner;
    type Aggregate = [Slot; AGGREGATES];
    const MODE: Mode = S::MODE;
    const NEEDS_EXTERNAL: bool = S::NEEDS_EXTERNAL;
    const ASYNCHRONOUS: bool = S::ASYNCHRONOUS;
    const SELF_LOOPS: bool = S::SELF_LOOPS;
    const KEEPS_SILENCE: bool = S::KEEPS_SILENCE;
    const BATCHED: bool = true;

    fn needs_degrees(&self) -> bool {
        self.needs_degrees
    }

    fn batched(&self) -> &dyn Batched<Self> {
        self
    }

    fn initial(&self, _: Vertex, _: &Globals<Self::Aggregate>) -> u64 {
        unreachable!("vertices are handed over in batches")
    }

    fn signal(&self, _: Vertex, _: u64) -> SignalOf<Self> {
        unreachable!("vertices are handed over in batches")
    }

    fn collect(&self, _: Vertex, _: u64, _: SumOf<Self>, _: &Globals<Self::Aggregate>) -> u64 {
        unreachable!("vertices are handed over in batches")
    }

    #[inline]
    fn along(&self, signal: SignalOf<Self>, weight: f64) -> SignalOf<Self> {
        S::along(self.along.unwrap_or(Along::Unchanged), signal, weight)
    }

    fn merge(&self, earlier: &mut [SumOf<Self>], later: &[SumOf<Self>]) -> Result<()> {
        if !S::MERGES {
            for (earlier, later) in earlier.iter_mut().zip(later) {
                *earlier = S::Combiner::merge(*earlier, *later);
            }
            return Ok(());
        }
        let count = earlier.len().min(later.len());
        for first in (0..count).step_by(BATCH) {
            let range = first..count.min(first + BATCH);
            let mut context = Context {
                source_signals: later[range.clone()].as_ptr().cast(),
                sums: earlier[range.clone()].as_mut_ptr().cast(),
                ..self.context(Call::Merge, range.len())
            };
            self.call(Call::Merge, &mut context, |_| None)?;
        }
        Ok(())
    }

    fn converged(&self, globals: &Globals<Self::Aggregate>) -> bool {
        self.until.iter().any(|(place, limit)| globals.aggregate[*place].float() <= *limit)
    }

    fn begins_with_superstep(&self) -> bool {
        self.begins_with_superstep
    }

    fn was_idle(&self, globals: &Globals<Self::Aggregate>) -> bool {
        self.begins_with_superstep && globals.aggregate[0].rule == rule::NOTHING
    }

    fn begin(&self, globals: &mut Globals<Self::Aggregate>) -> Result<()> {
        self.master.as_ref().map_or(Ok(()), |master| master.begin(&mut globals.aggregate))
    }

    fn next_superstep(&self, globals: &mut Globals<Self::Aggregate>) -> Result<bool> {
        let (done, aggregate) = (globals.superstep, &mut globals.aggregate);
        self.master.as_ref().map_or(Ok(true), |master| master.next_superstep(done, aggregate))
    }

    fn extra_state(&self) -> Result<String> {
        self.master.as_ref().map_or(Ok(String::new()), |master| master.save())
    }

    fn restore_extra_state(&self, saved: &str) -> Result<()> {
        self.master.as_ref().map_or(Ok(()), |master| master.restore(saved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vertex::combiner::Add;

    #[derive(Debug)]
    struct Sums;
    impl Shape for Sums {
        type Combiner = Add<f64>;
        const MODE: Mode = Mode::Full;
    }

    /// Adds signals times weights; refuses weights below 0 with status 5.
    #[expect(unsafe_code, reason = "a kernel gets pointers")]
    unsafe extern "C" fn add(context: *mut Context) -> i32 {
        // SAFETY: the interface.
        unsafe {
            let context = &mut *context;
            for at in 0..context.count as usize {
                let weight = *context.weights.add(at);
                if weight < 0.0 {
                    context.failed = at as u64;
                    return 5;
                }
                let signal =
                    *context.source_signals.cast::<f64>().add(*context.sources.add(at) as usize);
                *context.sums.cast::<f64>().add(*context.targets.add(at) as usize) +=
                    signal * weight;
            }
        }
        0
    }

    #[test]
    fn a_kernel_gets_the_edges_and_says_where_it_failed() {
        #[expect(unsafe_code, reason = "the kernel above keeps to the interface")]
        // SAFETY: the kernel above keeps to the interface.
        let program = unsafe { KernelProgram::<Sums>::new(add, ABI_VERSION, 1, vec![]) }.unwrap();
        let mut sums = [1.0, 0.0];
        let mut combine = |weights: &[f64]| {
            program.edges(Edges {
                sources: &[0, 0, 2],
                targets: &[1, 0, 1],
                weights: Some(weights),
                first_source: 40,
                first_target: 8,
                signals: &[0.5, 7.0, 2.0],
                sums: &mut sums,
            })
        };
        combine(&[1.0, 2.0, 3.0]).unwrap();
        let error = combine(&[1.0, 1.0, -1.0]).unwrap_err();
        assert!(matches!(error, Error::Kernel { status: 5, vertex: Some(42), .. }), "{error:?}");
        assert_eq!(sums, [2.5, 7.0]);
    }
}

//! Programs that fail: the run stops and names the vertex, no worker hangs, and the stores are
//! intact.

use brimful_execution::{Error, ExecutionOptions, Failure, RunLimits, VertexOf, VertexProgram};
use brimful_store::ErrorKind;
use brimful_vertices::{Edge, Edges, Loan};

use crate::programs::{MODES, STORES, random_graph, resources, start, states};

/// The place and kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    SignalFails,
    SignalPanics,
    CollectFails,
    CollectPanics,
    CombineFails,
    CombinePanics,
}

/// Counts signals, until a signal reaches the vertex that fails.
struct Faulty(Fault);

const UNLUCKY: u64 = 133;

impl VertexProgram for Faulty {
    type Id = u64;
    type State = u64;
    type Edge = f64;
    type Signal = u64;

    fn delivery(&self) -> brimful_execution::Delivery {
        match self.0 {
            Fault::CombineFails | Fault::CombinePanics => brimful_execution::Delivery::Combined,
            _ => brimful_execution::Delivery::Each,
        }
    }
    fn combine(&self, waiting: &mut u64, signal: u64) -> Result<(), Failure> {
        if *waiting + signal > 6 {
            assert!(self.0 == Fault::CombineFails, "seven is too much");
            return Err("seven is too much".into());
        }
        *waiting += signal;
        Ok(())
    }
    fn initial(&self, _: &u64, _: &Edges<u64, f64>) -> Result<u64, Failure> {
        Ok(0)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, u64, f64>,
    ) -> Result<Option<u64>, Failure> {
        match self.0 {
            Fault::SignalFails if *source.id() == UNLUCKY => Err("no more ink".into()),
            Fault::SignalPanics if *source.id() == UNLUCKY => panic!("no more {}", "ink"),
            _ => Ok(Some(1)),
        }
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[u64],
    ) -> Result<(), Failure> {
        vertex.state += signals.iter().sum::<u64>();
        match self.0 {
            Fault::CollectFails if *vertex.id() == UNLUCKY => Err("cannot read this".into()),
            Fault::CollectPanics if *vertex.id() == UNLUCKY => panic!("cannot read this"),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_program_that_fails_or_panics_ends_the_run_by_the_name_of_its_vertex() {
    // Every vertex has edges and is reached.
    let mut graph = random_graph(1000, 3, 5);
    for (id, edges) in &mut graph {
        edges.push(((*id + 1) % 1000, 1.0));
    }
    let faults = [
        (Fault::SignalFails, "signal", "no more ink"),
        (Fault::SignalPanics, "signal", "it panicked: no more ink"),
        (Fault::CollectFails, "collect", "cannot read this"),
        (Fault::CollectPanics, "collect", "it panicked: cannot read this"),
        (Fault::CombineFails, "combine signals", "seven is too much"),
        (Fault::CombinePanics, "combine signals", "it panicked: seven is too much"),
    ];
    for (fault, operation, reason) in faults {
        for mode in MODES {
            for workers in 1..=4 {
                for kind in STORES {
                    let resources = resources(workers);
                    let options = ExecutionOptions::default();
                    let mut execution =
                        start(Faulty(fault), &graph, (kind, 6), &resources, &options);
                    let error =
                        execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap_err();
                    let place = format!("{fault:?}, {mode:?}, {workers} workers, {kind}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Program, "{place}");
                    let Error::Program { vertex, .. } = &error else { panic!("{place}") };
                    assert_eq!(
                        error.to_string(),
                        format!("the program failed to {operation} at vertex {vertex}: {reason}")
                    );
                    assert!(operation == "combine signals" || *vertex == UNLUCKY.to_string());
                    let states = states(&mut execution);
                    assert_eq!(states.len(), 1000, "{place}");
                    // Live objects, including those of a cache, stay as the program left them.
                    let is_collect = matches!(fault, Fault::CollectFails | Fault::CollectPanics);
                    assert!(!is_collect || kind != "bytes" || states[&UNLUCKY] == 0, "{place}");
                    let again =
                        execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap_err();
                    assert_eq!(again.kind(), ErrorKind::Usage, "{place}");
                }
            }
        }
    }
}

#[test]
fn a_cancelled_run_stops() {
    let graph = random_graph(1000, 3, 5);
    for mode in MODES {
        let resources = resources(2);
        let mut execution = start(
            Faulty(Fault::CollectFails),
            &graph,
            ("memory", 2),
            &resources,
            &ExecutionOptions::default(),
        );
        resources.job.cancel();
        let error = execution.run(mode, &RunLimits::default(), |_| Ok(false)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    let resources = resources(1);
    let options =
        ExecutionOptions { signal_threshold: Some(f64::NAN), ..ExecutionOptions::default() };
    let stores = vec![crate::programs::store::<Faulty>("memory", &resources)];
    let program = Faulty(Fault::SignalFails);
    let loading = brimful_execution::Loading::new(
        program,
        brimful_execution::Partitioner::Hash,
        stores,
        &resources,
    )
    .unwrap();
    let error = brimful_execution::Execution::start(loading, &options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let none: Vec<crate::programs::AnyStore<Faulty>> = Vec::new();
    let program = Faulty(Fault::SignalFails);
    let loading = brimful_execution::Loading::new(
        program,
        brimful_execution::Partitioner::Hash,
        none,
        &resources,
    );
    assert!(loading.err().unwrap().to_string().starts_with("there is no partition"));
}

//! Steps, stops, limits and global conditions.

use std::time::Duration;

use brimful_engine::Reason;
use brimful_execution::{Delivery, ExecutionOptions, Failure, RunLimits, VertexOf, VertexProgram};
use brimful_vertices::{Edge, Edges, Loan};

use crate::programs::{
    Distances, MODES, STORES, distances, random_graph, resources, start, states,
};

/// Sends a number in circles; each vertex counts its arrivals.
struct Runner;

impl VertexProgram for Runner {
    type Id = u64;
    type State = u64;
    type Edge = ();
    type Signal = u64;

    fn initial(&self, _: &u64, _: &Edges<u64, ()>) -> Result<u64, Failure> {
        Ok(0)
    }
    fn signal(
        &self,
        source: &VertexOf<Self>,
        _: Edge<'_, u64, ()>,
    ) -> Result<Option<u64>, Failure> {
        Ok(Some(source.state))
    }
    fn collect(
        &self,
        vertex: &mut Loan<'_, VertexOf<Self>>,
        signals: &[u64],
    ) -> Result<(), Failure> {
        vertex.state += signals.len() as u64;
        Ok(())
    }
}

fn ring(count: u64) -> Vec<(u64, Vec<(u64, ())>)> {
    (0..count).map(|id| (id, vec![((id + 1) % count, ())])).collect()
}

#[test]
fn steps_do_what_a_run_does() {
    let graph = random_graph(500, 4, 3);
    let resources = resources(2);
    let program = || Distances { source: 0, delivery: Delivery::Each };
    let options = ExecutionOptions::default();
    let mut run = start(program(), &graph, ("memory", 3), &resources, &options);
    run.run(MODES[0], &RunLimits::default(), |_| Ok(false)).unwrap();
    let mut stepped = start(program(), &graph, ("memory", 3), &resources, &options);
    while stepped.superstep().unwrap() {}
    assert_eq!(run.stats().unwrap().supersteps, stepped.stats().unwrap().supersteps);
    assert!(states(&mut run) == states(&mut stepped));
}

#[test]
fn a_run_that_stops_again_and_again_ends_with_the_same_answer() {
    let graph = random_graph(1500, 5, 7);
    let expected = distances(&graph, 0);
    for kind in STORES {
        for mode in MODES {
            let resources = resources(3);
            let program = Distances { source: 0, delivery: Delivery::Each };
            let mut execution =
                start(program, &graph, (kind, 4), &resources, &ExecutionOptions::default());
            let (mut stops, limits) =
                (0, RunLimits { check_every: Duration::ZERO, ..RunLimits::default() });
            let reason = execution.run(mode, &limits, |execution| {
                stops += 1;
                if stops % 2 == 0 {
                    execution.drain_signals()?;
                    let stats = execution.stats()?;
                    assert_eq!(stats.signals_sent, stats.signals_received);
                }
                Ok(false)
            });
            assert_eq!(reason.unwrap(), Reason::NoChange);
            assert!(stops > 2, "{stops}");
            assert!(states(&mut execution) == expected, "{kind}, {mode:?}");
        }
    }
}

#[test]
fn modes_may_change_between_runs() {
    let graph = random_graph(2000, 5, 8);
    let resources = resources(2);
    let program = Distances { source: 0, delivery: Delivery::Each };
    let mut execution =
        start(program, &graph, ("bytes", 4), &resources, &ExecutionOptions::default());
    for mode in [1, 0, 2, 0, 1] {
        let limits =
            RunLimits { max_supersteps: 1, max_seconds: Some(0.0), ..RunLimits::default() };
        execution.run(MODES[mode], &limits, |_| Ok(false)).unwrap();
    }
    execution.run(MODES[0], &RunLimits::default(), |_| Ok(false)).unwrap();
    assert!(states(&mut execution) == distances(&graph, 0));
}

#[test]
fn limits_end_what_would_never_end() {
    for mode in MODES {
        let resources = resources(2);
        let mut execution =
            start(Runner, &ring(50), ("memory", 4), &resources, &ExecutionOptions::default());
        let limits = RunLimits { max_seconds: Some(0.05), ..RunLimits::default() };
        assert_eq!(execution.run(mode, &limits, |_| Ok(false)).unwrap(), Reason::MaxSeconds);
    }
    for mode in MODES {
        let resources = resources(2);
        let mut execution =
            start(Runner, &ring(50), ("memory", 4), &resources, &ExecutionOptions::default());
        let limits = RunLimits { max_seconds: Some(0.0), ..RunLimits::default() };
        assert_eq!(execution.run(mode, &limits, |_| Ok(false)).unwrap(), Reason::MaxSeconds);
        // At least one superstep is done.
        assert!(mode != MODES[0] || states(&mut execution).values().all(|count| *count == 1));
    }
    let resources = resources(2);
    let mut execution =
        start(Runner, &ring(50), ("memory", 4), &resources, &ExecutionOptions::default());
    let limits = RunLimits { max_supersteps: 7, ..RunLimits::default() };
    assert_eq!(execution.run(MODES[0], &limits, |_| Ok(false)).unwrap(), Reason::MaxSupersteps);
    assert!(states(&mut execution).values().all(|count| *count == 7));
}

#[test]
fn a_global_condition_ends_a_run() {
    for mode in MODES {
        let resources = resources(2);
        let mut execution =
            start(Runner, &ring(20), ("bytes", 4), &resources, &ExecutionOptions::default());
        let limits = RunLimits { check_every: Duration::from_millis(5), ..RunLimits::default() };
        let reason = execution.run(mode, &limits, |execution| {
            let mut sum = 0;
            execution.for_each(&mut |vertex| {
                sum += vertex.state;
                Ok(())
            })?;
            Ok(sum >= 200)
        });
        assert_eq!(reason.unwrap(), Reason::Converged);
        let sum: u64 = states(&mut execution).values().sum();
        // The condition is checked after every superstep.
        assert!(sum >= 200 && (mode != MODES[0] || sum == 200), "{sum}");
    }
}

"""Runs on a Ray cluster: the same program, the same graph directory, the same bits.

Ray places the workers, moves bytes between them and notices their loss. Each worker is the native
engine over a part of the intervals of the graph (`crates/brimful-engine/src/run/share.rs`). The
driver, which calls the algorithm, is the observer of the run: it decides nothing, follows the
partial results, makes the checkpoints and receives the states.
"""

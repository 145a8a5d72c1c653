//! Queues many signals in a mailbox with little memory and collects them; signals that do not fit
//! go to disk.
//!
//! Every signal is counted and summed, so that lost or repeated signals are found. Run it under a
//! hard limit slightly above the mailbox's memory. Prints one JSON object.
//!
//! `cargo run --release -p brimful-vertices --example queued [SIGNALS [MEBIBYTES [combined]]]`

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use brimful_execution::lists::{IncomingSignals, Mailbox, SpillFile, write_message};
use brimful_execution::{Delivery, Failure, VertexOf, VertexProgram};
use brimful_store::{Budget, DiskFolder, Job, memory};
use brimful_vertices::{Edge, Edges, Id as _, Loan};

/// Signals are summed.
struct Sums(Delivery);

impl VertexProgram for Sums {
    type Id = u64;
    type State = u64;
    type Edge = ();
    type Signal = u64;

    fn delivery(&self) -> Delivery {
        self.0
    }
    fn combine(&self, waiting: &mut u64, signal: u64) -> Result<(), Failure> {
        *waiting += signal;
        Ok(())
    }
    fn initial(&self, _: &u64, _: &Edges<u64, ()>) -> Result<u64, Failure> {
        Ok(0)
    }
    fn signal(&self, _: &VertexOf<Self>, _: Edge<'_, u64, ()>) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
    fn collect(&self, _: &mut Loan<'_, VertexOf<Self>>, _: &[u64]) -> Result<(), Failure> {
        Ok(())
    }
}

/// Signals in a packet.
const PACKET: u64 = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let signals: u64 = arguments.first().map_or(Ok(10_000_000), |text| text.parse())?;
    let bytes = arguments.get(1).map_or(Ok(32), |text| text.parse::<u64>())? << 20;
    let is_combined = arguments.get(2).is_some_and(|text| text == "combined");
    let program = Sums(if is_combined { Delivery::Combined } else { Delivery::Each });
    let vertices = signals / 3 + 1;

    let budget = Budget::new(bytes + (1 << 20), 0);
    let reserved = budget.reserve(bytes, "for signals that wait")?;
    let file =
        Arc::new(SpillFile::new(&DiskFolder::new(std::env::temp_dir()), &Arc::new(Job::new()))?);
    let mut mailbox = Mailbox::new(reserved.bytes(), program.0, 0, &file);
    let (mut target, mut scratch, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    for number in 0..signals {
        // Random targets.
        let random = brimful_store::checksum(&number.to_le_bytes());
        let vertex = ((u128::from(random) * u128::from(vertices)) >> 64) as u64;
        target.clear();
        vertex.write_key(&mut target);
        write_message::<Sums>(&target, None, &number, &mut scratch, &mut packet);
        if number % PACKET == PACKET - 1 || number == signals - 1 {
            mailbox.deliver(&program, &packet)?;
            packet.clear();
        }
    }
    let queued = begin.elapsed().as_secs_f64();
    let (mut incoming, mut collects, mut count, mut sum) =
        (IncomingSignals::new(&budget)?, 0_u64, 0_u64, 0_u64);
    while mailbox.take(&program, &mut incoming)?.is_some() {
        collects += 1;
        count += incoming.signals.len() as u64;
        sum += incoming.signals.iter().sum::<u64>();
    }
    let stats = mailbox.stats();
    assert!(is_combined || count == signals, "{count} signals of {signals} came back");
    assert_eq!(sum, signals * (signals - 1) / 2, "the sum of all signals");
    println!(
        "{{\"signals\": {signals}, \"vertices\": {collects}, \"queue_seconds\": {queued:.3}, \
         \"collect_seconds\": {:.3}, \"spills\": {}, \"spilled_bytes\": {}, \
         \"peak_rss_bytes\": {}}}",
        begin.elapsed().as_secs_f64() - queued,
        stats.spills,
        file.written_bytes(),
        memory::peak_resident_bytes().unwrap_or(0)
    );
    Ok(())
}

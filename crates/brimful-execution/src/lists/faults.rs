//! Lists on a failing disk: they return all data, or the error of the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use brimful_store::fault::{Fault, FaultFolder, FaultPlan, Operation};
use brimful_store::{Budget, Error as StoreError, Job};
use brimful_vertices::Id;

use crate::error::{Error, Result};
use crate::lists::texts::Texts;
use crate::lists::{IdSet, IncomingSignals, Mailbox, SpillFile, write_message};
use crate::program::Delivery;

const DELIVERIES: [Delivery; 3] = [Delivery::Each, Delivery::Combined, Delivery::LatestPerEdge];
/// More messages than a list of minimum size holds.
const MESSAGES: u64 = 20_000;
const TARGETS: u64 = 5000;
/// The same for ids.
const IDS: u64 = 30_000;

type Collected = BTreeMap<u64, Vec<String>>;

/// Sends messages, then collects into `all` until a failure.
fn through(folder: &FaultFolder, delivery: Delivery, all: &mut Collected) -> Result<()> {
    let file = Arc::new(SpillFile::new(folder, &Arc::new(Job::new()))?);
    let (program, mut mailbox) = (Texts(delivery), Mailbox::<Texts>::new(0, delivery, 0, &file));
    let (mut id, mut packet, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..MESSAGES {
        let (source, target) = (number, number * 7919 % TARGETS);
        id.clear();
        packet.clear();
        target.write_key(&mut id);
        let source = (delivery == Delivery::LatestPerEdge).then_some((&source, 0));
        write_message::<Texts>(
            &id,
            source,
            &format!("signal {number:06}"),
            &mut scratch,
            &mut packet,
        );
        mailbox.deliver(&program, &packet)?;
    }
    let mut incoming = IncomingSignals::new(&Budget::new(1 << 20, 0))?;
    while let Some(id) = mailbox.take(&program, &mut incoming)? {
        assert!(all.insert(id, incoming.signals.clone()).is_none(), "{id} comes twice");
    }
    assert!(mailbox.stats().spills > 1);
    Ok(())
}

/// Sends ids, then takes them out, as `through` does with messages.
fn ids_through(folder: &FaultFolder, all: &mut Collected) -> Result<()> {
    let file = Arc::new(SpillFile::new(folder, &Arc::new(Job::new()))?);
    let mut list = IdSet::<u64>::new(0, &file);
    (0..IDS).try_for_each(|number| list.insert(&(number * 7919)))?;
    while let Some((id, _)) = list.take()? {
        assert!(all.insert(id, Vec::new()).is_none(), "{id} comes twice");
    }
    assert!(list.spills() > 1);
    Ok(())
}

fn check(work: impl Fn(&FaultFolder, &mut Collected) -> Result<()>) {
    let (calm, mut expected) = (FaultFolder::new(), Collected::new());
    work(&calm, &mut expected).unwrap();
    for plan in [FaultPlan::new().at_most(100), FaultPlan::new().varying(5000, 3)] {
        let folder = FaultFolder::new();
        folder.set_plan(plan);
        let mut all = Collected::new();
        work(&folder, &mut all).unwrap();
        assert!(all == expected);
    }
    for class in [Operation::Create, Operation::Read, Operation::Write] {
        let count = calm.count(class);
        assert!(count > 0, "{class:?}");
        // The first operation, the last, and some between.
        for number in (1..=count).filter(|n| *n == 1 || *n == count || n % (count / 3 + 1) == 0) {
            for (fault, passes) in
                [(Fault::Io, false), (Fault::Full, false), (Fault::Interrupted, true)]
            {
                let (folder, mut all) = (FaultFolder::new(), Collected::new());
                folder.set_plan(FaultPlan::new().fail(class, number, fault));
                match work(&folder, &mut all) {
                    Ok(()) => assert!(passes && all == expected, "{class:?} {number} {fault:?}"),
                    Err(Error::Store(StoreError::Io { .. })) => {
                        assert!(
                            !passes || class == Operation::Create,
                            "{class:?} {number} {fault:?}"
                        );
                        assert!(all.iter().all(|(id, signals)| expected.get(id) == Some(signals)));
                    }
                    Err(error) => panic!("{class:?} {number} {fault:?}: {error}"),
                }
            }
        }
    }
    // A disk that is full from some point on.
    for capacity in [0, 64 << 10, 200 << 10] {
        let (folder, mut all) = (FaultFolder::new(), Collected::new());
        folder.set_plan(FaultPlan::new().capacity(capacity));
        let error = work(&folder, &mut all).unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::Io { .. })), "{error}");
    }
}

#[test]
fn a_mailbox_on_a_failing_disk_is_right_or_says_so() {
    for delivery in DELIVERIES {
        check(|folder, all| through(folder, delivery, all));
    }
}

#[test]
fn an_id_set_on_a_failing_disk_is_right_or_says_so() {
    check(ids_through);
}

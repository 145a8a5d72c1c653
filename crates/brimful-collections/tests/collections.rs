//! The collections through their public interface: against models, through crashes, from many
//! threads.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(
    clippy::unit_arg,
    clippy::single_range_in_vec_init,
    reason = "short closures and lists of ranges"
)]

#[path = "collections/bags.rs"]
mod bags;
#[path = "collections/boxes.rs"]
mod boxes;
#[path = "collections/ready_made.rs"]
mod ready_made;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use brimful_collections::Options;
use brimful_store::{Budget, Job, Resources};

/// Two threads, `bytes` of memory, and small pages, so that little data fills many.
fn options(bytes: u64) -> Options {
    let resources = Resources::new(Budget::new(bytes, 0), Arc::new(Job::new()), Some(2)).unwrap();
    let mut options = Options::new(&Arc::new(resources));
    options.page_bytes = 4096;
    options
}

/// Fails if `work` does not end within a minute, as it never does if its threads wait for each
/// other.
fn in_a_minute(work: impl FnOnce() + Send + 'static) {
    let (sender, done) = channel();
    std::thread::spawn(move || {
        work();
        sender.send(()).unwrap();
    });
    assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(()));
}

/// Pseudorandom numbers, the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
}

//! Memory, threads and page size of a collection.

use std::sync::Arc;

use brimful_store::Resources;
use brimful_store::durable::valid_page_bytes;

use crate::error::{Error, Result};

/// The maximum bytes for batches in flight.
const MAX_BATCH_BYTES: u64 = 256 << 20;

/// Memory and threads of one collection.
#[derive(Debug, Clone)]
pub struct Options {
    /// The budget and the threads.
    pub resources: Arc<Resources>,
    /// Bytes of memory for this collection.
    pub memory_bytes: u64,
    /// Page size of a new collection in bytes, a power of two from 4 KiB to 1 GiB. An existing
    /// collection keeps its own.
    pub page_bytes: usize,
    /// True if errors of full pages name `memory_bytes`, not the budget: for an owner that divides
    /// the budget, and computes which one is enough.
    pub is_share: bool,
}

impl Options {
    /// Options with all free bytes of the budget and the default page size.
    pub fn new(resources: &Arc<Resources>) -> Self {
        Self {
            resources: Arc::clone(resources),
            memory_bytes: resources.budget.free(),
            page_bytes: brimful_store::durable::PAGE_BYTES,
            is_share: false,
        }
    }

    /// Sets the bytes of memory for this collection.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Refuses a page size that no collection can have.
    ///
    /// # Errors
    /// `Error::Usage`.
    pub(crate) fn require_page_size(&self) -> Result<()> {
        if valid_page_bytes(self.page_bytes as u64) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "the page size must be a power of two from 4096 to 1073741824 bytes, not {}",
            self.page_bytes
        )))
    }

    /// Refuses work that needs more than the memory of this collection: `bytes`.
    ///
    /// # Errors
    /// A budget error that names the smallest total budget that leaves this collection enough.
    pub(crate) fn require(&self, bytes: u64, purpose: &str) -> Result<()> {
        if bytes <= self.memory_bytes {
            return Ok(());
        }
        let budget = &self.resources.budget;
        let others = budget.limit().saturating_sub(self.memory_bytes);
        Ok(budget.require(others.saturating_add(bytes), purpose)?)
    }

    /// The memory of a collection whose pages need `bytes`: the rest is for batches, as
    /// [`Options::batch_bytes`] shares it.
    pub(crate) fn memory_for_pages(bytes: u64) -> u64 {
        bytes.saturating_add((bytes.saturating_sub(1) / 3).min(MAX_BATCH_BYTES))
    }

    /// Options of a test with small pages: a budget of `bytes`, and two threads.
    #[cfg(test)]
    pub(crate) fn of_test(bytes: u64) -> Self {
        use brimful_store::{Budget, Job};

        let resources = Resources::new(Budget::new(bytes, 0), Arc::new(Job::new()), Some(2));
        Self { page_bytes: 4096, ..Self::new(&Arc::new(resources.unwrap())) }
    }

    /// Bytes for batches in flight, besides the pages.
    pub(crate) fn batch_bytes(&self) -> usize {
        (self.memory_bytes / 4).min(MAX_BATCH_BYTES) as usize
    }
}

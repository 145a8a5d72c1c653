//! An outbox: the signals that gather for a partition, until they are sent or delivered.
//!
//! Signals that combine stay values: they are serialized only if they leave the process or exceed
//! the memory of their mailbox. Others are serialized here, because their mailbox keeps them so.

use brimful_vertices::{Field, Id};

use crate::error::Result;
use crate::lists::{Mailbox, SignalTo, write_message};
use crate::program::{Delivery, VertexProgram};

/// Signals to one partition; those of one program are all values or all serialized.
pub(crate) struct Outbox<P: VertexProgram> {
    values: Vec<SignalTo<P>>,
    /// Heap bytes of `values`.
    heap_bytes: usize,
    serialized: Vec<u8>,
}

/// Buffers for the parts of a message.
#[derive(Debug, Default)]
pub(crate) struct MessageBuffers {
    key: Vec<u8>,
    rest: Vec<u8>,
}

impl<P: VertexProgram> Default for Outbox<P> {
    fn default() -> Self {
        Self { values: Vec::new(), heap_bytes: 0, serialized: Vec::new() }
    }
}

impl<P: VertexProgram> Outbox<P> {
    /// Adds a signal. `source`, with the number among parallel edges, is given for
    /// [`Delivery::LatestPerEdge`].
    #[inline]
    pub(crate) fn push(
        &mut self,
        delivery: Delivery,
        source: Option<(&P::Id, u32)>,
        (target, signal): (&P::Id, P::Signal),
        buffers: &mut MessageBuffers,
    ) {
        if delivery == Delivery::Combined {
            self.heap_bytes += target.heap_bytes() + signal.heap_bytes();
            self.values.push((target.clone(), signal));
            return;
        }
        let MessageBuffers { key, rest } = buffers;
        key.clear();
        target.write_key(key);
        write_message::<P>(key, source, &signal, rest, &mut self.serialized);
    }

    /// Bytes of the signals.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.values.len() * size_of::<SignalTo<P>>() + self.heap_bytes + self.serialized.len()
    }

    /// True if there is no signal.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.serialized.is_empty()
    }

    /// Moves the signals into the mailbox of the partition.
    ///
    /// # Errors
    /// Errors of the combiner, of invalid messages, and of spilling.
    pub(crate) fn deliver(&mut self, program: &P, mailbox: &mut Mailbox<P>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.heap_bytes = 0;
        mailbox.receive(program, &mut self.values)?;
        mailbox.deliver(program, &self.serialized)?;
        self.serialized.clear();
        Ok(())
    }
}

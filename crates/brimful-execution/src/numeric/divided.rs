//! Numeric programs in several processes: refused options, and the states for the driver.

use crate::RunMode;
use crate::error::{Error, Result};
use crate::from_graph::EdgeData;
use crate::numeric::NumericOptions;
use crate::numeric::parts::StateWords;
use crate::numeric::program::Numeric;
use crate::process_partitions::malformed;
use crate::program::{VertexOf, VertexProgram};

/// Refuses options that do not apply to one of several processes.
pub(super) fn check_divided(options: &NumericOptions<'_>) -> Result<()> {
    if options.mode != RunMode::Synchronous {
        return Err(Error::Usage(
            "a run on a cluster needs synchronous supersteps; leave the mode \"async\" out".into(),
        ));
    }
    if options.run.checkpoints.is_some() {
        return Err(Error::Usage(
            "a cluster makes no checkpoints of vertices in stores; leave checkpoints out".into(),
        ));
    }
    Ok(())
}

/// Appends the record of a vertex for the driver: its id, and its cell.
pub(super) fn write_record<P, const S: usize>(vertex: &VertexOf<P>, out: &mut Vec<u8>) -> Result<()>
where
    P: VertexProgram<Id = u64, State = StateWords<S>>,
{
    out.extend_from_slice(&vertex.id().to_le_bytes());
    out.extend_from_slice(bytemuck::bytes_of(&vertex.state));
    Ok(())
}

/// Copies the states in records into the program of the driver.
pub(super) fn keep_records<const S: usize, const M: usize, E: EdgeData>(
    numeric: &mut Numeric<'_, S, M, E>,
    records: &[u8],
) -> Result<()> {
    for record in records.chunks(size_of::<u64>() + size_of::<StateWords<S>>()) {
        let (id, cell) = record.split_first_chunk().ok_or_else(malformed)?;
        let cell: StateWords<S> =
            bytemuck::try_pod_read_unaligned(cell).map_err(|_| malformed())?;
        numeric.program.keep(u64::from_le_bytes(*id), cell.state())?;
    }
    Ok(())
}

//! The states of a run on a database, whose records the run removes: copied to a file during the
//! run, and from there to a store of their own.

use std::sync::Arc;

use brimful::algos::registry::StoreChoice;
use brimful::engine::scratch::scratch_folder;
use brimful::execution::{Error, ListLocation, Partitioning};
use brimful::graph::Graph as Inner;
use brimful::store::sequence::{Sequence, SequenceReader, SequenceWriter};
use brimful::store::{DiskFolder, Folder as _, Resources};
use brimful::vertices::{Serializer as _, VertexStore as _};

use super::location::Location;
use super::opened::Opened;
use super::{ProgramVertex, Shared};
use crate::program::OnStores;
use crate::program::ids::Ids;
use crate::program::record::Records;
use crate::program::value::{Value, Values};

/// Vertices without edges, each as its rank, the length of its record, and the record.
pub(in super::super) struct Copied {
    records: Sequence<u8>,
    folder: String,
}

impl Copied {
    /// The vertices of an execution, on disk. If vertices `change`, those without a state were
    /// removed, or never created.
    pub(in super::super) fn of(
        execution: &mut OnStores<'_>,
        values: &Arc<Values>,
        change: bool,
        graph: &Inner,
        resources: &Resources,
    ) -> Result<Self, Error> {
        let beside = scratch_folder(graph)?;
        // In the URL of a store, a comma separates two folders.
        let has_comma = beside.display().to_string().contains(',');
        let folder = DiskFolder::new(if has_comma { std::env::temp_dir() } else { beside });
        let mut writer = SequenceWriter::new(&folder, &resources.job)?;
        let (mut records, mut record) = (Records(Arc::clone(values)), Vec::new());
        execution.for_each(&mut |vertex| {
            if change && vertex.state == Value::None {
                return Ok(());
            }
            let (rank, state) = (*vertex.id(), vertex.state.clone());
            let alone = ProgramVertex::new(rank, state, Default::default());
            record.clear();
            records.encode(&alone, &mut record).map_err(Error::Internal)?;
            let length = record.len() as u64;
            let bytes = rank.to_le_bytes().into_iter().chain(length.to_le_bytes());
            bytes.chain(record.iter().copied()).try_for_each(|byte| writer.push(byte))?;
            Ok(())
        })?;
        Ok(Self { records: writer.finish()?, folder: folder.path().display().to_string() })
    }

    /// The vertices in a store of their own, which has no name.
    pub(in super::super) fn leave(
        self,
        graph: &Arc<Inner>,
        (ids, values): (Arc<Ids>, Arc<Values>),
        resources: &Resources,
    ) -> Result<Shared, Error> {
        let url = format!("file:{}", self.folder);
        let choice = StoreChoice {
            url,
            schemes: Arc::default(),
            serializer: None,
            cache: None,
            lists: ListLocation::default(),
            partitioning: Partitioning::default(),
            schedule: None,
        };
        let location = Location::new(&choice, graph, (None, false))?;
        let own = (ids, Arc::clone(&values));
        let shared = location.leave((graph, &choice, 1), None, own, resources)?;
        self.fill(&mut super::locked(&shared), &values, resources)?;
        Ok(shared)
    }

    fn fill(
        &self,
        opened: &mut Opened,
        values: &Arc<Values>,
        resources: &Resources,
    ) -> Result<(), Error> {
        let (mut reader, mut records) = (self.records.reader(), Records(Arc::clone(values)));
        while reader.peek()?.is_some() {
            resources.job.check()?;
            let rank = u64::from_le_bytes(taken(&mut reader)?);
            let length = u64::from_le_bytes(taken(&mut reader)?);
            let record = (0..length).map(|_| next(&mut reader)).collect::<Result<Vec<u8>, _>>()?;
            let vertex = records.decode(&rank, &record, None).map_err(Error::Internal)?;
            opened.partitions()?.store(rank)?.insert(vertex)?;
        }
        Ok(())
    }
}

fn taken<const N: usize>(reader: &mut SequenceReader<'_, u8>) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    for byte in &mut bytes {
        *byte = next(reader)?;
    }
    Ok(bytes)
}

fn next(reader: &mut SequenceReader<'_, u8>) -> Result<u8, Error> {
    reader.take()?.ok_or_else(|| Error::Internal("a copied record is cut".into()))
}

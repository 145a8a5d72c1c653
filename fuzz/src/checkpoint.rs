//! A folder of checkpoints, with checksums put right.

use std::sync::{Arc, LazyLock};

use brimful_store::checkpoint::Checkpoints;
use brimful_store::fault::FaultFolder;
use brimful_store::scratch::ScratchArray;
use brimful_store::sealed::Buffer;
use brimful_store::{Budget, Folder, Job, Resources, manifest};

use crate::seal::forge;

/// A pool of threads takes longer to make than a file to read.
static RESOURCES: LazyLock<Resources> = LazyLock::new(|| {
    Resources::new(Budget::new(1 << 20, 0), Arc::new(Job::new()), Some(1)).expect("one thread")
});

const LENGTH: usize = 1000;
const WINDOW: usize = 300;

/// The first two bytes say how many of the next are the payload of the manifest; the rest is the
/// file of arrays. Reads must end with a typed error or with what the owner asked for.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Some((len, rest)) = bytes.split_first_chunk() else { return false };
    let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
    let (payload, arrays) = rest.split_at(len);
    let mut arrays = arrays.to_vec();
    let seal = forge(&mut arrays);
    let folder = FaultFolder::new();
    folder
        .create("arrays-1")
        .and_then(|device| device.write_at(&arrays, 0))
        .expect("memory takes all");
    let payload = [&seal.to_le_bytes()[..], payload].concat();
    manifest::publish(&folder, 1, &payload, &Arc::default()).expect("memory takes all");

    let resources = &*RESOURCES;
    let checkpoints = Checkpoints::open_folder(folder.shared(), 2, &Arc::default())
        .expect("the manifest is whole");
    assert!(checkpoints.existing().eq([1]));
    let Ok(mut saved) = checkpoints.read(1) else { return false };
    let mut array = ScratchArray::<u64>::resident(LENGTH, WINDOW);
    let mut records = vec![0_u8; LENGTH];
    let accepted = saved.array(&mut array, resources).is_ok();
    if accepted {
        let _ = saved.records(&mut records, WINDOW, resources);
    }
    saved.rewind();
    let mut buffer = Buffer::new();
    while let Ok(true) = saved.block(&mut buffer) {
        assert!(buffer.bytes().len() <= arrays.len());
    }
    accepted
}

//! A folder of checkpoints: the first two bytes say how many of the next are the payload of its manifest, the rest is the file of its arrays.
//! All checksums are put right; what is read must end with a typed error or with what the owner asked for.
#![no_main]

use std::sync::{Arc, LazyLock};

use brimful_store::checkpoint::Checkpoints;
use brimful_store::fault::FaultFolder;
use brimful_store::scratch::ScratchArray;
use brimful_store::sealed::Buffer;
use brimful_store::{Budget, Folder, Job, Resources, checksum, manifest};

/// A pool of threads takes longer to make than a file to read.
static RESOURCES: LazyLock<Resources> = LazyLock::new(|| {
    Resources::new(Budget::new(1 << 20, 0), Arc::new(Job::new()), Some(1)).expect("one thread")
});

const LENGTH: usize = 1000;
const WINDOW: usize = 300;

fn forge(bytes: &mut [u8]) -> u64 {
    let table = bytes.get(16..24).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes);
    if let Some(sum) = bytes.get(table as usize..).map(checksum)
        && let Some(field) = bytes.get_mut(24..32)
    {
        field.copy_from_slice(&sum.to_le_bytes());
    }
    let seal = bytes.get(..56).map_or(0, checksum);
    if let Some(field) = bytes.get_mut(56..64) {
        field.copy_from_slice(&seal.to_le_bytes());
    }
    seal
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((len, rest)) = bytes.split_first_chunk() else { return };
    let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
    let (payload, arrays) = rest.split_at(len);
    let mut arrays = arrays.to_vec();
    let seal = forge(&mut arrays);
    let folder = FaultFolder::new();
    folder.create("arrays-1").and_then(|device| device.write_at(&arrays, 0)).expect("memory takes all");
    let payload = [&seal.to_le_bytes()[..], payload].concat();
    manifest::publish(&folder, 1, &payload, &Arc::default()).expect("memory takes all");

    let resources = &*RESOURCES;
    let checkpoints =
        Checkpoints::open_folder(folder.shared(), 2, &Arc::default()).expect("the manifest is whole");
    assert!(checkpoints.found().eq([1]));
    let Ok(mut saved) = checkpoints.read(1) else { return };
    let mut array = ScratchArray::<u64>::resident(LENGTH, WINDOW);
    let mut records = vec![0_u8; LENGTH];
    if saved.array(&mut array, resources).is_ok() {
        let _ = saved.records(&mut records, WINDOW, resources);
    }
    saved.rewind();
    let mut buffer = Buffer::new();
    while let Ok(true) = saved.block(&mut buffer) {
        assert!(buffer.bytes().len() <= arrays.len());
    }
});

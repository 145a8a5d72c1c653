//! A PageRank vertex by each serializer: bytes, and nanoseconds to write and to read it; prints one
//! JSON object for each.
//!
//! `serializers VERTICES`: log-normal vertices (mu 4, sigma 1.3, 127 edges on average) as in the
//! thesis's tables 4.1 and 4.2, ids below a million.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use brimful_vertices::serializer::{Compact, Compressing, Generic, Method, Native};
use brimful_vertices::{Edges, Serializer, Vertex};

type Page = Vertex<u64, f64>;

const IDS: u64 = 1_000_000;

fn pages(count: u64) -> Vec<Page> {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    let unit = |bits: u64| ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let mut page = |id| {
        let gaussian =
            (-2.0 * unit(next()).ln()).sqrt() * (std::f64::consts::TAU * unit(next())).cos();
        let degree = (4.0 + 1.3 * gaussian).exp().round() as usize;
        let mut targets: Vec<u64> = (0..degree).map(|_| next() % IDS).collect();
        targets.sort_unstable();
        targets.dedup();
        let state = unit(next());
        Page::new(
            id,
            state,
            targets.into_iter().map(|target| (target, ())).collect::<Edges<_, _>>(),
        )
    };
    (0..count).map(&mut page).collect()
}

fn measure(
    name: &str,
    pages: &[Page],
    mut serializer: impl Serializer<Page>,
) -> Result<(), Box<dyn Error>> {
    let nanoseconds = |begin: Instant| begin.elapsed().as_nanos() as f64 / pages.len() as f64;
    let (mut records, mut ends) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    for page in pages {
        serializer.encode(page, &mut records)?;
        ends.push(records.len());
    }
    let write = nanoseconds(begin);
    let begin = Instant::now();
    let mut start = 0;
    for (page, &end) in pages.iter().zip(&ends) {
        let record = records.get(start..end).ok_or("a record beyond the end")?;
        black_box(serializer.decode(page.id(), record, None)?);
        start = end;
    }
    let read = nanoseconds(begin);
    let bytes = records.len() as f64 / pages.len() as f64;
    println!(
        "{{\"serializer\": \"{name}\", \"bytes\": {bytes:.1}, \"write_ns\": {write:.0}, \
         \"read_ns\": {read:.0}}}"
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let pages = pages(std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?);
    measure("native", &pages, Native)?;
    measure("compact", &pages, Compact)?;
    measure("generic", &pages, Generic)?;
    for (name, method) in Method::ALL {
        measure(&format!("native+{name}"), &pages, Compressing::new(Native, method)?)?;
        measure(&format!("compact+{name}"), &pages, Compressing::new(Compact, method)?)?;
    }
    Ok(())
}

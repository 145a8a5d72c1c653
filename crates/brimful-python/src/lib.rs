//! `brimful._native`: the Rust core for Python. One file per noun, no logic.

mod arrow_columns;
mod arrow_in;
mod arrow_names;
mod arrow_out;
mod bags;
mod boxes;
mod call;
mod cluster;
mod columns;
mod distributed;
mod divided;
mod errors;
mod figures;
mod fs_path;
mod graph;
mod imports;
mod kernel;
mod keyed;
mod log;
mod lookup;
mod methods;
mod object_id;
mod parsed;
mod partition;
mod plan;
mod plugin;
mod probe;
mod program;
mod raised;
mod request;
mod rows;
mod run;
mod sorting;
mod tables;
mod temporary;
mod vertex;

use pyo3::prelude::*;

/// The budget for `auto`, in bytes.
#[pyfunction]
fn auto_budget_bytes() -> u64 {
    brimful::store::automatic::auto_budget_bytes()
}

/// The peak resident memory of this process, in bytes; None if the system does not report it.
#[pyfunction]
fn peak_rss_bytes() -> Option<u64> {
    brimful::store::memory::peak_resident_bytes()
}

/// Limits the C library to one heap: the address space of a heap for each thread counts against
/// `ulimit -v`.
#[pyfunction]
fn share_one_heap() {
    brimful::store::memory::share_one_heap();
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_SOURCES", brimful::algos::sources::MAX_SOURCES)?;
    module.add_function(wrap_pyfunction!(auto_budget_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(peak_rss_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(share_one_heap, module)?)?;
    module.add_function(wrap_pyfunction!(log::log_to, module)?)?;
    module.add_function(wrap_pyfunction!(log::log_start, module)?)?;
    module.add_function(wrap_pyfunction!(log::log_end, module)?)?;
    module.add_function(wrap_pyfunction!(run::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(run::check_request, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(rows::run_rows, module)?)?;
    module.add_function(wrap_pyfunction!(run::stores, module)?)?;
    module.add_function(wrap_pyfunction!(partition::modularity, module)?)?;
    module.add_function(wrap_pyfunction!(partition::conductance, module)?)?;
    module.add_function(wrap_pyfunction!(plugin::check_store, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_import, module)?)?;
    module.add_function(wrap_pyfunction!(imports::require_import_budget, module)?)?;
    module.add_function(wrap_pyfunction!(imports::require_disk, module)?)?;
    module.add_function(wrap_pyfunction!(program::run_program, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::run_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(columns::pick_columns, module)?)?;
    module.add_function(wrap_pyfunction!(columns::compression, module)?)?;
    module.add_function(wrap_pyfunction!(columns::foreign_format, module)?)?;
    module.add_function(wrap_pyfunction!(probe::probe, module)?)?;
    module.add_function(wrap_pyfunction!(object_id::object_name, module)?)?;
    module.add_function(wrap_pyfunction!(object_id::ids_of_names, module)?)?;
    module.add_function(wrap_pyfunction!(imports::import_files, module)?)?;
    module.add_function(wrap_pyfunction!(parsed::has_names, module)?)?;
    module.add_function(wrap_pyfunction!(parsed::parse_text, module)?)?;
    module.add_function(wrap_pyfunction!(divided::sort_part, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::read_table, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::number_ids, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::replace_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::rank_range, module)?)?;
    module.add_function(wrap_pyfunction!(distributed::map_edges, module)?)?;
    module.add_function(wrap_pyfunction!(imports::import_stream, module)?)?;
    module.add_function(wrap_pyfunction!(imports::join_declarations, module)?)?;
    module.add_function(wrap_pyfunction!(imports::generate, module)?)?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<lookup::Lookup>()?;
    module.add_class::<lookup::NeighborStream>()?;
    module.add_class::<run::Result>()?;
    module.add_class::<run::TopRows>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<program::Seen>()?;
    module.add_class::<program::States>()?;
    module.add_class::<program::kept::KeptVertexStore>()?;
    module.add_class::<boxes::RecordBox>()?;
    module.add_class::<bags::RecordBag>()?;
    module.add_class::<keyed::FrequencyCounter>()?;
    module.add_class::<keyed::MembershipSet>()?;
    module.add_class::<keyed::BloomFilter>()?;
    module.add_class::<keyed::DiskMap>()?;
    module.add_class::<keyed::DiskLists>()?;
    module.add_class::<sorting::Sorter>()?;
    module.add_class::<tables::NewTable>()?;
    module.add_class::<temporary::TemporaryFolder>()?;
    module.add_class::<temporary::PartialFile>()?;
    Ok(())
}

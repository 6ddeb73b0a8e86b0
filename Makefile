# The entry points of the repository, for people and for CI.
SHELL := /bin/bash
.DEFAULT_GOAL := help

CARGO_DENY_VERSION := 0.20.2
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ocm-rs
CARGO_FUZZ_VERSION := 0.13.2
FUZZ := $(CACHE)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz
SECONDS_EACH ?= 60
# Modules of crates/server/tests/it whose tests start the program as a process.
PROCESS_TESTS := addon_token:: admission:: commands:: killed:: leader:: lifetime:: logins:: placement_debug:: preflight:: serving:: webhook::
TEST_THREADS ?= $(shell echo $$(( 2 * $$(nproc) )))
DENY := $(CACHE)/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

# The release binaries are static, so that each runs in an image that holds nothing else. The target is named although it
# is this machine's own, since cargo then keeps the flags from build scripts and procedural macros, which cannot be static.
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/$(HOST)/release
# Megabytes that a first release build needs, measured.
RELEASE_SPACE := 1500
# Relocations are packed: a static binary that can be loaded anywhere has some 30,000. Linkers that cannot do so ignore it.
STATIC_FLAGS := -C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs
IMAGES := $(TARGET)/images
REGISTRY ?= ghcr.io/ocm-rs
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Every folder in examples/ is a package of that name with one binary of that name.
EXAMPLES := $(patsubst examples/%/Cargo.toml,%,$(wildcard examples/*/Cargo.toml))

.PHONY: help
help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: testenv release ## Runs a hub and two clusters, which join and get a work and an add-on (ARGS=--once exits at the end)
	cargo run --locked -p ocm-testing --bin ocm-demo -- $(abspath $(RELEASE)) $(ARGS)

.PHONY: test
test: testenv ## Runs every test, against real Kubernetes control planes
	cargo build --locked -p ocm-server -p ocm-cli
# Tests wait for servers more than they compute, so there is room for more of them than there are cores.
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --locked --workspace

.PHONY: test-release
test-release: testenv release ## Runs the tests of processes (kills, elections, shutdown) against the release binary
	OCM_TESTING_PROGRAM=$(abspath $(RELEASE))/ocm RUST_TEST_THREADS=$(TEST_THREADS) \
	cargo test --locked -p ocm-server --test it -- $(PROCESS_TESTS)

.PHONY: test-node
test-node: packages testenv-node image ## Runs hub, agent and a work as pods on a real node (needs root; Debian, or its packages)
	cargo build --locked -p ocm-testing --bin ocm-test-node
	$(TARGET)/debug/ocm-test-node all $(RELEASE) $(IMAGES)

.PHONY: interop
interop: testenv decisions ## Replaces OCM's hub, agent and add-on by ours, one at a time, and lists the differences
	peers=$$(testenv/build.sh peers) && \
	cargo build --locked -p ocm-server -p ocm-cli -p helloworld && \
	cargo run --locked -q -p ocm-testing --bin ocm-interop -- "$$peers"

.PHONY: decisions
decisions: ## Compares our decisions on thousands of generated placements with those of OCM's scheduler
	scheduler=$$(testenv/build.sh ocm-scheduler) && \
	OCM_SCHEDULER="$$scheduler" cargo test --locked -p ocm-hub --lib placement::differential -- --ignored --nocapture

.PHONY: packages
packages:
	@testenv/packages.sh

.PHONY: check
check: $(DENY) ## Checks format, lints, licenses, docs, generated files, architecture, fuzz targets
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(DENY) --locked check licenses bans sources
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
	cargo run --locked -q -p xtask -- crds --check
# The pages in docs/reference are generated from the code; each crate that has one compares it in its test `reference`.
	cargo test --locked -q --workspace --test reference
	cargo test --locked -q -p xtask
# The fuzz targets are not part of the workspace; any toolchain can check them, and a nightly one runs them.
	RUSTFLAGS="--cfg fuzzing -D warnings" cargo check --locked -q --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz-check

.PHONY: testenv
testenv: ## Builds the Kubernetes binaries that tests need, if they are missing
	@testenv/build.sh

.PHONY: testenv-node
testenv-node: ## Builds the binaries for nodes: kubelet, kube-scheduler, kube-proxy
	@testenv/build.sh node

.PHONY: testenv-path
testenv-path: ## Prints the folder of the Kubernetes binaries
	@testenv/build.sh path

.PHONY: bench
bench: testenv release ## Measures, and prints one JSON line per figure
	RUSTFLAGS="$(STATIC_FLAGS)" cargo run --locked --release --target $(HOST) -p ocm-bench -- $(ARGS)

.PHONY: release
release: ## Builds the static binaries ocm and clusteradm, and those of the examples
	@[ -e $(RELEASE)/ocm ] || testenv/space.sh $(RELEASE_SPACE) $(TARGET) "a release build"
	RUSTFLAGS="$(STATIC_FLAGS)" cargo build --locked --release --target $(HOST) -p ocm-server -p ocm-cli $(EXAMPLES:%=-p %)
	@echo "release: the binaries are in $(RELEASE)" >&2

.PHONY: image
image: release ## Packs ocm (REGISTRY=ghcr.io/ocm-rs), and each example, as an image that docker, podman and ctr load
	@for tag in $(REGISTRY)/ocm:$(VERSION) $(EXAMPLES:%=%:latest); do \
	  name=$${tag##*/}; name=$${name%%:*}; \
	  cargo run --locked -q -p xtask -- image --binary $(RELEASE)/$$name --tag $$tag --output $(IMAGES)/$$name.tar || exit 1; \
	done

.PHONY: crds
crds: ## Generates crds/ from the Rust types
	cargo run -q -p xtask -- crds

.PHONY: fmt
fmt: ## Formats the code
	cargo fmt --all

.PHONY: fuzz
fuzz: $(FUZZ) ## Fuzzes every parser for a minute each (SECONDS_EACH=60; needs a nightly toolchain)
	@for target in $$($(FUZZ) list); do \
	  echo "fuzz: $$target" >&2; mkdir -p fuzz/corpus/$$target; \
	  PATH=$(dir $(FUZZ)):$$PATH cargo +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$(SECONDS_EACH) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

.PHONY: advisories
advisories: $(DENY) ## Looks for known vulnerabilities (needs access to github.com)
	$(DENY) check advisories

$(DENY):
	@echo "check: building cargo-deny $(CARGO_DENY_VERSION), once" >&2
	cargo install --quiet --locked --root $(CACHE)/tools/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny@$(CARGO_DENY_VERSION)

$(FUZZ):
	@echo "fuzz: building cargo-fuzz $(CARGO_FUZZ_VERSION), once" >&2
	cargo install --quiet --locked --root $(CACHE)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) cargo-fuzz@$(CARGO_FUZZ_VERSION)

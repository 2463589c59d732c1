# What there is to do with voxgate. `make run` and `make test` are all that a newcomer needs; `make help` lists the rest.
#
# ARGUMENTS    handed to `voxgate serve` by `make run`: make run ARGUMENTS="--port 9000"
# STAGE_LIMIT  seconds that one stage of the tests may take; empty: no limit

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

# A toolchain that was just installed is not on the PATH of the shell that installed it.
ifeq ($(shell command -v cargo),)
export PATH := $(HOME)/.cargo/bin:$(PATH)
endif

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
WITHIN := $(if $(STAGE_LIMIT),timeout --kill-after=20 $(STAGE_LIMIT))
stage = @printf '\n== %s\n' $(1)

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]*:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: ready ## Bring what is missing, build, start the gateway; prints the address of its page
	$(call stage,'Starting the gateway (Ctrl-C ends it)')
	@exec cargo run --quiet -- serve $(ARGUMENTS)

.PHONY: ready
ready: cargo-here ## What `run` does, without the start
	$(call stage,'System packages')
	@scripts/prepare build
	$(call stage,'Building (minutes the first time, seconds later)')
	@cargo build
	$(call stage,'Speech models')
	@cargo run --quiet -- models get

.PHONY: test
test: test-ready test-rust test-gate test-pure test-mutants test-page ## Bring what tests need and run all of them
	$(call stage,'All tests passed')

.PHONY: test-ready
test-ready: cargo-here
	$(call stage,'System packages')
	@scripts/prepare test
	$(call stage,'The stock Python client')
	@scripts/prepare sdk $(TARGET)/sdk
	$(call stage,'Tools for the page')
	@scripts/prepare page $(TARGET)/node
	$(call stage,'Building (minutes the first time, seconds later)')
	@cargo build
	$(call stage,'Speech models and those that only tests need')
	@$(WITHIN) cargo run --quiet -- models get --all

.PHONY: test-rust
# The Python that has the stock client.
test-rust: export VOXGATE_SDK_PYTHON ?= $(TARGET)/sdk/bin/python
test-rust: ## Unit tests and the integration binary (after test-ready)
	$(call stage,'Tests: the gateway')
	@PATH="$(TARGET)/node/bin:$$PATH" $(WITHIN) cargo test

.PHONY: test-gate
test-gate: ## The gate under a scheduler that tries many interleavings
	$(call stage,'Tests: the gate under 20000 schedules')
	@$(WITHIN) cargo test --no-default-features --features shuttle --lib gate

.PHONY: test-pure
# The long random histories have run in test-rust already and do not depend on features.
test-pure: ## The pure rooms built and tested alone
	$(call stage,'Tests: the pure rooms alone')
	@$(WITHIN) cargo test --no-default-features --lib -- --skip ten_thousand --skip every_state --skip eight_hours

.PHONY: test-mutants
test-mutants: ## Every condition of the gate, turned round: a test goes red for each
	$(call stage,'Tests: each condition of the gate matters')
	@MUTANTS_COPY=$(TARGET)/mutants-copy MUTANTS_TARGET=$(TARGET) $(WITHIN) scripts/mutants gate

.PHONY: proofs
proofs: ## Model, histories and mutants as a figure (after `make mutants`, which takes long)
	$(call stage,'Proofs')
	@scripts/proofs

.PHONY: model
model: ## The model of plan mode, every state of it, in its long form (a few minutes)
	$(call stage,'Every state of the model')
	@VOXGATE_MODEL=3,1,3,1,1 $(WITHIN) cargo test --no-default-features --lib every_state -- --nocapture

.PHONY: mutants
mutants: ## The mutant of every row of the ledger against its tests, then every condition of what decides (hours)
	$(call stage,'Mutants')
	@scripts/mutants rows
	@FEATURES=default scripts/mutants rows
	@scripts/mutants all

.PHONY: test-page
test-page: ## The page in a headless browser, against a small gateway of its own
	$(call stage,'Tests: the page in a browser')
	@cd tests/browser && PATH="$(TARGET)/node/bin:$$PATH" $(WITHIN) npm test --silent

.PHONY: test-page-live
test-page-live: ## The page against the real gateway: a spoken sentence and a plan approved with a click
	$(call stage,'Tests: the page and the gateway')
	@PATH="$(TARGET)/node/bin:$$PATH" $(WITHIN) scripts/page-live $(TARGET)/debug/voxgate

.PHONY: lint
lint: cargo-here ## The compiler's and clippy's opinion, and the documentation without warnings
	$(call stage,'Clippy')
	@cargo clippy --all-targets -- --deny warnings
	@$(MAKE) --no-print-directory doc

.PHONY: doc
doc: cargo-here ## The reference, without warnings
	$(call stage,'Documentation')
	@RUSTDOCFLAGS='--deny warnings' cargo doc --no-deps

.PHONY: eval-ready
eval-ready: ready ## Bring the further voices that `voxgate eval commands` measures with
	$(call stage,'Voices for measuring')
	@scripts/prepare eval

.PHONY: bench
bench: ready ## Figures of this machine: recogniser, voice, turn
	$(call stage,'Measuring')
	@cargo run --quiet -- bench

.PHONY: cargo-here
cargo-here:
	@command -v cargo >/dev/null || { echo 'a Rust toolchain is missing: see the README' >&2; exit 1; }

# The one door to this repository. `make` lists what it can do.

DATA   ?= ./weir-data
OUT    ?= ./certs
SECONDS_PER_FUZZ ?= 20
FILTER ?=
RUNS   ?= 20
KINDS  ?= node,primary,both
MESSAGES ?= 1000000
PEERS  ?=
MINUTES ?= 60
DEVICES ?=
SEED   ?=
SEEDS  ?= 1...200
NODES  ?=
CANARIES := store-forgets device-forgets server-forgets owner-read-before-commit gap-ignored
# Programs that show a progress bar or ask look at this; the continuous integration sets CI=true.
export NO_COLOR := $(if $(CI),1,$(NO_COLOR))

.DEFAULT_GOAL := help
.PHONY: help run test check check-rest fmt lint tidy demo bench durability bulk-kills bench-peers soak many-devices bench-flat storm cluster bench-cluster durability-cluster migrate-million simulate canaries certs docs fuzz tsan asan release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build the server and run it on ./weir-data (DATA=DIR)
	@dev/deps.sh run
	swift build -c release --product weir
	exec .build/release/weir serve --data $(DATA)

test: ## Run every test, with real clients in Python environments (FILTER=Name for some)
	@dev/deps.sh test
	@dev/python-env.sh
	swift build --build-tests
	@# One test at a time: some measure how long a loop stalls, and some start servers on every core.
	swift test --skip-build --no-parallel $(if $(FILTER),--filter '$(FILTER)')

check: test check-rest ## Everything: test, then check-rest

check-rest: ## The checks beside the tests: format, sanitizers, docs, fuzz, release build, bench
	@dev/check-rest.sh

fmt: ## Format all Swift files in place
	swift format -i -r Package.swift Sources Tests Benchmarks Fuzzing Examples

lint: ## Check the format of all Swift files
	swift format lint --strict -r Package.swift Sources Tests Benchmarks Fuzzing Examples

tidy: ## Check imports, file lengths and other house rules
	swift build --build-tests
	swift test --skip-build --no-parallel --filter TidyTests

demo: ## Run a server, devices and an app server on real messages, and sum up what happened
	@dev/deps.sh run
	swift build -c release --product weir
	exec .build/release/weir demo

bench: ## Measure a running server and the cores in a release build (BENCH='--smoke' for one short round)
	@dev/deps.sh run
	swift build -c release --product weir
	swift build -c release --product stream-bench
	swift build -c release --product weir-bench
	swift build -c release --product device-memory
	.build/release/stream-bench $(BENCH)
	.build/release/stream-bench --http $(BENCH)
	.build/release/weir-bench $(BENCH)

bench-flat: ## Measure whether a message costs the same beside 18,000 devices and 10 million stored ones (STORED=1000000)
	@dev/deps.sh run
	swift build -c release --product weir
	swift build -c release --product stream-bench
	.build/release/stream-bench --flat --stored $(or $(STORED),10000000)

storm: ## Have thousands of devices on WebSockets come and go at once, with a verdict (DEVICES=5000)
	@dev/deps.sh run
	swift build -c release --product weir
	swift build -c release --product stream-bench
	.build/release/stream-bench --storm $(or $(DEVICES),5000)

simulate: ## Run seeds of the whole system on a virtual clock, each twice (SEEDS=1...200, or SEED=n for a trace; NODES=n)
	@dev/deps.sh run
	swift build -c release --product simulate
	.build/release/simulate $(if $(SEED),--seed $(SEED) --trace,--seeds $(SEEDS)) $(if $(NODES),--nodes $(NODES))

canaries: ## Run the simulator with deliberate faults, which it must catch
	@dev/deps.sh run
	swift build -c release --product simulate
	@for canary in $(CANARIES); do .build/release/simulate --once --canary $$canary --seeds 1...100 || exit 1; done

durability: ## Kill the server with SIGKILL at random points under load and compare both ends (RUNS=20)
	@dev/deps.sh run
	swift build -c release --product weir
	swift build -c release --product kill-run
	.build/release/kill-run --runs $(RUNS)

durability-cluster: ## The same with three nodes on three databases: a node, the primary, or both are killed (RUNS=20, KINDS=node,primary,both)
	@dev/deps.sh test
	swift build -c release --product weir
	swift build -c release --product kill-run
	.build/release/kill-run --cluster --kinds $(KINDS) --runs $(RUNS)

migrate-million: ## Move a store of a million messages from SQLite to PostgreSQL, with a ledger of both ends (MESSAGES=1000000)
	@dev/deps.sh test
	swift build -c release --product weir
	swift build -c release --product kill-run
	.build/release/kill-run --migrate $(MESSAGES) --devices 10000

bench-cluster: ## Measure nodes on three databases beside SQLite (BENCH='--smoke' for one short round)
	@dev/deps.sh test
	swift build -c release --product weir
	swift build -c release --product cluster-bench
	.build/release/cluster-bench $(BENCH)

cluster: ## Run three databases and three nodes on loopback until Ctrl-C
	@dev/deps.sh test
	swift build -c release --product weir
	dev/cluster-demo.sh .build/release/weir $(or $(TMPDIR),/tmp)/weir-cluster

bulk-kills: ## Send a million messages by weir bulk while server and sender are killed (MESSAGES=1000000)
	@dev/deps.sh run
	swift build -c release --product weir
	swift build -c release --product kill-run
	.build/release/kill-run --bulk $(MESSAGES) --devices 500

bench-peers: ## Run the same load on Weir, Prosody, ejabberd, Mosquitto and a bare switch (PEERS='--smoke', '--only weir,switch')
	@dev/deps.sh peers
	swift build -c release --product weir
	swift build -c release --product peer-bench
	swift build -c release --product reference-switch
	.build/release/peer-bench $(PEERS)

soak: ## Run a server under half of its load with churn and watch its memory (MINUTES=60)
	@dev/deps.sh run
	swift build -c release --product weir
	@dev/load_proofs.py soak $(MINUTES)

many-devices: ## Connect 18,000 TLS devices, kill the server, and see all of them back (DEVICES=18000)
	@dev/deps.sh run
	swift build -c release --product weir
	@dev/load_proofs.py many-devices $(or $(DEVICES),18000)

certs: ## Make a development CA and a server certificate in ./certs (OUT=DIR)
	@dev/deps.sh run
	swift build -c release --product weir
	.build/release/weir certs --out $(OUT)

docs: ## Check the links of the documents and build the API documentation
	@dev/docs.sh

fuzz: ## Fuzz every target for a while (SECONDS_PER_FUZZ=20, TARGET=Name for one)
	@dev/deps.sh run
	@dev/fuzz.sh $(SECONDS_PER_FUZZ) $(TARGET)

tsan: ## Run the tests that use threads under the thread sanitizer
	@dev/sanitize.sh thread

asan: ## Run the tests that meet hostile bytes or C memory under the address sanitizer
	@dev/sanitize.sh address

release: ## Build the weir command for release
	@dev/deps.sh run
	swift build -c release --product weir

clean: ## Remove what was built, not ./weir-data
	rm -rf .build artifacts .venv-*

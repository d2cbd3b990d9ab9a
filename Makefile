# All targets run on a machine with Go, make and git. As root on Debian, they install
# the other programs that they need.
GO ?= go
# Tools are pinned in modules of their own.
LINT = $(GO) tool -modfile=$(CURDIR)/dev/tools/go.mod golangci-lint
GOTESTSUM = $(GO) tool -modfile=$(CURDIR)/dev/tools/go.mod gotestsum
ACTIONLINT = $(GO) tool -modfile=dev/tools/workflows/go.mod actionlint
GORELEASER = GOWORK=off $(GO) tool -modfile=dev/tools/release/go.mod goreleaser
WITH_SERVERS = $(GO) run ./internal/test/dbtest/cmd/withservers
# The modules beside the root's, but those of tools alone.
MODULES = $(filter-out dev/tools dev/tools/release dev/tools/workflows,$(patsubst %/go.mod,%,$(shell find */ -name go.mod -not -path '*/testdata/*')))
COMPILE = $(GO) list -export -test -deps ./...
# SQLite is C that was translated to Go. The race detector and its checks of pointers make that
# several times slower, and cannot find a race of ours in it.
RACE = -race -gcflags=modernc.org/...=-race=false

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this help
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

# Tests must not depend on each other's order, so it is random. Go does not cache the results
# of a shuffled run either, which do depend on the servers. Most tests wait for a database, so there are more of them
# at once than processors, and not more than these carry. Vet is left to .ci/run. Compiling ends before the first test
# begins, since it would leave little of two cores to tests in real time.
# SQLLOCK_SERVERS=postgres,mysql starts only these servers.
# At the end gotestsum lists the failed tests, and then the slowest.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PARALLEL = -p=$(PROCESSORS) -parallel=$$((8 * $(PROCESSORS)))
SLOWEST = $(GOTESTSUM) tool slowest --num=25
TEST = $(GOTESTSUM) --format=standard-quiet --jsonfile=bin/tests.json --post-run-command='$(SLOWEST)' -- -shuffle=on -vet=off $(PARALLEL) -timeout=2h $(TESTFLAGS) ./...

# The race detector watches the packages whose goroutines meet. Elsewhere, and in each further cell of the contract, it
# would see the same ones again, several times slower.
MEET = ./adapters/httplock ./cmd/sqllock/internal/exec ./drivers/... $(shell $(GO) list ./internal/... | grep -v /internal/test/) \
	./internal/test/registry ./internal/test/servers ./monitor/page ./sqllocktest ./sync/...

# A simulation that fails beside other tests is named at the end: its own output has scrolled away.
beside = @red=$$(mktemp); $(MAKE) --no-print-directory -j2 $(1) simulate WORLDS=$(2) TWICE=$(3) RED=$$red; code=$$?; cat $$red; rm $$red; exit $$code

# Without the worlds of make simulate: these need all packages compiled once more, Go's own and SQLite too, with
# another runtime. The few that the tests run themselves do not.
.PHONY: test
test: test-servers ## run the tests on every available database (5 to 9 minutes)

.PHONY: test-all
test-all: ## the same with all cells of the matrix, and the failure tests (15 minutes)
	$(call beside,test-servers-all,300,50)

# LOADED=test-servers-all runs all cells, without the worlds of make simulate, which need no load; BESIDE=16 starts more loops.
LOADED ?= test
BESIDE ?= 8
.PHONY: test-loaded
test-loaded: ## run make test beside eight busy loops and a compiler (LOADED=test-servers-all for all cells)
	.ci/loaded $(BESIDE) $(MAKE) --no-print-directory $(LOADED)

# It needs cgo, which .ci/run has off for all else.
.PHONY: test-race
test-race: export CGO_ENABLED = 1
test-race: cc ## run the tests of goroutines that meet with the race detector, on SQLite and the servers that run (4 minutes)
	$(GO) test $(RACE) -shuffle=on -vet=off $(PARALLEL) -timeout=1h $(TESTFLAGS) $(MEET)

# Without cgo, as in .ci/run and in what is released. With one setting for all, Go compiles each package once.
.PHONY: test-servers test-servers-all compile
test test-all test-servers test-servers-all compile: export CGO_ENABLED = 0
compile:
	-@$(COMPILE) >/dev/null 2>&1 # what runs the tests reports its errors
test-servers: compile
	$(WITH_SERVERS) -- $(TEST)
test-servers-all: compile
	SQLLOCK_TEST_ALL=1 $(WITH_SERVERS) -then '$(GO) -C dev/reliability test -count=1 -shuffle=on -timeout=30m .' -- $(TEST)

# With changes to Go's runtime, so that a seed has one history. It needs the processors alone, so it runs
# beside tests that wait for servers, and lets these go first: it takes a few
# per cent of what they could have, and all processors for the worlds that are left when they end.
# SEED=86,443 repeats worlds, CHANGES=… one that was made simpler; SIMULATE=30m runs for longer;
# WORLDS=300 runs so many from seed 1 on, or from FROM on, in place of a time; TWICE=100 runs so many of these
# twice, which must have the same history. PROCESSES is how many worlds run at once, as many as
# there are processors unless given.
SIMULATE ?= 60s
# Only from the command line: the environment may have a SEED of its own.
given = $(if $(filter command,$(origin $(1))),$($(1)))
SIMULATION = SQLLOCK_SIMULATE=$(if $(call given,WORLDS),,$(SIMULATE)) SQLLOCK_SIMULATION_WORLDS=$(call given,WORLDS) SQLLOCK_SIMULATION_TWICE=$(or $(call given,TWICE),10) \
	SQLLOCK_SIMULATION_FROM=$(call given,FROM) SQLLOCK_SIMULATION_SEED=$(call given,SEED) SQLLOCK_SIMULATION_CHANGES='$(call given,CHANGES)'
.PHONY: simulate
simulate: ## try random schedules and faults in virtual time (2 minutes)
	overlay=$$($(GO) run ./internal/test/simulation/overlay bin/overlay) && \
		$(SIMULATION) nice -n 15 $(GO) test -overlay=$$overlay -count=1 -vet=off -v -timeout=0 $(if $(PROCESSES),-cpu=$(PROCESSES)) -run=TestSimulation ./internal/test/simulation \
		$(if $(call given,SEED),,&& SQLLOCK_SIMULATE=all nice -n 15 $(GO) test -overlay=$$overlay -count=1 -vet=off -timeout=20m -run='TestElections|TestWaitsAmongProcesses|TestWaitsForLongHolders' ./sync/leader ./sync/rwlock) \
		|| { $(if $(RED),echo 'The simulation has failed: see above or run make simulate WORLDS=$(WORLDS).' >$(RED);) exit 1; }

# MUTANTSFLAGS='-v -run=token' runs some of them, and prints what the simulation says; -search=60 looks for other
# worlds where the library has changed.
.PHONY: mutants
mutants: ## break a copy of the library in many ways: the simulations must notice (5 minutes)
	$(GO) -C dev/tools run ./mutants $(MUTANTSFLAGS)

# The fuzz targets of the root module are found in its tests. Go writes an input that fails to testdata/fuzz of the
# package, and has others in its cache.
FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## search for inputs that break something, for 20 seconds at each fuzz target
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | { red=; while IFS=: read -r file target; do \
		target=$${target#func }; echo "$$target of $${file%/*}"; \
		$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x "$${file%/*}" </dev/null || red="$$red $$target"; \
	done; [ -z "$$red" ] || { echo "failed:$$red" >&2; exit 1; }; }

# `dev/model/check row` checks one model, `dev/model/check row NO_MARGIN` prints the steps to what it finds.
.PHONY: model
model: ## check the protocol as a model, exhaustively, and that the checker catches its faults (3 minutes)
	@{ command -v spin && command -v gcc; } >/dev/null || { \
		[ "$$(id -u)" = 0 ] || { echo 'the model is checked by spin: apt-get install spin gcc libc6-dev' >&2; exit 1; }; \
		export DEBIAN_FRONTEND=noninteractive; \
		install='apt-get -q -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends spin gcc libc6-dev'; \
		$$install || { apt-get -q update && $$install; }; \
	}
	dev/model/check

.PHONY: reliability
reliability: ## run all failure tests and update its RESULTS.md (22 minutes)
	SQLLOCK_SERVERS=postgres,mysql SQLLOCK_REQUIRE=postgres,mysql $(WITH_SERVERS) -- $(GO) -C dev/reliability test . -count=1 -v -timeout=45m -full -page=$(CURDIR)/dev/reliability/RESULTS.md

# HISTORY=dir keeps what the workers did; CLUSTERSFLAGS='-run TestGalera -seed 7' runs a part of it.
CLUSTERS = SQLLOCK_MAY_INSTALL=yes $(GO) -C dev/reliability test ./clusters -count=1 -v $(if $(HISTORY),-history=$(abspath $(HISTORY)))

.PHONY: test-clusters
test-clusters: ## break Galera, Group Replication, Patroni, PgBouncer, Vitess and TiDB for a short time (20 minutes, root)
	$(CLUSTERS) -parallel=3 -timeout=30m $(CLUSTERSFLAGS)

.PHONY: clusters
clusters: ## break them for ten minutes each and update dev/reliability/clusters/RESULTS.md (an hour and a half, root)
	SQLLOCK_REQUIRE=galera,group-replication,patroni,pgbouncer,vitess,tidb-cluster $(CLUSTERS) -parallel=2 -timeout=4h -full=10m -page=$(CURDIR)/dev/reliability/clusters/RESULTS.md $(CLUSTERSFLAGS)

.PHONY: test-interop
test-interop: ## run the tests with Spring's own locks (needs a JDK and Maven)
	SQLLOCK_SERVERS=postgres,mysql,mariadb-newest,oracle-mysql $(WITH_SERVERS) -- $(GO) test -tags interop -v -shuffle=on -parallel=4 -timeout=45m $(TESTFLAGS) ./dev/interop/...

.PHONY: test-adapters
test-adapters: ## run the adapters with the libraries that they are for (1 minute)
	$(GO) -C adapters/cron test $(TESTFLAGS) ./...
	SQLLOCK_SERVERS=postgres,mysql SQLLOCK_REQUIRE=postgres,mysql CGO_ENABLED=0 $(WITH_SERVERS) -then '$(GO) -C adapters/river test $(TESTFLAGS) ./...' -- $(GO) -C adapters/tests test $(TESTFLAGS) ./...

.PHONY: test-examples
test-examples: ## run the examples, and compare what they print (1 minute)
	$(GO) -C examples test $(TESTFLAGS) ./...

# Ctrl-C reaches the instances, too; the second wait is for them to end.
.PHONY: example
example: ## run three instances of the example service on an SQLite file, until Ctrl-C
	$(GO) -C examples/service build -o $(CURDIR)/bin/service .
	@dir=$$(mktemp -d); trap 'rm -r $$dir' EXIT; trap 'kill $$instances' INT TERM; \
	export DATABASE_URL=sqlite:$$dir/bank.db OPERATOR_PASSWORD=demo; \
	for port in 8081 8082 8083; do LISTEN=127.0.0.1:$$port bin/service & instances="$$instances $$!"; done; \
	echo 'http://127.0.0.1:8081/internal/locks/ and 8082, 8083: operator, demo'; \
	wait; wait

.PHONY: test-observability
test-observability: ## run the metrics, traces, dashboard and alerts with the real libraries (30 seconds)
	SQLLOCK_SERVERS=postgres SQLLOCK_REQUIRE=postgres $(WITH_SERVERS) -- $(GO) -C monitor/dashboard test $(TESTFLAGS) ./...

# BROWSERFLAGS='-args -pictures ../../../docs/pictures' takes the pictures of the docs.
.PHONY: test-browser
test-browser: ## run the tests of the page in headless Chromium (30 seconds)
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || { \
		[ "$$(id -u)" = 0 ] || { echo 'the page is tested in a browser: apt-get install chromium' >&2; exit 1; }; \
		export DEBIAN_FRONTEND=noninteractive; \
		install='apt-get -q -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends chromium fonts-dejavu-core'; \
		$$install || { apt-get -q update && $$install; }; \
	}
	$(GO) -C monitor/page/browser test -count=1 -timeout=15m . $(BROWSERFLAGS)

RUNS ?= 1
RAW = $(foreach run,$(shell seq $(RUNS)),testdata/bench/run$(run).json)
comma := ,
empty :=
space := $(empty) $(empty)

.PHONY: bench
bench: ## compare with other lock libraries (20 minutes; RUNS=3 as for the pages; see dev/bench/README.md)
	mkdir -p testdata/bench
	set -e; for raw in $(RAW); do $(GO) -C dev/bench run . run -out ../../$$raw; done
	$(GO) -C dev/bench run . report -in $(subst $(space),$(comma),$(RAW:%=../../%)) \
		-doc RESULTS.md -pictures ../../docs/pictures

CONTENTION = 10s
CONTENDED = $(foreach run,$(shell seq $(RUNS)),testdata/bench/contention$(run).json)

.PHONY: contention
contention: ## have processes compete for locks, ours and others', and update dev/bench/CONTENTION.md (12 minutes; RUNS=3 as for the page)
	mkdir -p testdata/bench
	set -e; for raw in $(CONTENDED); do $(GO) -C dev/bench run . contention -for $(CONTENTION) -out ../../$$raw; done
	$(GO) -C dev/bench run . report -in $(subst $(space),$(comma),$(CONTENDED:%=../../%)) -doc CONTENTION.md -pictures ../../docs/pictures

.PHONY: bench-smoke
bench-smoke: ## check that all contenders and loads of the benchmark work (two minutes)
	$(GO) -C dev/bench run . smoke

.PHONY: cross
cross: ## compile everything for Linux, macOS and Windows
	set -e; for system in linux darwin windows; do CGO_ENABLED=0 GOOS=$$system $(GO) build ./...; done

.PHONY: lint
lint: export CGO_ENABLED = 0
lint: ## run golangci-lint with depguard, and actionlint
	$(ACTIONLINT) .github/workflows/*.yml
	$(LINT) run
	set -e; for module in $(MODULES); do \
		echo "lint $$module"; (cd $$module && $(LINT) run --config $(CURDIR)/.golangci.yml ./...); \
	done

# TARGETS=linux/amd64,darwin/arm64 builds for these systems alone. goreleaser wants a remote and a tag of the
# root module, which a checkout may not have.
.PHONY: snapshot
snapshot: ## build binaries, archives, deb, rpm, SBOMs and checksums of this commit, in dist/
	mkdir -p bin
	sed '$(if $(TARGETS),s/^    targets:.*/    targets: [$(subst /,_,$(TARGETS))]/)' .goreleaser.yaml >bin/goreleaser.yaml
	GORELEASER_CURRENT_TAG=$$(git describe --tags --abbrev=0 --match='v*' 2>/dev/null || echo v0.0.0) \
		GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/sqllock/sqllock \
		sh -c '$(GORELEASER) check && $(GORELEASER) release --snapshot --clean --config=bin/goreleaser.yaml'

.PHONY: fmt
fmt: ## format all Go files
	$(LINT) fmt

# The race detector needs a C compiler and the C library's start files. Compiling a
# program checks both.
.PHONY: cc
cc:
	@echo 'int main(void) { return 0; }' | $$($(GO) env CC) -x c -o /dev/null - 2>/dev/null || { \
		[ "$$(id -u)" = 0 ] || { echo 'the race detector needs a C compiler: apt-get install gcc libc6-dev' >&2; exit 1; }; \
		export DEBIAN_FRONTEND=noninteractive; \
		install='apt-get -q -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends gcc libc6-dev'; \
		$$install || { apt-get -q update && $$install; }; \
	}

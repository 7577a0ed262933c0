# Diwan needs Go; the quick start needs Python 3. Everything else is downloaded.
#
# `make test` has three tiers, each a separate target:
#   test-lint     gofmt, go vet, staticcheck, generated files are up to date
#   test-race     packages that start goroutines or guard memory, the node among
#                 them, under the race detector
#   test-cluster  the others, most of which run whole clusters: reconcilers, command
#                 line, examples, README commands, kill and hostile-input runs, and
#                 a type check for macOS
#
# The first one vets everything. The others skip that: go test would vet
# everything again, with fewer checks. On two cores, with Kubernetes compiled, the
# tiers take about 3.5, 4.5 and 17 minutes; compiling it takes some 10 more.

export CGO_ENABLED := 0
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Kubernetes' own version is what the API server reports to clients.
KUBERNETES := v1.37.2
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37 \
	-X diwan.dev/diwan/internal/platform/cli.version=$(VERSION) -X diwan.dev/diwan/internal/platform/cli.commit=$(COMMIT)
TOOL := go tool -modfile=tools/go.mod

# A cold build compiles about 2,400 packages: show that it moves.
COUNT := awk 'BEGIN { tty = system("test -t 2") == 0 } { n++ } \
	{ if (tty) printf "\r  %d packages compiled  %-60.60s", n, $$0 > "/dev/stderr"; else if (n % 200 == 0) printf "  %d packages compiled\n", n > "/dev/stderr"; last = $$0 } \
	/^[^ ]*:[0-9]+:[0-9]+:/ { print > "/dev/stderr" } \
	END { if (n) printf "\r  %d packages compiled %-60s\n", n, "" > "/dev/stderr" }'

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build, then tune the quick start's classifier on real data
	bin/diwan run examples/quickstart/experiment.yaml

.PHONY: build
build: ## Build bin/diwan, and the programs for the Pods of trials
	@echo "building bin/diwan (the first time takes some minutes)" >&2
	@go mod download
	@go build -v -ldflags '$(LDFLAGS)' -o bin/diwan ./cmd/diwan 2>&1 | $(COUNT)
	@go build -ldflags '-s -w' -o bin/ ./cmd/diwan-collector ./cmd/diwan-entry

# Tests start their own database servers. If these are not installed, the tests
# are skipped, unless CI=true.
.PHONY: databases
databases: ## Install PostgreSQL and MariaDB for the tests, from Debian's packages
	@if [ ! -x /usr/sbin/mariadbd ] || [ ! -x /usr/bin/my_print_defaults ] || ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql mariadb-server-core mariadb-client-core; \
	fi

# Launchers of MPIJobs run mpirun, which MPI programs link. Those that do not run
# as root use the python3 of /usr/bin. RUNLEVEL=1 keeps the machine's own sshd from
# starting: tests run the program alone.
.PHONY: mpi
mpi: ## Install Open MPI and OpenSSH for the tests, from Debian's packages
	@if ! command -v mpirun >/dev/null || ! /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || [ ! -x /usr/sbin/sshd ]; then \
		apt-get update -q && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends openmpi-bin python3-mpi4py openssh-server; \
	fi

# Examples of PyTorch run by the python3 and the torchrun of /usr/bin.
.PHONY: torch
torch: ## Install PyTorch for the tests, from Debian's packages
	@if [ ! -x /usr/bin/torchrun ]; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-torch; \
	fi

# Images of tests are made of a static BusyBox.
.PHONY: busybox
busybox: ## Install what the tests' images are made of, BusyBox and Python, from Debian's packages
	@if ! command -v busybox >/dev/null || ! test -e /usr/bin/python3; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends busybox-static python3; \
	fi

.PHONY: test
test: test-lint test-race test-cluster ## Run every test

TESTED = $(eval TESTED := $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))$(TESTED)

# The race detector is for packages that start goroutines or guard memory, they or
# their tests, and for stores, which share a suite that does. It is not for those that
# link the Kubernetes servers, which would all be compiled once more, nor for those
# whose tests watch other processes, nor for the arithmetic of the search library.
CONCURRENT := '\bgo (func\b|[a-z][A-Za-z.]*\()|errgroup\.|\bsync\.|\batomic\.|\bmake\(chan\b|synctest\.|observationtest\.'
SERVERS = $(eval SERVERS := $(shell go list -test -f '{{$$p := .ImportPath}}{{range .Deps}}{{if eq . "k8s.io/kubernetes/cmd/kube-apiserver/app"}}{{$$p}}{{"\n"}}{{end}}{{end}}' ./... | sed -n 's/\.test$$//p'))$(SERVERS)
WATCHERS := diwan.dev/diwan/e2e diwan.dev/diwan/internal/diwan diwan.dev/diwan/internal/treeguard diwan.dev/diwan/internal/testing/%
SEARCH := diwan.dev/diwan/optimize
RACE = $(filter-out $(SERVERS) $(WATCHERS) $(SEARCH),$(shell \
	go list -f '{{$$d := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$$d}}/{{.}}{{end}}{{range .TestGoFiles}} {{$$d}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$$d}}/{{.}}{{end}}' $(TESTED) | \
	while read -r package files; do if grep -qE $(CONCURRENT) $$files; then echo $$package; fi; done))

.PHONY: programs
programs: ## Link the programs that tests start, while nothing else runs
	go test -vet=off ./internal/testing/program

.PHONY: test-lint
test-lint: lint ## Tier 1: formatting, vet, staticcheck, generated files

.PHONY: test-race
test-race: programs ## Tier 2: what is concurrent, under the race detector
	CGO_ENABLED=1 go test -vet=off -race -timeout 40m $(RACE)
	CGO_ENABLED=1 go test -vet=off -race -run 'Study|Run|Tell|Resume|Progress|Saved' $(SEARCH)

# The end-to-end tests come first, since they take longest. Tests on clusters wait more
# than they compute, so more of them run at a time than there are processors.
PARALLEL ?= 3
.PHONY: test-cluster
test-cluster: programs ## Tier 3: the others: whole clusters, examples, macOS
	go test -vet=off -timeout 40m -parallel $(PARALLEL) diwan.dev/diwan/e2e $(filter-out diwan.dev/diwan/e2e $(RACE),$(TESTED))

.PHONY: soak
soak: programs ## Run what is long or needs the network: soaks, Kubeflow's own suites, frameworks, benchmarks
	go test -vet=off ./examples/elastic -run 'TestWorkersComeAndGo' -soak
	go test -vet=off ./e2e -run 'TestFaults$$|TestTrainingFaults$$|TestKilledImages$$|TestChart/kills' -soak -timeout 90m
	go test -vet=off ./e2e -run 'TestUpstream' -upstream -timeout 60m
	go test -vet=off ./e2e -run 'Frameworks' -frameworks -timeout 60m
	$(MAKE) fuzz
	$(MAKE) bench

FUZZTIME ?= 20s

.PHONY: fuzz
fuzz: ## Fuzz what reads images and models, each target for FUZZTIME
	@for package in $$(go list ./internal/platform/imagestore/... ./internal/platform/registry ./internal/models/signature ./internal/models/artifact ./internal/models/onnx ./internal/models/compress); do \
		targets=$$(go test -vet=off -list '^Fuzz' $$package | sed -n '/^Fuzz/p') || exit 1; \
		for target in $$targets; do \
			go test -vet=off $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x || exit 1; \
		done; \
	done

.PHONY: lint
lint: ## Check formatting, vet, staticcheck and generated files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "run gofmt on:"; echo "$$unformatted"; exit 1; fi
	go run -C tools ./lint ./...
	$(TOOL) helm lint --quiet --strict --namespace kubeflow charts/diwan
	$(TOOL) helm template diwan charts/diwan --namespace kubeflow --set replicas=1,store.sqlite.enabled=true,webhook.certManager.enabled=true \
		--set metrics.serviceMonitor.enabled=true,tracing.endpoint=http://collector:4317,crds.keep=false,collector.enabled=false >/dev/null

	@sum() { cat internal/platform/node/seccomp/table.go api/*/*/zz_generated.*.go api/*/*/*.pb.go config/crd/*.yaml config/*.yaml charts/diwan/values.schema.json charts/diwan/templates/*.{yaml,tpl} | sha256sum; }; before=$$(sum); $(MAKE) -s generate; \
	if [ "$$before" != "$$(sum)" ]; then echo "generated files were out of date; they have been made again: commit them"; exit 1; fi

.PHONY: generate
generate: ## Regenerate deep copies, CRDs, gRPC code and manifests
	$(TOOL) controller-gen object:headerFile=tools/header.go.txt crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd
	$(TOOL) controller-gen object:headerFile=tools/header.go.txt crd paths=./examples/domain/... output:crd:dir=examples/domain/retention/crd
	go run -C tools ./protogen api/manager/v1beta1/api.proto api/asktell/v1/asktell.proto api/observation/v1/store.proto
	go generate ./internal/platform/node/seccomp
	go run ./internal/diwan/manifest charts/diwan
	$(TOOL) helm template diwan charts/diwan --namespace kubeflow --set crds.install=false,runtimes.createNamespace=false > config/install.yaml

.PHONY: chart
chart: ## Package the Helm chart of VERSION, such as v1.2.3, into bin
	$(TOOL) helm package charts/diwan --version $(patsubst v%,%,$(VERSION)) --app-version $(VERSION) --destination bin

.PHONY: bench
bench: build ## Benchmark start, overhead and scale; writes bench/results
	go run ./bench

SCALE ?= standard
.PHONY: bench-search
bench-search: ## Benchmark the search library against its peers; writes bench/results
	go run ./bench/search -scale $(SCALE)

.PHONY: clean
clean: ## Remove build outputs
	rm -rf bin

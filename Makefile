# Diwan needs Go; the quickstart needs Python 3. Everything else is fetched.
#
# `make test` has three tiers, each a target of its own:
#   test-lint     gofmt, go vet, staticcheck, generated files are up to date
#   test-race     the libraries and the node under the race detector: all that
#                 does not link the Kubernetes servers
#   test-cluster  everything that runs a whole cluster: reconcilers, command
#                 line, examples, README commands, kill and hostile-input runs,
#                 and the build for macOS, not optimised, which is quicker
#
# The first one vets everything. The others leave that out: go test would vet
# all that is linked once more, with few of the checks.

export CGO_ENABLED := 0
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Kubernetes' own version is what clients are told by the API server.
KUBERNETES := v1.37.1
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37 \
	-X diwan.dev/diwan/internal/cli.version=$(VERSION) -X diwan.dev/diwan/internal/cli.commit=$(COMMIT)
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
run: build ## Build, then tune the quickstart's classifier on real data
	bin/diwan run examples/quickstart/experiment.yaml

.PHONY: build
build: ## Build bin/diwan, and what runs in the Pods of trials
	@echo "building bin/diwan (the first time takes some minutes)" >&2
	@go mod download
	@go build -v -ldflags '$(LDFLAGS)' -o bin/diwan ./cmd/diwan 2>&1 | $(COUNT)
	@go build -ldflags '-s -w' -o bin/ ./cmd/diwan-collector ./cmd/diwan-entry

# Tests start database servers of their own. Where these are not installed, they
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

.PHONY: test
test: test-lint test-race test-cluster ## Run every test

# Packages whose tests run a whole cluster: in their process, or by the binary.
LOCAL := "diwan.dev/diwan/internal/localcluster"
CLUSTER = diwan.dev/diwan/e2e diwan.dev/diwan/internal/localcluster diwan.dev/diwan/internal/processcluster $(shell go list -test -f \
	'{{$$p := .ImportPath}}{{range .Deps}}{{if or (eq . $(LOCAL)) (eq . (printf "%s [%s]" $(LOCAL) $$p))}}{{$$p}}{{"\n"}}{{end}}{{end}}' ./... | sed -n 's/\.test$$//p')
RACE = $(filter-out $(CLUSTER),$(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))

.PHONY: test-lint
test-lint: lint ## Tier 1: formatting, vet, staticcheck, generated files

.PHONY: test-race
test-race: ## Tier 2: libraries and node under the race detector
	CGO_ENABLED=1 go test -vet=off -race -timeout 40m $(RACE)

.PHONY: test-cluster
test-cluster: build ## Tier 3: whole clusters, examples, macOS build
	go test -vet=off -p 1 -timeout 40m $(sort $(CLUSTER))
	GOOS=darwin GOARCH=arm64 go build -gcflags='all=-N -l' -ldflags='-s -w' -o /dev/null ./cmd/diwan

.PHONY: lint
lint: ## Check formatting, vet, staticcheck and generated files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "run gofmt on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...
	$(TOOL) helm lint --quiet --strict --namespace kubeflow charts/diwan
	$(TOOL) helm template diwan charts/diwan --namespace kubeflow --set replicas=1,store.sqlite.enabled=true,webhook.certManager.enabled=true \
		--set metrics.serviceMonitor.enabled=true,tracing.endpoint=http://collector:4317,crds.keep=false,collector.enabled=false >/dev/null

	@sum() { cat api/*/*/zz_generated.*.go api/*/*/*.pb.go config/crd/*.yaml config/*.yaml charts/diwan/templates/*.yaml | sha256sum; }; before=$$(sum); $(MAKE) -s generate; \
	if [ "$$before" != "$$(sum)" ]; then echo "generated files were out of date; they have been made again: commit them"; exit 1; fi

.PHONY: generate
generate: ## Make deep copies, CRDs, gRPC code and manifests again
	$(TOOL) controller-gen object:headerFile=tools/header.go.txt crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd
	go run -C tools ./protogen api/manager/v1beta1/api.proto api/asktell/v1/asktell.proto api/observation/v1/store.proto
	go run ./internal/admission/manifest > charts/diwan/templates/webhooks.yaml
	$(TOOL) helm template diwan charts/diwan --namespace kubeflow --set crds.install=false,runtimes.createNamespace=false > config/install.yaml

.PHONY: chart
chart: ## Package the Helm chart of VERSION, such as v1.2.3, into bin
	$(TOOL) helm package charts/diwan --version $(patsubst v%,%,$(VERSION)) --app-version $(VERSION) --destination bin

.PHONY: bench
bench: build ## Measure start, overhead and scale; writes bench/results
	go run ./bench

SCALE ?= standard
.PHONY: bench-search
bench-search: ## Compare the search library with its peers; writes bench/results
	go run ./bench/search -scale $(SCALE)

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin

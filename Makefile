# Everything needed is Go, make and git. `make help` lists what can be done; e2e/Makefile has the test bed.
include common.mk
MORE_HELP := make down ends what up has started, make clean removes bin and dist. More tests, and the parts they run: make -C e2e help

TOOL := go tool -modfile=$(ROOT)/tools/go.mod

.PHONY: build
build: $(BIN)/fairlead ## Build bin/fairlead, static

# What the test bed does.
.PHONY: demo up down test-e2e test-longhorn test-ui e2e-nodes e2e-ceph
demo: ## Show the main job on an embedded real control plane; KUBECONFIG=... asks and uses yours. RECORD=FILE also writes it, as asciicast if FILE ends with .cast
up: ## Leave a cluster with Fairlead running; KUBECONFIG=.dev/kubeconfig. FENCING=1: with Ceph and fencing. LONGHORN=real: with Longhorn's own manager, LONGHORN=v1.8.1: of another version; NODES=real: a whole Longhorn on real nodes; both root and Linux
test-e2e: ## End to end, on the real control plane. One: E2E="-v -run TestNetworkInUse"
test-longhorn: ## Beside Longhorn's own manager (45 minutes); root and Linux. One: BESIDE="-test.v -test.run TestNetworkMatrix". LONGHORN=v1.8.1: another version
test-ui: ## The page of fairlead ui in a real Chromium (a minute or two); UI="-v -run TestEveryView", FAIRLEAD_SCREENSHOTS=FOLDER
e2e-nodes: ## A whole Longhorn on three real nodes (20 minutes); root and Linux. INSTALL=1 installs Debian's packages. One: NODES="-test.v -test.run TestLonghorn"
e2e-ceph: ## Fencing on a real Ceph of this machine; root and Debian's ceph packages, CEPH="-6 -slow"
demo up down test-e2e test-longhorn test-ui e2e-nodes e2e-ceph:
	@$(MAKE_E2E) $@

.PHONY: test
test: ## Pass all tests; make test-longhorn and make -C e2e test-long have more
	@rm -rf $(TIMES)/*
	@$(MAKE) test-unit
	@$(MAKE_E2E) -j3 IN_TURN=1 test-e2e test-longhorn-core
	@$(MAKE_E2E) test-monitoring
	@echo "the slowest tests:"; cat $(TIMES)/*.json | $(BIN)/gotestsum tool slowest --num 10

# Packages of the program with files that differ from main, or from the last commit.
CHANGED = $$(git diff --name-only --diff-filter=d $$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD) -- '*.go'; git ls-files -o --exclude-standard '*.go')

.PHONY: check
check: $(BIN)/gotestsum ## For a changed line: gofmt, vet and staticcheck of the changed packages, unit tests without the race detector (three minutes)
	@files="$(CHANGED)"; \
	  unformatted=$$([ -z "$$files" ] || gofmt -l $$files); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }; \
	  for module in . e2e; do \
	    cd $(ROOT)/$$module; \
	    packages=$$(for f in $$files; do echo "$(ROOT)/$$(dirname $$f)"; done | sort -u | xargs -r go list -e -f '{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' 2>/dev/null); \
	    [ -z "$$packages" ] || { echo "vet and staticcheck of" $$packages; go vet $$packages && $(TOOL) staticcheck $$packages; }; \
	  done
	$(UNIT_TESTS) ./...
	@$(MAKE_E2E) check
	@echo "make lint and make test do the rest, as CI does"

# Pure packages have no goroutines: the race detector would only make their random runs five times as slow.
PURE := $(shell cat internal/layout/pure.txt)
# Tests that take a minute each with the race detector ask testing.Short(), and files that it would disturb are built
# without it. Their packages are tested again without it.
AGAIN = $$(git grep --untracked -lE 'must[.]HaveTime|^//go:build !race' -- '*_test.go' ':!e2e' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)

.PHONY: test-unit
test-unit: $(BIN)/gotestsum ## Tests that need no cluster, and each benchmark once
	@$(if $(RACE),,echo "no C compiler: running without the race detector")
	$(call UNIT_TESTS,-pure) -timeout 20m $(PURE)
	$(WITH_RACE) $(call UNIT_TESTS,-race) $(if $(RACE),$(RACE) -short) -timeout 20m $$(go list ./... | grep -vxFf <(go list $(PURE)))
	$(if $(RACE),$(call UNIT_TESTS,-without-race) $(AGAIN))
	@$(MAKE_E2E) test-unit
	cd tools/release && go test -trimpath ./...
	cd charts/test && go test -count=1 -trimpath ./...
	@$(MAKE) bench ONCE=1

.PHONY: fuzz
fuzz: ## Fuzz everything that parses input from outside, FUZZTIME (1m) each
	@for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),1m) $$package; \
	  done; \
	done

.PHONY: soak
SOAK = -rapid.seed=$(or $(SEED),0) -rapid.checks=$(or $(CHECKS),20000)
soak: ## Random runs of the models that nobody has seen yet, CHECKS (20000) of them; SEED repeats one
	go test -timeout 60m ./internal/fence -run '^TestFenceInvariants$$' $(SOAK)
	go test -timeout 60m ./internal/fence/taint -run '^TestTaintingHoldsItsBounds$$' $(SOAK)
	go test -timeout 60m ./internal/settings/planner ./internal/settings/rollout -run 'Invariants$$' $(SOAK)
	go test -timeout 60m ./controllers/workloads -run '^TestWorkloadsAreRestartedOnceAndOnlyForDeadMounts$$' $(SOAK)

.PHONY: explore
explore: ## Every reachable state of fencing in a small world, each world for EXPLORE_FOR (20m) at most; 8 GiB of memory
	go test ./internal/fence -run '^TestExplore$$' -v -timeout 6h -explore $(or $(EXPLORE_FOR),20m)

BENCHMARKS = $$(git grep --untracked -l '^func Benchmark' -- '*_test.go' ':!e2e' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)

.PHONY: bench
bench: ## Ratios against controller-runtime's own handlers, side by side, and what grows with a cluster. ONCE=1: only whether they run
	go run ./bench $(if $(ONCE),-rounds 1)
	go test -run '^$$' -bench . $(if $(ONCE),-benchtime 1x) $(BENCHMARKS)

.PHONY: generate
generate: ## Write generated code and manifests anew
	$(TOOL) controller-gen object paths=./api/... paths=./internal/longhorn paths=./internal/reads/csiaddons
	$(TOOL) controller-gen crd paths=./api/v1alpha1 output:crd:dir=manifests/crds
	go run ./manifests/generate manifests charts/fairlead

# Most modules are vetted with the flags they are built with: then they share one build cache.
VET_FLAGS = case $$folder in .|e2e|e2e/controlplane) ;; *) echo -trimpath ;; esac

.PHONY: lint
lint: ## gofmt, vet, staticcheck, tidy modules, generated code up to date
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "not gofmt'ed: $$unformatted"; exit 1; fi
	@for modfile in $$(git ls-files -co --exclude-standard '*go.mod' 'e2e/longhorn/instances/v*.mod'); do \
	  folder=$$(dirname $$modfile); flag=-modfile=$$(basename $$modfile); echo "vet and tidy: $$modfile"; \
	  (cd $$folder && packages=$$(go list $$flag ./...) \
	    && { [ -z "$$packages" ] || go vet $$($(VET_FLAGS)) $$flag ./...; } && go mod tidy -diff $$flag) || exit 1; \
	done
	cd e2e && go vet -tags long .
	for module in . e2e; do (cd $$module && $(TOOL) staticcheck ./...) || exit 1; done
	@before=$$(git status --porcelain; git diff | sha1sum); $(MAKE) -s generate; \
	  after=$$(git status --porcelain; git diff | sha1sum); \
	  if [ "$$before" != "$$after" ]; then echo "generated files are not up to date: run make generate and commit"; git status --short; exit 1; fi

# Tools of the release are a module of their own: they would raise the versions of the other tools.
.PHONY: release
release: ## Write dist/: static binaries, image, manifests, Helm chart, kubectl plugin, SBOMs, SHA256SUMS; needs no docker. IMAGE=, NODE_IMAGE=NAME@sha256:...
	cd tools/release && go run -trimpath . -version $(VERSION) -dist $(ROOT)/dist -root $(ROOT) \
	  $(if $(IMAGE),-image $(IMAGE)) $(if $(NODE_IMAGE),-node-image $(NODE_IMAGE))

$(BIN)/govulncheck: tools/release/go.mod
	cd tools/release && go build -trimpath -o $@ golang.org/x/vuln/cmd/govulncheck

.PHONY: vuln
vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in the code that is called; says so where the database can't be had. GOVULNDB=URL
	@if ! $(BIN)/govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./... 2>$(BIN)/govulncheck.log; then \
	  cat $(BIN)/govulncheck.log >&2; grep -q '^govulncheck: fetching vulnerabilities: ' $(BIN)/govulncheck.log || exit 1; \
	  echo "NOTHING WAS CHECKED: Go's vulnerability database can't be had here (GOVULNDB names another)"; fi

.PHONY: image
image: ## Write dist/image/fairlead-image.tar, an OCI archive for amd64 and arm64; needs no docker. PUSH=REGISTRY/NAME pushes it; ARCH=amd64: for amd64 alone
	cd tools/release && go run -trimpath . -image-only -version $(VERSION) -dist $(ROOT)/dist/image -root $(ROOT) \
	  $(if $(ARCH),-architecture $(ARCH)) $(if $(IMAGE),-image $(IMAGE)) $(if $(PUSH),-push $(PUSH))

.PHONY: clean
clean:
	rm -rf $(BIN) $(ROOT)/dist

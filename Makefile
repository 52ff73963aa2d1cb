# Everything needed is Go, make and git. `make help` lists what can be done.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN := $(CURDIR)/bin
GO_SOURCES := $(shell git ls-files -co --exclude-standard '*.go' go.mod go.sum 2>/dev/null)
LDFLAGS := -X github.com/fairlead-io/fairlead/cli.Version=$(VERSION)
TOOL := go tool -modfile=tools/go.mod
# The race detector needs a C compiler; where there is none, tests run without it and say so.
RACE := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

# Without cgo, but for the race detector: then all that is built shares one build cache.
export CGO_ENABLED := 0
WITH_RACE := $(if $(RACE),CGO_ENABLED=1,)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

$(BIN)/fairlead: $(GO_SOURCES)
	@echo "building $@ (a minute or two the first time)"
	go build -trimpath -ldflags "-s -w $(LDFLAGS)" -o $@ ./cmd/fairlead

# What tests run: with the race detector.
$(BIN)/fairlead-test: $(GO_SOURCES)
	@echo "building $@"
	$(WITH_RACE) go build $(RACE) -ldflags "$(LDFLAGS)" -o $@ ./cmd/fairlead

$(BIN)/dev: $(GO_SOURCES)
	@echo "building $@"
	go build -trimpath -o $@ ./e2e/dev

$(BIN)/scale: $(GO_SOURCES)
	@echo "building $@"
	go build -trimpath -o $@ ./e2e/scale

# Programs of the tests, each a module of its own.
$(BIN)/controlplane: $(filter e2e/controlplane/%,$(GO_SOURCES)) e2e/controlplane/go.mod
	cd e2e/controlplane && go build -trimpath -o $@ ./cmd/controlplane

$(BIN)/gotestsum: tools/go.mod
	@mkdir -p $(BIN)/tests
	go build -modfile=tools/go.mod -trimpath -o $@ gotest.tools/gotestsum

$(BIN)/nfsserver: $(wildcard e2e/nfsserver/*)
	cd e2e/nfsserver && go build -trimpath -o $@ .

$(BIN)/helm: charts/test/go.mod
	@echo "building $@ (a minute or two the first time)"
	cd charts/test && go build -trimpath -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

$(BIN)/nfsmount: $(wildcard e2e/nfsmount/*)
	cd e2e/nfsmount && go build -trimpath -o $@ .

$(BIN)/nodeinit: $(wildcard e2e/nodes/nodeinit/*)
	go build -trimpath -o $@ ./e2e/nodes/nodeinit

# The image as make image writes it, for this machine alone.
$(BIN)/image/fairlead-image.tar: $(GO_SOURCES)
	@cd tools/release && go run -trimpath . -image-only -version dev -architecture $$(go env GOARCH) -dist $(BIN)/image -root $(CURDIR)

.PHONY: build
build: $(BIN)/fairlead ## Build bin/fairlead, static

RECORDED := $(if $(RECORD),RECORD=$(abspath $(RECORD)))
.PHONY: demo
demo: $(BIN)/fairlead $(BIN)/dev $(BIN)/nfsserver ## Show the main job on an embedded real control plane; KUBECONFIG=... asks and uses yours. RECORD=FILE also writes it, as asciicast if FILE ends with .cast
	$(RECORDED) FAIRLEAD_BINARY=$(BIN)/fairlead $(BIN)/dev demo
	$(if $(KUBECONFIG),,$(RECORDED) FAIRLEAD_BINARY=$(BIN)/fairlead $(BIN)/dev nfs)

.PHONY: up
up: $(BIN)/fairlead $(BIN)/dev ## Leave a cluster with Fairlead running; KUBECONFIG=.dev/kubeconfig. FENCING=1: with Ceph and fencing. LONGHORN=real: with Longhorn's own manager, LONGHORN=v1.8.1: of another version; NODES=real: a whole Longhorn on real nodes; both root and Linux
	@$(if $(LONGHORN),$(BIN)/dev can-run $(LONGHORN) && $(MAKE) --no-print-directory control-plane longhorn)
	@$(if $(NODES),$(BIN)/dev can-run nodes-$(NODES) && $(MAKE) --no-print-directory node-programs)
	env -u KUBECONFIG FAIRLEAD_BINARY=$(BIN)/fairlead $(if $(NODES),FAIRLEAD_CONTROLPLANE=$(BIN)/controlplane $(WITH_NODES)) $(BIN)/dev up $(if $(NODES),nodes-$(NODES),$(LONGHORN))

.PHONY: down
down: $(BIN)/dev ## End what up has started
	$(BIN)/dev down

.PHONY: control-plane
control-plane: $(BIN)/controlplane ## Build the control plane into the cache (minutes, once). Another Kubernetes, here and in all tests: K8S=v1.31.1
	@echo "looking for the control plane (building what is missing takes minutes, once)"
	$(BIN)/controlplane build

.PHONY: coredns
coredns: $(BIN)/controlplane ## Build CoreDNS into the cache (a minute or two, once; says so if it does)
	@$(BIN)/controlplane build $@ >/dev/null

.PHONY: csiaddons
csiaddons: $(BIN)/controlplane ## Build csi-addons into the cache (a few minutes, once; says so if it does)
	@$(BIN)/controlplane build $@ >/dev/null

.PHONY: longhorn
longhorn: $(BIN)/controlplane ## Build longhorn-manager and the CSI attacher into the cache (six minutes, once; says so if it does). LONGHORN=v1.8.1: another version
	@nice $(BIN)/controlplane build $@$(addprefix @,$(filter v%,$(LONGHORN))) >/dev/null

.PHONY: csisidecars
csisidecars: $(BIN)/controlplane ## Build the CSI sidecars into the cache (four minutes, once; says so if it does)
	@nice $(BIN)/controlplane build $@ >/dev/null

.PHONY: longhornpods
longhornpods: $(BIN)/controlplane ## Build engine, instance and share manager into the cache (a few minutes, once; says so if it does)
	@nice $(BIN)/controlplane build $@ >/dev/null

.PHONY: nodeprograms
nodeprograms: $(BIN)/controlplane ## Build kubelet, kube-proxy, Multus and CNI plugins into the cache (five minutes, once; says so if it does)
	@nice $(BIN)/controlplane build $@ >/dev/null

# Tests print their names and times; what they log is printed if they fail, or if -v is among their flags.
# Each target keeps all of it in bin/tests.
TIMES := $(BIN)/tests
GOTESTSUM = $(BIN)/gotestsum --format $(if $(filter -v -test.v,$(1)),standard-verbose,testname) --hide-summary output --jsonfile $(TIMES)/$@.json
# Some test programs are run without go test, which would hide why they cannot run: by their folder, flags and environment.
RUN_TESTS = cd $(1) && $(3) $(BIN)/$(notdir $(1)).test -test.v=test2json $(2) | go tool test2json -t -p $(1) | $(call GOTESTSUM,$(2)) --raw-command -- cat

TEST_PROGRAMS := $(addprefix $(BIN)/,fairlead fairlead-test dev controlplane gotestsum)
WITH_PROGRAMS := FAIRLEAD_BINARY=$(BIN)/fairlead-test FAIRLEAD_RELEASE_BINARY=$(BIN)/fairlead FAIRLEAD_CONTROLPLANE=$(BIN)/controlplane FAIRLEAD_HELM=$(BIN)/helm FAIRLEAD_DEV=$(BIN)/dev

.PHONY: test
test: ## Pass all tests; make test-longhorn and test-long have more
	@rm -rf $(TIMES)/*
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory -j3 IN_TURN=1 test-e2e test-longhorn-core
	@$(MAKE) --no-print-directory test-monitoring
	@echo "the slowest tests:"; cat $(TIMES)/*.json | $(BIN)/gotestsum tool slowest --num 10

# Of tests that mostly wait, one target runs beside test-e2e at a time; what the later ones need is built meanwhile.
ifdef IN_TURN
test-csi-sanity: | test-controlplane
test-csi-node: | test-csi-sanity
e2e-nfs: | test-csi-node
test-longhorn-core: | e2e-nfs
endif

.PHONY: test-times
test-times: $(BIN)/gotestsum ## Times of all tests of the last run, the slowest first
	@cat $(TIMES)/*.json | $(BIN)/gotestsum tool slowest --threshold 10ms

# They have no goroutines: the race detector would only make their random runs five times as slow.
PURE := fairlead/(internal/)?(mutators|validators|storage|settings|fence|nfs/(assign|health|ondat|plan|publish|spec))(/(catalog|rollout|plan|taint|builtin|longhorn|longhorn/components))?$$
# Tests in one goroutine that take a minute each with the race detector, and tests that it would disturb.
WITHOUT_RACE := TestPlansGrowLinearly|TestTaintCountsAtOnceForManyHolders|TestPagedListsEqualWholeLists|TestIncidentCostsTheSameInLargeClusters|TestRackCostsAFewRequestsForEachNode|TestReviewsReadLongListsInPages|TestAddressesHoldInAnyOrder|TestCrashBeforeARevertedValueResumes|TestChangingVolumesCauseFewWrites|TestA12KBPodCostsAtMost64Allocations|TestDecodedReviewsTakeNoMoreThanIsCounted|TestCrashDuringServiceReplacementResumes|TestServersThatComeAndGoGetNewNodes|TestWorkloadsAreRestartedOnceAndOnlyForDeadMounts
NEED_CLUSTER := /e2e(/(beside|nfs|nodes|csinode))?$$

# Packages of the program with files that differ from main, or from the last commit.
CHANGED = $$(git diff --name-only --diff-filter=d $$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD) -- '*.go'; git ls-files -o --exclude-standard '*.go')

.PHONY: check
check: $(BIN)/gotestsum ## For a changed line: gofmt, vet and staticcheck of the changed packages, unit tests without the race detector (three minutes)
	@files="$(CHANGED)"; \
	  unformatted=$$([ -z "$$files" ] || gofmt -l $$files); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }; \
	  packages=$$(for f in $$files; do echo "./$$(dirname $$f)"; done | sort -u | xargs -r go list -e -f '{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' 2>/dev/null); \
	  [ -z "$$packages" ] || { echo "vet and staticcheck of" $$packages; go vet $$packages && $(TOOL) staticcheck $$packages; }
	$(BIN)/gotestsum $(UNIT_FORMAT) --jsonfile $(TIMES)/check.json -- $$(go list ./... | grep -v -E '$(NEED_CLUSTER)')
	@echo "make lint and make test do the rest, as CI does"

.PHONY: test-unit
test-unit: $(BIN)/gotestsum ## Tests that need no cluster
	@$(if $(RACE),,echo "no C compiler: running without the race detector")
	$(BIN)/gotestsum $(UNIT_FORMAT) --jsonfile $(TIMES)/test-pure.json -- $$(go list ./... | grep -E '$(PURE)')
	$(BIN)/gotestsum $(UNIT_FORMAT) --jsonfile $(TIMES)/test-without-race.json -- -run '^($(WITHOUT_RACE))$$' $$(git grep -lE '^func ($(WITHOUT_RACE))[(]' -- '*_test.go' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u)
	$(WITH_RACE) $(BIN)/gotestsum $(UNIT_FORMAT) --jsonfile $(TIMES)/test-race.json -- $(RACE) $(if $(RACE),-skip '^($(WITHOUT_RACE))$$') -timeout 20m $$(go list ./... | grep -v -E -e '$(PURE)' -e '$(NEED_CLUSTER)')
	cd e2e/csiaddons && go test -trimpath ./endpoint
	cd e2e/ondat/goapi && go test -trimpath ./...
	cd e2e/nfsattacher && go test -trimpath ./...
	cd e2e/longhornpods/sparsetools && go test -trimpath ./...
	cd tools/release && go test -trimpath ./...
	cd charts/test && go test -count=1 -trimpath ./...

UNIT_FORMAT := --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,output

.PHONY: test-csi-sanity
test-csi-sanity: $(BIN)/gotestsum ## csi-sanity, the conformance tests of the CSI spec, against the CSI driver
	@echo "testing the CSI driver for conformance (seconds; a minute the first time)"
	@cd e2e/csisanity && $(call GOTESTSUM,) -- -trimpath -count=1 . # the driver is built by the test, unseen by the cache

.PHONY: test-ui
test-ui: $(BIN)/gotestsum ## The page of fairlead ui in a real Chromium (a minute or two); UI="-v -run TestEveryView", FAIRLEAD_SCREENSHOTS=FOLDER
	@if command -v chromium chromium-browser google-chrome >/dev/null; then \
	  echo "testing the page in Chromium"; go build -trimpath -o $(BIN)/uicluster ./e2e/uicluster; \
	  cd e2e/ui && FAIRLEAD_UICLUSTER=$(BIN)/uicluster $(call GOTESTSUM,$(UI)) -- -trimpath -count=1 . $(UI); \
	else echo "THE PAGE IS NOT TESTED IN A BROWSER: no Chromium is installed"; fi

.PHONY: test-csi-node
test-csi-node: $(BIN)/fairlead $(BIN)/gotestsum $(BIN)/nfsserver $(BIN)/nfsmount ## The CSI node plugin with real mounts of servers that hang and die, NFSv4 with nfs-ganesha (a minute); root and Linux
	@go test -c -o $(BIN)/csinode.test ./e2e/csinode
	@echo "mounting NFS shares, in namespaces of their own"
	@$(call RUN_TESTS,e2e/csinode,-test.timeout 5m $(CSINODE))

.PHONY: test-controlplane
test-controlplane: control-plane $(BIN)/gotestsum ## Tests of the control plane itself
	@echo "testing the control plane itself (a minute or two)"
	@cd e2e/controlplane && $(BIN)/gotestsum $(UNIT_FORMAT) --jsonfile $(TIMES)/$@.json -- -trimpath $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)

.PHONY: test-e2e
test-e2e: control-plane coredns csiaddons $(TEST_PROGRAMS) $(BIN)/helm ## End to end, on the real control plane. One: E2E="-v -run TestNetworkInUse"
	@echo "testing end to end, $(CLUSTERS) clusters at a time (ten minutes on two cores)"
	@$(WITH_RACE) $(WITH_PROGRAMS) FAIRLEAD_SCRAPES=$(SCRAPES) $(call GOTESTSUM,$(E2E)) -- $(RACE) -count=1 -parallel $(CLUSTERS) -timeout 60m ./e2e $(E2E)

# Clusters mostly wait.
CLUSTERS ?= 3
# Metrics of a real run, for test-monitoring.
SCRAPES := $(TIMES)/scrapes

.PHONY: test-monitoring
test-monitoring: $(BIN)/gotestsum ## Alerts and dashboard in Prometheus' own engine (seconds; a minute or two the first time), on metrics of the last test-e2e
	@echo "evaluating alerts and dashboard (building Prometheus' engine takes a minute or two, once)"
	@cd e2e/monitoring && FAIRLEAD_SCRAPES=$(SCRAPES) $(call GOTESTSUM,) -- -trimpath -count=1 .

.PHONY: test-longhorn
.PHONY: test-longhorn-core
test-longhorn: ## Beside Longhorn's own manager (45 minutes); root and Linux. One: BESIDE="-test.v -test.run TestNetworkMatrix". LONGHORN=v1.8.1: another version
test-longhorn-core: ## The scenarios beside Longhorn's own manager that make test runs (eight minutes)
test-longhorn-core: BESIDE = -test.run 'TestSharedVolumeIsServed|TestVolumeCreatedWhileClientsRoll|TestFairleadInstalled|TestInstanceManager|$(DANGER_ZONE_CORE)'
test-longhorn test-longhorn-core: control-plane longhorn $(TEST_PROGRAMS)
	@go test -c -o $(BIN)/beside.test ./e2e/beside
	@echo "testing beside longhorn-manager, in namespaces of their own"
	@$(call RUN_TESTS,e2e/beside,-test.timeout 90m $(BESIDE),$(WITH_PROGRAMS))

DANGER_ZONE_CORE = TestDangerZone/with_Fairlead/^(priority-class|guaranteed-instance-manager-cpu|storage-network[+]storage-network-for-rwx-volume-enabled)_rwo

.PHONY: test-long
test-long: test-kubernetes soak test-platforms ## What takes long: test-kubernetes, soak, test-platforms, the danger zone of Longhorn 1.10 to 1.12.1 (half an hour), 20 random minutes beside Longhorn
	@$(WITH_RACE) $(WITH_PROGRAMS) $(call GOTESTSUM,) -- $(RACE) -count=1 -tags long -timeout 90m ./e2e -run 'TestDangerZoneOfNewerReleases'
	@$(MAKE) --no-print-directory test-longhorn BESIDE="-test.v -test.run TestInvariantsHoldBesideLonghorn -for 20m"

.PHONY: test-kubernetes
test-kubernetes: control-plane csiaddons $(TEST_PROGRAMS) ## What Kubernetes does without Fairlead, by its own timeouts (seven minutes)
	@$(WITH_RACE) $(WITH_PROGRAMS) $(call GOTESTSUM,) -- $(RACE) -count=1 -tags long -parallel 2 -timeout 30m ./e2e -run 'TestRefusingTheDetachAttachesTwice|TestForcedDetachGivesTwoWriters'

.PHONY: e2e-nfs
e2e-nfs: control-plane $(TEST_PROGRAMS) $(BIN)/nfsserver ## NFS services on real servers, without mounts; root and Linux. One: NFS="-test.v -test.run X"
	@go test -c -o $(BIN)/nfs.test ./e2e/nfs
	@echo "testing NFS services, in namespaces of their own"
	@$(call RUN_TESTS,e2e/nfs,-test.timeout 30m $(NFS),$(WITH_PROGRAMS))

.PHONY: node-programs
node-programs: control-plane coredns csiaddons longhorn longhornpods csisidecars nodeprograms $(BIN)/nodeinit $(BIN)/nfsmount $(BIN)/image/fairlead-image.tar

WITH_NODES := FAIRLEAD_NODEINIT=$(BIN)/nodeinit FAIRLEAD_NFSMOUNT=$(BIN)/nfsmount FAIRLEAD_IMAGE=$(BIN)/image/fairlead-image.tar

.PHONY: $(BIN)/nodes.test
$(BIN)/nodes.test:
	@go test -c -o $@ ./e2e/nodes

.PHONY: node-packages
node-packages: $(BIN)/nodes.test ## Install Debian's packages that e2e-nodes needs; root
	@packages=$$($(BIN)/nodes.test -packages); if [ -n "$$packages" ]; then \
	  install() { apt-get install -y --no-install-recommends $$packages; }; echo "installing $$packages"; \
	  { install || { apt-get update && install; }; } >$(BIN)/install.log 2>&1 || echo "could not be installed, see $(BIN)/install.log: $$packages"; fi

.PHONY: e2e-nodes
e2e-nodes: $(if $(INSTALL),node-packages) $(BIN)/nodes.test $(TEST_PROGRAMS) ## A whole Longhorn on three real nodes (20 minutes); root and Linux. INSTALL=1 installs Debian's packages. One: NODES="-test.v -test.run TestLonghorn"
	@if why=$$($(BIN)/nodes.test -unavailable) && [ -n "$$why" ]; then echo "NOTHING IS TESTED ON REAL NODES: $$why"; else \
	  $(MAKE) --no-print-directory node-programs && echo "testing on real nodes, in namespaces of their own" && \
	  $(MAKE) --no-print-directory -j2 $(if $(NODES),e2e-nodes-chosen,e2e-nodes-1 e2e-nodes-2); fi

# Two clusters at a time, of about the same duration. More of them would wait for two cores.
.PHONY: e2e-nodes-1 e2e-nodes-2 e2e-nodes-chosen
e2e-nodes-1: CHOICE = -test.run '^(TestLonghorn|TestNFSServices)$$'
e2e-nodes-2: CHOICE = -test.skip '^(TestLonghorn|TestNFSServices)$$'
e2e-nodes-chosen: CHOICE = $(NODES)
e2e-nodes-1 e2e-nodes-2 e2e-nodes-chosen:
	@$(call RUN_TESTS,e2e/nodes,-test.timeout 60m $(CHOICE),$(WITH_PROGRAMS) $(WITH_NODES))

.PHONY: bench-nfs
bench-nfs: control-plane $(BIN)/fairlead $(BIN)/nfsserver $(BIN)/nfsmount ## Attachments per second on 100 nodes, beside a stand-in that works as the GKE driver does; root and Linux
	go test -c -o $(BIN)/nfs.test ./e2e/nfs
	@echo "attaching 300 volumes twice (a minute)"
	cd e2e/nfs && FAIRLEAD_BINARY=$(BIN)/fairlead $(BIN)/nfs.test -test.run '^$$' -test.bench Attachments -test.benchtime 1x

.PHONY: e2e-ceph
e2e-ceph: $(BIN)/fairlead ## Fencing on a real Ceph of this machine; root and Debian's ceph packages, CEPH="-6 -slow"
	go build -trimpath -o $(BIN)/ceph-fencing ./e2e/ceph/fencing
	@echo "starting a Ceph and fencing its clients (five minutes)"
	$(BIN)/ceph-fencing -fairlead $(BIN)/fairlead $(CEPH)

.PHONY: test-platforms
test-platforms: ## Whether the command line compiles for macOS and Windows
	GOOS=darwin GOARCH=arm64 go build -trimpath -o /dev/null ./cmd/fairlead
	GOOS=windows GOARCH=amd64 go build -trimpath -o /dev/null ./cmd/fairlead

.PHONY: fuzz
fuzz: ## Fuzz everything that parses input from outside, FUZZTIME (1m) each
	@for package in $$(go list ./... | grep -v /e2e); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),1m) $$package; \
	  done; \
	done

.PHONY: soak
SOAK = -rapid.seed=$(or $(SEED),0) -rapid.checks=$(or $(CHECKS),20000)
soak: ## Random runs of the models that nobody has seen yet, CHECKS (20000) of them; SEED repeats one
	go test -timeout 60m ./internal/fence -run '^TestFenceInvariants$$' $(SOAK)
	go test -timeout 60m ./internal/fence/taint -run '^TestTaintingHoldsItsBounds$$' $(SOAK)
	go test -timeout 60m ./internal/settings/... -run 'Invariants$$' $(SOAK)
	go test -timeout 60m ./controllers/workloads -run '^TestWorkloadsAreRestartedOnceAndOnlyForDeadMounts$$' $(SOAK)

.PHONY: bench
bench: ## Ratios against controller-runtime's own handlers, side by side, and what grows with a cluster
	go run ./bench
	go test ./cli/plan -run '^$$' -bench '^BenchmarkPlan$$'
	go test ./cli/ui -run '^$$' -bench '^BenchmarkViews$$' -benchtime 5x
	go test ./internal/nfs/assign -run '^$$' -bench .
	go test ./internal/nfs/rpc -run '^$$' -bench '^BenchmarkProbe$$'
	go test ./internal/nfs/rpc -run '^$$' -bench '^BenchmarkThousandBackends$$' -benchtime 2x

.PHONY: bench-scale
bench-scale: control-plane $(BIN)/fairlead $(BIN)/scale ## 500 nodes, 5,000 workloads, and a tenth of it (half an hour); SCALE="-nodes 5,50" (four minutes); what fencing costs: SCALE=-fencing (ten minutes, 6 GiB of memory)
	FAIRLEAD_BINARY=$(BIN)/fairlead $(BIN)/scale $(SCALE)

.PHONY: generate
generate: ## Write generated code and manifests anew
	$(TOOL) controller-gen object paths=./api/... paths=./internal/longhorn paths=./internal/reads/csiaddons
	$(TOOL) controller-gen crd paths=./api/v1alpha1 output:crd:dir=manifests/crds
	go run ./manifests/generate manifests charts/fairlead

# CoreDNS, csi-addons, the CSI sidecars and Longhorn are vetted with the flags they are built with: then they share one build cache.
.PHONY: lint
lint: ## gofmt, vet, staticcheck, tidy modules, generated code up to date
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "not gofmt'ed: $$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags long ./e2e
	cd e2e/controlplane && go vet ./...
	cd e2e/coredns && go vet -trimpath ./...
	cd e2e/csiaddons && go vet -trimpath ./...
	cd e2e/ondat/goapi && go vet -trimpath ./...
	cd e2e/csisanity && go vet -trimpath ./...
	cd e2e/nfsattacher && go vet -trimpath ./...
	cd e2e/ui && go vet -trimpath ./...
	cd e2e/longhorn/instances && for m in go.mod v*.mod; do go vet -trimpath -modfile=$$m . || exit 1; done
	cd e2e/nodeprograms && go vet -trimpath ./...
	cd e2e/csisidecars && go vet -trimpath ./...
	for m in . iscsi sparsetools spdk; do (cd e2e/longhornpods/$$m && go vet -trimpath ./...); done
	cd e2e/nfsserver && go vet -trimpath ./...
	cd e2e/nfsmount && go vet -trimpath ./...
	cd e2e/monitoring && go vet -trimpath ./...
	cd tools/release && go vet -trimpath ./...
	cd charts/test && go vet -trimpath ./...
	$(TOOL) staticcheck ./...
	go mod tidy -diff
	cd e2e/controlplane && go mod tidy -diff
	cd e2e/coredns && go mod tidy -diff
	cd e2e/csiaddons && go mod tidy -diff
	cd e2e/ondat/goapi && go mod tidy -diff
	cd e2e/csisanity && go mod tidy -diff
	cd e2e/nfsattacher && go mod tidy -diff
	cd e2e/ui && go mod tidy -diff
	cd e2e/longhorn/instances && for m in go.mod v*.mod; do go mod tidy -diff -modfile=$$m || exit 1; done
	cd e2e/nodeprograms && go mod tidy -diff
	cd e2e/nfsserver && go mod tidy -diff
	cd e2e/nfsmount && go mod tidy -diff
	cd e2e/monitoring && go mod tidy -diff
	cd e2e/longhorn/attacher && go mod tidy -diff
	cd e2e/csisidecars && go mod tidy -diff
	cd e2e/csisidecars/resizer && go mod tidy -diff
	for m in . iscsi sparsetools spdk; do (cd e2e/longhornpods/$$m && go mod tidy -diff); done
	cd tools/release && go mod tidy -diff
	cd charts/test && go mod tidy -diff
	@before=$$(git status --porcelain; git diff | sha1sum); $(MAKE) --no-print-directory -s generate; \
	  after=$$(git status --porcelain; git diff | sha1sum); \
	  if [ "$$before" != "$$after" ]; then echo "generated files are not up to date: run make generate and commit"; git status --short; exit 1; fi

# Tools of the release are a module of their own: they would raise the versions of the other tools.
.PHONY: release
release: ## Write dist/: static binaries, image, manifests, Helm chart, kubectl plugin, SBOMs, SHA256SUMS; needs no docker. IMAGE=, NODE_IMAGE=NAME@sha256:...
	cd tools/release && go run -trimpath . -version $(VERSION) -dist $(CURDIR)/dist -root $(CURDIR) \
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
	cd tools/release && go run -trimpath . -image-only -version $(VERSION) -dist $(CURDIR)/dist/image -root $(CURDIR) \
	  $(if $(ARCH),-architecture $(ARCH)) $(if $(IMAGE),-image $(IMAGE)) $(if $(PUSH),-push $(PUSH))

.PHONY: clean
clean: ## Remove what was built here; the control plane's cache stays
	rm -rf $(BIN) $(CURDIR)/dist

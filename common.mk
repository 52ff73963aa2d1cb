# What the Makefiles of the root and of e2e share.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BIN := $(ROOT)/bin
MAKE_E2E = $(MAKE) -C $(ROOT)/e2e
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X github.com/fairlead-io/fairlead/cli.Version=$(VERSION)
# The race detector needs a C compiler; where there is none, tests run without it and say so.
RACE := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

# Without cgo, but for the race detector: then all that is built shares one build cache.
export CGO_ENABLED := 0
WITH_RACE := $(if $(RACE),CGO_ENABLED=1,)

files = $(addprefix $(ROOT)/,$(shell git -C $(ROOT) ls-files -co --exclude-standard $(1) 2>/dev/null))
PRODUCT := $(call files,'*.go' go.mod go.sum ':!e2e')

.PHONY: help
help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo '$(MORE_HELP)'

$(BIN)/fairlead: $(PRODUCT)
	@echo "building $@ (a minute or two the first time)"
	cd $(ROOT) && go build -trimpath -ldflags "-s -w $(LDFLAGS)" -o $@ ./cmd/fairlead

$(BIN)/gotestsum: $(ROOT)/tools/go.mod
	cd $(ROOT) && go build -modfile=tools/go.mod -trimpath -o $@ gotest.tools/gotestsum

# Tests print their names and times; what they log is printed if they fail, or if -v is among their flags.
# Each target keeps all of it in bin/tests.
TIMES := $(BIN)/tests
GOTESTSUM = $(BIN)/gotestsum --format $(if $(filter -v -test.v,$(1)),standard-verbose,testname) --hide-summary output --jsonfile $(TIMES)/$@.json
# For tests of which there are thousands: packages, and tests that fail. The argument ends the name of the file.
UNIT_TESTS = $(BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,output --jsonfile $(TIMES)/$@$(1).json --

$(TIMES):
	@mkdir -p $@
$(BIN)/gotestsum: | $(TIMES)

# Everything here but `make console` needs Go and a C compiler (DuckDB is linked
# statically). A browser is not needed: the console's tests are skipped without
# Chromium and the packages of console/web. Tests against Kafka and ClickHouse use the servers of
# `make services-up` and are skipped without them.

GO ?= go
FUZZTIME ?= 30s

.PHONY: pictures build release console test check lint bench fuzz long services-up services-down cluster-up cluster-down

build:
	$(GO) build -ldflags '-X main.release=$(VERSION)' -o bin/muster ./cmd/muster

# An archive of the binary for this machine's system and processor, and the image, of
# the release that VERSION names: make release VERSION=v0.1.0. The binary needs the
# system's C library (glibc 2.28 or later) and no other. Without Docker there is no image.
VERSION ?= $(shell git describe --tags --always --dirty)
RELEASE = muster-$(VERSION)-$(shell $(GO) env GOOS)-$(shell $(GO) env GOARCH)
release:
	rm -rf bin/$(RELEASE) && mkdir -p bin/$(RELEASE)
	$(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.release=$(VERSION) -extldflags "-static-libstdc++ -static-libgcc"' -o bin/$(RELEASE)/muster ./cmd/muster
	cp LICENSE README.md CHANGELOG.md deploy/muster.service bin/$(RELEASE)/
	tar -C bin --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(shell git log -1 --format=%ct) -czf bin/$(RELEASE).tar.gz $(RELEASE)
	cd bin && sha256sum $(RELEASE).tar.gz > $(RELEASE).tar.gz.sha256
	if command -v docker >/dev/null; then docker build --build-arg VERSION=$(VERSION) --tag muster:$(VERSION) .; else echo "no Docker here: the image is not made"; fi

# The web console: from console/web to console/dist, which is committed and
# embedded. Needs Node.js 20 or later with npm. Two builds are the same, byte for byte.
console: console/web/node_modules
	cd console/web && npm run --silent types && npm run --silent check && npm run --silent test && npm run --silent build

console/web/node_modules: console/web/package-lock.json
	cd console/web && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

# All tests, with the race detector where goroutines meet. A bare `go test ./...` makes fewer
# cases, and leaves out what takes long: see internal/testlevel. S1 compares engine, naive
# evaluator and DuckDB 20,000 times here. The linter has looked with go vet.
test: lint build
	MUSTER_ALL_TESTS=1 MUSTER_BINARY=$(CURDIR)/bin/muster MUSTER_S1_CASES=20000 $(GO) test -vet=off -timeout 30m ./...
	$(GO) test -vet=off -timeout 30m -race -short ./eventlog/... ./resolver ./resolver/node ./segment/engine ./ingest ./api ./api/internal/...
	cd muster-go && MUSTER_BINARY=$(CURDIR)/bin/muster $(GO) test -timeout 10m -race ./...

# The inner loop: what most mistakes show in, in about a minute and a half.
check: lint
	$(GO) test -short $$($(GO) list ./... | grep -v -e /bench -e /internal/services -e /internal/generators -e /internal/sdks -e /console -e /cmd/muster$$ -e /eventlog/kafka -e /query/duckdb)
	cd muster-go && $(GO) test -short ./...

# Of .golangci.yml. The linter is compiled at the first run. muster-go is a module of its
# own: "./..." does not reach it.
GOLANGCI = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run --config $(CURDIR)/.golangci.yml
lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GOLANGCI) ./...
	cd muster-go && $(GOLANGCI) ./...

# Figures, side by side with baselines; see bench/README.md.
bench:
	$(GO) run ./bench ingest

# Every fuzz target for FUZZTIME each.
fuzz:
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# The long versions of simulations, property tests and crash tests.
long:
	MUSTER_LONG=1 $(GO) test -timeout 120m ./...

# README's pictures, out of the console's stories in Chromium.
pictures:
	@shots=$$(mktemp -d) && trap 'rm -r $$shots' EXIT && \
	MUSTER_REQUIRE_BROWSER=1 MUSTER_SHOTS=$$shots $(GO) test ./console -count 1 -run 'TestScreens/(segments|people)$$' && \
	for name in builder explanation person; do cp $$shots/$$name-1440-light.png docs/images/$$name.png; done

# Apache Kafka and ClickHouse on loopback, their addresses in .services.json.
# Fetched through Maven and npm the first time.
services-up:
	$(GO) run ./internal/services/cmd up

services-down:
	$(GO) run ./internal/services/cmd down

# Three nodes, Kafka, ClickHouse, a load balancer, Prometheus and Grafana in Docker:
# http://localhost:8080, :9090 and :3000. cluster-down keeps the volumes.
cluster-up:
	deploy/secrets.sh
	docker compose up --detach --build --wait

cluster-down:
	docker compose down

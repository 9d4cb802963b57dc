# Everything here needs Go and a C compiler (DuckDB is linked statically). A
# browser is not needed. Tests against Kafka and ClickHouse use the servers of
# `make services-up` and are skipped without them.

GO ?= go
FUZZTIME ?= 30s

.PHONY: build test lint bench fuzz long services-up services-down cluster-up cluster-down

build:
	$(GO) build -o bin/muster ./cmd/muster

# All tests, with the race detector where goroutines meet. S1 compares engine,
# naive evaluator and DuckDB 20,000 times here; a bare go test a tenth of that.
test: lint
	MUSTER_S1_CASES=20000 $(GO) test -timeout 30m ./...
	$(GO) test -timeout 30m -race -short ./eventlog/... ./resolver ./segment/engine ./ingest ./api

lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

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

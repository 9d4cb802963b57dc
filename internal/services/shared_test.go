package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// verdict is a test that notes how it was ended.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper() {}

func (v *verdict) Skip(...any) {
	v.skipped = true
	runtime.Goexit()
}

func (v *verdict) Fatalf(string, ...any) {
	v.failed = true
	runtime.Goexit()
}

func judge(t *testing.T) *verdict {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		missing(v, errors.New("not there"))
	}()
	<-done
	return v
}

// Without servers tests are skipped, and fail where servers are required.
func TestMissingServersSkipOrFail(t *testing.T) {
	t.Setenv(EnvRequire, "")
	if v := judge(t); !v.skipped || v.failed {
		t.Errorf("not required: %+v, want skipped", v)
	}
	t.Setenv(EnvRequire, "1")
	if v := judge(t); v.skipped || !v.failed {
		t.Errorf("required: %+v, want failed", v)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	if _, err := writeIn(below, "x", ""); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv(EnvKafka, "")
	t.Setenv(EnvClickHouse, "")
	check := func(want Addresses) {
		t.Helper()
		got, err := Find()
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	check(Addresses{})
	if _, err := writeIn(root, "go.mod", "module github.com/musterhq/muster\n\ngo 1.26\n"); err != nil {
		t.Fatal(err)
	}
	check(Addresses{})
	if _, err := writeIn(root, addressFile, `{"kafka": "127.0.0.1:1", "clickhouse": "clickhouse://127.0.0.1:2"}`); err != nil {
		t.Fatal(err)
	}
	check(Addresses{Kafka: "127.0.0.1:1", ClickHouse: "clickhouse://127.0.0.1:2"})
	t.Setenv(EnvKafka, "kafka.example:9092")
	check(Addresses{Kafka: "kafka.example:9092", ClickHouse: "clickhouse://127.0.0.1:2"})
	if _, err := writeIn(root, addressFile, `{`); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "services-up") {
		t.Errorf("a broken %s: %v, want the remedy", addressFile, err)
	}
}

func TestProbesFailOnNobody(t *testing.T) {
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := probeKafka(loopback(ports[0])); err == nil {
		t.Error("a Kafka without a listener")
	}
	if err := probeClickHouse("clickhouse://" + loopback(ports[0])); err == nil {
		t.Error("a ClickHouse without a listener")
	}
	if err := probeKafka("localhost"); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("an address without a port: %v", err)
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := portLocks()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p < firstPort || p >= lastPort {
			t.Errorf("port %d twice or out of range", p)
		}
		seen[p] = true
		if ours, err := tryLock(filepath.Join(locks, strconv.Itoa(p))); ours || err != nil {
			t.Errorf("port %d can be given to another process: %v", p, err)
		}
	}
}

// A server whose port another process has is started again until it is free.
func TestServerWaitsForItsPort(t *testing.T) {
	sh, err := look("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &process{name: "the server", dir: dir, logPath: filepath.Join(dir, "log"), argv: []string{sh, "-c",
		"test -e third && { echo > up; exec sleep 60; }; test -e second && echo > third; echo > second; echo Address already in use; exit 1"}}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	err = waitReady(t.Context(), p, func(context.Context) error { _, err := os.Stat(filepath.Join(dir, "up")); return err })
	if err != nil {
		t.Error(err)
	}
}

func TestUniqueNamesSuitBothServers(t *testing.T) {
	t.Run("a name, with /odd characters and a great many of them so that it is cut off somewhere", func(t *testing.T) {
		a, b := uniqueName(t), uniqueName(t)
		if a == b {
			t.Errorf("%s twice", a)
		}
		if len(a) > 80 || strings.ContainsFunc(a, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			t.Errorf("%q", a)
		}
	})
}

// A server that ends at once is reported with what it said.
func TestServerThatEndsSaysWhy(t *testing.T) {
	sh, err := look("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := &process{name: "the server", argv: []string{sh, "-c", "echo no such disk; exit 1"}, dir: dir, logPath: filepath.Join(dir, "log")}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	err = waitReady(t.Context(), p, func(context.Context) error { return os.ErrNotExist })
	if err == nil || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("%v, want what it printed", err)
	}
}

package services

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// OwnKafka starts a cluster of 1 or 3 brokers for this test, which may do to it
// what it likes; it ends with the test. At the quick level, and where Kafka is not
// installed, the test is skipped; where services are required it runs or fails.
func OwnKafka(t testing.TB, brokers int) *KafkaCluster {
	t.Helper()
	skipQuick(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*readyTimeout)
	defer cancel()
	c, err := StartKafka(ctx, t.TempDir(), brokers)
	if errors.Is(err, ErrMissing) {
		missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, b := range c.brokers {
			b.close(t)
		}
	})
	return c
}

// OwnClickHouse starts a server for this test, which may do to it what it
// likes; it ends with the test. At the quick level, and where ClickHouse is not
// installed, the test is skipped; where services are required it runs or fails.
func OwnClickHouse(t testing.TB) *ClickHouseServer {
	t.Helper()
	skipQuick(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*readyTimeout)
	defer cancel()
	s, err := StartClickHouse(ctx, t.TempDir())
	if errors.Is(err, ErrMissing) {
		missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(t) })
	return s
}

// skipQuick leaves out a test with a server of its own: each takes a quarter of a minute
// or more. Where services are required none is left out.
func skipQuick(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvRequire) != "1" {
		testlevel.SkipQuick(t, "starts a server of its own")
	}
}

// close kills the process at a test's end. When the test failed, the end of
// the server's log, which is deleted with the test, goes into the test's.
func (p *process) close(t testing.TB) {
	if err := p.kill(); err != nil {
		t.Error(err)
	}
	if log := tail(p.logPath, 4000); t.Failed() && log != "" {
		t.Logf("%s said at %s:\n%s", p.name, time.Now().Format(time.TimeOnly), log)
	}
}

package kafka

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ownBrokers begins a test that starts brokers of its own. It takes long, and
// waits most of the time.
func ownBrokers(t *testing.T) {
	testlevel.SkipQuick(t, "starts brokers")
	t.Parallel()
}

// within bounds what may hang.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// shared are options for a new topic of the shared Kafka.
func shared(t testing.TB) Options {
	return Options{
		Brokers: services.Kafka(t), TopicOptions: TopicOptions{Topic: services.TopicName(t)},
		Limits: Limits{MaxRecordBytes: 1_000_000}, Logger: testLogger(t),
	}
}

// testLogger writes to the test's log, which is shown when it fails.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func mustOpen(t testing.TB, opts Options) *Log {
	t.Helper()
	l, err := Open(within(t, 30*time.Second), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustAppend(t testing.TB, l *Log, partition int, data []byte) int64 {
	t.Helper()
	off, err := l.Append(within(t, 40*time.Second), partition, data)
	if err != nil {
		t.Fatal(err)
	}
	return off
}

func TestContractL1(t *testing.T) {
	logtest.Run(t, func(t *testing.T) func(logtest.Options) eventlog.Log {
		opts := shared(t)
		return func(o logtest.Options) eventlog.Log {
			opts.Partitions = o.Partitions
			if o.MaxRecordBytes > 0 {
				opts.MaxRecordBytes = o.MaxRecordBytes
			}
			return mustOpen(t, opts)
		}
	})
}

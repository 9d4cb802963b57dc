package loader

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/bench/internal/baseline"
	"github.com/musterhq/muster/bench/internal/payload"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp keeps these for the life of the process.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

var spec = payload.Spec{Seed: 1, Batch: 20, Profiles: 500, NewRatio: 0.1, EventBytes: 320}

func serveBaseline(t *testing.T, kind baseline.Kind) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- baseline.Serve(ctx, l, kind) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// serveFunc serves a handler until the test ends.
func serveFunc(t *testing.T, h fasthttp.RequestHandler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fasthttp.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := s.ShutdownWithContext(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return l.Addr().String()
}

func newFleet(t *testing.T, target Target, s payload.Spec, connections int) *Fleet {
	t.Helper()
	f, err := NewFleet(target, s, connections)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func total(ranges []Range) (n uint64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

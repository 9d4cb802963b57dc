package topology

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

const (
	startLimit = time.Minute
	// stopLimit bounds a clean stop, which may write what history lacks.
	stopLimit = 10 * time.Minute
)

// Begin starts a server in a new directory and saves some of the usual live segments.
func Begin(ctx context.Context, o server.Options, dir string, segments int) (*server.Installation, *server.Server, error) {
	i, err := server.NewInstallation(dir, o.Binary, o.ServerArgs)
	if err != nil {
		return nil, nil, err
	}
	s, err := i.Start(ctx, startLimit)
	if err != nil {
		return nil, nil, err
	}
	if err := surface.CreateUsualSegments(ctx, s.Credentials, segments); err != nil {
		return nil, nil, errors.Join(err, s.Kill())
	}
	return i, s, nil
}

// Stopped compares what a server stored with what was acknowledged.
type Stopped struct {
	Once        history.Once `json:"once"`
	StopSeconds float64      `json:"stop_seconds"`
}

// Once stops a server and compares its history with the acknowledged events (L2).
// failed is how many events were in requests that failed.
func Once(ctx context.Context, i *server.Installation, p *child.Process, acked []loader.Range, failed uint64) (s Stopped, err error) {
	stopping := time.Now()
	if err := p.Stop(stopLimit); err != nil {
		return s, err
	}
	s.StopSeconds = time.Since(stopping).Seconds()
	file, err := history.Open(ctx, i.HistoryFile())
	if err != nil {
		return s, err
	}
	defer file.Close()
	if s.Once, err = file.CheckOnce(ctx, acked); err != nil {
		return s, err
	}
	return s, s.Once.Err(failed)
}

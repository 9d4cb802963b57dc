package topology

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

const (
	// startLimit bounds a start, which may load a large state.
	startLimit = 5 * time.Minute
	// stopLimit bounds a clean stop, which may write what history lacks.
	stopLimit = 10 * time.Minute
)

// Single is one server on files, with a client that is signed in to its console.
type Single struct {
	*server.Installation
	*server.Server
	Console *surface.Client
}

// Begin starts a server in a new directory and has some of the usual segments live.
func Begin(ctx context.Context, o server.Options, dir string, segments int) (*Single, error) {
	i, err := server.NewInstallation(dir, o.Binary, o.ServerArgs)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, i)
	if err != nil {
		return nil, err
	}
	if _, err := s.Console.CreateUsualSegments(ctx, segments); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	s.Console.Close() // an idle connection would count among the server's open files
	return s, nil
}

// Open starts the server of an installation.
func Open(ctx context.Context, i *server.Installation) (*Single, error) {
	s := &Single{Installation: i}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Start starts the server, and again after Stop or Kill.
func (s *Single) Start(ctx context.Context) error {
	next, err := s.Installation.Start(ctx, startLimit)
	if err != nil {
		return err
	}
	s.Server = next
	console, err := surface.SignIn(ctx, s.Credentials)
	if err != nil {
		return errors.Join(err, next.Kill())
	}
	s.Console = console
	return nil
}

// Kill kills the server if it runs.
func (s *Single) Kill() error {
	s.Console.Close()
	return s.Server.Kill()
}

// Stop stops the server cleanly and returns how many seconds it took.
func (s *Single) Stop() (float64, error) {
	s.Console.Close()
	stopping := time.Now()
	err := s.Server.Stop(stopLimit)
	return time.Since(stopping).Seconds(), err
}

// Stopped compares what a server stored with what was acknowledged.
type Stopped struct {
	Once        history.Once `json:"once"`
	StopSeconds float64      `json:"stop_seconds"`
}

// Once stops the server and compares its history with the acknowledged events (L2).
// failed is how many events were in requests that failed.
func (s *Single) Once(ctx context.Context, acked []loader.Range, failed uint64) (out Stopped, err error) {
	if out.StopSeconds, err = s.Stop(); err != nil {
		return out, err
	}
	file, err := history.Open(ctx, s.HistoryFile())
	if err != nil {
		return out, err
	}
	defer file.Close()
	if out.Once, err = file.CheckOnce(ctx, acked); err != nil {
		return out, err
	}
	return out, out.Once.Err(failed)
}

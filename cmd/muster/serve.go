package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/refusal"
)

// serve runs until ctx ends or something fails.
func (p *process) serve(ctx context.Context) (err error) {
	c, err := p.serveConfig()
	if err != nil {
		return err
	}
	if err := c.checkPaths(ctx); err != nil {
		return err
	}
	if err := c.checkDemo(); err != nil {
		return err
	}
	if err := c.limitConnections(); err != nil {
		return err
	}
	c.log.Info("starting", "data", c.engine.Dir, "listen", c.listen)
	c.engine.LockUntil = time.Now().Add(c.startTimeout)
	ln, err := c.openListener(ctx)
	if err != nil || ln == nil {
		return err
	}
	started := c.reportStart(startEvery)
	defer started()
	defer c.boundHeap(ctx)()
	defer c.releaseIdleMemory(ctx)()
	// Health checks are answered while the log is replayed.
	ops := api.NewOps(c.ingest.Metrics, refuse)
	var calls peerCalls
	self := newSelfCall(c.network.pair != nil)
	watch, err := refusal.New(c.ingest.Metrics, c.log, time.Now, rand.Reader)
	if err != nil {
		return err
	}
	c.ingest.Refuse = refuseWatched(watch)
	server := ingest.NewServer(c.ingest, watch.Watch(c.network.before(self.before(calls.before(ops.Handle)))))
	served := make(chan error, 1)
	go func() { served <- server.Serve(c.network.listener(ln)) }()
	stopServer := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), c.drainTimeout)
		defer cancel()
		if err := server.ShutdownWithContext(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		} else if err != nil {
			c.log.Warn("requests were still under way at the stop", "after", c.drainTimeout)
		}
		return nil
	}
	defer func() { err = errors.Join(err, stopServer()) }()

	if c.engine.Peer != nil && c.engine.Address != "" {
		unreached, err := self.check(ctx, c.engine.Address)
		if err != nil {
			return err
		}
		if unreached != nil {
			c.log.Warn("this node does not reach itself at its advertised address; if other nodes do not either, requests for its accounts fail at them", "advertise", c.engine.Address, "err", unreached)
		}
	}
	c.engine.Address = cmp.Or(c.engine.Address, ln.Addr().String())
	c.engine.Self = self.url(c.engine.Address)
	eng, err := engine.Open(ctx, c.engine)
	if err != nil {
		if ctx.Err() != nil {
			c.log.Info("stopped while starting")
			return nil
		}
		return err
	}
	defer func() {
		if errors.Is(err, errFailed) {
			return // as after kill -9: the log has everything that was acknowledged
		}
		err = errors.Join(err, c.close(eng))
		c.log.Info("stopped")
	}()
	ops.Loading(eng.Loading)
	calls.open(eng.Peers())
	if err := eng.Loaded(ctx); err != nil {
		if ctx.Err() != nil {
			c.log.Info("stopped while starting")
			return nil
		}
		return err
	}
	reportSkipped(c, eng)
	eng.Scrub(c.log)
	stopBackups, err := (&backupService{c, eng}).start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopBackups()) }()
	services, err := c.open(ctx, eng, c.network.origin(ln.Addr()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, services.close()) }()
	calls.serve(services)
	if err := p.firstCompany(ctx, c, eng, services, c.network.origin(ln.Addr())); err != nil {
		services.drain()
		if ctx.Err() != nil {
			c.log.Info("stopped while starting")
			return nil
		}
		return err
	}
	ops.Open(services.handler, eng.Node.Err)
	if err := c.fillDemo(ctx, services, c.network.origin(ln.Addr())); err != nil {
		services.drain()
		if ctx.Err() != nil {
			c.log.Info("stopped while starting")
			return nil
		}
		return err
	}
	started()
	fmt.Fprintf(p.stdout, "ready: %s (%s)\n", c.network.origin(ln.Addr()), ln.Addr())

	err = c.wait(ctx, eng, served)
	ops.Drain()
	if err == nil {
		c.leave(eng)
	}
	services.drain()
	return errors.Join(err, stopServer())
}

// checkPaths refuses, before anything is made, directories that the service could not
// write to when it gets there.
func (c *serveConfig) checkPaths(ctx context.Context) error {
	if err := checkDirectory("data", c.engine.Dir, false); err != nil {
		return err
	}
	for flag, storage := range map[string]string{"backup-to": c.backup.to, "checkpoints": c.engine.Checkpoints} {
		if storage == "" {
			continue
		}
		err := checkStorage(ctx, flag, storage)
		if err != nil && (flag != "backup-to" || backup.MadeBefore(vfs.Default, c.engine.Dir, storage) == "") {
			return err // where backups were made before, a disk is missing: no reason not to serve
		}
	}
	if err := checkPlace(c.engine.Dir, c.backup.to); err != nil {
		return wrongUsage("--backup-to: %w", err)
	}
	return c.checkCredentials()
}

// firstCompany sees to it that there is a company.
func (p *process) firstCompany(ctx context.Context, c *serveConfig, eng *engine.Engine, s *services, origin string) error {
	f := &founder{p: p, c: c, eng: eng, origin: origin, exists: s.console.HasCompany, has: s.console.HasAccount}
	if eng.Peers() == nil {
		return f.found(ctx)
	}
	if eng.Node.Owns(directoryPartition) {
		return f.awaitCompany(ctx)
	}
	// The owner of the directory does it; should it die first, this one may be
	// the next.
	s.background(func(ctx context.Context) {
		if err := f.awaitCompany(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("the first company could not be made", "err", err)
		}
	})
	return nil
}

// leaveTime is how long other nodes may take at least to load what this one
// leaves. The node continues meanwhile.
const leaveTime = 30 * time.Second

// leave hands over to other nodes what is here.
func (c *serveConfig) leave(eng *engine.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), max(leaveTime, c.drainTimeout))
	defer cancel()
	if err := eng.Leave(ctx); err != nil {
		c.log.Warn("other nodes take over, but not in order; nothing is lost", "err", err)
	}
}

// logCheck is the pause between looks at whether the log has failed.
const logCheck = time.Second

// errFailed marks that the state or the log cannot continue. Nothing more is
// written then.
var errFailed = errors.New("muster cannot continue")

var errLogFailed = errors.New("the log cannot store records any more; its own log line above says why. Nothing was acknowledged since; a start recovers once the cause (such as a broken disk) is gone")

// wait returns when the service is to end: nil for a signal to stop, else why it
// cannot continue.
func (c *serveConfig) wait(ctx context.Context, eng *engine.Engine, served <-chan error) error {
	check := time.NewTicker(logCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			c.log.Info("stopping")
			return nil
		case <-eng.Node.Failed():
			return fmt.Errorf("%w: %w", errFailed, eng.Node.Err())
		case <-eng.Lost():
			eng.Node.Fail(eng.LostErr())
			var twin *cluster.TwinError
			if errors.As(eng.LostErr(), &twin) {
				return fmt.Errorf("%w: another has taken over; nothing that was acknowledged is lost: %w. Start one of them with a new directory: it is filled from the log", errFailed, eng.LostErr())
			}
			return fmt.Errorf("%w: this node was silent for too long and another has taken over, which does not share the log with it; nothing that was acknowledged is lost: %w", errFailed, eng.LostErr())
		case err := <-served:
			return fmt.Errorf("the listener ended: %w", err)
		case <-check.C:
			if eng.LogFailed() {
				return fmt.Errorf("%w: %w", errFailed, errLogFailed)
			}
		}
	}
}

// closeGrace is how much longer than history the last checkpoint may take.
const closeGrace = 30 * time.Second

// close writes the last checkpoint and closes the directory. A disk that takes
// nothing must not keep the process: then it ends without.
func (c *serveConfig) close(eng *engine.Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.drainTimeout)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- eng.Close(ctx) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(c.drainTimeout + closeGrace):
		return errors.New("the last checkpoint could not be written in time; nothing is lost, the next start replays the log")
	}
}

// reportSkipped says for which records --skip-record is still needed: replay
// begins at a checkpoint, and must pass over the same records each time.
func reportSkipped(c *serveConfig, eng *engine.Engine) {
	for _, s := range eng.Node.Stats() {
		for _, offset := range c.engine.Skip[s.Partition] {
			log := c.log.With("partition", s.Partition, "offset", offset, "checkpoint", s.LastCheckpoint)
			if offset < s.LastCheckpoint {
				log.Info("the checkpoint is beyond the record to pass over; its --skip-record may be dropped once no older checkpoint is kept")
			} else {
				log.Warn("passing over a record; keep its --skip-record until a start reports a checkpoint beyond it")
			}
		}
	}
}

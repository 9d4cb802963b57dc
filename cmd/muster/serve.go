package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/refusal"
)

// serveConfig is the flags of serve.
type serveConfig struct {
	engine       engine.Options
	log          *slog.Logger
	listen       string
	credentials  string
	pprof        bool
	drainTimeout time.Duration
	startTimeout time.Duration // for the address and the directory to become free
	ingest       ingest.Options
	messaging    messagingConfig
	uploadBytes  int64
	demo         bool
	// founded are the credentials of the company that this start made, if it made one.
	founded *api.Credentials
	network networkConfig
	backup  backupConfig
}

func (p *process) serveConfig() (*serveConfig, error) {
	f := cli.New("muster serve", "muster serve starts the service.", p.stderr)
	e := addEngineFlags(f, "./data")
	c := &serveConfig{}
	f.StringVar(&c.listen, "listen", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 picks a free port")
	f.StringVar(&c.credentials, "credentials", "", "`FILE` to write the credentials of a new company to")
	f.BoolVar(&c.pprof, "pprof", false, "serve /debug/pprof/, without authentication")
	f.DurationVar(&c.drainTimeout, "drain-timeout", 10*time.Second, "maximum `TIME` to finish running requests at shutdown; history gets the same again")
	f.Range("drain-timeout", 0, int64(mostTime))
	f.DurationVar(&c.startTimeout, "start-timeout", 15*time.Second, "`TIME` to wait at startup while another process holds the address or the directory")
	f.Range("start-timeout", 0, int64(mostTime))
	body := f.Size("max-body-bytes", 8<<20, "maximum `BYTES` of a request body with events, also after decompression; other calls take 1 MiB")
	f.Range("max-body-bytes", 1<<10, ingest.MaxBodyBytes)
	events := f.Int("max-batch-events", 10_000, "maximum `NUMBER` of events in a batch")
	f.Range("max-batch-events", 1, 1e6)
	inFlight := f.Size("max-inflight-bytes", 256<<20, "maximum `BYTES` of memory for bodies and large answers of all running requests, at least 16 MiB; beyond, requests get 503")
	f.Range("max-inflight-bytes", leastInFlight, mostBytes)
	connections := f.Int("max-connections", 16<<10, "maximum `NUMBER` of connections; lowered to fit the limit of open files")
	f.Range("max-connections", 1, 1<<20)
	perAddress := f.Int("max-connections-per-address", 0, "maximum `NUMBER` of unauthenticated connections per address (or IPv6 /64 network); 0: a quarter of --max-connections, at most 1024. Loopback is exempt")
	f.Range("max-connections-per-address", 0, 1<<20)
	f.BoolVar(&c.demo, "demo", false, "fill an empty --data with a demo shop that keeps receiving events; no message is sent")
	uploadBytes := f.Size("upload-bytes", 1<<30, "maximum `BYTES` of uploaded CSV files waiting for their import, over all accounts; one file may take a quarter")
	f.Range("upload-bytes", 1<<20, mostBytes)
	readMessaging := addMessagingFlags(f)
	readBackup := addBackupFlags(f)
	var several clusterFlags
	several.add(f)
	var network networkFlags
	network.add(f)
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return nil, usageError{err}
	case len(rest) > 0:
		return nil, wrongUsage("serve takes no arguments, have %q", rest)
	case *inFlight < requestShare**body:
		return nil, wrongUsage("--max-inflight-bytes must be at least four times --max-body-bytes, which is the most that one request takes: set it to %d, or --max-body-bytes to %d", requestShare**body, *inFlight/requestShare)
	case *e.dir == "":
		return nil, wrongUsage("--data is empty; name a directory")
	}
	if c.log, err = logger(p.stderr, *e.logLevel, *e.logFormat); err != nil {
		return nil, err
	}
	p.logThrough(c.log, *e.logFormat)
	if _, _, err := checkHostPort("listen", c.listen, "127.0.0.1:8080"); err != nil {
		return nil, err
	}
	if c.messaging, err = readMessaging(); err != nil {
		return nil, err
	}
	if c.network, err = network.read(c.log); err != nil {
		return nil, err
	}
	if c.backup, err = readBackup(); err != nil {
		return nil, err
	}
	maxRecord := max(16<<20, int(*body)+1<<20)
	if c.engine, err = p.engineOptions(e, c.log, maxRecord); err != nil {
		return nil, err
	}
	if c.engine.Kafka != nil && maxRecord > kafka.MostRecordBytes {
		return nil, wrongUsage("--max-body-bytes must be at most %d with --kafka, which takes no larger records", kafka.MostRecordBytes-1<<20)
	}
	c.ingest = ingest.Options{
		Limits:    ingest.Limits{Events: *events},
		BodyBytes: int(*body), RecordBytes: maxRecord, InFlightBytes: int64(*inFlight), Connections: *connections, AddressConnections: *perAddress,
		Memory: ingest.NewMemory(int64(*inFlight)), Refuse: refuse,
		Now: time.Now, Rand: rand.Reader, Metrics: metrics.NewSet(), Logger: c.log,
	}
	c.uploadBytes = int64(*uploadBytes)
	c.ingest.Uncounted = c.network.proxies.Trust
	if err := several.read(c); err != nil {
		return nil, err
	}
	if c.backup.to != "" && c.engine.Kafka != nil {
		return nil, wrongUsage("--backup-to is for a log in --data; with --kafka back up Kafka's disks and ClickHouse")
	}
	c.engine.Mine = []string{c.credentials}
	if c.demo && (c.engine.Kafka != nil || c.messaging.smtp.Host != "") {
		return nil, wrongUsage("--demo keeps everything in --data and sends nothing; leave out --kafka and --smtp")
	}
	if c.engine.Peer != nil {
		c.engine.Peer.TLS = c.network.peers()
	}
	return c, nil
}

// leastInFlight leaves room for a body of 1 MiB, and what is made of it, in the part
// of memory that requests of anybody share.
const leastInFlight = 16 << 20

// requestShare is how many times the longest body one request takes of the memory.
const requestShare = 4

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

// firstCompany sees to it that there is a company.
func (p *process) firstCompany(ctx context.Context, c *serveConfig, eng *engine.Engine, s *services, origin string) error {
	f := &founder{p: p, c: c, eng: eng, origin: origin, exists: s.console.HasCompany}
	if eng.Peers() == nil {
		return f.foundAlone(ctx)
	}
	if eng.Node.Owns(directoryPartition) {
		return f.settle(ctx)
	}
	// The owner of the directory does it; should it die first, this one may be
	// the next.
	s.background(func(ctx context.Context) {
		if err := f.settle(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("the first company could not be made", "err", err)
		}
	})
	return nil
}

// leaveTime is how long other nodes may take at least to load what this one
// leaves. The node goes on meanwhile.
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

// errFailed marks that the state or the log cannot go on. Nothing more is
// written then.
var errFailed = errors.New("muster cannot go on")

var errLogFailed = errors.New("the log cannot store records any more; its own log line above says why. Nothing was acknowledged since; a start recovers once the cause (such as a broken disk) is gone")

// wait returns when the service is to end: nil for a signal to stop, else why it
// cannot go on.
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

func addPprof(r *router.Router) {
	r.GET("/debug/pprof/{profile:*}", fasthttp.RequestHandler(pprofhandler.PprofHandler))
}

// origin is where a listener without TLS is reached from this machine.
func origin(addr net.Addr) string {
	host, port := "127.0.0.1", 0
	if a, ok := addr.(*net.TCPAddr); ok {
		port = a.Port
		if !a.IP.IsUnspecified() {
			host = a.IP.String()
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
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

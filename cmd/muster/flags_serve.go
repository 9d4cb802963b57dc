package main

import (
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/ingest"
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
	inFlight := f.Size("max-inflight-bytes", 256<<20, "maximum `BYTES` of memory for bodies and large answers of all running requests, at least four times --max-body-bytes; beyond, requests get 503")
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
	c.engine.InFlightBytes = int64(*inFlight)
	if c.engine.Kafka != nil && maxRecord > kafka.MostRecordBytes {
		return nil, wrongUsage("--max-body-bytes must be at most %d with --kafka, which takes no larger records", kafka.MostRecordBytes-1<<20)
	}
	c.ingest = ingest.Options{
		Limits:    ingest.Limits{Events: *events},
		BodyBytes: int(*body), RecordBytes: maxRecord, InFlightBytes: int64(*inFlight),
		ServerOptions: ingest.ServerOptions{Connections: *connections, AddressConnections: *perAddress},
		Memory:        ingest.NewMemory(int64(*inFlight)), Refuse: refuse,
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

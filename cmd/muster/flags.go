package main

import (
	"log/slog"
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/query/duckdb"
)

// Bounds of flags that have no limit of their own: what is beyond is a mistake.
const (
	mostBytes = 1 << 50
	mostTime  = 24 * time.Hour
)

// engineFlags are the flags of every command that opens a data directory.
type engineFlags struct {
	dir                                     *string
	logLevel, logFormat                     *string
	historyMemory, generation, cache, spool *cli.Size
	queryCache                              *cli.Size
	checkpointLog                           *cli.Size
	historyThreads, maxBacklog              *int
	checkpointInterval                      *time.Duration
	skip                                    skipRecords
	trimLog                                 *bool
	remote                                  remoteFlags
	checkpoints                             *string
}

func addEngineFlags(f *cli.Flags, dir string) *engineFlags {
	e := &engineFlags{skip: skipRecords{}}
	e.dir = f.String("data", dir, "data `DIR`; created if it does not exist")
	e.logLevel = f.String("log-level", "info", "minimum log `LEVEL`: debug, info, warn or error")
	e.logFormat = f.String("log-format", formatText, "log `FORMAT`: text or json")
	e.historyMemory = f.Size("history-memory", 1<<30, "`BYTES` of memory for history in --data (DuckDB), at least 64 MiB; larger queries spill to disk")
	f.Range("history-memory", duckdb.LeastMemoryBytes, mostBytes)
	e.historyThreads = f.Int("history-threads", 0, "`NUMBER` of threads for history in --data; 0: one per CPU, at most 2")
	f.Range("history-threads", 0, 1024)
	e.queryCache = f.Size("query-cache", 128<<20, "`BYTES` of memory for the query cache, which answers repeated previews and analytics; 0: no cache")
	f.Range("query-cache", 0, mostBytes)
	e.checkpointInterval = f.Duration("checkpoint-interval", 30*time.Second, "maximum `TIME` between checkpoints while events arrive")
	f.Range("checkpoint-interval", int64(10*time.Millisecond), int64(mostTime))
	e.checkpointLog = f.Size("checkpoint-log-bytes", 40<<20, "`BYTES` of log after which the next checkpoint is written; a start after a crash replays about as much")
	f.Range("checkpoint-log-bytes", 1<<20, mostBytes)
	e.generation = f.Size("generation-bytes", 256<<20, "`BYTES` of changed state in memory that trigger a checkpoint; at twice as much, events wait")
	f.Range("generation-bytes", 1<<20, mostBytes)
	e.cache = f.Size("cache-bytes", 256<<20, "`BYTES` of memory for the profile cache")
	f.Range("cache-bytes", 1<<20, mostBytes)
	e.spool = f.Size("spool-bytes", 8<<30, "maximum `BYTES` of rows spooled on disk while history is down; beyond, events are refused")
	f.Range("spool-bytes", 1<<20, mostBytes)
	e.maxBacklog = f.Int("max-backlog", 50_000, "maximum `NUMBER` of records that are stored and not yet applied; beyond, events are refused with 503")
	f.Range("max-backlog", 1, 1e9)
	e.checkpoints = f.String("checkpoints", "", "`URL` of the storage in which nodes share checkpoints: file:///DIRECTORY or s3://BUCKET/PREFIX?region=REGION")
	e.trimLog = f.Bool("trim-log", false, "delete log records that both kept checkpoints cover; without it the log keeps everything, and damaged files are rebuilt from it")
	e.remote.add(f)
	f.Var(e.skip, "skip-record", "skip the record at `PARTITION:OFFSET`, which cannot be applied (repeatable; see docs/operations/failures.md)")
	return e
}

func (p *process) engineOptions(e *engineFlags, log *slog.Logger, maxRecordBytes int) (engine.Options, error) {
	topic, history, err := e.remote.read()
	if err != nil {
		return engine.Options{}, err
	}
	return engine.Options{
		Kafka: topic, ClickHouse: history, SessionTimeout: *e.remote.session,
		Dir: *e.dir, Logger: log, MaxRecordBytes: maxRecordBytes,
		HistoryLimits: engine.HistoryLimits{HistoryMemory: int64(*e.historyMemory), HistoryThreads: *e.historyThreads, QueryCacheBytes: int64(*e.queryCache)},
		StateLimits: engine.StateLimits{
			CheckpointInterval: *e.checkpointInterval, CheckpointLogBytes: int64(*e.checkpointLog),
			GenerationBytes: int64(*e.generation), CacheBytes: int64(*e.cache),
			MaxBacklog: int64(*e.maxBacklog), SpoolBytes: int64(*e.spool),
		},
		Skip:        e.skip,
		Checkpoints: *e.checkpoints, TrimLog: *e.trimLog, End: p.end,
	}, nil
}

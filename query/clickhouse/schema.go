package clickhouse

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// tableSettings of all tables: what an insert acknowledges, and what a merge
// made of it, survives the loss of power; of a repeated insert the newest hundred are
// known; rows that were erased leave the disk a minute after the part they were
// in was rewritten.
const tableSettings = `SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_compressed_bytes_to_fsync_after_merge = 1,
	non_replicated_deduplication_window = 100, old_parts_lifetime = 60`

// migrations[i] makes tables of version i+1 from those of version i, and makes what is
// missing as the newest version has it: nodes may be using the rest. Each statement may be
// run any number of times and by several nodes at once; the version is written when all are
// done. {generation} is a text that no other table has, {tables} names those of rows.
var migrations = [][]string{{
	`CREATE TABLE IF NOT EXISTS events (
		account         UInt64 CODEC(ZSTD(1)),
		"partition"     UInt32 CODEC(ZSTD(1)),
		record_offset   Int64  CODEC(Delta, ZSTD(1)),
		record_index    UInt32 CODEC(Delta, ZSTD(1)),
		writer          UInt64 CODEC(ZSTD(1)),
		ordinal         UInt32 CODEC(LZ4),
		time_ms         Int64  CODEC(Delta, ZSTD(1)),
		event_type      String CODEC(ZSTD(1)),
		properties      String CODEC(ZSTD(1)),
		readable        String CODEC(ZSTD(1)),
		idempotency_key String CODEC(ZSTD(1)),
		INDEX by_ordinal ordinal TYPE bloom_filter(0.01) GRANULARITY 1,
		INDEX by_offset record_offset TYPE minmax GRANULARITY 1
	) ENGINE = MergeTree PARTITION BY "partition" ORDER BY (account, event_type, time_ms) ` + tableSettings + withGeneration,
	`CREATE TABLE IF NOT EXISTS aliases (
		account       UInt64,
		"partition"   UInt32,
		record_offset Int64,
		record_index  UInt32,
		seq           UInt32,
		writer        UInt64,
		ordinal       UInt32,
		winner        UInt32
	) ENGINE = MergeTree PARTITION BY "partition" ORDER BY (account, ordinal, record_offset) ` + tableSettings + withGeneration,
	`CREATE TABLE IF NOT EXISTS transitions (
		account       UInt64 CODEC(ZSTD(1)),
		"partition"   UInt32 CODEC(ZSTD(1)),
		record_offset Int64  CODEC(Delta, ZSTD(1)),
		seq           UInt32 CODEC(Delta, ZSTD(1)),
		writer        UInt64 CODEC(ZSTD(1)),
		segment       String CODEC(ZSTD(1)),
		ordinal       UInt32 CODEC(ZSTD(1)),
		entered       Bool   CODEC(ZSTD(1)),
		cause         UInt8  CODEC(ZSTD(1)),
		at_ms         Int64  CODEC(Delta, ZSTD(1)),
		INDEX by_segment segment TYPE bloom_filter(0.01) GRANULARITY 1,
		INDEX by_ordinal ordinal TYPE bloom_filter(0.01) GRANULARITY 1
	) ENGINE = MergeTree PARTITION BY "partition" ORDER BY (account, record_offset, seq) ` + tableSettings + withGeneration,
	`CREATE TABLE IF NOT EXISTS commits (
		"partition"  UInt32,
		writer       UInt64,
		first_offset SimpleAggregateFunction(min, Int64),
		next_offset  SimpleAggregateFunction(max, Int64),
		generation   SimpleAggregateFunction(max, String)
	) ENGINE = AggregatingMergeTree ORDER BY ("partition", writer) ` + tableSettings,

	// For analysts: below the position rows of one record are the same whichever
	// writer stored them, so one of each is what is stored.
	`CREATE VIEW IF NOT EXISTS positions AS ` + positionsSQL,
	`CREATE VIEW IF NOT EXISTS stored_events AS
		SELECT e.account AS account, e."partition" AS "partition", e.record_offset AS record_offset, e.record_index AS record_index, e.ordinal AS ordinal,
			e.time_ms AS time_ms, e.event_type AS event_type, e.properties AS properties, e.idempotency_key AS idempotency_key
		FROM events e INNER JOIN positions p ON p."partition" = e."partition" WHERE e.record_offset < p.next_offset
		LIMIT 1 BY e."partition", e.record_offset, e.record_index`,
	`CREATE VIEW IF NOT EXISTS stored_transitions AS
		SELECT t.account AS account, t."partition" AS "partition", t.record_offset AS record_offset, t.seq AS seq, t.segment AS segment,
			t.ordinal AS ordinal, t.entered AS entered, t.cause AS cause, t.at_ms AS at_ms
		FROM transitions t INNER JOIN positions p ON p."partition" = t."partition" WHERE t.record_offset < p.next_offset
		LIMIT 1 BY t."partition", t.record_offset, t.seq`,
	`CREATE VIEW IF NOT EXISTS winners AS
		SELECT a.account AS account, a.ordinal AS ordinal, argMax(a.winner, (a.record_offset, a.record_index, a.seq)) AS winner
		FROM aliases a INNER JOIN positions p ON p."partition" = a."partition" WHERE a.record_offset < p.next_offset
		GROUP BY a.account, a.ordinal`,
	`CREATE VIEW IF NOT EXISTS segment_members AS
		SELECT account, segment, groupBitmapState(ordinal) AS members FROM (
			SELECT t.account AS account, t.segment AS segment, t.ordinal AS ordinal, argMax(t.entered, (t.record_offset, t.seq)) AS inside
			FROM transitions t INNER JOIN positions p ON p."partition" = t."partition" WHERE t.record_offset < p.next_offset
			GROUP BY t.account, t.segment, t.ordinal)
		WHERE inside GROUP BY account, segment`,
}, {
	`ALTER TABLE commits ADD COLUMN IF NOT EXISTS generation SimpleAggregateFunction(max, String)`,
	`CREATE OR REPLACE VIEW positions AS ` + positionsSQL,
}}

const (
	withGeneration = ` COMMENT '` + generationMark + `{generation}'`
	positionsSQL   = `SELECT "partition", max(next_offset) AS next_offset FROM commits
		WHERE generation = (SELECT ` + generationSQL + ` FROM {tables}) GROUP BY "partition"`
)

// ensureSchema brings the tables to this version and refuses those of a newer.
func (s *Store) ensureSchema(ctx context.Context) error {
	run := func(sql string) error { return s.alter(ctx, sql) }
	if err := run(`CREATE TABLE IF NOT EXISTS schema_versions (version UInt32, at DateTime DEFAULT now())
		ENGINE = MergeTree ORDER BY version SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`); err != nil {
		return err
	}
	version := uint32(0)
	err := s.query(ctx, s.opts.QueryTimeout, "SELECT max(version) FROM schema_versions", func(r driver.Rows) error { return r.Scan(&version) })
	switch {
	case err != nil:
		return err
	case int(version) > len(migrations):
		return fmt.Errorf("%w: the tables have version %d, this one knows %d: run the version that wrote them, or a newer one",
			ErrNewerSchema, version, len(migrations))
	}
	from, err := s.missing(ctx, int(version))
	if err != nil {
		return err
	}
	for i := from; i < len(migrations); i++ {
		for _, sql := range migrations[i] {
			if err := s.make(ctx, sql); err != nil {
				return fmt.Errorf("tables from version %d to %d: %w", i, i+1, err)
			}
		}
		if i < int(version) {
			continue
		}
		if err := run(fmt.Sprintf("INSERT INTO schema_versions (version) VALUES (%d)", i+1)); err != nil {
			return fmt.Errorf("tables from version %d to %d: %w", i, i+1, err)
		}
	}
	if err := s.checkColumns(ctx); err != nil {
		return err
	}
	if err := s.ensureTTL(ctx); err != nil {
		return err
	}
	_, _, err = s.readCover(ctx, 0) // for what it refuses
	return err
}

// make runs a statement of a migration.
func (s *Store) make(ctx context.Context, sql string) error {
	n, err := s.newWriter()
	if err != nil {
		return err
	}
	return s.alter(ctx, strings.NewReplacer("{generation}", fmt.Sprintf("%016x", n), "{tables}", tables{database: s.opts.Database}.from()).Replace(sql))
}

// ensureTTL makes the table's time to live that of the options.
func (s *Store) ensureTTL(ctx context.Context) error {
	engine := ""
	err := s.query(ctx, s.opts.QueryTimeout, "SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'events'",
		func(r driver.Rows) error { return r.Scan(&engine) })
	if err != nil {
		return err
	}
	// Times are bounded because a DateTime is, at 32 bits of seconds.
	want := fmt.Sprintf("TTL toDateTime(greatest(0, least(intDiv(time_ms, 1000), %d)), 'UTC') + toIntervalDay(%d)",
		math.MaxUint32-int64(s.opts.TTLDays)*86_400, s.opts.TTLDays)
	has := strings.Contains(engine, " TTL ")
	sql := ""
	switch {
	case s.opts.TTLDays == 0 && has:
		sql = "ALTER TABLE events REMOVE TTL"
	case s.opts.TTLDays > 0 && !strings.Contains(engine, want+" "):
		sql = "ALTER TABLE events MODIFY " + want
	default:
		return nil
	}
	s.opts.Logger.Info("history: events' time to live changes", "days", s.opts.TTLDays)
	return s.alter(ctx, sql)
}

// identifier quotes a name.
func identifier(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

package duckdb

import (
	"context"
	"errors"
	"fmt"
)

// ErrNewerSchema says that the file was written by a newer version.
var ErrNewerSchema = errors.New("history was written by a newer version")

// schemaVersion counts changes of the tables; docs/formats.md describes them.
const (
	schemaVersion = 3
	// schemaVersionLog is the first that names the log.
	schemaVersionLog = 3
)

const schema = `
CREATE TABLE events_sealed (
	account         UBIGINT  NOT NULL,
	"partition"     UINTEGER NOT NULL,
	record_offset   BIGINT   NOT NULL,
	record_index    UINTEGER NOT NULL,
	ordinal         UINTEGER NOT NULL,
	time_ms         BIGINT   NOT NULL,
	event_type      VARCHAR  NOT NULL USING COMPRESSION dict_fsst,
	properties      VARCHAR  NOT NULL USING COMPRESSION zstd,
	idempotency_key VARCHAR  NOT NULL USING COMPRESSION zstd
);
CREATE TABLE events_recent (
	account         UBIGINT  NOT NULL,
	"partition"     UINTEGER NOT NULL,
	record_offset   BIGINT   NOT NULL,
	record_index    UINTEGER NOT NULL,
	ordinal         UINTEGER NOT NULL,
	time_ms         BIGINT   NOT NULL,
	event_type      VARCHAR  NOT NULL USING COMPRESSION uncompressed,
	properties      VARCHAR  NOT NULL USING COMPRESSION uncompressed,
	idempotency_key VARCHAR  NOT NULL USING COMPRESSION uncompressed
);
CREATE VIEW events AS SELECT * FROM events_sealed UNION ALL SELECT * FROM events_recent;
CREATE TABLE aliases (
	account       UBIGINT  NOT NULL,
	"partition"   UINTEGER NOT NULL,
	record_offset BIGINT   NOT NULL,
	record_index  UINTEGER NOT NULL,
	seq           UINTEGER NOT NULL,
	ordinal       UINTEGER NOT NULL,
	winner        UINTEGER NOT NULL
);
CREATE TABLE progress (
	"partition" UINTEGER NOT NULL,
	next_offset BIGINT   NOT NULL
);
CREATE TABLE schema_version (version BIGINT NOT NULL);
` + schemaTransitions + schemaLogName

// schemaTransitions is what version 2 has beyond version 1.
const schemaTransitions = `
CREATE TABLE transitions (
	account       UBIGINT  NOT NULL,
	"partition"   UINTEGER NOT NULL,
	record_offset BIGINT   NOT NULL,
	seq           UINTEGER NOT NULL,
	segment       VARCHAR  NOT NULL,
	ordinal       UINTEGER NOT NULL,
	entered       BOOLEAN  NOT NULL,
	cause         UTINYINT NOT NULL,
	at_ms         BIGINT   NOT NULL
);
`

// schemaLogName is what version 3 has beyond version 2: the name of the log whose
// events are stored, one row.
const schemaLogName = `
CREATE TABLE log_name (log VARCHAR NOT NULL);
`

// migrations[v] makes tables of version v+1 from those of version v. Each is
// one transaction with the new version number, so a crash leaves either.
var migrations = map[int64]string{
	1: schemaTransitions,
	2: schemaLogName,
}

// ensureSchema creates the tables in an empty file, brings those of an older
// version to this one, and refuses those of a newer one.
func ensureSchema(c *conn, path string) error {
	version, err := readVersion(c)
	switch {
	case err != nil:
		return err
	case version == noTables:
		return c.exec(fmt.Sprintf("BEGIN; %s INSERT INTO schema_version VALUES (%d); COMMIT", schema, schemaVersion))
	case version > schemaVersion:
		return newerSchema(path, version)
	}
	for ; version < schemaVersion; version++ {
		step, ok := migrations[version]
		if !ok {
			return fmt.Errorf("%s has table version %d, which never was: the file is damaged", path, version)
		}
		if err := c.exec(fmt.Sprintf("BEGIN; %s UPDATE schema_version SET version = %d; COMMIT", step, version+1)); err != nil {
			return fmt.Errorf("tables from version %d to %d: %w", version, version+1, err)
		}
	}
	return nil
}

func newerSchema(path string, version int64) error {
	return fmt.Errorf("%w: %s has table version %d, this one knows %d: run the version that wrote it, or a newer one",
		ErrNewerSchema, path, version, schemaVersion)
}

// noTables is the version of an empty file.
const noTables = -1

// readVersion returns the version of the tables, or noTables.
func readVersion(c *conn) (version int64, err error) {
	ctx := context.Background()
	tables := int64(0)
	err = c.query(ctx, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'schema_version'", nil, func(ch chunk) error {
		tables = column[int64](ch, 0)[0]
		return nil
	})
	if err != nil || tables == 0 {
		return noTables, err
	}
	err = c.query(ctx, "SELECT version FROM schema_version", nil, func(ch chunk) error {
		version = column[int64](ch, 0)[0]
		return nil
	})
	return version, err
}

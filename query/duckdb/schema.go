package duckdb

import (
	"context"
	"errors"
	"fmt"
)

// ErrOtherVersion says that the file was written by a newer version of Muster, or by one
// of before release 0.1.0.
var ErrOtherVersion = errors.New("history was written by another version")

// schemaVersion counts changes of the tables; docs/formats.md describes them.
const schemaVersion = 3

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
CREATE TABLE log_name (log VARCHAR NOT NULL);
`

// ensureSchema creates the tables in an empty file, and refuses those of another version.
func ensureSchema(c *conn, path string) error {
	version, err := readVersion(c)
	switch {
	case err != nil:
		return err
	case version == noTables:
		return c.exec(fmt.Sprintf("BEGIN; %s INSERT INTO schema_version VALUES (%d); COMMIT", schema, schemaVersion))
	}
	return checkVersion(path, version)
}

// checkVersion refuses tables of another version than this build's.
func checkVersion(path string, version int64) error {
	remedy := ""
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		remedy = "run the version that wrote it, or a newer one"
	default:
		remedy = "it is older than release 0.1.0; move it away if the log is whole, and history is rebuilt from the log"
	}
	return fmt.Errorf("%w: %s has table version %d, this one knows %d: %s", ErrOtherVersion, path, version, schemaVersion, remedy)
}

// noTables is the version of an empty file.
const noTables = -1

// readVersion returns the version of the tables, or noTables.
func readVersion(c *conn) (version int64, err error) {
	ctx := context.Background()
	tables, err := c.integer(ctx, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'schema_version'")
	if err != nil || tables == 0 {
		return noTables, err
	}
	return c.integer(ctx, "SELECT version FROM schema_version")
}

package duckdb

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// schemaOf1 is the text that created the tables of version 1.
const schemaOf1 = `
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
`

// oldFile is a file as version 1 left it: record 0 with one event and a merge.
func oldFile(t *testing.T, version string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "h.duckdb")
	var db bindings.Database
	if err := openDatabase(path, Options{}.withDefaults(path), &db); err != nil {
		t.Fatal(err)
	}
	defer bindings.Close(&db)
	c, err := connect(db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	err = c.exec(schemaOf1 + `INSERT INTO schema_version VALUES (` + version + `);
		INSERT INTO events_recent VALUES (7, 0, 0, 0, 5, 1000, 'tested', '{"a":1}', 'k');
		INSERT INTO aliases VALUES (7, 0, 0, 0, 0, 5, 6);
		INSERT INTO progress VALUES (0, 1)`)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVersion1IsBroughtToThePresent: the file keeps what it has, takes
// transitions, and opens again.
func TestVersion1IsBroughtToThePresent(t *testing.T) {
	t.Parallel()
	path := oldFile(t, "1")
	for range 2 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if v := scalar(t, s, "SELECT version FROM schema_version"); v != schemaVersion {
			t.Fatalf("version %d", v)
		}
		set, err := s.Activity(context.Background(), activityOf("tested", 7))
		if err != nil || set.String() != "{6}" {
			t.Fatal(set, err)
		}
		position, err := s.Position(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		appendRecords(t, s, 0, position, position+20)
		var want int64
		for o := int64(1); o < position+20; o++ {
			want += int64(historytest.RecordTransitions(o))
		}
		if n := scalar(t, s, "SELECT count(*) FROM transitions"); n != want || want == 0 {
			t.Fatalf("%d transitions, want %d", n, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMigratedEqualsNew: the tables of a file that was migrated are those of a
// new one.
func TestMigratedEqualsNew(t *testing.T) {
	t.Parallel()
	tables := func(path string) (all []string) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.writer.query(context.Background(), "SELECT sql FROM duckdb_tables() ORDER BY table_name", nil, func(ch chunk) error {
			all = append(all, ch.text(0)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	got, want := tables(oldFile(t, "1")), tables(filepath.Join(t.TempDir(), "new.duckdb"))
	if len(want) != 7 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("migrated:\n%s\nnew:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestUnknownVersionIsRefused: before version 1 there was none.
func TestUnknownVersionIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Open(oldFile(t, "0"), Options{}); err == nil || !strings.Contains(err.Error(), "version 0, which never was") {
		t.Fatalf("got %v", err)
	}
}

func activityOf(event string, account uint64) query.ActivityQuery {
	return query.ActivityQuery{Cut: query.Cut{UpTo: 1}, Account: account, Leaf: historytest.CountLeaf(event, 1), AtMs: 1000}
}

package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// TestHistoryInSQL: a copy of history that a running server makes has every event that was
// acknowledged before, and the statements of docs/sql.md answer from it as they say.
func TestHistoryInSQL(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	data, copied := filepath.Join(base, "data"), filepath.Join(base, "out", "events.duckdb")
	ok(t, os.Mkdir(filepath.Dir(copied), 0o700))
	s := serve(t, base)
	const people = 30
	for i := range 4 * people {
		s.event(fmt.Sprintf(`{"event_type":%q,"user":{"email":"%d@x.io"},"properties":{"value":%d}}`, []string{"seen", "order_placed"}[i/people%2], i%people, 2*(i%people)))
	}
	s.event(`{"event_type":"seen","user":{"external_id":"late"}}`)
	s.event(`{"event_type":"seen","user":{"external_id":"late","email":"3@x.io"}}`) // is one of them
	run := func(want int, args ...string) (out, errs string) {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"history"}, args...)...)
		if code != want {
			t.Fatalf("%v: %d %s%s", args, code, out, errs)
		}
		return out, errs
	}
	if out, _ := run(0, "--data", data, "--to", copied); !strings.HasPrefix(out, "copied the history of all events until now to "+copied) {
		t.Error(out)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"is there already", 1, []string{"--data", data, "--to", copied}},
		{"is in the data directory", 1, []string{"--data", data, "--to", filepath.Join(data, "x.duckdb")}},
		{"does not exist", 2, []string{"--data", data, "--to", filepath.Join(base, "none", "x.duckdb")}},
		{"--to is empty", 2, []string{"--data", data}},
		{"no server answers", 1, []string{"--data", base, "--to", copied + "2"}},
	} {
		if _, errs := run(c.code, c.args...); !strings.Contains(errs, c.want) {
			t.Errorf("%v: %s, want %q", c.args, errs, c.want)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(copied)); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
	s.stop()
	db, err := sql.Open("duckdb", copied)
	ok(t, err)
	defer db.Close()
	text, err := os.ReadFile("../../docs/sql.md")
	ok(t, err)
	blocks := strings.Split(string(text), "```sql\n")[1:]
	answers := make([]string, len(blocks))
	for i, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		b = strings.Replace(b, "TO 'events'", fmt.Sprintf("TO '%s/events'", filepath.Dir(copied)), 1)
		answers[i] = duckRows(t, db, b)
	}
	for i, want := range []string{"", "order_placed", fmt.Sprintf("%d\n", people-26), fmt.Sprintf("%d\n", 4*people+2)} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("%s\nanswers %q, want %q", blocks[i], answers[i], want)
		}
	}
	var rows, seen, profiles int
	ok(t, db.QueryRow(fmt.Sprintf(`SELECT count(*) FROM '%s/events/*/*.parquet'`, filepath.Dir(copied))).Scan(&rows))
	ok(t, db.QueryRow(`SELECT count(*), count(DISTINCT profile) FROM profile_events WHERE event_type = 'seen'`).Scan(&seen, &profiles))
	if rows != 4*people+2 || seen != 2*people+2 || profiles != people {
		t.Errorf("%d rows in Parquet; %d events of %d profiles", rows, seen, profiles)
	}
}

// duckRows is the rows of an answer, a line for each.
func duckRows(t *testing.T, db *sql.DB, statement string) (lines string) {
	t.Helper()
	rows, err := db.Query(statement)
	if err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	ok(t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for k := range values {
			into[k] = &values[k]
		}
		ok(t, rows.Scan(into...))
		lines += fmt.Sprintln(values...)
	}
	ok(t, rows.Err())
	return lines
}

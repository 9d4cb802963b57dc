package history

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the driver "duckdb"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
)

// write makes a history file whose rows have these keys.
func write(t *testing.T, keys ...string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's.duckdb")
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE events (ordinal UINTEGER, event_type VARCHAR, idempotency_key VARCHAR)"); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if _, err := db.Exec("INSERT INTO events VALUES (?, 'page_viewed', ?)", i%3, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func keys(worker int, from, to uint64) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, string(payload.AppendKey(nil, worker, i)))
	}
	return out
}

func TestL2CheckOnce(t *testing.T) {
	acked := []loader.Range{{Worker: 0, From: 0, To: 10}, {Worker: 3, From: 5, To: 8}, {Worker: 3, From: 12, To: 15}}
	whole := append(append(keys(0, 0, 10), keys(3, 5, 8)...), keys(3, 12, 15)...)
	for _, c := range []struct {
		name   string
		keys   []string
		want   Once
		failed uint64
		ok     bool
	}{
		{"whole", whole, Once{Acked: 16, Rows: 16, DistinctKeys: 16, Profiles: 3}, 0, true},
		{"one missing", whole[1:], Once{Acked: 16, Rows: 15, DistinctKeys: 15, Missing: 1, Profiles: 3}, 99, false},
		{"one twice", append(whole[:16:16], whole[4]), Once{Acked: 16, Rows: 17, DistinctKeys: 16, Doubled: 1, Profiles: 3}, 99, false},
		{"one missing, one twice", append(whole[1:16:16], whole[4]), Once{Acked: 16, Rows: 16, DistinctKeys: 15, Missing: 1, Doubled: 1, Profiles: 3}, 99, false},
		{"in a gap, request failed", append(whole[:16:16], keys(3, 9, 11)...), Once{Acked: 16, Rows: 18, DistinctKeys: 18, Unacked: 2, Profiles: 3}, 2, true},
		{"in a gap, no request failed", append(whole[:16:16], keys(3, 9, 11)...), Once{Acked: 16, Rows: 18, DistinctKeys: 18, Unacked: 2, Profiles: 3}, 1, false},
		{"of another worker", append(whole[:16:16], keys(1, 0, 1)...), Once{Acked: 16, Rows: 17, DistinctKeys: 17, Unacked: 1, Profiles: 3}, 0, false},
		{"foreign", append(whole[:16:16], "mine", ""), Once{Acked: 16, Rows: 18, DistinctKeys: 18, Unacked: 2, Foreign: 2, Profiles: 3}, 99, false},
		{"empty", nil, Once{Acked: 16, Missing: 16}, 0, false},
	} {
		got, err := write(t, c.keys...).CheckOnce(context.Background(), acked)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if err := got.Err(c.failed); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	got := map[string]Key{}
	err := write(t, "a", "b", "a").Keys(context.Background(), func(k Key) error {
		got[k.Key] = k
		return nil
	})
	if err != nil || len(got) != 2 || got["a"].Rows != 2 || got["b"] != (Key{"b", "page_viewed", 1, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	stop := fmt.Errorf("stop")
	if err := write(t, "a").Keys(context.Background(), func(Key) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

func TestOpenDoesNotCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.duckdb")
	if _, err := Open(context.Background(), path); err == nil || !strings.Contains(err.Error(), "none.duckdb") {
		t.Errorf("error %v", err)
	}
}

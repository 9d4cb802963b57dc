package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver"
)

var kinds = []string{"node", "server"}

// lines are n events of seven people; every fourth is like the one before.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		k := i
		if i%4 == 3 {
			k--
		}
		fmt.Fprintf(&b, `{"event_type":"seen","user":{"external_id":"u%d"},"timestamp":%d,"properties":{"n":%d}}`+"\n", k%7, 1_700_000_000_000+1000*k, k)
	}
	return b.String()
}

// TestImportRefusedAgain (L2): the next import of a file tries the rows that were
// refused, names them again, and stores none twice.
func TestImportRefusedAgain(t *testing.T) {
	t.Parallel()
	const n = chunkRows + 2000
	rows := strings.SplitAfter(lines(n), "\n")
	refused := 0
	for i := range n {
		if i%700 == 3 || i == n-1 {
			rows[i] = fmt.Sprintf(`{"event_type":"seen","user":{"external_id":"u","colour":1},"timestamp":5,"properties":{"n":%d},"colour":1}`+"\n", i)
			refused++
		}
	}
	text := strings.Join(rows, "")
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, ingest.Options{})
			for i, skipped := range []uint64{0, n - uint64(refused)} {
				sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target(kind), nil)
				ok(t, err)
				if sum.Rows != n || sum.Skipped != skipped || sum.Accepted != n-uint64(refused)-skipped || sum.RefusedRows != uint64(refused) || sum.Refused[0].Line != 4 || !strings.Contains(sum.Refused[0].Reason, "colour") {
					t.Errorf("import %d: %+v", i+1, sum)
				}
			}
			w.settings(func(s *resolver.Settings) { s.IgnoreUnknownFields = true })
			for i, accepted := range []uint64{uint64(refused), 0} {
				sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target(kind), nil)
				ok(t, err)
				if sum.Rows != n || sum.Skipped != n-accepted || sum.Accepted != accepted || sum.RefusedRows != 0 {
					t.Errorf("after the settings allow it, %d: %+v", i+1, sum)
				}
			}
			if got := w.stored(); len(got) != n {
				t.Errorf("%d events, want %d", len(got), n)
			}
		})
	}
}

// TestImportOnce (L2): each row of a file is one event, identical ones too;
// importing it again changes nothing, whatever its packing.
func TestImportOnce(t *testing.T) {
	t.Parallel()
	const n = 12_345
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, ingest.Options{})
			text := lines(n)
			sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target(kind), nil)
			ok(t, err)
			if sum.Rows != n || sum.Accepted != n || sum.RefusedRows != 0 || sum.Skipped != 0 || sum.BytesRead != int64(len(text)) {
				t.Errorf("first: %+v", sum)
			}
			first := w.stored()
			if len(first) != n {
				t.Fatalf("%d events, want %d", len(first), n)
			}
			var packed [2]bytes.Buffer
			z := gzip.NewWriter(&packed[0])
			z.Write([]byte(text))
			z.Close()
			s, err := zstd.NewWriter(&packed[1])
			ok(t, err)
			s.Write([]byte(text))
			s.Close()
			for _, again := range []string{text, packed[0].String(), packed[1].String()} {
				sum, err := Run(t.Context(), source(t, "b", again), JSONLines, w.target(kind), nil)
				ok(t, err)
				if sum.Rows != n || sum.Skipped != n || sum.Accepted != 0 {
					t.Errorf("again: %+v", sum)
				}
			}
			// Standard input is the same content.
			stdin, err := Open(t.Context(), "-", strings.NewReader(text), t.TempDir())
			ok(t, err)
			defer stdin.Close()
			if sum, err = Run(t.Context(), stdin, JSONLines, w.target(kind), nil); err != nil || sum.Skipped != n {
				t.Errorf("from standard input: %+v, %v", sum, err)
			}
			if again := w.stored(); !slices.Equal(first, again) {
				t.Errorf("repeating made %d events of %d", len(again), len(first))
			}
			// A file with one row more is another file.
			if _, err := Run(t.Context(), source(t, "c.jsonl", text+`{"event_type":"seen","user":{"external_id":"u"},"timestamp":1}`), JSONLines, w.target(kind), nil); err != nil {
				t.Error(err)
			}
			if again := w.stored(); len(again) != 2*n+1 {
				t.Errorf("%d events, want %d", len(again), 2*n+1)
			}
		})
	}
}

// TestImportResumes (L2): an import that is stopped continues where it stopped,
// also by the other way in.
func TestImportResumes(t *testing.T) {
	t.Parallel()
	const n = 4*chunkRows + 17
	w := newWorld(t, ingest.Options{})
	text := lines(n)
	var skipped uint64
	for i := range 3 {
		ctx, stop := context.WithCancel(t.Context())
		sum, err := Run(ctx, source(t, "a.jsonl", text), JSONLines, w.target(kinds[i%2]), func(Summary) { stop() })
		stop()
		if !errors.Is(err, context.Canceled) || sum.Accepted < chunkRows || sum.Skipped < skipped {
			t.Fatalf("stopped: %+v, %v", sum, err)
		}
		skipped = sum.Skipped
	}
	sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target("server"), nil)
	if err != nil || sum.Rows != n || sum.Skipped < 3*chunkRows || sum.Skipped+sum.Accepted != n {
		t.Errorf("in the end: %+v, %v", sum, err)
	}
	if rows := w.stored(); len(rows) != n {
		t.Errorf("%d events, want %d", len(rows), n)
	}
}

// TestImportRefusedRows: a refused row names its line and reason, counts as a
// row, and does not stop the others.
func TestImportRefusedRows(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		`{"event_type":"a","user":{"email":"x@y.z"},"timestamp":"2024-01-01T00:00:00Z"}`,
		`nonsense`,
		``,
		`{"event_type":"a","user":{"email":"x@y.z"}}`,
		`{"event_type":"a","user":{"email":"x@y.z"},"timestamp":"2025-03-01T12:00:01Z"}`, // in the future
		`{"event_type":"a","user":{"email":"null"},"timestamp":5}`,                       // a placeholder: the state refuses it
		`{"event_type":"b","user":{"email":"x@y.z"},"timestamp":6},{"x":1}`,
		`"a string"`,
		`{"event_type":"c","user":{"email":"x@y.z"},"timestamp":7,"idempotency_key":"k"}`,
		`{"event_type":"c","user":{"email":"x@y.z"},"timestamp":8,"idempotency_key":"k"}`,
	}, "\n")
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, ingest.Options{})
			sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target(kind), nil)
			ok(t, err)
			if sum.Rows != 9 || sum.Accepted+sum.Duplicates != 3 || sum.RefusedRows != 6 || (kind == "node") != (sum.Duplicates == 1) {
				t.Errorf("have %+v", sum)
			}
			want := []Refused{{2, "JSON"}, {4, "timestamp"}, {5, "future"}, {6, "placeholder"}, {7, "JSON"}, {8, "object"}}
			for i, x := range want {
				if i >= len(sum.Refused) || sum.Refused[i].Line != x.Line || !strings.Contains(sum.Refused[i].Reason, x.Reason) {
					t.Fatalf("refused %+v, want %+v", sum.Refused, want)
				}
			}
			if rows := w.stored(); len(rows) != 2 {
				t.Errorf("stored %q", rows)
			}
		})
	}
}

// TestImportRefusedCSV: a row that is no CSV counts as a row too.
func TestImportRefusedCSV(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, ingest.Options{})
			text := "event_type,email,timestamp\na,x@y.z,2024-01-01\nb,x\"y,2024-01-01\nc,x@y.z\nd,x@y.z,2024-01-02\n"
			sum, err := Run(t.Context(), source(t, "a.csv", text), CSV, w.target(kind), nil)
			if err != nil || sum.Rows != 4 || sum.Accepted != 2 || sum.RefusedRows != 2 || sum.Refused[0].Line != 3 || sum.Refused[1].Line != 4 ||
				!strings.Contains(sum.Refused[0].Reason, "CSV") || !strings.Contains(sum.Refused[1].Reason, "cells") {
				t.Errorf("have %+v, %v", sum, err)
			}
			if rows := w.stored(); len(rows) != 2 || !strings.HasPrefix(rows[1], "d ") {
				t.Errorf("stored %q", rows)
			}
		})
	}
}

func TestImportNamesFewReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ingest.Options{})
	sum, err := Run(t.Context(), source(t, "a.jsonl", strings.Repeat("{}\n", 3*chunkRows)), JSONLines, w.target("node"), nil)
	if err != nil || sum.RefusedRows != 3*chunkRows || len(sum.Refused) != maxReasons {
		t.Errorf("%d refused, %d named, %v", sum.RefusedRows, len(sum.Refused), err)
	}
}

// TestImportServerTrouble (L2): a server that is busy, or whose answers get
// lost, gets each row once.
func TestImportServerTrouble(t *testing.T) {
	t.Parallel()
	const n = 2*chunkRows + 100
	w := newWorld(t, ingest.Options{})
	calls := 0
	w.broken = func(before bool, ctx *fasthttp.RequestCtx) bool {
		if before {
			calls++
		}
		switch {
		case before && calls%4 == 1: // busy
			ctx.SetStatusCode(503)
			return true
		case !before && calls%4 == 2: // stored, and the answer is lost
			return true
		case before && calls%4 == 3: // gone
			ctx.Conn().Close()
			return true
		}
		return false
	}
	sum, err := Run(t.Context(), source(t, "a.jsonl", lines(n)), JSONLines, w.target("server"), nil)
	if err != nil || sum.Accepted != n {
		t.Errorf("have %+v, %v", sum, err)
	}
	if rows := w.stored(); len(rows) != n {
		t.Errorf("%d events, want %d", len(rows), n)
	}
	if calls < 6 {
		t.Errorf("only %d calls: there was no trouble", calls)
	}
}

// TestImportSplits: chunks that the server finds too large are sent in parts; a
// row too large for any request is refused.
func TestImportSplits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ingest.Options{BodyBytes: 20_000, Limits: ingest.Limits{Events: 100}})
	big := `{"event_type":"big","user":{"external_id":"u"},"timestamp":1,"properties":{"x":"` + strings.Repeat("x", 30_000) + `"}}` + "\n"
	text := lines(333) + big + lines(20)
	sum, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target("server"), nil)
	if err != nil || sum.Rows != 354 || sum.Accepted != 353 || sum.RefusedRows != 1 || sum.Refused[0].Line != 334 || !strings.Contains(sum.Refused[0].Reason, "larger") {
		t.Errorf("have %+v, %v", sum, err)
	}
	if rows := w.stored(); len(rows) != 353 || strings.HasPrefix(rows[333], "big") {
		t.Errorf("%d events", len(rows))
	}
}

func TestImportRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ingest.Options{})
	wrong := ToServer(Server{Client: w.client, URL: w.creds.BaseURL, AppID: w.creds.AppID, AppSecret: "sk_live_wrong"})
	if _, err := Run(t.Context(), source(t, "a.jsonl", lines(1)), JSONLines, wrong, nil); err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("wrong credentials: %v", err)
	}
	if _, err := Run(t.Context(), source(t, "a.csv", "a,b\n1,2\n"), CSV, w.target("node"), nil); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("wrong columns: %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir(), nil, ""); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), nil, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	torn := filepath.Join(t.TempDir(), "torn.gz")
	ok(t, os.WriteFile(torn, []byte{0x1f, 0x8b, 8, 0, 0, 0}, 0o600))
	if _, err := Open(t.Context(), torn, nil, ""); err == nil {
		t.Error("a torn gzip file is taken")
	}
	if rows := w.stored(); len(rows) != 0 {
		t.Errorf("stored %q", rows)
	}
}

// TestImportChangedFile: what is not the content that was hashed is reported.
func TestImportChangedFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ingest.Options{})
	s := source(t, "a.jsonl", lines(10))
	ok(t, os.WriteFile(s.path, []byte(lines(11)), 0o600))
	if _, err := Run(t.Context(), s, JSONLines, w.target("node"), nil); !errors.Is(err, ErrChanged) {
		t.Errorf("have %v", err)
	}
}

// TestImportRivals (L2): two imports of one file at the same time store each row
// once between them; the second one reports that another is under way.
func TestImportRivals(t *testing.T) {
	t.Parallel()
	const n = 6 * chunkRows
	w := newWorld(t, ingest.Options{})
	text := lines(n)
	errs := make(chan error, 2)
	for _, kind := range kinds {
		s, target := source(t, "a.jsonl", text), w.target(kind)
		go func() {
			_, err := Run(t.Context(), s, JSONLines, target, nil)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil && !strings.Contains(err.Error(), "another import") {
			t.Error(err)
		}
	}
	_, err := Run(t.Context(), source(t, "a.jsonl", text), JSONLines, w.target("node"), nil)
	ok(t, err)
	if rows := w.stored(); len(rows) != n {
		t.Errorf("%d events, want %d", len(rows), n)
	}
}

// TestImportStdinLeavesNothing: the copy of standard input is removed.
func TestImportStdinLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(t.Context(), "-", strings.NewReader(lines(3)), dir)
	ok(t, err)
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files while it is open", len(left))
	}
	s.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%d files were left", len(left))
	}
}

package clickhouse

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/services"
)

// TestBrokenPartIsNamed: a part that ClickHouse takes out of use when it starts, since its
// files are damaged, is in the log, with its table and what to do.
func TestBrokenPartIsNamed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := services.OwnClickHouse(t)
	var text bytes.Buffer
	s := openOptions(t, Options{DSN: server.DSN(), DialTimeout: 30 * time.Second})
	appendRecords(t, s, 0, 0, 100)
	var dir string
	err := s.ask(ctx, "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active", func(r driver.Rows) error { return r.Scan(&dir) })
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "columns.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "count.txt")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	s.opts.Logger = slog.New(slog.NewTextHandler(&text, nil))
	if err := s.nameBrokenParts(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"table=events", "part=broken", "TRUNCATE TABLE commits"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log does not have %q: %s", want, text.String())
		}
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog/kafka"
)

// TestFirstCompanyOfSharedCredentials: of nodes that share a credentials file, one
// that finds the company of the file made by another leaves it alone; credentials
// of its own are void, and go.
func TestFirstCompanyOfSharedCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	eng, err := engine.Open(t.Context(), engine.Options{Dir: filepath.Join(dir, "data"), Logger: slog.New(slog.DiscardHandler)})
	ok(t, err)
	defer eng.Close(context.Background())
	found := func(file string) string {
		t.Helper()
		var out bytes.Buffer
		f := &founder{
			p: &process{stdout: &out}, c: &serveConfig{log: slog.New(slog.DiscardHandler), credentials: filepath.Join(dir, file)}, eng: eng,
			origin: "http://127.0.0.1:1",
			// It was asked first before the other's record came.
			exists: func(context.Context) (bool, error) { return true, nil },
		}
		ok(t, f.make(t.Context()))
		return out.String()
	}
	if out := found("shared.json"); strings.Contains(out, "void") {
		t.Errorf("the first: %s", out)
	}
	first, err := api.LoadCredentials(filepath.Join(dir, "shared.json"))
	ok(t, err)
	// A state that lost its company must not get another one.
	alone := &founder{c: &serveConfig{}, eng: eng, exists: func(context.Context) (bool, error) { return false, nil }}
	if err := alone.found(t.Context()); !errors.Is(err, errLogNotEmpty) {
		t.Errorf("a company beside another one's records: %v", err)
	}
	asked := 0
	late := &founder{c: &serveConfig{}, eng: eng, exists: func(context.Context) (bool, error) { asked++; return asked > 1, nil }}
	if err := late.found(t.Context()); err != nil {
		t.Errorf("where another node makes it at the same time: %v", err)
	}
	if out := found("shared.json"); strings.Contains(out, "void") {
		t.Errorf("the second, with the first's file: %s", out)
	}
	if c, err := api.LoadCredentials(filepath.Join(dir, "shared.json")); err != nil || c.AppSecret != first.AppSecret {
		t.Errorf("the shared file afterwards: %v %v", c, err)
	}
	if out := found("own.json"); !strings.Contains(out, "void: ") {
		t.Errorf("with a file of its own: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "own.json")); !os.IsNotExist(err) {
		t.Errorf("void credentials are left: %v", err)
	}
	// Where its records are lost, the file does not make the company again.
	var out bytes.Buffer
	lost := &founder{
		p: &process{stdout: &out}, eng: eng, exists: func(context.Context) (bool, error) { return false, nil },
		c: &serveConfig{log: slog.New(slog.DiscardHandler), credentials: filepath.Join(dir, "shared.json"), engine: engine.Options{Kafka: &kafka.Options{TopicOptions: kafka.TopicOptions{Topic: "other"}}}},
	}
	if err := lost.make(t.Context()); err == nil || !strings.Contains(err.Error(), "made before, and the topic other has no record of it") || out.Len() > 0 {
		t.Errorf("the company of the file, again: %v, printed %q", err, &out)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
			has: func(_ context.Context, account uint64) (bool, error) {
				return slices.Contains(eng.Node.Accounts(), account), nil
			},
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
	// What the data directory has is not the cause where the log is a topic.
	alone.c.engine.Kafka = &kafka.Options{TopicOptions: kafka.TopicOptions{Topic: "events"}}
	if err := alone.found(t.Context()); !errors.Is(err, errLogNotEmpty) || strings.Contains(err.Error(), "director") || !strings.Contains(err.Error(), "the topic events has some") || !strings.Contains(err.Error(), "Restore the topic") {
		t.Errorf("in a topic: %v", err)
	}
	asked := 0
	late := &founder{c: &serveConfig{}, eng: eng, exists: func(context.Context) (bool, error) { asked++; return asked > 1, nil }}
	if err := late.found(t.Context()); err != nil {
		t.Errorf("where another node makes it at the same time: %v", err)
	}
	first.CompanyMade = false // the start that made it was killed before it could say so
	ok(t, first.Save(filepath.Join(dir, "shared.json")))
	if out := found("shared.json"); strings.Contains(out, "void") {
		t.Errorf("the second, with the first's file: %s", out)
	}
	if c, err := api.LoadCredentials(filepath.Join(dir, "shared.json")); err != nil || !c.CompanyMade || c.AppSecret != first.AppSecret {
		t.Errorf("the shared file afterwards: %v %v", c, err)
	}
	if out := found("own.json"); !strings.Contains(out, "void: ") {
		t.Errorf("with a file of its own: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "own.json")); !os.IsNotExist(err) {
		t.Errorf("void credentials are left: %v", err)
	}
	markOlder(t, eng, filepath.Join(dir, "shared.json"))
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

// markOlder lets starts find the company of a file that an older build wrote, as the owner of
// the company's partition and as another node, and as one that cannot write the file.
func markOlder(t *testing.T, eng *engine.Engine, file string) {
	t.Helper()
	older, err := api.LoadCredentials(file)
	ok(t, err)
	older.CompanyMade = false
	account, err := older.Account()
	ok(t, err)
	var lines bytes.Buffer
	f := &founder{
		c: &serveConfig{log: slog.New(slog.NewTextHandler(&lines, nil)), credentials: file}, eng: eng,
		exists: func(context.Context) (bool, error) { return true, nil },
		has:    func(_ context.Context, n uint64) (bool, error) { return n == account, nil },
	}
	for name, start := range map[string]func() error{
		"owner": func() error { return f.found(t.Context()) },
		"other": func() error { done, err := f.mark(t.Context()); return errors.Join(err, unless(done)) },
	} {
		ok(t, os.WriteFile(file, unmarked(t, file), 0o600))
		ok(t, os.Chmod(file, 0o640))
		link := file + ".link"
		ok(t, os.Symlink(file, link))
		f.c.credentials = link
		if err := start(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link is %v, %v", name, info, err)
		}
		ok(t, os.Remove(link))
		c, err := api.LoadCredentials(file)
		if err != nil || !c.CompanyMade || c.AppSecret != older.AppSecret {
			t.Errorf("%s: the file of an older build: %+v, %v", name, c, err)
		}
		if info, err = os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: its mode is %v, %v", name, info.Mode(), err)
		}
	}
	if lines.Len() > 0 {
		t.Errorf("the log has %s", &lines)
	}
	// Where it cannot be written, like a secret that is mounted read-only, the start goes on.
	// No file can be made beside one of so long a name.
	f.c.credentials = filepath.Join(filepath.Dir(file), strings.Repeat("c", 250))
	ok(t, os.Rename(file, f.c.credentials))
	ok(t, os.WriteFile(f.c.credentials, unmarked(t, f.c.credentials), 0o600))
	if err := f.found(t.Context()); err != nil || !strings.Contains(lines.String(), "level=WARN") {
		t.Errorf("a file that cannot be written: %v %s", err, &lines)
	}
	ok(t, os.Rename(f.c.credentials, file))
	// That of another company is as it was.
	ok(t, older.Save(file))
	f.c.credentials, f.has = file, func(context.Context, uint64) (bool, error) { return false, nil }
	if done, err := f.mark(t.Context()); !done || err != nil {
		t.Errorf("beside another company: %v %v", done, err)
	}
	if c, err := api.LoadCredentials(file); err != nil || c.CompanyMade {
		t.Errorf("beside another company: %+v %v", c, err)
	}
	older.CompanyMade = true
	ok(t, older.Save(file))
}

// unmarked is what an older build wrote.
func unmarked(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	ok(t, err)
	var fields map[string]any
	ok(t, json.Unmarshal(b, &fields))
	delete(fields, "company_made")
	b, err = json.Marshal(fields)
	ok(t, err)
	return b
}

func unless(done bool) error {
	if done {
		return nil
	}
	return errors.New("it is not known yet")
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// damaged is a stopped data directory and what must come back from it.
type damaged struct {
	dir     string
	account uint64
	want    string
}

func openEngine(ctx context.Context, dir string) (*engine.Engine, error) {
	e, err := engine.Open(ctx, engine.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), MaxRecordBytes: 16 << 20,
		StateLimits: engine.StateLimits{CheckpointInterval: time.Hour}, HistoryLimits: engine.HistoryLimits{HistoryMemory: 256 << 20}})
	if err != nil {
		return nil, err
	}
	return e, e.Loaded(ctx)
}

// newDamaged makes a directory with two checkpoints, segments, merges and keys, and
// with a person erased if erase is set.
func newDamaged(t *testing.T, erase bool) *damaged {
	t.Helper()
	ctx := t.Context()
	d := &damaged{dir: filepath.Join(t.TempDir(), "data")}
	e, err := openEngine(ctx, d.dir)
	ok(t, err)
	creds, err := api.NewFirstCredentials(rand.Reader, "http://127.0.0.1:1", 1)
	ok(t, err)
	ok(t, creds.Bootstrap(ctx, e.Node, rand.Reader))
	d.account, _ = resolver.ParseAppID([]byte(creds.AppID))
	for i, definition := range []string{`{"kind":"activity","event":"bought"}`, `{"kind":"attribute","field":"attributes.n","op":">","value":20}`} {
		_, err := e.Node.Command(ctx, d.account, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: fmt.Sprint(i), Definition: json.RawMessage(definition)})
		ok(t, err)
	}
	for i := range 60 {
		d.submit(t, e, i)
		if i == 30 {
			ok(t, e.Node.Checkpoint())
		}
	}
	if erase {
		var id string
		ok(t, e.Node.Read(ctx, d.account, func(v *resolver.View) error {
			o, _ := v.Profiles().Find(resolver.IdentityEmail, "p7@x.io")
			id = v.Profiles().ID(o).String()
			return nil
		}))
		_, err := e.Node.Command(ctx, d.account, resolver.CommandContactErase, resolver.ContactErase{ID: id})
		ok(t, err)
		eventually.Holds(t, "the erasure", func() bool {
			pending := 1
			ok(t, e.Node.Read(ctx, d.account, func(v *resolver.View) error { pending = v.Erasures().Pending(); return nil }))
			return pending == 0
		})
	}
	d.want, err = d.describe(t, e)
	ok(t, err)
	ok(t, e.Close(ctx))
	return d
}

// submit sends four events, some of which merge profiles.
func (d *damaged) submit(t *testing.T, e *engine.Engine, i int) {
	t.Helper()
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: d.account, StampMs: time.Now().UnixMilli()}
	_, err := rand.Read(env.ID[:])
	ok(t, err)
	rec := eventlog.AppendEventCount(env.Append(nil), 4)
	for j := range 4 {
		ev := eventlog.Event{Type: []byte("seen"), Properties: fmt.Appendf(nil, `{"value":%d}`, i*j), IdempotencyKey: fmt.Appendf(nil, "%d-%d", i, j),
			Email: fmt.Appendf(nil, "p%d@x.io", (i*4+j)%40), Attributes: fmt.Appendf(nil, `{"n":%d}`, i)}
		if i%3 == 0 {
			ev.Type, ev.ExternalID = []byte("bought"), fmt.Appendf(nil, "x%d", (i*4+j)%40)
		}
		if i < 10 && j == 3 {
			ev.Email, ev.ExternalID = nil, fmt.Appendf(nil, "x%d", i)
		}
		rec = eventlog.AppendEvent(rec, &ev)
	}
	var out resolver.Outcome
	ok(t, e.Node.Submit(t.Context(), d.account, rec, &out))
}

// describe tells all that is known of the account: profiles, members, catalogue,
// timelines, entries and exits. It waits for history to be whole.
func (d *damaged) describe(t *testing.T, e *engine.Engine) (string, error) {
	t.Helper()
	ctx := t.Context()
	var b strings.Builder
	var cut query.Cut
	ordinals := map[uint32]string{}
	var err error
	eventually.Holds(t, "all segments are live", func() (allLive bool) {
		b.Reset()
		clear(ordinals)
		err = e.Node.Read(ctx, d.account, func(v *resolver.View) error {
			allLive = true
			cut = v.Cut()
			for _, s := range v.Segments().All() {
				m, live := v.Segments().Members(s.ID, v.LogTimeMs())
				allLive = allLive && live
				if live {
					fmt.Fprintln(&b, s.ID, m.String())
				}
			}
			for _, x := range v.EventTypes().List() {
				fmt.Fprintln(&b, x.Key, x.Count)
			}
			for i := range 40 {
				for _, kind := range []resolver.IdentityKind{resolver.IdentityEmail, resolver.IdentityExternalID} {
					name := fmt.Sprintf("p%d@x.io", i)
					if kind == resolver.IdentityExternalID {
						name = fmt.Sprintf("x%d", i)
					}
					o, found := v.Profiles().Find(kind, name)
					if !found {
						continue
					}
					p, err := v.Profiles().Get(o)
					if err != nil {
						return err
					}
					fmt.Fprintln(&b, name, string(mustMarshal(p)))
					ordinals[o] = name
				}
			}
			return nil
		})
		return allLive || err != nil
	})
	if err != nil {
		return "", err
	}
	eventually.Holds(t, "history is whole", func() bool {
		err = e.Node.WaitHistory(ctx, cut)
		return err == nil && !e.Node.Stats()[0].HistoryRebuilding || err != nil && !errors.Is(err, query.ErrUnavailable)
	})
	if err != nil {
		return "", fmt.Errorf("history is not whole: %w", err)
	}
	for _, o := range slices.Sorted(maps.Keys(ordinals)) {
		rows, err := e.History.Timeline(ctx, query.TimelineQuery{Cut: cut, Account: d.account, Ordinals: []uint32{o}, Limit: 1000})
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, ordinals[o], rows)
	}
	moves, err := e.History.Transitions(ctx, query.TransitionsQuery{Cut: cut, Account: d.account, Limit: 10_000})
	if err != nil {
		return "", err
	}
	u, err := e.History.Usage(ctx)
	fmt.Fprintln(&b, moves, u.Rows)
	return b.String(), err
}

func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// copy is the directory under another name, its hard links kept.
func (d *damaged) copy(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	inodes := map[uint64]string{}
	ok(t, filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.dir, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if entry.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if first, is := inodes[inodeOf(info)]; is {
			return os.Link(first, at)
		}
		inodes[inodeOf(info)] = at
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, b, 0o600)
	}))
	return to
}

// files lists the directory's files that hold anything that may be damaged.
func (d *damaged) files(t *testing.T) (out []string) {
	t.Helper()
	ok(t, filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(d.dir, path); err == nil && !entry.IsDir() && entry.Name() != "LOCK" && !strings.Contains(rel, "/live/") {
			out = append(out, rel)
		}
		return err
	}))
	return out
}

// written is the length of what a file holds: the log takes space in advance, which is zeros.
func written(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// fileDamage are the ways in which one file is damaged. A nil result removes it.
var fileDamage = []struct {
	name string
	do   func(b []byte) []byte
}{
	{"removed", func([]byte) []byte { return nil }},
	{"emptied", func([]byte) []byte { return []byte{} }},
	{"last byte lost", func(b []byte) []byte { return b[:max(0, len(b)-1)] }},
	{"half lost", func(b []byte) []byte { return b[:len(b)/2] }},
	{"first byte flipped", func(b []byte) []byte { return flippedAt(b, 0) }},
	{"middle byte flipped", func(b []byte) []byte { return flippedAt(b, len(b)/2) }},
	{"last byte flipped", func(b []byte) []byte { return flippedAt(b, len(b)-1) }},
	{"last byte that is written lost", func(b []byte) []byte { return b[:max(0, written(b)-1)] }},
	{"half of what is written lost", func(b []byte) []byte { return b[:written(b)/2] }},
	{"half of what is written zero", func(b []byte) []byte {
		return append(bytes.Clone(b[:written(b)/2]), make([]byte, len(b)-written(b)/2)...)
	}},
	{"middle byte of what is written flipped", func(b []byte) []byte { return flippedAt(b, written(b)/2) }},
	{"last byte that is written flipped", func(b []byte) []byte { return flippedAt(b, max(0, written(b)-1)) }},
}

func flippedAt(b []byte, at int) []byte {
	if len(b) == 0 {
		return []byte("x")
	}
	b = bytes.Clone(b)
	b[at] ^= 0x20
	return b
}

// check opens a damaged directory: it must give everything, or be refused in one line
// that names a file and a remedy.
func (d *damaged) check(t *testing.T, dir, what string) (refused bool) {
	t.Helper()
	e, err := openEngine(t.Context(), dir)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, dir) || !strings.Contains(text, "backup") && !strings.Contains(text, "muster repair") || strings.Contains(text, "goroutine") {
			t.Errorf("%s: refused without file, place and remedy in one line: %s", what, text)
		}
		return true
	}
	var got string
	eventually.Holds(t, "history is available", func() bool { // damage may be found meanwhile
		got, err = d.describe(t, e)
		return !errors.Is(err, query.ErrUnavailable)
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if got != d.want {
		t.Errorf("%s: something else came back: %s", what, firstDifference(got, d.want))
	}
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("%s: stop: %v", what, err)
	}
	return false
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestL1DamageMatrix: whatever one file of a stopped directory is damaged, in whatever
// way, a start gives everything that was acknowledged or is refused in one line; what
// is damaged beside the log never costs anything (L1). The same after an erasure, and
// where state and history are gone as well. MUSTER_LONG tries every file in every way,
// otherwise each file is damaged in some; the quick level damages every fifth file of the
// state, and those of the log, where state and history are there, in every other way.
func TestL1DamageMatrix(t *testing.T) {
	t.Parallel()
	long := testlevel.Long()
	other := newDamaged(t, false)
	for _, mode := range []struct {
		name         string
		erase, alone bool
	}{{"whole", false, false}, {"after an erasure", true, false}, {"without state and history", false, true}, {"after an erasure, without state and history", true, true}} {
		t.Run(mode.name, func(t *testing.T) {
			if mode.erase {
				testlevel.SkipQuick(t, "damages many directories")
			}
			t.Parallel()
			d := newDamaged(t, mode.erase)
			starts, refusals := 0, 0
			for i, path := range d.files(t) {
				inLog := strings.HasPrefix(path, "log/")
				if mode.alone && !inLog || !inLog && i%testlevel.Count(5, 1) != 0 {
					continue
				}
				b, err := os.ReadFile(filepath.Join(d.dir, path))
				ok(t, err)
				try := func(kind string, content []byte) {
					dir := d.copy(t)
					what := path + " " + kind
					at := filepath.Join(dir, path)
					switch {
					case content == nil:
						ok(t, os.Remove(at))
					case len(content) == len(b):
						f, err := os.OpenFile(at, os.O_RDWR, 0) // under all its names
						ok(t, err)
						_, err = f.WriteAt(content, 0)
						ok(t, errors.Join(err, f.Close()))
					default:
						ok(t, os.Truncate(at, 0))
						ok(t, os.WriteFile(at, content, 0o600))
					}
					if mode.alone {
						ok(t, os.RemoveAll(filepath.Join(dir, "state")))
						ok(t, os.RemoveAll(filepath.Join(dir, "history.duckdb")))
					}
					starts++
					if d.check(t, dir, what) {
						refusals++
						if !inLog {
							t.Errorf("%s: refused, though the log is whole", what)
						}
					}
					ok(t, os.RemoveAll(dir))
				}
				for j, damage := range fileDamage {
					here := long || inLog || (i+j)%3 == 0
					if inLog && !mode.alone && testlevel.Quick() {
						here = (i+j)%2 == 0 // all of them where the whole log is read again
					}
					if content := damage.do(b); here && !bytes.Equal(content, b) {
						try(damage.name, content)
					}
				}
				if foreign, err := os.ReadFile(filepath.Join(other.dir, path)); err == nil && !bytes.Equal(foreign, b) {
					try("of another directory", foreign)
				}
			}
			if !mode.alone {
				for _, gone := range [][]string{{"state"}, {"history.duckdb"}, {"state", "history.duckdb"}} {
					dir := d.copy(t)
					for _, g := range gone {
						ok(t, os.RemoveAll(filepath.Join(dir, g)))
					}
					starts++
					if d.check(t, dir, fmt.Sprint("without ", gone)) {
						t.Errorf("without %v: refused", gone)
					}
				}
			}
			t.Logf("%d starts, %d refused", starts, refusals)
		})
	}
}

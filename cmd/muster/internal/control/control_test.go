package control

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCalls: notes, results and errors arrive, in a directory with a short path and in
// one with a path too long for a socket; a socket that was left is replaced; and
// nothing stays behind.
func TestCalls(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	long := filepath.Join(t.TempDir(), strings.Repeat("a", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	for _, dir := range []string{short, long} {
		if _, err := Call(t.Context(), dir, Request{}, nil); !errors.Is(err, ErrNoServer) {
			t.Errorf("without a server: %v", err)
		}
		// As after kill -9.
		if err := os.WriteFile(filepath.Join(dir, socketFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Listen(dir, func(ctx context.Context, r Request, note func(string)) (string, error) {
			note("first")
			note("second")
			switch r.Backup {
			case "fail":
				return "", errors.New("the reason")
			case "wait":
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "did " + r.Backup, nil
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, socketFile))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		var notes []string
		note := func(n string) { notes = append(notes, n) }
		if done, err := Call(t.Context(), dir, Request{Backup: "x"}, note); err != nil || done != "did x" || strings.Join(notes, " ") != "first second" {
			t.Errorf("%q %v %q", done, err, notes)
		}
		if _, err := Call(t.Context(), dir, Request{Backup: "fail"}, nil); err == nil || err.Error() != "the reason" {
			t.Errorf("%v", err)
		}
		// One who goes away ends what was asked for; so does the end of the server.
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := Call(ctx, dir, Request{Backup: "wait"}, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		ended := make(chan error, 1)
		begun := make(chan struct{}, 2)
		go func() {
			_, err := Call(t.Context(), dir, Request{Backup: "wait"}, func(string) { begun <- struct{}{} })
			ended <- err
		}()
		<-begun
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "the server was stopped") || !strings.Contains(err.Error(), "run the command again") {
			t.Errorf("the server ended: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, socketFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it stays: %v", err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}

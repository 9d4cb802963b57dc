package foreign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// toolTime bounds a command: the longest, an installation, takes seconds where the
// network is near.
const toolTime = 10 * time.Minute

// Cached returns the folder that install filled for this content of the lock file.
// An installation that breaks off leaves no such folder, and of two at the same
// time one is kept.
func Cached(cache, name, lock string, install func(dir string) error) (string, error) {
	b, err := os.ReadFile(lock)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	dir := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(cache, "installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := install(fresh); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// Run runs a command in a folder. Its error has what the command printed.
func Run(dir, name string, args ...string) error {
	_, err := Output(dir, name, args...)
	return err
}

// Output is what a command prints to its standard output.
func Output(dir, name string, args ...string) (string, error) {
	return OutputWithin(toolTime, dir, name, args...)
}

// OutputWithin is Output for a command that may take another time.
func OutputWithin(most time.Duration, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	// The tools must not make calls of their own.
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "GOWORK=off", "PYTHONDONTWRITEBYTECODE=1")
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = tee{&out, &all}, &all
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, Last(all.String(), 6000))
	}
	return out.String(), nil
}

// tee writes to both.
type tee [2]*bytes.Buffer

func (w tee) Write(b []byte) (int, error) {
	w[0].Write(b)
	return w[1].Write(b)
}

// Last is the end of a text that is long.
func Last(s string, bytes int) string {
	if len(s) > bytes {
		return "…" + s[len(s)-bytes:]
	}
	return s
}

// CopyFile copies a file.
func CopyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

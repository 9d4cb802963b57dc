package generators

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
	"testing"
	"time"
)

// toolTime bounds a command: the longest, an installation, takes seconds where the
// network is near.
const toolTime = 10 * time.Minute

// tools are the programs that the test calls.
type tools struct {
	modules string // the folder node_modules
	python  string // of a virtual environment
	jar     string // openapi-generator
}

// installed returns the tools, after installing what is not in the cache. It ends
// the test when they cannot be had: as a failure where they are required.
func installed(t *testing.T) tools {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("MUSTER_REQUIRE_GENERATORS") != "" {
		absent = t.Fatalf
	}
	for _, tool := range []struct{ name, install string }{
		{"node", "Node.js 20 or later (Debian: nodejs)"}, {"npm", "npm (Debian: npm)"},
		{"java", "Java 17 or later (Debian: default-jre-headless)"}, {"python3", "Python 3.11 or later (Debian: python3)"},
	} {
		if _, err := exec.LookPath(tool.name); err != nil {
			absent("generators of clients are not tested: %s is missing; install %s", tool.name, tool.install)
		}
	}
	if err := exec.Command("python3", "-c", "import ensurepip, venv").Run(); err != nil {
		absent("generators of clients are not tested: Python's venv is missing; install it (Debian: python3-venv)")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		absent("generators of clients are not tested: no cache directory (set XDG_CACHE_HOME): %v", err)
	}
	cache = filepath.Join(cache, "muster-generators")
	npm, err := cached(cache, "npm", "testdata/typescript/package-lock.json", func(dir string) error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			if err := copyFile(filepath.Join("testdata/typescript", name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return run(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	if err != nil {
		absent("generators of clients are not tested: %v", err)
	}
	venv, err := cached(cache, "python", "testdata/python/requirements.txt", func(dir string) error {
		if err := run(".", "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return run(".", filepath.Join(dir, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
			"--require-hashes", "--requirement", "testdata/python/requirements.txt")
	})
	if err != nil {
		absent("generators of clients are not tested: %v", err)
	}
	jars, err := filepath.Glob(filepath.Join(venv, "lib/python*/site-packages/openapi_generator_cli/*.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatalf("the package openapi-generator-cli has %d jars: %v", len(jars), err)
	}
	return tools{modules: filepath.Join(npm, "node_modules"), python: filepath.Join(venv, "bin/python"), jar: jars[0]}
}

// cached returns the folder that install filled for this content of the lock file.
// An installation that breaks off leaves no such folder, and of two at the same
// time one is kept.
func cached(cache, name, lock string, install func(dir string) error) (string, error) {
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

// run runs a command in a folder. Its error has what the command printed.
func run(dir, name string, args ...string) error {
	_, err := output(dir, name, args...)
	return err
}

// output is what a command prints to its standard output.
func output(dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	// The tools call nobody on their own account.
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "GOWORK=off", "PYTHONDONTWRITEBYTECODE=1")
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = tee{&out, &all}, &all
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, last(all.String(), 6000))
	}
	return out.String(), nil
}

// tee writes to both.
type tee [2]*bytes.Buffer

func (w tee) Write(b []byte) (int, error) {
	w[0].Write(b)
	return w[1].Write(b)
}

// last is the end of a text that is long.
func last(s string, bytes int) string {
	if len(s) > bytes {
		return "…" + s[len(s)-bytes:]
	}
	return s
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

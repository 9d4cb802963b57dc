package generators

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/foreign"
)

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
	npm, err := foreign.Cached(cache, "npm", "testdata/typescript/package-lock.json", func(dir string) error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			if err := foreign.CopyFile(filepath.Join("testdata/typescript", name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return foreign.Run(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	if err != nil {
		absent("generators of clients are not tested: %v", err)
	}
	venv, err := foreign.Cached(cache, "python", "testdata/python/requirements.txt", func(dir string) error {
		if err := foreign.Run(".", "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return foreign.Run(".", filepath.Join(dir, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
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

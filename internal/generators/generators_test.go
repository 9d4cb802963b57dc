package generators

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/foreign"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) { serverprocess.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGenerators: tools take the document without a complaint, and the clients
// that they make work.
func TestGenerators(t *testing.T) {
	testlevel.SkipQuick(t, "generates clients")
	begin := time.Now()
	with := installed(t)
	t.Logf("the tools were there after %v", time.Since(begin).Round(time.Second))
	dir := t.TempDir()
	serverprocess.Binary(t)
	document := filepath.Join(dir, "openapi.json")
	t.Logf("muster was built after %v", time.Since(begin).Round(time.Second))
	origin := serverprocess.Start(t).Origin
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	ok(t, json.Unmarshal(fetch(t, origin, document), &doc))

	// They share two processors with other packages' tests: two at a time.
	t.Run("clients", func(t *testing.T) {
		t.Run("openapi-generator", func(t *testing.T) {
			t.Parallel()
			module := copied(t, "testdata/go", "go.mod", "go.sum", "opgtour/main.go")
			ok(t, foreign.Run(module, "java", "-jar", with.jar, "generate", "--generator-name", "go", "--input-spec", document, "--output", "opg", "--package-name", "opg",
				"--additional-properties", "withGoMod=false,disallowAdditionalPropertiesIfNotPresent=false",
				"--global-property", "apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"))
			tour(t, module, "opgtour.txt", func(credentials string) (string, error) {
				if err := foreign.Run(module, "go", "build", "-o", "tour", "./opgtour"); err != nil {
					return "", err
				}
				return foreign.Output(module, "./tour", credentials)
			})
		})
		t.Run("oapi-codegen", func(t *testing.T) {
			t.Parallel()
			module := copied(t, "testdata/go", "go.mod", "go.sum", "oapi-codegen.yaml", "tour/main.go")
			ok(t, os.Mkdir(filepath.Join(module, "oapi"), 0o755))
			ok(t, foreign.Run(module, "go", "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", document))
			tour(t, module, "tour.txt", func(credentials string) (string, error) {
				if err := foreign.Run(module, "go", "build", "-o", "binary", "./tour"); err != nil {
					return "", err
				}
				return foreign.Output(module, "./binary", credentials)
			})
		})
		t.Run("openapi-typescript", func(t *testing.T) {
			t.Parallel()
			project := copied(t, "testdata/typescript", "package.json", "tsconfig.json", "tour.ts")
			ok(t, os.Symlink(with.modules, filepath.Join(project, "node_modules")))
			ok(t, foreign.Run(project, "node", filepath.Join(with.modules, "openapi-typescript/bin/cli.js"), document, "--output", "schema.ts"))
			ok(t, foreign.Run(project, "node", filepath.Join(with.modules, "typescript/bin/tsc"), "--project", "."))
			tour(t, project, "tour.txt", func(credentials string) (string, error) {
				return foreign.Output(project, "node", "out/tour.js", credentials)
			})
		})
		t.Run("openapi-python-client", func(t *testing.T) {
			t.Parallel()
			project := copied(t, "testdata/python", "config.yaml", "tour.py")
			ok(t, foreign.Run(project, with.python, "-m", "openapi_python_client", "generate", "--path", document, "--output-path", "client", "--meta", "none",
				"--config", "config.yaml", "--fail-on-warning"))
			// It leaves out operations that it does not understand.
			made, err := filepath.Glob(filepath.Join(project, "client/api/*/*.py"))
			ok(t, err)
			operations := 0
			for _, methods := range doc.Paths {
				operations += len(methods)
			}
			for _, f := range made {
				if filepath.Base(f) != "__init__.py" {
					operations--
				}
			}
			if operations != 0 {
				t.Errorf("%d operations of the document are not in the client", operations)
			}
			tour(t, project, "tour.txt", func(credentials string) (string, error) {
				return foreign.Output(project, with.python, "tour.py", credentials)
			})
		})
		t.Run("redocly", func(t *testing.T) {
			t.Parallel()
			// PostHog's SDKs call /batch/, and /batch is another call of Segment's.
			for path := range doc.Paths {
				if strings.HasSuffix(path, "/") && path != "/batch/" {
					t.Errorf("%s ends in a slash", path)
				}
			}
			// Pages and health checks have no errors of the caller's.
			report, err := foreign.Output(dir, "node", filepath.Join(with.modules, "@redocly/cli/bin/cli.js"), "lint", "--extends", "recommended",
				"--skip-rule", "operation-4xx-response", "--skip-rule", "no-path-trailing-slash", "--format", "json", document)
			var problems struct {
				Totals struct{ Errors, Warnings int }
			}
			if err := json.Unmarshal([]byte(report), &problems); err != nil {
				t.Fatalf("no report: %v\n%s", err, report)
			}
			if err != nil || problems.Totals.Errors+problems.Totals.Warnings > 0 {
				t.Errorf("%v\n%s", err, foreign.Last(report, 6000))
			}
		})
	})
}

// copied is a folder with files of another.
func copied(t *testing.T, from string, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		ok(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755))
		ok(t, foreign.CopyFile(filepath.Join(from, f), filepath.Join(dir, f)))
	}
	return dir
}

// tour runs a tour against a server of its own and compares the lines it prints.
func tour(t *testing.T, dir, lines string, run func(credentials string) (string, error)) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", lines))
	ok(t, err)
	have, err := run(serverprocess.Start(t).Credentials())
	if err != nil {
		t.Fatalf("the tour ended after these lines:\n%s\n%v", have, err)
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(have, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("line %d is not as in %s:\n%s", i+1, lines, have)
		}
	}
}

// TestPinned: every tool is pinned to a version, and no file names where packages
// come from.
func TestPinned(t *testing.T) {
	address := regexp.MustCompile(`"resolved"|--(extra-)?index-url [^-]|--find-links [^-]`)
	for _, f := range []string{"typescript/package.json", "typescript/package-lock.json", "python/requirements.in", "python/requirements.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", f))
		ok(t, err)
		if found := address.FindString(string(b)); found != "" {
			t.Errorf("%s has %q", f, found)
		}
	}
	b, err := os.ReadFile("testdata/typescript/package.json")
	ok(t, err)
	var p struct{ Dependencies, DevDependencies map[string]string }
	ok(t, json.Unmarshal(b, &p))
	for _, list := range []map[string]string{p.Dependencies, p.DevDependencies} {
		for name, version := range list {
			if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
				t.Errorf("%s is pinned to %q, no version", name, version)
			}
		}
	}
}

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/loader"
)

const complete = `{"base_url":"http://127.0.0.1:8080/api/v1","base_url_v1":"http://127.0.0.1:8080/v1",
"console_url":"http://127.0.0.1:8080/console","account_id":"acc_1","app_id":"app_1","app_secret":"sk_live_x",
"api_key":"svc_live_x","console_email":"a@b","console_password":"p"}`

func read(t *testing.T, text string) (Credentials, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadCredentials(path)
}

func TestCredentials(t *testing.T) {
	c, err := read(t, complete)
	if err != nil {
		t.Fatal(err)
	}
	target, err := c.Target(true)
	if err != nil {
		t.Fatal(err)
	}
	if target.Address != "127.0.0.1:8080" || target.Path != "/api/v1/events/batch" || target.Expect != loader.ExpectOutcome ||
		target.Header[1] != [2]string{"X-App-Secret", "sk_live_x"} {
		t.Errorf("target %+v", target)
	}
	if target, err = c.Target(false); err != nil || target.Path != "/api/v1/events" {
		t.Errorf("target %+v, %v", target, err)
	}
}

func TestCredentialsAreRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"other machine":  {"127.0.0.1:8080/api", "192.0.2.7:8080/api"},
		"other console":  {"127.0.0.1:8080/console", "example.com/console"},
		"no secret":      {"sk_live_x", ""},
		"cut short":      {`"console_password":"p"}`, ""},
		"not plain http": {"http://127.0.0.1:8080/api", "https://127.0.0.1:8080/api"},
	} {
		text := strings.Replace(complete, change[0], change[1], 1)
		if _, err := read(t, text); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

func TestInstallationWantsAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewInstallation(dir, "muster", nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v", err)
	}
}

func TestInstallationWantsABinary(t *testing.T) {
	if _, err := NewInstallation(t.TempDir(), "", nil); err == nil || !strings.Contains(err.Error(), "binary") {
		t.Errorf("error %v", err)
	}
}

func TestDiskBytes(t *testing.T) {
	i, err := NewInstallation(filepath.Join(t.TempDir(), "new"), "muster", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"log/0/a": 10, "log/0/b": 5, "history.duckdb": 7} {
		path := filepath.Join(i.DataDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(i.DataDir(), "log/0/a"), filepath.Join(i.DataDir(), "log/a-again")); err != nil {
		t.Fatal(err)
	}
	sizes, err := i.DiskBytes()
	if err != nil || len(sizes) != 2 || sizes["log"] != 15 || sizes["history.duckdb"] != 7 {
		t.Errorf("%v, %v", sizes, err)
	}
}

package engine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClaimDir: a directory keeps its topic and its node's id; a file that was
// damaged is no new directory.
func TestClaimDir(t *testing.T) {
	dir := t.TempDir()
	if err := checkKind(dir, false); err != nil {
		t.Fatal(err)
	}
	log := logName{Cluster: "c", Topic: "t"}
	first, err := claimDir(dir, log, bytes.NewReader([]byte("12345678")))
	if err != nil || first.Kind != kindKafka || len(first.Node) != 16 {
		t.Fatalf("%+v %v", first, err)
	}
	if again, err := claimDir(dir, log, bytes.NewReader([]byte("87654321"))); err != nil || again != first {
		t.Errorf("%+v became %+v: %v", first, again, err)
	}
	for _, other := range []logName{{Cluster: "d", Topic: "t"}, {Cluster: "c", Topic: "u"}} {
		if _, err := claimDir(dir, other, bytes.NewReader(make([]byte, 8))); !errors.Is(err, ErrOtherLog) {
			t.Errorf("%v: %v", other, err)
		}
	}
	if err := checkKind(dir, false); !errors.Is(err, ErrOtherLog) || !strings.Contains(err.Error(), "--kafka-topic t") {
		t.Errorf("as files: %v", err)
	}
	if err := checkKind(dir, true); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "{", `{"kind":"other","cluster":"c","topic":"t","node":"n"}`, `{"kind":"kafka","cluster":"c","topic":"t"}`} {
		if err := os.WriteFile(filepath.Join(dir, logFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkKind(dir, true); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCheckKindOfFiles: what has events of its own does not become a topic's.
func TestCheckKindOfFiles(t *testing.T) {
	for _, name := range []string{"log", "state"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := checkKind(dir, true); !errors.Is(err, ErrOtherLog) {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkKind(dir, false); err != nil {
			t.Error(err)
		}
	}
}

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestSkipRecord (L3): a record that cannot be applied ends the process with
// its place named, and --skip-record leads past it for good.
func TestSkipRecord(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.stop()

	appendBad := func(id byte) (offset int64) {
		log, err := file.Open(filepath.Join(dir, "data", "log"), file.Options{})
		ok(t, err)
		bad := eventlog.Envelope{Kind: 99, Account: 1, ID: eventlog.RecordID{id}, StampMs: 1}
		offset, err = log.Append(t.Context(), 0, bad.Append(nil))
		ok(t, err)
		ok(t, log.Close())
		return offset
	}
	offset := appendBad(1)
	args := []string{"serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}
	for range 2 {
		code, out, errs := muster(t, "", args...)
		if code != 1 || !strings.Contains(errs, fmt.Sprintf("record %d of partition 0 cannot be applied", offset)) || !strings.Contains(errs, "docs/operations/") || strings.Contains(out, "ready") {
			t.Fatalf("a record of an unknown kind: %d\n%s%s", code, out, errs)
		}
	}
	skip := fmt.Sprintf("--skip-record=0:%d", offset)
	s = serve(t, dir, skip)
	if !strings.Contains(s.log(), "keep its --skip-record") {
		t.Errorf("the start does not say to keep the flag:\n%s", s.log())
	}
	s.event(`{"event_type":"seen","user":{"email":"b@x.io"}}`)
	if n := s.events("seen"); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	s.kill() // so that the next start replays over the record again
	s = serve(t, dir, skip)
	if n := s.events("seen"); n != 2 {
		t.Errorf("after kill -9 %d events, want 2", n)
	}
	s.stop()
	s = serve(t, dir, skip)
	if !strings.Contains(s.log(), "the checkpoint is beyond the record") {
		t.Errorf("the start does not say that the flag may go:\n%s", s.log())
	}
	s.stop()
	s = serve(t, dir)
	if n := s.events("seen"); n != 2 {
		t.Errorf("without the flag %d events, want 2", n)
	}
	s.stop()

	// One with nothing behind it is the last record of the checkpoint.
	skip = fmt.Sprintf("--skip-record=0:%d", appendBad(2))
	serve(t, dir, skip).stop()
	s = serve(t, dir, skip)
	if !strings.Contains(s.log(), "the checkpoint is beyond the record") {
		t.Errorf("the last record: the start does not say that the flag may go:\n%s", s.log())
	}
	s.stop()
	if code, out, errs := muster(t, "", "check", "--data", filepath.Join(dir, "data")); code != 0 {
		t.Errorf("check: %d\n%s%s", code, out, errs)
	}
	s = serve(t, dir)
	if n := s.events("seen"); n != 2 {
		t.Errorf("without the flag of the last record %d events, want 2", n)
	}
	s.stop()
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// importing is how an import stands.
func (s *server) importing(id string) (x api.Import) {
	s.t.Helper()
	s.console("GET", "/imports/"+id, "", &x)
	return x
}

// untilImport waits until an import is as wanted.
func (s *server) untilImport(id string, wanted func(api.Import) bool) api.Import {
	s.t.Helper()
	var x api.Import
	eventually.Succeeds(s.t, func() error {
		if x = s.importing(id); !wanted(x) {
			return fmt.Errorf("the import is %+v\n%s", x, s.log())
		}
		return nil
	})
	return x
}

// upload uploads a file in parts of at most 512 KiB.
func (s *server) upload(kind, text string) (x api.Import) {
	s.t.Helper()
	const most = 512 << 10
	for at := 0; at < len(text); at += most {
		part := text[at:min(len(text), at+most)]
		more := at+most < len(text)
		path, body := "/imports", any(api.ImportFile{Name: kind + ".csv", Kind: kind, Text: part, More: more})
		if at > 0 {
			path, body = "/imports/"+x.ID+"/parts", api.ImportPart{Offset: int64(at), Text: part, More: more}
		}
		b, err := json.Marshal(body)
		ok(s.t, err)
		s.console("POST", path, string(b), &x)
	}
	return x
}

// TestL2UploadsSurviveKills: a file of people and one of events are imported by a server
// that is killed again and again; each row is there once, ids of 19 digits as they were,
// and nothing of the files is left.
func TestL2UploadsSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	const people, events = 10_000, 30_000
	var p, e strings.Builder
	p.WriteString("email,name,customer id\n")
	for i := range people {
		fmt.Fprintf(&p, "zqperson%d@people.example,Person %d,%d\n", i, i, 1234567890123450000+i)
	}
	e.WriteString("email,event,timestamp,order id,value\n")
	for i := range events {
		fmt.Fprintf(&e, "zqperson%d@people.example,bought,2026-01-03 10:00:%02d,%d,%d\n", i%people, i%60, 1234567890123450000+i, i)
	}
	for _, f := range []struct {
		kind, text string
		rows       uint64
	}{{api.ImportPeople, p.String(), people}, {api.ImportEvents, e.String(), events}} {
		x := s.upload(f.kind, f.text)
		s.console("POST", "/imports/"+x.ID+"/start", `{}`, nil)
		read := uint64(0)
		for range 4 {
			read = s.untilImport(x.ID, func(x api.Import) bool { return x.Read > read || x.EndedAt != nil }).Read
			if read >= f.rows {
				t.Logf("%s: all rows were read before the next kill", f.kind)
				break
			}
			s.kill()
			s = serve(t, dir)
		}
		x = s.untilImport(x.ID, func(x api.Import) bool { return x.EndedAt != nil })
		if x.Status != api.ImportDone || x.Read != f.rows || x.Taken != f.rows || x.Refused+x.Duplicates != 0 {
			t.Fatalf("%+v", x)
		}
	}
	if n := s.events("bought"); n != events {
		t.Errorf("%d events", n)
	}
	if n := s.preview(`{"kind":"attribute","field":"external_id","op":"starts_with","value":"12345678901234"}`); n != people {
		t.Errorf("%d people have a number of 19 digits", n)
	}
	if n := s.preview(`{"kind":"activity","event":"bought","count":{"op":"=","value":3}}`); n != people {
		t.Errorf("%d people have bought three times", n)
	}
	if n := s.preview(`{"kind":"activity","event":"bought","where":[{"property":"order_id","op":"=","value":"1234567890123459999"}]}`); n != 1 {
		t.Errorf("%d people have one of the orders", n)
	}
	s.stop()
	if in := holds(t, filepath.Join(dir, "data", "uploads"), "zqperson"); len(in) > 0 {
		t.Errorf("%v are left", in)
	}
	ok(t, filepath.WalkDir(filepath.Join(dir, "data", "uploads"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	}))
	if code, out, errs := muster(t, "", "check", "--data", filepath.Join(dir, "data")); code != 0 || strings.Contains(out, "not a file of muster's") || !strings.Contains(out, "uploads: ") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestUploadMetrics: what becomes of uploaded files and of their rows is counted, and
// what they take of the disk.
func TestUploadMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	x := s.upload(api.ImportEvents, "email,event,timestamp\na@x.io,bought,2026-01-03 10:00:00\nb@x.io,bought,2026-01-03 10:00:00\nc@x.io,bought,never\n")
	s.console("POST", "/imports/"+x.ID+"/start", `{}`, nil)
	s.untilImport(x.ID, func(x api.Import) bool { return x.EndedAt != nil })
	again := s.upload(api.ImportPeople, "email\na@x.io\n")
	s.console("POST", "/imports/"+again.ID+"/cancel", "", nil)
	left := s.upload(api.ImportPeople, "email\nd@x.io\n")
	for metric, want := range map[string]float64{
		"muster_uploads_started_total":                   1,
		`muster_uploads_ended_total{result="done"}`:      1,
		`muster_uploads_ended_total{result="cancelled"}`: 1,
		`muster_uploads_ended_total{result="failed"}`:    0,
		`muster_upload_rows_total{result="taken"}`:       2,
		`muster_upload_rows_total{result="refused"}`:     1,
		`muster_upload_rows_total{result="duplicate"}`:   0,
		"muster_upload_bytes":                            float64(left.Bytes),
		"muster_upload_limit_bytes":                      1 << 30,
	} {
		if have := s.metric(metric); have != want {
			t.Errorf("%s is %v, want %v", metric, have, want)
		}
	}
	s.stop()
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestImport (L2): a file is imported once, through a server and into a
// directory, whatever is repeated.
func TestImport(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	var csv, jsonl strings.Builder
	csv.WriteString("event_type,external_id,timestamp,properties.value,geo.country\n")
	for i := range 300 {
		row := i / 2 // every row stands twice, and both are real
		fmt.Fprintf(&csv, "item_purchased,u%d,2024-01-0%dT00:00:00Z,%d.5,DE\n", row%50, 1+row%9, row)
		fmt.Fprintf(&jsonl, `{"event_type":"seen","user":{"external_id":"u%d"},"timestamp":%d}`+"\n", i%70, 1_700_000_000_000+i)
	}
	csv.WriteString("item_purchased,u1,2124-01-01T00:00:00Z,1,DE\n") // in the future
	shop, visits := filepath.Join(dir, "shop.csv"), filepath.Join(dir, "visits.jsonl")
	ok(t, os.WriteFile(shop, []byte(csv.String()), 0o600))
	ok(t, os.WriteFile(visits, []byte(jsonl.String()), 0o600))

	s := serve(t, dir)
	credentials, data := filepath.Join(dir, "credentials.json"), filepath.Join(dir, "data")
	for i, want := range []string{"301 rows: 0 stored before, 300 accepted, duplicates among them, 1 refused", "301 rows: 300 stored before, 0 accepted, duplicates among them, 1 refused"} {
		code, _, errs := muster(t, "", "import", "--to", s.origin, "--credentials", credentials, shop)
		if code != i || !strings.Contains(errs, want) || !strings.Contains(errs, "shop.csv:302: timestamp is in the future") {
			t.Errorf("import %d: %d %s", i+1, code, errs)
		}
		if n, sum := s.preview(buyers), s.preview(spender); s.events("item_purchased") != 300 || n != 50 || sum != 50 {
			t.Errorf("import %d: %d events, %d buyers, %d spenders", i+1, s.events("item_purchased"), n, sum)
		}
	}
	if n := s.preview(`{"kind":"attribute","field":"geo.country","op":"=","value":"DE"}`); n != 50 {
		t.Errorf("%d profiles in DE, want 50", n)
	}
	if n := s.preview(`{"kind":"activity","event":"item_purchased","window":{"last_days":30}}`); n != 0 {
		t.Errorf("%d bought in the last 30 days, the events are older", n)
	}
	code, _, errs := muster(t, "", "import", "--data", data, visits)
	if code != 1 || !strings.Contains(errs, "--to URL") {
		t.Errorf("into a directory that is in use: %d %s", code, errs)
	}
	s.stop()

	code, _, errs = muster(t, jsonl.String(), "import", "--data", data, "--format", "jsonl", "-")
	if code != 0 || !strings.Contains(errs, "300 rows: 0 stored before, 300 accepted") {
		t.Errorf("from standard input: %d %s", code, errs)
	}
	code, _, errs = muster(t, "", "import", "--data", data, visits, shop)
	if code != 1 || !strings.Contains(errs, "300 rows: 300 stored before") || !strings.Contains(errs, "301 rows: 300 stored before, 0 accepted, 0 duplicates, 1 refused") || !strings.Contains(errs, "nothing was imported from "+shop+": every row that is not stored was refused; remove the cause and import the file again") {
		t.Errorf("again: %d %s", code, errs)
	}
	bad := filepath.Join(dir, "bad.jsonl")
	ok(t, os.WriteFile(bad, []byte("{}\n"), 0o600))
	if code, _, errs = muster(t, "", "import", "--data", data, "--strict", bad); code != 1 || !strings.Contains(errs, "1 rows were refused") {
		t.Errorf("--strict: %d %s", code, errs)
	}
	// A file of which nothing came in is no success, also beside one that did.
	none, good := filepath.Join(dir, "none.jsonl"), filepath.Join(dir, "good.jsonl")
	ok(t, os.WriteFile(none, []byte("{}\n[]\n"), 0o600))
	ok(t, os.WriteFile(good, []byte(`{"event_type":"went","user":{"external_id":"u1"},"timestamp":1700000000000}`+"\n{}\n"), 0o600))
	code, _, errs = muster(t, "", "import", "--data", data, none, good)
	if lines := strings.Split(strings.TrimSpace(errs), "\n"); code != 1 || !strings.Contains(lines[len(lines)-1], "nothing was imported from "+none+": every row that is not stored was refused; ") || !strings.Contains(errs, "2 rows: 0 stored before, 1 accepted") {
		t.Errorf("every row refused: %d %s", code, errs)
	}
	ok(t, os.WriteFile(good, []byte("{}\n"+`{"event_type":"went","user":{"external_id":"u2"},"timestamp":1700000000000}`+"\n"), 0o600))
	if code, _, errs = muster(t, "", "import", "--data", data, good); code != 0 {
		t.Errorf("one row of two refused: %d %s", code, errs)
	}
	empty := filepath.Join(dir, "empty.jsonl")
	ok(t, os.WriteFile(empty, nil, 0o600))
	if code, _, errs = muster(t, "", "import", "--data", data, empty); code != 0 {
		t.Errorf("an empty file: %d %s", code, errs)
	}

	s = serve(t, dir)
	if n := s.preview(`{"kind":"activity","event":"seen"}`); n != 70 || s.events("seen") != 300 || s.events("item_purchased") != 300 {
		t.Errorf("%d visitors, %d visits, %d purchases", n, s.events("seen"), s.events("item_purchased"))
	}
	s.stop()
}

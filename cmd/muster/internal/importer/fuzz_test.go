package importer

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCSV: whatever a file holds, each of its rows is a JSON object or has a
// fault, and reading it ends.
func FuzzCSV(f *testing.F) {
	const head = "event_type,email,timestamp,properties.a.b,properties.c\n"
	for _, s := range []string{
		head + "a,x,1,2,3\n", head + "a,\"x\ny\",1,,\n", head + "a,x\"y,1\n\n,,,,\n", head + "\"", head + "a,b,-,-1e5,1 \n",
		"event_type,timestamp,phone,geo.x\r\na,b,c,\x00\xff\r\n", "", "\xef\xbb\xbf",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := newRowReader(CSV, strings.NewReader(text), CSVOptions{})
		if err != nil {
			return
		}
		last := 0
		for {
			var x row
			if err := r.next(&x); err != nil {
				if err != io.EOF {
					t.Fatalf("reading ended with %v", err)
				}
				return
			}
			if x.line <= last {
				t.Fatalf("line %d behind line %d", x.line, last)
			}
			last = x.line
			var object map[string]any
			if x.fault == "" && utf8.Valid(x.json) && json.Unmarshal(x.json, &object) != nil {
				t.Fatalf("row %q", x.json)
			}
		}
	})
}

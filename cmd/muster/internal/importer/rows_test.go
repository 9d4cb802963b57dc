package importer

import (
	"fmt"
	"strings"
	"testing"
)

func TestCSVRows(t *testing.T) {
	t.Parallel()
	const head = "event_type,email,timestamp"
	for _, x := range []struct{ name, text, json, fault string }{
		{"plain", head + "\na,x@y.z,2024-01-02T03:04:05Z\n", `{"event_type":"a","user":{"email":"x@y.z"},"timestamp":"2024-01-02T03:04:05Z"}`, ""},
		{"milliseconds", head + "\na,x@y.z,1700000000000", `{"event_type":"a","user":{"email":"x@y.z"},"timestamp":1700000000000}`, ""},
		{"leading zero is no number", head + "\na,x@y.z,017", `{"event_type":"a","user":{"email":"x@y.z"},"timestamp":"017"}`, ""},
		{"byte order mark, CR LF, quoted", "\xef\xbb\xbf" + head + "\r\n\"a\",\"x,\"\"y\",1700000000000\r\n", `{"event_type":"a","user":{"email":"x,\"y"},"timestamp":1700000000000}`, ""},
		{"empty cells are absent", head + ",phone,first_name\na,,1700000000000,,\n", `{"event_type":"a","timestamp":1700000000000}`, ""},
		{"identifiers are text", "event_type,timestamp,external_id,phone,first_name,last_name,idempotency_key\na,1700000000000,007,49,1,true,5\n",
			`{"event_type":"a","timestamp":1700000000000,"user":{"external_id":"007","phone":"49","first_name":"1","last_name":"true"},"idempotency_key":"5"}`, ""},
		{"types of cells", head + ",properties.n,properties.z,properties.t,properties.s,properties.x,properties.e\na,m,1700000000000,-1.5e3,007,true,True,null,1 \n",
			`{"event_type":"a","user":{"email":"m"},"timestamp":1700000000000,"properties":{"n":-1.5e3,"z":"007","t":true,"s":"True","x":"null","e":"1 "}}`, ""},
		{"objects", head + ",geo.country,attributes.plan.name,attributes.n,attributes.plan.level\na,m,1700000000000,DE,pro,,3\n",
			`{"event_type":"a","user":{"email":"m","geo":{"country":"DE"},"attributes":{"plan":{"name":"pro","level":3}}},"timestamp":1700000000000}`, ""},
		{"control characters", head + "\na,\"x\t\n\\\",1700000000000\n", `{"event_type":"a","user":{"email":"x\u0009\u000a\\"},"timestamp":1700000000000}`, ""},
		{"too few cells", head + "\na,x@y.z\n", "", "2 cells"},
		{"too many cells", head + "\na,x@y.z,1,2\n", "", "4 cells"},
		{"stray quote", head + "\na,x\"y,1\n", "", "not valid CSV"},
	} {
		t.Run(x.name, func(t *testing.T) {
			rows, err := rowsOf(t, CSV, x.text)
			if err != nil || len(rows) != 1 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			if r := rows[0]; string(r.json) != x.json || !strings.Contains(r.fault, x.fault) || (x.fault == "") != (r.fault == "") || r.line != 2 {
				t.Errorf("line %d: %s %q\nwant %s %q", r.line, r.json, r.fault, x.json, x.fault)
			}
		})
	}
}

func TestCSVColumns(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                         "empty",
		"event_type,email\n":                       "timestamp",
		"email,timestamp\n":                        "event_type",
		"event_type,timestamp\n":                   "external_id",
		"event_type,timestamp,email,email\n":       "twice",
		"event_type,timestamp,email,Value\n":       "not known",
		"event_type,timestamp,email,properties.\n": "not known",
		"event_type,timestamp,email,user.email\n":  "must be properties.x",
		"event_type,timestamp,email,properties.a,properties.a.b\n":       "object",
		"event_type,timestamp,email,properties.a.b,properties.a\n":       "members",
		"event_type,timestamp,\"email\n":                                 "first row",
		"event_type;timestamp;email\n":                                   "not known",
		"event_type,timestamp,email," + strings.Repeat("x", 5000) + "\n": "not known",
	} {
		if _, err := rowsOf(t, CSV, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: %v, want an error that says %q", text, err, says)
		}
	}
}

// TestCSVGoesOn: a row that is no CSV is one row; the others keep their numbers
// and lines.
func TestCSVGoesOn(t *testing.T) {
	t.Parallel()
	rows, err := rowsOf(t, CSV, "event_type,email,timestamp\na,1,2026-01-01\n\na,\"x\"y,2026-01-02\na,\"two\nlines\",2026-01-03\na,4,2026-01-04\n")
	ok(t, err)
	var lines []int
	for _, r := range rows {
		lines = append(lines, r.line)
	}
	if len(rows) != 4 || lines[0] != 2 || lines[1] != 4 || lines[2] != 5 || lines[3] != 7 || rows[1].fault == "" || rows[3].fault != "" {
		t.Errorf("have lines %v, %+v", lines, rows)
	}
}

// TestRowsBounded (Q1): a quotation mark that is never closed does not read the
// whole file into memory, nor does a line without end.
func TestRowsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*maxRowBytes)
	if _, err := rowsOf(t, CSV, "event_type,email,timestamp\na,\""+long+"\n"); err == nil || !strings.Contains(err.Error(), "quotation mark") {
		t.Errorf("an open quotation mark: %v", err)
	}
	rows, err := rowsOf(t, JSONLines, "{}\n"+long+"\n{\"a\":1}\n"+long)
	if err != nil || len(rows) != 4 || rows[1].fault == "" || len(rows[1].json) != 0 || string(rows[2].json) != `{"a":1}` || rows[2].line != 3 || rows[3].fault == "" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	rows, err := rowsOf(t, JSONLines, "\xef\xbb\xbf{\"a\":1}\r\n\n  \t\n {\"b\":2} \nnonsense\n"+`{"long":"`+strings.Repeat("y", 400_000)+`"}`)
	ok(t, err)
	if len(rows) != 4 || string(rows[0].json) != `{"a":1}` || string(rows[1].json) != `{"b":2}` || rows[1].line != 4 || string(rows[2].json) != "nonsense" || len(rows[3].json) != 400_011 || rows[3].line != 6 {
		t.Errorf("have %d rows: %.200s", len(rows), fmt.Sprint(rows))
	}
}

package importer

import (
	"strings"
	"testing"
)

// TestCSVColumnsHaveOneType: ids of 19 digits stay what they are, and zip codes are all
// text; declared types and names are kept to, and times are understood.
func TestCSVColumnsHaveOneType(t *testing.T) {
	t.Parallel()
	const head = "event_type,external_id,timestamp,"
	for _, x := range []struct{ name, columns, names, text, json, fault string }{
		{"ids of 19 digits", "", "", head + "properties.id\na,1,1700000000000,1234567890123456781\na,1,1700000000000,1234567890123456782\n",
			`{"event_type":"a","user":{"external_id":"1"},"timestamp":1700000000000,"properties":{"id":"1234567890123456781"}}`, ""},
		{"zip codes", "", "", head + "properties.zip\na,1,1700000000000,10115\na,1,1700000000000,01067\n",
			`{"event_type":"a","user":{"external_id":"1"},"timestamp":1700000000000,"properties":{"zip":"10115"}}`, ""},
		{"numbers", "", "", head + "properties.n,attributes.b\na,1,1700000000000,10.50,true\na,1,1700000000000,-1e3,false\n",
			`{"event_type":"a","user":{"external_id":"1","attributes":{"b":true}},"timestamp":1700000000000,"properties":{"n":10.50}}`, ""},
		{"declared as text", "properties.n:text", "", head + "properties.n\na,1,1700000000000,10\n",
			`{"event_type":"a","user":{"external_id":"1"},"timestamp":1700000000000,"properties":{"n":"10"}}`, ""},
		{"declared as number", "properties.n:number", "", head + "properties.n\na,1,1700000000000,ten\n", "", "declared as number"},
		{"mapped", "attributes.zip:text", "customer_no=external_id, when=timestamp,zip=attributes.zip", "event_type,customer_no,when,zip\na,0017,2026-01-03 10:00:00,5\n",
			`{"event_type":"a","user":{"external_id":"0017","attributes":{"zip":"5"}},"timestamp":"2026-01-03T10:00:00Z"}`, ""},
		{"Unix seconds", "", "", "event_type,external_id,timestamp\na,1,1767434400\n", `{"event_type":"a","user":{"external_id":"1"},"timestamp":1767434400000}`, ""},
		{"the days of a spreadsheet", "", "", "event_type,external_id,timestamp\na,1,45234\n", "", "timestamp 45234 is no Unix time, or one of 1970; write the date out as 2024-05-31 12:30:00"},
		{"milliseconds of 1970", "", "", "event_type,external_id,timestamp\na,1,17674344000\n", "", "timestamp 17674344000 is no Unix time"},
		{"milliseconds of 1973", "", "", "event_type,external_id,timestamp\na,1,100000000000\n", `{"event_type":"a","user":{"external_id":"1"},"timestamp":100000000000}`, ""},
		{"a date", "", "", "event_type,external_id,timestamp\na,1,2026-01-03\n", `{"event_type":"a","user":{"external_id":"1"},"timestamp":"2026-01-03T00:00:00Z"}`, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			o, err := ParseCSVOptions(x.columns, x.names)
			ok(t, err)
			rows, err := rowsWith(t, CSV, x.text, o)
			if err != nil || len(rows) == 0 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			if r := rows[0]; string(r.json) != x.json || !strings.Contains(r.fault, x.fault) || (x.fault == "") != (r.fault == "") {
				t.Errorf("%s %q\nwant %s %q", r.json, r.fault, x.json, x.fault)
			}
		})
	}
	for _, x := range [][3]string{
		{"id", "", "NAME:TYPE"}, {"id:integer", "", "NAME:TYPE"}, {"", "a", "NAME=FIELD"}, {"", "a=", "NAME=FIELD"}, {"a:text,a:number", "", "--columns: a occurs twice"}, {"", "a=email,a=phone", "--map: a occurs twice"},
		{"nobody:text", "", "no column"}, {"", "nobody=email", "no column"}, {"timestamp:text", "", "type of its own"}, {"external_id:number", "", "type of its own"},
	} {
		o, err := ParseCSVOptions(x[0], x[1])
		if err == nil {
			_, err = rowsWith(t, CSV, "event_type,external_id,timestamp\na,1,1700000000000\n", o)
		}
		if err == nil || !strings.Contains(err.Error(), x[2]) {
			t.Errorf("--columns %q --map %q: %v", x[0], x[1], err)
		}
	}
}

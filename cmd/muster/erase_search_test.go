package main

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	_ "github.com/duckdb/duckdb-go/v2" // the driver "duckdb"

	"github.com/musterhq/muster/eventlog/logtest"
)

// erasedPerson is a person whose every detail occurs nowhere else.
type erasedPerson struct{ tag string }

func (p erasedPerson) email() string { return p.tag + "-mail@people.example" }
func (p erasedPerson) phone() string { return "+49307" + p.digits() }
func (p erasedPerson) user(with ...string) obj {
	u := obj{"first_name": p.tag + "-Firstname", "last_name": p.tag + "-Lastname", "attributes": obj{p.tag + "_attribute": p.tag + "-attributevalue", "city": p.tag + "-city"}}
	for _, w := range with {
		u[w] = map[string]string{"email": p.email(), "external_id": p.tag + "-id", "phone": "+49 30 7" + p.digits()}[w]
	}
	return u
}
func (p erasedPerson) digits() string {
	sum := fnv.New32a()
	sum.Write([]byte(p.tag))
	return fmt.Sprintf("%07d", sum.Sum32()%10_000_000)
}
func (p erasedPerson) properties() obj {
	return obj{p.tag + "_property": p.tag + "-propertyvalue", "url": "https://shop.example/" + p.tag}
}

// texts are what no file may have of the person: what stands in every name and address,
// the number, and both as ids of providers have them.
func (p erasedPerson) texts() []string {
	number := strings.TrimPrefix(p.phone(), "+")
	return slices.Concat([]string{p.tag, number}, inBase64(p.tag), inBase64(number))
}

// inBase64 is how a text stands within longer data in base64: it has three forms, by where it
// begins, of which the signs are left out that depend on what is beside it.
func inBase64(text string) (forms []string) {
	for before := range 3 {
		all := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), text...))
		forms = append(forms, all[(before*8+5)/6:(before+len(text))*8/6])
	}
	return forms
}

// files is the content of a directory by the paths below it, in small letters. What is
// compressed is there as it is read, beside the bytes.
type files map[string][]byte

// lower puts the letters of ASCII in small ones, and leaves all other bytes as they are.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// readFiles reads a directory as it is. Files that are being written are skipped where they
// are gone meanwhile.
func readFiles(t *testing.T, dir string) files {
	t.Helper()
	out := files{}
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // removed meanwhile
		}
		if b, err := os.ReadFile(path); err == nil {
			out[strings.TrimPrefix(path, dir)] = lower(b)
			if packed := logtest.Packed(b); len(packed) > 0 {
				out[strings.TrimPrefix(path, dir)+" (read)"] = lower(packed)
			}
		}
		return nil
	}))
	return out
}

// readStopped reads a directory that no server has open, and all that its tables hold: those
// of state, also the ones that nothing refers to any more, and those of history.
func readStopped(t *testing.T, dir string) files {
	t.Helper()
	out := readFiles(t, dir)
	for path, b := range maps.Clone(out) {
		switch {
		case len(b) > 8 && string(b[len(b)-8:]) == "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3":
			out[path+" (read)"] = lower(readTable(t, dir+path))
		case len(b) > 12 && string(b[8:12]) == "duck" && !strings.HasSuffix(path, ".wal"):
			out[path+" (read)"] = lower(readHistory(t, dir+path))
		}
	}
	return out
}

// readTable is all keys and values of a table of Pebble, which it compresses.
func readTable(t *testing.T, path string) (out []byte) {
	t.Helper()
	f, err := vfs.Default.Open(path)
	ok(t, err)
	file, err := sstable.NewSimpleReadable(f)
	ok(t, err)
	r, err := sstable.NewReader(t.Context(), file, sstable.ReaderOptions{})
	ok(t, err)
	defer r.Close()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	ok(t, err)
	defer it.Close()
	for kv := it.First(); kv != nil; kv = it.Next() {
		v, _, err := kv.Value(nil)
		ok(t, err)
		out = append(append(append(out, kv.K.UserKey...), '\n'), v...)
		out = append(out, '\n')
	}
	ok(t, it.Error())
	return out
}

// readHistory is all rows of the tables of a history file, whose columns are compressed.
func readHistory(t *testing.T, path string) (out []byte) {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	ok(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1) // an attached file belongs to a connection
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("ATTACH '%s' AS history (READ_ONLY)", path))
	ok(t, err)
	column := func(query string) (values []string) {
		rows, err := db.QueryContext(t.Context(), query)
		ok(t, err)
		defer rows.Close()
		for rows.Next() {
			var v string
			ok(t, rows.Scan(&v))
			values = append(values, v)
		}
		ok(t, rows.Err())
		return values
	}
	for _, table := range column("SELECT table_name FROM duckdb_tables() WHERE database_name = 'history'") {
		for _, row := range column(fmt.Sprintf("SELECT CAST(row AS VARCHAR) FROM history.main.%s AS row", table)) {
			out = append(append(out, row...), '\n')
		}
	}
	return out
}

// with lists the files that hold any of the texts, in any letter case.
func (f files) with(texts ...string) (in []string) {
	lowered := make([][]byte, len(texts))
	for i, text := range texts {
		lowered[i] = lower([]byte(text))
	}
	for path, b := range f {
		if slices.ContainsFunc(lowered, func(text []byte) bool { return bytes.Contains(b, text) }) {
			in = append(in, path)
		}
	}
	slices.Sort(in)
	return in
}

// around is what stands around the first of the texts in a file.
func (f files) around(path string, texts ...string) string {
	for _, text := range texts {
		if at := bytes.Index(f[path], lower([]byte(text))); at >= 0 {
			return fmt.Sprintf("%q", f[path][max(0, at-160):min(len(f[path]), at+160)])
		}
	}
	return ""
}

// holds lists the files below a directory that hold a text in any letter case.
func holds(t *testing.T, dir, text string) (in []string) {
	t.Helper()
	return readFiles(t, dir).with(text)
}

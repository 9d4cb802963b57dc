package backup

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSplice: of a segment that both have, and whose copy in the left log is damaged, the
// records of the backup stay, and those behind them come from the left log, also where the
// backup's copy was written ahead with zeros.
func TestSplice(t *testing.T) {
	records := append(bytes.Repeat([]byte("record"), 200_000), 0, 0) // the last one ends with zeros
	more := bytes.Repeat([]byte("more"), 300_000)
	damaged := bytes.Clone(records)
	damaged[77]++
	for name, x := range map[string]struct{ have, left []byte }{
		"written ahead":           {append(bytes.Clone(records), make([]byte, 3<<20)...), append(append(bytes.Clone(damaged), more...), make([]byte, 100)...)},
		"not written ahead":       {records, append(bytes.Clone(damaged), more...)},
		"only the left log ahead": {records, append(bytes.Clone(damaged), make([]byte, 3<<20)...)},
		"nothing behind":          {append(bytes.Clone(records), make([]byte, 3<<20)...), damaged},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{FS: vfs.NewMem()}
			write(t, o.FS, "have", x.have)
			write(t, o.FS, "left", x.left)
			if err := o.splice("left", "have"); err != nil {
				t.Fatal(err)
			}
			f, err := o.FS.Open("have")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var got bytes.Buffer
			if _, err := got.ReadFrom(f); err != nil {
				t.Fatal(err)
			}
			want := append(bytes.Clone(records), x.left[len(damaged):]...)
			if have := bytes.TrimRight(got.Bytes(), "\x00"); !bytes.Equal(have, bytes.TrimRight(want, "\x00")) {
				t.Errorf("%d bytes, want %d", len(have), len(want))
			}
		})
	}
}

func write(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

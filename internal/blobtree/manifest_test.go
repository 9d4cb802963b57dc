package blobtree_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/blobtree"
)

// FuzzManifest: no bytes make the decoder panic, and what it takes is safe to
// write to a directory and has the pieces its sizes say.
func FuzzManifest(f *testing.F) {
	piece := strings.Repeat("0a", 32) + "-" + strings.Repeat("0b", 8)
	for _, body := range []string{
		`{"version":1,"meta":null,"piece_bytes":16,"files":[{"path":"a/b","size":17,"pieces":["` + piece + `","` + piece + `"]}]}`,
		`{"version":1,"piece_bytes":16,"files":[{"path":"../b","size":0,"pieces":[]}]}`,
		`{"version":1,"piece_bytes":16,"files":[{"path":"b","size":-1,"pieces":[]}]}`,
		`{"version":1,"piece_bytes":0,"files":[{"path":"b","size":1,"pieces":[]}]}`,
		`{"version":9}`, `{`, ``,
	} {
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		if sum {
			b = append(b, blobtree.SumLine(b)...)
		}
		m, err := blobtree.DecodeManifest(b)
		if err != nil {
			return
		}
		for _, f := range m.Files {
			if strings.HasPrefix(f.Path, "/") || strings.Contains("/"+f.Path+"/", "/../") || f.Path == "" {
				t.Fatalf("path %q", f.Path)
			}
			if f.Size < 0 || int64(len(f.Pieces)) != (f.Size+m.PieceBytes-1)/m.PieceBytes {
				t.Fatalf("%d pieces of %d bytes for %d", len(f.Pieces), m.PieceBytes, f.Size)
			}
		}
	})
}

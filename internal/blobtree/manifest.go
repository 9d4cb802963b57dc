package blobtree

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// ErrDamaged means that what is stored is not what was put: an object is
// missing, or its bytes differ.
var ErrDamaged = errors.New("what is stored is damaged")

// ErrNewer means that a later version of Muster wrote this.
var ErrNewer = errors.New("written by a later version of Muster; use that one")

const (
	manifestVersion = 1
	// maxManifestBytes bounds what is read of a manifest.
	maxManifestBytes = 256 << 20
	// maxPieceBytes bounds the size of pieces.
	maxPieceBytes = 1 << 30
)

// Manifest is a version of a tree.
type Manifest struct {
	Version int `json:"version"`
	// Meta is what the writer says about the version.
	Meta json.RawMessage `json:"meta"`
	// PieceBytes is the size of the pieces of a file, but for its last.
	PieceBytes int64  `json:"piece_bytes"`
	Files      []File `json:"files"`
}

// File is a file of a tree.
type File struct {
	Path   string   `json:"path"` // slashes between names, from the tree's root
	Size   int64    `json:"size"`
	Pieces []string `json:"pieces"` // names of the objects with its content
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for i := range m.Files {
		n += m.Files[i].Size
	}
	return n
}

// encode is the manifest's JSON and a line with its SHA-256.
func (m *Manifest) encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(b, sumLine(b)...), nil
}

func sumLine(b []byte) string {
	sum := sha256.Sum256(b)
	return "\nsha256 " + hex.EncodeToString(sum[:]) + "\n"
}

// decodeManifest reads what encode wrote. Errors wrap [ErrDamaged] or [ErrNewer].
func decodeManifest(b []byte) (*Manifest, error) {
	line := len(sumLine(nil))
	if len(b) < line || sumLine(b[:len(b)-line]) != string(b[len(b)-line:]) {
		return nil, fmt.Errorf("%w: the manifest's checksum", ErrDamaged)
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(b[:len(b)-line]))
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: the manifest: %w", ErrDamaged, err)
	}
	if m.Version > manifestVersion {
		return nil, ErrNewer
	}
	if m.Version < 1 || m.PieceBytes <= 0 || m.PieceBytes > maxPieceBytes {
		return nil, fmt.Errorf("%w: the manifest's version or size of pieces", ErrDamaged)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !fs.ValidPath(f.Path) || f.Path == "." || seen[f.Path] {
			return nil, fmt.Errorf("%w: the manifest names the file %q", ErrDamaged, f.Path)
		}
		seen[f.Path] = true
		if f.Size < 0 || int64(len(f.Pieces)) != pieces(f.Size, m.PieceBytes) {
			return nil, fmt.Errorf("%w: the manifest's pieces of %s", ErrDamaged, f.Path)
		}
		for _, p := range f.Pieces {
			if _, ok := pieceHash(p); !ok {
				return nil, fmt.Errorf("%w: the manifest names the piece %q", ErrDamaged, p)
			}
		}
	}
	return m, nil
}

// pieces is how many pieces a file has.
func pieces(size, pieceBytes int64) int64 { return (size + pieceBytes - 1) / pieceBytes }

type hash [sha256.Size]byte

// pieceSalt is the number of random bytes in the name of a piece.
const pieceSalt = 8

// pieceName is the name of a piece.
func pieceName(h hash, salt [pieceSalt]byte) string {
	return hex.EncodeToString(h[:]) + "-" + hex.EncodeToString(salt[:])
}

// pieceHash reads the hash of the content out of a piece's name.
func pieceHash(name string) (h hash, ok bool) {
	if len(name) != 2*len(h)+1+2*pieceSalt || name[2*len(h)] != '-' {
		return h, false
	}
	var salt [pieceSalt]byte
	_, errHash := hex.Decode(h[:], []byte(name[:2*len(h)]))
	_, errSalt := hex.Decode(salt[:], []byte(name[2*len(h)+1:]))
	return h, errHash == nil && errSalt == nil && name == pieceName(h, salt)
}

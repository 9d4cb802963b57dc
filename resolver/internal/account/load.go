package account

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
)

// Load takes back an entity of the account that a checkpoint has; known is false for one
// that is the machine's.
func (a *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	for _, f := range a.Features.list {
		if known, err := f.Load(kind, name, value); known || err != nil {
			return known, err
		}
	}
	switch kind {
	case state.EntitySegment:
		s := new(Segment)
		if err = json.Unmarshal(value, s); err == nil {
			s.Root, err = segment.Parse(s.Definition, segment.Stored())
		}
		if err == nil {
			s.Definition = s.Root.Canonical() // earlier checkpoints have escapes in it
		}
		a.Segments[name] = s
	case state.EntityImport:
		var file [32]byte
		if len(name) != len(file) || len(value) != 8 {
			return true, fmt.Errorf("import entry of the wrong length")
		}
		copy(file[:], name)
		a.Imports[file] = binary.LittleEndian.Uint64(value)
	case state.EntitySet:
		err = a.LoadSet(name, value)
	case state.EntityCaseFold:
		err = a.Profiles.LoadCaseFold(name)
	default:
		return false, nil
	}
	return true, err
}

package checkpoint

import (
	"encoding/json"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// origin is what a store says of itself: the state before the record at Next of the
// log of that name. It is written with every checkpoint and compared with the
// manifest, so that a store which opens as an older state is noticed.
type origin struct {
	Log  string `json:"log"`
	Next int64  `json:"next"`
}

var originKey = []byte{state.TableOrigin}

func writeOrigin(db *pebble.DB, f Manifest) error {
	return db.Set(originKey, must.JSON(origin{f.Log, f.Next}), pebble.NoSync)
}

// CheckOrigin compares what a store says of itself with the manifest it was
// restored for.
func CheckOrigin(s *state.Store, f Manifest, dir string) error {
	if f.Version == 0 {
		return nil // the empty state
	}
	v, closer, err := s.DB.Get(originKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return statefiles.Damaged(dir, "the store does not say which state it is")
	}
	if err != nil {
		return err
	}
	var have origin
	err = json.Unmarshal(v, &have)
	if e := closer.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if want := (origin{f.Log, f.Next}); have != want {
		return statefiles.Damaged(dir, "the store is the state at record %d of %s, the manifest is of record %d of %s", have.Next, have.Log, want.Next, want.Log)
	}
	return nil
}

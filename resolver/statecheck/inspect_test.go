package statecheck

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestInspectMissingState: a state that is gone beside a log with records is damage that
// a start mends.
func TestInspectMissingState(t *testing.T) {
	fs := vfs.NewMem()
	found, err := Inspect(fs, "state", "log", 0, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Err == nil || !found[0].Repairable {
		t.Errorf("%+v", found)
	}
	if found, err = Inspect(fs, "state", "log", 0, 0, 0); err != nil || len(found) != 0 {
		t.Errorf("beside an empty log: %+v, %v", found, err)
	}
}

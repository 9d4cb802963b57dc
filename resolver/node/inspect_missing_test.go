package node

import "testing"

// TestInspectMissingState: a state that is gone beside a log with records is damage that
// a start mends.
func TestInspectMissingState(t *testing.T) {
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	if err := fs.RemoveAll("state"); err != nil {
		t.Fatal(err)
	}
	found, err := InspectState(fs, "state", "log", 0, 0, d.next)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Err == nil || !found[0].Repairable {
		t.Errorf("%+v", found)
	}
	if found, err = InspectState(fs, "state", "log", 0, 0, 0); err != nil || len(found) != 0 {
		t.Errorf("beside an empty log: %+v, %v", found, err)
	}
}

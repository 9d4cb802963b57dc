package campaigns

import (
	"slices"
	"strings"
	"testing"
)

// TestForget: errors that may name a person go with it; those that name no person stay, whatever
// the person was called.
func TestForget(t *testing.T) {
	var c RunCounts
	c.note("550 user ann", false)
	c.note("550 user (recipient)", true)
	c.note("550 policy", false)
	c.note("550 user ann", true) // noted before, as one that may name a person
	before := c.clone(2)
	x, changed := c.forget(func(text string) bool { return strings.Contains(text, "user") })
	if want := []string{"550 user (recipient)", "550 policy"}; !changed || !slices.Equal(x.Errors, want) || x.Anonymous != 1 {
		t.Errorf("%+v", x)
	}
	if y, changed := x.forget(func(string) bool { return false }); changed || !slices.Equal(y.Errors, x.Errors) || y.Anonymous != x.Anonymous {
		t.Errorf("%+v", y)
	}
	if len(before.Errors) != 2 || before.Anonymous != 2 {
		t.Errorf("%+v", before)
	}
}

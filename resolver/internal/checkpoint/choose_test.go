package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// TestNoneWholeIsOneLine: however many checkpoints are damaged, a start that is refused for
// it says so in one line, with each fault.
func TestNoneWholeIsOneLine(t *testing.T) {
	err := NoneWhole(7, statefiles.Damaged("checkpoints/9/keys/1.run", "checksum"), statefiles.Damaged("checkpoints/8/keys/1.run", "checksum"))
	text := err.Error()
	if strings.Contains(text, "\n") || !strings.Contains(text, "starts at 7") || !strings.Contains(text, "9/keys") || !strings.Contains(text, "8/keys") {
		t.Error(text)
	}
	if !errors.Is(err, statefiles.ErrDamaged) {
		t.Errorf("%v is no damage", err)
	}
}

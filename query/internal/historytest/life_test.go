package historytest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterhq/muster/query"
)

// TestAnswered: a history that is unavailable is asked again, other errors are told at once.
func TestAnswered(t *testing.T) {
	asked := 0
	n, err := answered(t, "history", func() (int, error) {
		if asked++; asked < 3 {
			return 0, fmt.Errorf("activity: %w", query.ErrUnavailable)
		}
		return 7, nil
	})
	if n != 7 || err != nil || asked != 3 {
		t.Errorf("%d, %v after %d questions", n, err, asked)
	}
	fault := errors.New("a fault")
	asked = 0
	if _, err := answered(t, "history", func() (int, error) { asked++; return 0, fault }); !errors.Is(err, fault) || asked != 1 {
		t.Errorf("%v after %d questions", err, asked)
	}
}

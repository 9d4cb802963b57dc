package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/services"
)

// TestOwner: of logs that open a new database at once one gets it, for good; a
// store without an owner may look.
func TestOwner(t *testing.T) {
	opts := Options{DSN: services.ClickHouse(t), Database: services.DatabaseName(t)}
	open := func(owner string) error {
		o := opts
		o.Owner = owner
		s, err := Open(context.Background(), o)
		if err != nil {
			return err
		}
		return s.Close()
	}
	var winner atomic.Pointer[string]
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			owner := fmt.Sprintf("log '%d' \\", n)
			switch err := open(owner); {
			case err == nil:
				if other := winner.Swap(&owner); other != nil {
					t.Errorf("both %s and %s have the database", owner, *other)
				}
			case !errors.Is(err, ErrOtherOwner):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if winner.Load() == nil {
		t.Fatal("the database has no owner")
	}
	if err := open(*winner.Load()); err != nil {
		t.Errorf("the owner comes back: %v", err)
	}
	if err := open("another"); !errors.Is(err, ErrOtherOwner) || !strings.Contains(err.Error(), *winner.Load()) {
		t.Errorf("another: %v", err)
	}
	if err := open(""); err != nil {
		t.Error(err)
	}
}

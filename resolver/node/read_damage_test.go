package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver"
)

// TestReadMeetsDamage: a read that meets a damaged file of the state, by an error or by a
// panic, ends as [resolver.ErrUnavailable]; other errors and panics stay what they are.
func TestReadMeetsDamage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	defer f.close(t, n)
	other := errors.New("no such form")
	read := func(fn func(*resolver.View) error) (panicked any, err error) {
		defer func() { panicked = recover() }()
		return nil, n.Read(t.Context(), testAccount, fn)
	}
	damaged := fmt.Errorf("orders: %w", pebble.ErrCorruption)
	for name, fn := range map[string]func(*resolver.View) error{
		"error": func(*resolver.View) error { return damaged },
		"panic": func(*resolver.View) error { panic(damaged) },
	} {
		if panicked, err := read(fn); !errors.Is(err, resolver.ErrUnavailable) || !errors.Is(err, pebble.ErrCorruption) || panicked != nil {
			t.Errorf("%s: %v, %v", name, err, panicked)
		}
	}
	if _, err := read(func(*resolver.View) error { return other }); err != other {
		t.Error(err)
	}
	if panicked, _ := read(func(*resolver.View) error { panic("a fault") }); panicked != "a fault" {
		t.Error(panicked)
	}
}

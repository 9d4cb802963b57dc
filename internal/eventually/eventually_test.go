package eventually

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that notes that it failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Fatalf(string, ...any) { f.failed = true }

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, comes := range []time.Duration{0, time.Second, Limit - time.Second, Limit + time.Second} {
			begun := time.Now()
			there := func() bool { return time.Since(begun) >= comes }
			var f failing
			Holds(&f, "the time comes", there)
			if late := comes > Limit; f.failed != late {
				t.Errorf("after %v: failed %t", comes, f.failed)
			}
			begun, f.failed = time.Now(), false
			Succeeds(&f, func() error {
				if !there() {
					return errors.New("not yet")
				}
				return nil
			})
			if late := comes > Limit; f.failed != late {
				t.Errorf("success after %v: failed %t", comes, f.failed)
			}
		}
	})
}

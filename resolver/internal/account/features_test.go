package account

import (
	"reflect"
	"testing"

	"github.com/musterhq/muster/resolver/internal/feature"
)

// TestR1AllFeaturesAreRegistered: whatever an account has as a feature is loaded, merged, erased
// and hashed with it, and comes once.
func TestR1AllFeaturesAreRegistered(t *testing.T) {
	var f Features
	v := reflect.ValueOf(&f).Elem()
	var want []feature.State
	for i := range v.NumField() {
		if p := v.Field(i); p.Kind() == reflect.Pointer {
			p.Set(reflect.New(p.Type().Elem()))
			x, ok := p.Interface().(feature.State)
			if !ok {
				t.Fatalf("%s is no feature", v.Type().Field(i).Name)
			}
			want = append(want, x)
		}
	}
	f.Register()
	for _, x := range want {
		n := 0
		for _, y := range f.list {
			if x == y {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%T is registered %d times", x, n)
		}
	}
	if len(f.list) != len(want) {
		t.Errorf("%d features are registered, an account has %d", len(f.list), len(want))
	}
	// Those of before have places of their own in the hash: after them all are hashed.
	if own := 12; len(f.hashed) != len(want)-own {
		t.Errorf("%d features are hashed behind the %d that have places of their own, of %d", len(f.hashed), own, len(want))
	}
}

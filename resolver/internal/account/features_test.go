package account

import (
	"reflect"
	"testing"

	"github.com/musterhq/muster/resolver/internal/feature"
)

// TestR1AllFeaturesAreRegistered: whatever an account has as a feature is loaded, merged, erased
// and hashed with it, and comes once.
func TestR1AllFeaturesAreRegistered(t *testing.T) {
	a := new(State)
	v := reflect.ValueOf(&a.Features).Elem()
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
	a.Register()
	for _, x := range want {
		n, hashed := 0, 0
		for _, y := range a.list {
			if x == y {
				n++
			}
		}
		for _, y := range a.hashOrder() {
			if hashStep(x) == y {
				hashed++
			}
		}
		if n != 1 || hashed != 1 {
			t.Errorf("%T is registered %d times and hashed %d times", x, n, hashed)
		}
	}
	if len(a.list) != len(want) {
		t.Errorf("%d features are registered, an account has %d", len(a.list), len(want))
	}
}

// TestR1CommandsHaveOneFeature: a name of a command that two features had would be carried out
// by either of them.
func TestR1CommandsHaveOneFeature(t *testing.T) {
	seen := map[string]bool{}
	for name := range Commands() {
		if seen[name] {
			t.Errorf("two features have the command %s", name)
		}
		seen[name] = true
	}
}

package testlevel

import "testing"

func TestQuick(t *testing.T) {
	for _, x := range []struct {
		short, named bool
		env          string
		want         bool
	}{
		{want: true},
		{named: true},
		{env: EnvAll},
		{env: EnvLong},
		{short: true, want: true},
		{short: true, named: true, want: true},
		{short: true, env: EnvAll, want: true},
		{short: true, env: EnvLong, want: true},
	} {
		env := func(name string) string {
			if name == x.env {
				return "1"
			}
			return ""
		}
		if got := quick(x.short, x.named, env); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

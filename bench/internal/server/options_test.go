package server

import (
	"math"
	"testing"
	"time"
)

func TestBoundsOfOptions(t *testing.T) {
	for want, err := range map[string]error{
		"":                                       Within("rounds", 1, 1, 5),
		"rounds must be 1 to 5, not 0":           Within("rounds", 0, 1, 5),
		"length must be 1ns to 1m0s, not 1h0m0s": Within("length", time.Hour, 1, time.Minute),
		"rate must be 0 to 5, not NaN":           Within("rate", math.NaN(), 0, 5),
		"flows must be 0 (none), or 2 to 9, not 1": ZeroOr("flows", "none", 1, 2, 9),
	} {
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, n := range []int{0, 2, 9} {
		if err := ZeroOr("flows", "none", n, 2, 9); err != nil {
			t.Error(err)
		}
	}
}

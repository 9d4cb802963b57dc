package deployment

import (
	"fmt"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	for expr, want := range map[string]string{
		`up{job="muster"} == 0`:                   `[{up [job]}]`,
		`sum by (reason) (rate(a_total[2m])) > 0`: `[{a_total []}]`,
		`histogram_quantile(0.99, sum by (le, endpoint) (rate(d_bucket{x=~"a|b", y!=""}[5m]))) > 1`: `[{d_bucket [x y]}]`,
		`a > 100000 and deriv(a[15m]) > 0`:              `[{a []} {a []}]`,
		`a{l="by (x"} and on (server) b == 0`:           `[{a [l]} {b []}]`,
		`sum(ALERTS{alertstate="firing"}) or vector(0)`: `[{ALERTS [alertstate]}]`,
		`predict_linear(a[6h], 86400) < 0.1 * b`:        `[{a []} {b []}]`,
		`rate(a[1m]) / rate(b[1m])`:                     `[{a []} {b []}]`,
	} {
		if got, err := Scan(expr); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v %v, want %s", expr, got, err, want)
		}
	}
	for expr, why := range map[string]string{
		`sum(rate(a[1m])`:   "not closed",
		`rate(a)`:           "no range",
		`a[1m]`:             "not the argument",
		`sum(a[1m])`:        "not the argument",
		`rat(a[1m])`:        "unknown function",
		`a))`:               "too many",
		`a{x=b}`:            "must be label",
		`a{x="b" y="c"}`:    "commas",
		`sum by reason (a)`: "followed by labels",
		`a{x="b}`:           "string",
		`a & b`:             "unexpected",
		`rate > 0`:          "not called",
		`a{x="b"`:           "not closed",
	} {
		if got, err := Scan(expr); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v %v, want an error with %q", expr, got, err, why)
		}
	}
}

package cli

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

type list []string

func (l *list) Set(s string) error { *l = append(*l, s); return nil }
func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Repeated()          {}

// TestList: values of a flag that is given several times come together, from the
// environment too.
func TestList(t *testing.T) {
	for _, x := range []struct {
		args []string
		env  string
		want string
	}{
		{nil, "", ""}, {[]string{"--map=a=b"}, "c=d", "a=b"}, {[]string{"--map=a=b,c=d", "--map", "e=f"}, "", "a=b,c=d,e=f"}, {nil, "a=b, c=d", "a=b,c=d"},
	} {
		f := New("test", "", io.Discard)
		l := f.List("map", "names")
		if _, err := f.Parse(x.args, func(string) (string, bool) { return x.env, x.env != "" }); err != nil || *l != x.want {
			t.Errorf("%q, %q: %q %v, expected %q", x.args, x.env, *l, err, x.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, x := range []struct {
		name     string
		args     []string
		env      map[string]string
		dir      string
		body     Size
		many     list
		rest     []string
		given    bool
		mistaken string
	}{
		{name: "defaults", dir: "./data", body: 8 << 20},
		{name: "flags between files", args: []string{"a", "--data", "x", "b", "--max-body=1KiB"}, dir: "x", body: 1024, rest: []string{"a", "b"}, given: true},
		{name: "everything behind -- is a file", args: []string{"--data=x", "--", "--data", "y"}, dir: "x", body: 8 << 20, rest: []string{"--data", "y"}, given: true},
		{name: "environment", env: map[string]string{"MUSTER_DATA": "e", "MUSTER_MAX_BODY": "2000"}, dir: "e", body: 2000},
		{name: "the flag wins", args: []string{"--data=x"}, env: map[string]string{"MUSTER_DATA": "e"}, dir: "x", body: 8 << 20, given: true},
		{name: "empty environment is none", env: map[string]string{"MUSTER_DATA": ""}, dir: "./data", body: 8 << 20},
		{name: "several", args: []string{"--many=1", "--many=2"}, dir: "./data", body: 8 << 20, many: list{"1", "2"}},
		{name: "several from the environment", env: map[string]string{"MUSTER_MANY": "1, 2"}, dir: "./data", body: 8 << 20, many: list{"1", "2"}},
		{name: "unknown flag", args: []string{"--nonsense"}, mistaken: "nonsense"},
		{name: "bad size", args: []string{"--max-body=8 elephants"}, mistaken: "max-body"},
		{name: "negative size", args: []string{"--max-body=-1"}, mistaken: "max-body"},
		{name: "size without a unit that there is", args: []string{"--max-body=8MeB"}, mistaken: `invalid value "8MeB" of --max-body: use a number of bytes, such as 8388608 or 8MiB`},
		{name: "duration without a unit", args: []string{"--drain", "10"}, mistaken: `invalid value "10" of --drain: use a duration with a unit, such as 10s`},
		{name: "bad number", args: []string{"--events", "1e4"}, mistaken: `invalid value "1e4" of --events: use a whole number, such as 100`},
		{name: "bad boolean", args: []string{"--pprof=maybe"}, mistaken: `invalid boolean value "maybe" of --pprof: use true or false`},
		{name: "no value", args: []string{"--data"}, mistaken: "a value is missing after --data"},
		{name: "no such flag", args: []string{"--nonsense"}, mistaken: "there is no flag --nonsense"},
		{name: "duration in the environment", env: map[string]string{"MUSTER_DRAIN": "10"}, mistaken: `invalid value "10" of MUSTER_DRAIN: use a duration with a unit`},
		{name: "bad environment", env: map[string]string{"MUSTER_MAX_BODY": "x"}, mistaken: "MUSTER_MAX_BODY"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out strings.Builder
			f := New("test", "usage", &out)
			f.Duration("drain", time.Second, "")
			f.Int("events", 1, "")
			f.Bool("pprof", false, "")
			dir := f.String("data", "./data", "")
			body := f.Size("max-body", 8<<20, "")
			var many list
			f.Var(&many, "many", "")
			rest, err := f.Parse(x.args, func(k string) (string, bool) { v, ok := x.env[k]; return v, ok })
			if x.mistaken != "" {
				if err == nil || !strings.Contains(err.Error(), x.mistaken) {
					t.Errorf("error %v, want one that names %s", err, x.mistaken)
				}
				if out.Len() > 0 {
					t.Errorf("it wrote %s", out.String())
				}
				return
			}
			if err != nil || *dir != x.dir || *body != x.body || !slices.Equal(many, x.many) || !slices.Equal(rest, x.rest) || f.Given("data") != x.given {
				t.Errorf("have %q %d %q %q %v, %v", *dir, *body, many, rest, f.Given("data"), err)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var out strings.Builder
	f := New("test", "what it does", &out)
	f.Duration("drain", 10*time.Second, "`TIME` to end")
	f.Int("events", 1, "`NUMBER` of events")
	_, err := f.Parse([]string{"--help"}, func(string) (string, bool) { return "", false })
	want := "what it does\n\nFlags (each also reads its environment variable):\n" +
		"  --drain TIME\n        TIME to end (default 10s) [MUSTER_DRAIN]\n  --events NUMBER\n        NUMBER of events (default 1) [MUSTER_EVENTS]\n"
	if !errors.Is(err, flag.ErrHelp) || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestSizeText(t *testing.T) {
	for text, want := range map[string]string{"8388608": "8MiB", "1000": "1000", "1GiB": "1GiB", "1025KiB": "1025KiB", "5GB": "5000000000", "0": "0"} {
		var s Size
		if err := s.Set(text); err != nil || s.String() != want {
			t.Errorf("%s is written %s, want %s (%v)", text, s.String(), want, err)
		}
	}
}

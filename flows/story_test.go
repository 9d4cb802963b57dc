package flows

import (
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/segment"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into testdata")

// arrows compares what answer says of each definition with the lines behind it
// that begin with an arrow.
func arrows(t *testing.T, file string, answer func(definition string) []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out, want []string
	definition, cases := "", 0
	checkCase := func() {
		if definition == "" {
			return
		}
		cases++
		got := answer(definition)
		if !*rewrite && !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %s\nwant %s", definition, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
		for _, g := range got {
			out = append(out, "=> "+g)
		}
		definition, want = "", nil
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if expected, ok := strings.CutPrefix(line, "=> "); ok {
			want = append(want, expected)
			continue
		}
		checkCase()
		if out = append(out, line); line != "" && line[0] != '#' {
			definition = line
		}
	}
	checkCase()
	if cases == 0 {
		t.Fatalf("%s has no cases", file)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefused(t *testing.T) {
	arrows(t, "testdata/refused.txt", func(definition string) []string {
		f, err := Parse([]byte(definition))
		if err == nil || f != nil {
			return []string{"accepted"}
		}
		var d *segment.DefinitionError
		if !errors.As(err, &d) {
			return []string{"not a DefinitionError: " + err.Error()}
		}
		return []string{err.Error()}
	})
}

func TestAccepted(t *testing.T) {
	arrows(t, "testdata/accepted.txt", func(definition string) []string {
		f, err := Parse([]byte(definition))
		if err != nil {
			return []string{err.Error()}
		}
		fixedPoint(t, f)
		return []string{string(f.JSON())}
	})
}

// fixedPoint checks that a flow's JSON gives the flow back.
func fixedPoint(t *testing.T, f *Flow) {
	t.Helper()
	text := f.JSON()
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(f, again) {
		t.Fatalf("another flow:\n%s\n%s", text, again.JSON())
	}
	if string(again.JSON()) != string(text) {
		t.Fatalf("not stable:\n%s\n%s", text, again.JSON())
	}
}

// town is the World of testdata/faults.txt.
type town struct{}

func (town) Segment(id string) bool { return id == "seg_1" }
func (town) List(id string) bool    { return id == "lst_1" }
func (town) Template(id string) (string, bool) {
	return map[string]string{"tpl_1": "Hi"}[id], id == "tpl_1" || id == "tpl_bare"
}

func (town) Sender(address string) string {
	if strings.HasSuffix(address, "@example.com") {
		return ""
	}
	return "must be of a verified domain"
}

func (w town) CheckCondition(root *segment.Node) error {
	lookup := func(id string) (*segment.Node, bool) { return &segment.Node{Kind: segment.KindGroup}, w.Segment(id) }
	if err := segment.CheckRefs("", root, lookup); err != nil {
		return err
	}
	return segment.CheckLists(root, w.List)
}

func TestFaults(t *testing.T) {
	arrows(t, "testdata/faults.txt", func(definition string) []string {
		f, err := Parse([]byte(definition))
		if err != nil {
			t.Fatalf("%s: %v", definition, err)
		}
		faults := f.Validate(town{})
		if len(faults) == 0 {
			return []string{"ready"}
		}
		var lines []string
		for _, fault := range faults {
			lines = append(lines, strings.TrimSpace(fault.Step+" "+fault.Path+" "+fault.Message))
			if fault.Path == "" || fault.Message == "" || (fault.Step != "") != strings.HasPrefix(fault.Path, "steps[") {
				t.Errorf("%s: %+v", definition, fault)
			}
		}
		return lines
	})
}

// Faults come with the id of their step, and their message has a bound.
func TestFaultsAsOneMessage(t *testing.T) {
	fs := Faults{
		{"", "trigger", "is missing"},
		{"welcome", "steps[1].subject", "is missing"}, {"welcome", "steps[1].body", "is missing"},
		{"pause", "steps[12]", "must have seconds or until"},
	}
	want := "trigger is missing; steps[1] (welcome): subject is missing; body is missing; steps[12] (pause): must have seconds or until"
	if got := fs.String(); got != want {
		t.Errorf("%s", got)
	}
	for len(fs) < 500 {
		fs = append(fs, fs[3])
	}
	if got := fs.String(); len(got) > 5000 || !strings.HasSuffix(got, "; and 450 more") {
		t.Errorf("%s", got)
	}
	if got := Faults(nil).String(); got != "" {
		t.Errorf("%s", got)
	}
}

package segment

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse parses arbitrary bytes: no panic, a DefinitionError or a tree that
// its canonical text gives back and that can be judged.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"refused.txt", "accepted.txt", "members.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(line, "{") {
				line = strings.TrimSuffix(strings.TrimSuffix(line, " true"), " false")
				f.Add([]byte(line))
			}
		}
	}
	profile := &NaiveProfile{
		Emails: []string{"a@b.c"}, Attributes: []byte(`{"a":[1,"x",{"b":null}]}`),
		Events: []NaiveEvent{{Type: "e", Properties: []byte(`{"value":1.5,"a":"2024-01-01"}`)}},
	}
	none := func(string) (*Node, bool) { return nil, false }
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data, Limits{})
		if err != nil {
			var d *DefinitionError
			if !errors.As(err, &d) || d.Reason == "" || n != nil {
				t.Fatalf("%v, %v", n, err)
			}
			return
		}
		canonical := n.Canonical()
		again, err := Parse(canonical, Limits{Bytes: 8 * len(canonical)})
		if err != nil {
			t.Fatalf("%v\n%s", err, canonical)
		}
		if !reflect.DeepEqual(n, again) {
			t.Fatalf("another tree\n%s\n%s", data, canonical)
		}
		if !bytes.Equal(again.Canonical(), canonical) {
			t.Fatalf("not stable\n%s\n%s", canonical, again.Canonical())
		}
		n.Key()
		if n.Naive(profile, 1_710_504_000_000, none) != helped(n, profile, 1_710_504_000_000, none, 0) {
			t.Fatalf("helpers and oracle differ\n%s", canonical)
		}
	})
}

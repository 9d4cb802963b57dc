package merge

import "testing"

// TestMissing: the first tag that leaves a hole is found, in every mode; tags with a
// default, also an empty one, and quoted texts leave none.
func TestMissing(t *testing.T) {
	values := func(path []string) (string, bool) {
		switch path[0] {
		case "name":
			return "Ada", true
		case "zero":
			return "0", true
		case "blank":
			return " \u00a0\n", true
		}
		return "", path[0] == "empty"
	}
	for text, want := range map[string]string{
		"": "", "plain": "", "{{name}} {{zero}}": "", `{{"{{"}}`: "",
		"{{gone}}": "gone", "{{name}} {{a.b}} {{gone}}": "a.b", "{{blank}}": "blank", "{{empty}}": "empty",
		`{{gone | default: "x"}}`: "", `{{gone | x}}`: "", `{{gone | default: ""}}`: "", `{{blank | ""}} {{gone}}`: "gone",
	} {
		for _, mode := range []Mode{Text, Header, HTML, URL} {
			source := text
			if mode == URL {
				source = "https://x.io/?a=" + text
			}
			p, err := Parse(source, mode)
			if err != nil {
				t.Fatalf("%s: %s", source, err)
			}
			if have := p.Missing(values); have != want {
				t.Errorf("mode %d, %s: missing %q, want %q", mode, source, have, want)
			}
		}
	}
}

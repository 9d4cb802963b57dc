package segment

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the expectations in testdata again")

// storyLine is a line of a story with its place.
type storyLine struct {
	place string
	text  string
}

// story reads the lines of a file that say something.
func story(t *testing.T, file string) []storyLine {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []storyLine
	for i, text := range strings.Split(string(data), "\n") {
		if text != "" && !strings.HasPrefix(text, "#") {
			out = append(out, storyLine{fmt.Sprintf("%s:%d", file, i+1), text})
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s says nothing", file)
	}
	return out
}

// arrows runs got on every line that a "=> want" follows.
func arrows(t *testing.T, file string, got func(definition string) string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	cases := 0
	for i, line := range lines {
		want, ok := strings.CutPrefix(line, "=> ")
		if !ok {
			continue
		}
		cases++
		result := got(lines[i-1])
		if *rewrite {
			lines[i] = "=> " + result
		} else if result != want {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i, lines[i-1], result, want)
		}
	}
	if cases == 0 {
		t.Fatalf("%s has no cases", file)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefused(t *testing.T) {
	arrows(t, "testdata/refused.txt", func(definition string) string {
		_, err := Parse([]byte(definition), Limits{})
		if err == nil {
			return "accepted"
		}
		var d *DefinitionError
		if !errors.As(err, &d) {
			return "not a DefinitionError: " + err.Error()
		}
		return err.Error()
	})
}

func TestAccepted(t *testing.T) {
	arrows(t, "testdata/accepted.txt", func(definition string) string {
		n, err := Parse([]byte(definition), Limits{})
		if err != nil {
			return err.Error()
		}
		return string(n.Canonical())
	})
}

func TestSameLeaf(t *testing.T) {
	data, err := os.ReadFile("testdata/same_leaf.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]int{}
	for i, block := range strings.Split(string(data), "\n\n") {
		var first string
		for _, line := range strings.Split(block, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			key := mustParse(t, line).Key()
			if first == "" {
				first = key
				if other, ok := blocks[key]; ok {
					t.Errorf("blocks %d and %d share the key %s", other, i, key)
				}
				blocks[key] = i
			}
			if key != first {
				t.Errorf("%s\nhas the key  %s\nits block's is %s", line, key, first)
			}
		}
	}
}

// TestS1Operators judges single values by the table, with the predicate on
// stored bytes and with the oracle.
func TestS1Operators(t *testing.T) {
	at := mustTime(t, "2024-03-15T12:00:00Z")
	var given string
	for _, line := range story(t, "testdata/operators.txt") {
		if value, ok := strings.CutPrefix(line.text, "given "); ok {
			given = value
			continue
		}
		cut := strings.LastIndexByte(line.text, ' ')
		want := line.text[cut+1:] == "true"
		op, value, _ := strings.Cut(strings.TrimSpace(line.text[:cut]), " ")
		filter := `{"property":"a.b","op":"` + op + `"`
		if value = strings.TrimSpace(value); value != "" {
			filter += `,"value":` + value
		}
		n, err := Parse([]byte(`{"kind":"activity","event":"e","where":[`+filter+`}]}`), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", line.place, err)
		}
		p := &n.Activity.Where[0]
		properties := `{"c":1,"a":{"x":null,"b":` + given + `}}`
		if given == "missing" {
			properties = `{"a":{}}`
		}
		if got := p.Match([]byte(properties), at); got != want {
			t.Errorf("%s: %s: the predicate says %v for %s", line.place, line.text, got, given)
		}
		if got := p.naive(naiveLookup(naiveJSON([]byte(properties)), p.Path), at); got != want {
			t.Errorf("%s: %s: the oracle says %v for %s", line.place, line.text, got, given)
		}
	}
}

// TestS1Members judges whole profiles by the story, with the oracle and with
// the helpers the engines are built from.
func TestS1Members(t *testing.T) {
	segments := map[string]*Node{}
	refs := func(id string) (*Node, bool) { n, ok := segments[id]; return n, ok }
	var p *NaiveProfile
	at := mustTime(t, "2024-03-15T12:00:00Z")
	for _, line := range story(t, "testdata/members.txt") {
		word, rest, _ := strings.Cut(line.text, " ")
		words := strings.Fields(rest)
		switch word {
		case "profile":
			p = &NaiveProfile{Consents: map[string]NaiveConsent{}, Suppressions: map[string]string{}}
		case "segment":
			id, definition, _ := strings.Cut(rest, " ")
			segments[id] = mustParse(t, definition)
		case "at":
			at = mustTime(t, rest)
		case "email":
			p.Emails = append(p.Emails, rest)
		case "phone":
			p.Phones = append(p.Phones, rest)
		case "external_id":
			p.ExternalIDs = append(p.ExternalIDs, rest)
		case "first_name":
			p.FirstName = rest
		case "geo":
			p.Geo = []byte(rest)
		case "attributes":
			p.Attributes = []byte(rest)
		case "created":
			p.CreatedAtMs = mustTime(t, rest)
		case "first_seen":
			p.FirstSeenMs = mustTime(t, rest)
		case "last_event":
			ms := mustTime(t, rest)
			p.LastEventMs = &ms
		case "anonymous":
			p.Anonymous = true
		case "contact":
			p.IsContact = true
		case "block":
			p.Suppressions[words[0]] = words[1]
		case "sent":
			p.Sent = mustNumber(t, rest)
		case "opened":
			ms := mustTime(t, words[1])
			p.Opened, p.LastOpenMs = mustNumber(t, words[0]), &ms
		case "clicked":
			ms := mustTime(t, words[1])
			p.Clicked, p.LastClickMs = mustNumber(t, words[0]), &ms
		case "device":
			p.PushDevices = append(p.PushDevices, rest)
		case "consent":
			c := NaiveConsent{Status: words[1]}
			if len(words) == 3 {
				ms := mustTime(t, words[2])
				c.SubscribedMs = &ms
			}
			p.Consents[words[0]] = c
		case "list":
			p.Lists = append(p.Lists, rest)
		case "event":
			p.Events = append(p.Events, NaiveEvent{
				TimeMs: mustTime(t, words[0]), Type: words[1], Properties: []byte(words[2]),
			})
		default:
			cut := strings.LastIndexByte(line.text, ' ')
			want := line.text[cut+1:] == "true"
			n := mustParse(t, line.text[:cut])
			if got := n.Naive(p, at, refs); got != want {
				t.Errorf("%s: the oracle says %v\n%s", line.place, got, line.text)
			}
			if got := helped(n, p, at, refs, 0); got != want {
				t.Errorf("%s: the helpers say %v\n%s", line.place, got, line.text)
			}
		}
	}
}

func mustParse(t testing.TB, definition string) *Node {
	t.Helper()
	n, err := Parse([]byte(definition), Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, definition)
	}
	return n
}

func mustNumber(t testing.TB, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustTime(t testing.TB, text string) int64 {
	t.Helper()
	layout := time.RFC3339Nano
	if len(text) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/resolution"
)

// TestStories tells the files of testdata/stories to a machine: each paragraph is a
// command, its input, and behind the dashes what must come of it. -rewrite writes what
// comes of it now. Each story runs twice: the second time the machine is written to a
// checkpoint and read back before each paragraph, and nothing may be different (R1).
//
//	settings            {"placeholders": [...]}: fields of the account's settings
//	events              one record; each line is an event as JSON
//	repeat              the last record once more, as if its append had been retried
//	command NAME        one command with its JSON; P1 stands for that profile's id
//	profile P1          what is known of a profile
//	find                {"email": "..."}: whose identifier it is, one on each line
//	history             the rows that history was given since it was last asked
//	continue            the work that a record left over
//	pass DURATION       time continues
//
// P1 is the first profile that was made in the story, P2 the second; lst-1 the first list
// that was shown.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		name := "told"
		if restarts {
			name = "told with restarts"
		}
		t.Run(name, func(t *testing.T) {
			datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
				s := &story{durable: newDurable(t, DefaultSettings()), ids: map[string]string{}}
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					if restarts {
						s.reload()
					}
					return s.tell(t, d)
				})
			})
		})
	}
}

type story struct {
	*durable
	last []byte            // record of events
	ids  map[string]string // by name, of what is no profile
}

func (s *story) tell(t *testing.T, d *datadriven.TestData) string {
	arg := ""
	if len(d.CmdArgs) > 0 {
		arg = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "settings":
		settings := s.view().Settings()
		strictly(t, d, d.Input, &settings)
		return s.outcome(s.command(CommandSettingsSet, settings))
	case "events":
		var evs []eventlog.Event
		for line := range strings.Lines(d.Input) {
			evs = append(evs, storyEvent(t, d, line))
		}
		env := s.envelope(eventlog.KindEvents)
		s.last = appendEvents(env.Append(nil), evs)
		s.apply(s.last)
		return s.outcome(&s.out)
	case "repeat":
		s.apply(s.last)
		return s.outcome(&s.out)
	case "command":
		var args json.RawMessage
		strictly(t, d, s.withIDs(d.Input), &args)
		return s.outcome(s.command(arg, args))
	case "continue":
		for s.m.Pending() > 0 {
			env := s.envelope(eventlog.KindContinue)
			s.apply(env.Append(nil))
		}
		return ""
	case "profile":
		return s.profile(t, d, arg)
	case "find":
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			out.WriteString(s.find(t, d, line))
		}
		return out.String()
	case "history":
		return s.history()
	case "pass":
		by, err := time.ParseDuration(arg)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now += by.Milliseconds()
		return ""
	}
	d.Fatalf(t, "no such command; TestStories lists them")
	return ""
}

// strictly reads JSON that may have no unknown field.
func strictly(t *testing.T, d *datadriven.TestData, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		d.Fatalf(t, "%v in %s", err, text)
	}
}

func storyEvent(t *testing.T, d *datadriven.TestData, line string) eventlog.Event {
	e := struct {
		Type, Email, Phone, Key, Message string
		ExternalID                       string `json:"external_id"`
		AnonymousID                      string `json:"anonymous_id"`
		PreviousID                       string `json:"previous_id"`
		FirstName                        string `json:"first_name"`
		Public                           bool
		TimeMs                           int64 `json:"time_ms"`
		Attributes, Properties           json.RawMessage
	}{Type: "viewed"}
	strictly(t, d, line, &e)
	for _, object := range []*json.RawMessage{&e.Attributes, &e.Properties} {
		var dense bytes.Buffer
		if err := json.Compact(&dense, *object); err == nil {
			*object = dense.Bytes()
		}
	}
	return eventlog.Event{
		Type: []byte(e.Type), Email: []byte(e.Email), Phone: []byte(e.Phone), ExternalID: []byte(e.ExternalID), AnonymousID: []byte(e.AnonymousID),
		PreviousID: []byte(e.PreviousID), FirstName: []byte(e.FirstName), Attributes: e.Attributes, Properties: e.Properties,
		IdempotencyKey: []byte(e.Key + e.Message), MessageID: e.Message != "", Public: e.Public, TimeMs: e.TimeMs, HasTime: e.TimeMs != 0,
	}
}

// outcome says what became of a record.
func (s *story) outcome(out *Outcome) string {
	var b strings.Builder
	if out.Refusal != nil {
		fmt.Fprintf(&b, "refused, %s: %s\n", out.Refusal.Code, out.Refusal.Message)
		return s.withNames(b.String())
	}
	for _, e := range out.Events {
		switch e.Status {
		case EventRefused:
			fmt.Fprintf(&b, "refused, %s: %s", e.Refusal.Code, e.Refusal.Message)
		case EventDuplicate:
			fmt.Fprintf(&b, "duplicate %s", e.Profile)
			if e.Foreign {
				b.WriteString(", the key of another person's event")
			}
		default:
			fmt.Fprintf(&b, "accepted %s", e.Profile)
		}
		for _, left := range []struct {
			kinds resolution.KindSet
			why   string
		}{{e.NotAdded, "no room for"}, {e.Dropped, "no identifier:"}, {e.Erased, "erased:"}} {
			for k := range IdentityKind(identifier.Kinds) {
				if left.kinds.Has(k) {
					fmt.Fprintf(&b, ", %s %s", left.why, k)
				}
			}
		}
		b.WriteByte('\n')
	}
	if len(out.Events) == 0 {
		b.WriteString("done\n")
		if len(out.Reply) > 0 {
			fmt.Fprintf(&b, "%s\n", out.Reply)
		}
	}
	return s.withNames(b.String())
}

func (s *story) profile(t *testing.T, d *datadriven.TestData, name string) string {
	o, ok := s.view().Profiles().ResolveText(s.withIDs(name))
	if !ok {
		return "nobody\n"
	}
	p, err := s.view().Profiles().Get(o)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.ID)
	for _, i := range p.Identities {
		fmt.Fprintf(&b, "  %s %s\n", i.Kind, i.Value)
	}
	for _, id := range p.AnonymousIDs {
		fmt.Fprintf(&b, "  anonymous_id %s\n", id)
	}
	if p.FirstName != "" {
		fmt.Fprintf(&b, "  first_name %s\n", p.FirstName)
	}
	if len(p.Attributes) > 0 {
		fmt.Fprintf(&b, "  attributes %s\n", p.Attributes)
	}
	for _, c := range p.Consents {
		fmt.Fprintf(&b, "  %s %s by %s\n", c.Channel, c.Status, c.Source)
	}
	for _, x := range p.Suppressions {
		fmt.Fprintf(&b, "  %s blocked: %s\n", x.Channel, x.Reason)
	}
	for _, l := range p.Lists {
		fmt.Fprintf(&b, "  on list %s\n", l)
	}
	for _, m := range p.Merged {
		fmt.Fprintf(&b, "  was also %s\n", m.ID)
	}
	for _, c := range p.Conflicts {
		fmt.Fprintf(&b, "  conflict: %s %s, %s", c.Kind, c.Value, c.Reason)
		if c.Other != nil {
			fmt.Fprintf(&b, ", %s", c.Other)
		}
		b.WriteByte('\n')
	}
	return s.withNames(b.String())
}

func (s *story) find(t *testing.T, d *datadriven.TestData, line string) string {
	e := storyEvent(t, d, line)
	var b strings.Builder
	for kind, value := range map[IdentityKind][]byte{IdentityEmail: e.Email, IdentityExternalID: e.ExternalID, IdentityPhone: e.Phone, IdentityAnonymous: e.AnonymousID} {
		if len(value) == 0 {
			continue
		}
		if o, ok := s.view().Profiles().Find(kind, string(value)); ok {
			fmt.Fprintf(&b, "%s\n", s.view().Profiles().ID(o))
		} else {
			b.WriteString("nobody\n")
		}
	}
	return s.withNames(b.String())
}

func (s *story) history() string {
	var b bytes.Buffer
	for i := range s.rows.Rows() {
		fmt.Fprintf(&b, "%s %s", ordinalName(s.rows.Ordinal[i]), s.rows.EventType.At(i))
		if p := s.rows.Properties.At(i); len(p) > 0 {
			fmt.Fprintf(&b, " %s", p)
		}
		b.WriteByte('\n')
	}
	for _, a := range s.rows.Aliases {
		fmt.Fprintf(&b, "%s is %s\n", ordinalName(a.Ordinal), ordinalName(a.Winner))
	}
	s.rows.Reset()
	return s.withNames(b.String())
}

func ordinalName(o uint32) string { return fmt.Sprintf("P%d", o+1) }

var (
	storyNames = regexp.MustCompile(`\b(P|[a-z]{3}-)[0-9]+\b`)
	storyIDs   = regexp.MustCompile(`\b[a-z]{3}_[0-9a-f]{32}\b`)
)

// withIDs puts ids in the place of their names, withNames the other way.
func (s *story) withIDs(text string) string {
	return storyNames.ReplaceAllStringFunc(text, func(name string) string {
		if id := s.ids[name]; id != "" {
			return id
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(name, "P"), 10, 32)
		if err != nil {
			return name
		}
		return s.view().Profiles().ID(uint32(n - 1)).String()
	})
}

func (s *story) withNames(text string) string {
	return storyIDs.ReplaceAllStringFunc(text, func(id string) string {
		if parsed, ok := ParseProfileID(id); ok {
			return ordinalName(parsed.Ordinal())
		}
		for n := 1; ; n++ {
			name := fmt.Sprintf("%s-%d", id[:3], n)
			if s.ids[name] == "" {
				s.ids[name] = id
			}
			if s.ids[name] == id {
				return name
			}
		}
	})
}

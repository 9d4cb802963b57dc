package uploads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// said is a person's consent to a channel, "" if there is none.
func said(p *view.Profile, channel string) string {
	for _, c := range p.Consents {
		if c.Channel == channel {
			return c.Status
		}
	}
	return ""
}

// TestSubscribed: people of whom the file says no are not subscribed, whether they are on
// file or new, and get no mail that asks them; those of whom it says yes, or nothing, are,
// unless they refused before. What is neither refuses the row.
func TestSubscribed(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"subscribed", "Accepts Marketing", "unsubscribed", "opt-out"} {
		t.Run(header, func(t *testing.T) {
			w := newWorld(t)
			list := w.newList()
			before := w.oneByOne("email,external_id,subscribed\nin@x.example,,\nout@x.example,,no\n,silent,\ncomplained@x.example,c,\n", "")
			if len(before) != 0 {
				t.Fatal(before)
			}
			w.command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: w.profile("in@x.example").ID.String(), Channel: "email", Reason: "bounced", Source: "relay"})
			yes, no := []string{"true", "Yes", " 1"}, []string{"FALSE", "no", "0"}
			inverted := header == "unsubscribed" || header == "opt-out"
			if inverted {
				yes, no = no, yes
			}
			var b strings.Builder
			b.WriteString("email,phone," + header + "\n")
			for i := range yes {
				fmt.Fprintf(&b, "yes%d@x.example,+4930%d,%s\nno%d@x.example,+4940%d,%s\n", i, i, yes[i], i, i, no[i])
			}
			fmt.Fprintf(&b, "empty@x.example,,\nin@x.example,+4999,%s\nout@x.example,,%s\nmaybe@x.example,,maybe\n", no[0], yes[0])
			x := w.upload(api.ImportPeople, b.String())
			p, err := w.Preview(t.Context(), w.account, x.ID, api.ImportPlan{})
			ok(t, err)
			want := map[bool]string{false: "subscribed", true: "unsubscribed"}[inverted]
			if c := p.Columns[2]; c.Field == nil || *c.Field != want || c.Type != "boolean" || p.ProblemCount != 1 {
				t.Errorf("%+v", p)
			}
			w.begin(x.ID, api.ImportPlan{ListID: list})
			x = w.until(x.ID, hasEnded)
			if x.Taken != 9 || !slices.Equal(x.Refusals, p.Problems) || len(x.Refusals) != 1 || x.Refusals[0].Line != 11 ||
				!strings.HasPrefix(x.Refusals[0].Reason, want+` "maybe" must be true or false, yes or no, 1 or 0, or empty; mend the row, or map the column to attributes.`+want) {
				t.Errorf("%+v", x)
			}
			for i := range yes {
				for name, want := range map[string]string{"yes": "subscribed", "no": "unsubscribed"} {
					p := w.profile(fmt.Sprintf("%s%d@x.example", name, i))
					if said(p, "email") != want || said(p, "sms") != want || p.Subscribed() != (name == "yes") || len(p.Lists) != 1 || p.Attributes != nil {
						t.Errorf("%s%d: %+v", name, i, p)
					}
				}
			}
			for email, want := range map[string][2]string{
				"empty@x.example": {"subscribed", ""},
				"in@x.example":    {"unsubscribed", "unsubscribed"},
				"out@x.example":   {"unsubscribed", ""},
			} {
				if p := w.profile(email); said(p, "email") != want[0] || said(p, "sms") != want[1] {
					t.Errorf("%s: %+v", email, p.Consents)
				}
			}
		})
	}
}

// TestSubscribedColumnLiftsNoComplaint: `subscribed` true subscribes a profile without a
// consent that events made, and leaves a profile that complained as it is.
func TestSubscribedColumnLiftsNoComplaint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportEvents, "event_type,email,timestamp\nvisited,a@x.example,2026-01-03\nvisited,b@x.example,2026-01-03\n")
	w.begin(x.ID, api.ImportPlan{})
	w.until(x.ID, hasEnded)
	w.command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: w.profile("b@x.example").ID.String(), Channel: "email", Reason: "complained", Source: "relay"})
	if refused := w.oneByOne("email,subscribed\na@x.example,yes\nb@x.example,yes\n", ""); len(refused) != 0 {
		t.Error(refused)
	}
	if a, b := w.profile("a@x.example"), w.profile("b@x.example"); said(a, "email") != "subscribed" || said(b, "email") != "" {
		t.Errorf("%+v\n%+v", a.Consents, b.Consents)
	}
}

// TestSubscribedTwice: a file that says it in two columns cannot be started; to map one of
// them to something else helps, and a column may be mapped to it.
func TestSubscribedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportPeople, "email,subscribed,unsubscribed\na@x.example,yes,no\n")
	p, err := w.Preview(t.Context(), w.account, x.ID, api.ImportPlan{})
	ok(t, err)
	if p.Fault == nil || !strings.Contains(*p.Fault, "columns subscribed and unsubscribed both say") {
		t.Errorf("%+v", p)
	}
	if _, err := w.Start(t.Context(), w.account, x.ID, api.ImportPlan{}); err == nil {
		t.Error("it was started")
	}
	w.begin(x.ID, api.ImportPlan{Columns: []api.ImportColumn{{Name: "unsubscribed", Field: text("attributes.unsubscribed")}, {Name: "subscribed", Field: text("unsubscribed")}}})
	if x = w.until(x.ID, hasEnded); x.Taken != 1 {
		t.Errorf("%+v", x)
	}
	if p := w.profile("a@x.example"); said(p, "email") != "unsubscribed" || string(p.Attributes) != `{"unsubscribed":"no"}` {
		t.Errorf("%+v", p)
	}
}

// command carries a command out.
func (w *world) command(name string, args any) {
	w.t.Helper()
	_, err := w.node.Command(w.t.Context(), w.account, name, args)
	ok(w.t, err)
}

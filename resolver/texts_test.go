package resolver

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
)

// TestB2TextsAreNotKeptInMemory: bodies of campaigns, texts of templates and what
// campaigns are sent with are in the store alone, also after a restart, and read
// back as they were (B2, R1).
func TestB2TextsAreNotKeptInMemory(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	long := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 100_000) }
	a := func() *account.State { return r.m.accounts[testAccount] }
	a().EmailCredits = 100
	r.contact(contacts.Create{Email: "ada@x.io"})
	var sent, templates []string
	for i := range 20 {
		sent = append(sent, answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1, Message: campaigns.Message{Body: long(i)}})).ID)
		templates = append(templates, answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, HTML: long(i), Text: "text " + long(i+1)})).ID)
	}
	x := content
	x.HTML, x.Links = long(7), []string{"https://x.io/a", "https://x.io/b"}
	r.must(campaigns.CommandStart, campaigns.Start{ID: sent[0], Plan: campaigns.Plan{BatchSize: 1}, Everybody: true, Variants: []campaigns.Content{x}})
	r.must(campaigns.CommandSave, campaigns.Campaign{ID: sent[1], Name: "n", Channel: 1, Message: campaigns.Message{Body: "short"}})
	for range 2 {
		for _, c := range a().Campaigns.All() {
			if c.Body != "" {
				t.Fatalf("%d bytes of a body are in memory", len(c.Body))
			}
		}
		for _, x := range a().Campaigns.Templates() {
			if x.HTML+x.Text != "" {
				t.Fatalf("%d bytes of a template are in memory", len(x.HTML+x.Text))
			}
		}
		v := r.view()
		for i, id := range sent {
			want := long(i)
			if i == 1 {
				want = "short"
			}
			if c, ok, err := v.Campaigns().WholeCampaign(id); err != nil || !ok || c.Body != want {
				t.Fatalf("campaign %d is read back with %d bytes, %v, %v", i, len(c.Body), ok, err)
			}
			if x, ok, err := v.Campaigns().WholeTemplate(templates[i]); err != nil || !ok || x.HTML != long(i) || x.Text != "text "+long(i+1) {
				t.Fatalf("template %d: %d and %d bytes, %v, %v", i, len(x.HTML), len(x.Text), ok, err)
			}
		}
		if c, err := v.Campaigns().Contents(sent[0]); err != nil || len(c) != 1 || c[0].HTML != x.HTML {
			t.Fatalf("what is being sent: %d, %v", len(c), err)
		}
		d.reload()
	}
	// What was sent is forgotten when the run is over, its links are not.
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: sent[0], Run: 1, Stopped: "enough"})
	for range 2 {
		v := r.view()
		if c, err := v.Campaigns().Contents(sent[0]); err != nil || len(c) != 0 {
			t.Errorf("what was sent is kept: %d, %v", len(c), err)
		}
		if links, err := v.Campaigns().Links(sent[0]); err != nil || len(links) != 1 || len(links[0]) != 2 || links[0][1] != "https://x.io/b" {
			t.Errorf("links: %v, %v", links, err)
		}
		d.reload()
	}
	first, _ := a().Campaigns.Campaign(sent[0])
	send := messages.CampaignSend(first.Number, 0, 0)
	r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementClick, Link: 1})
	run, _ := a().Campaigns.Run(sent[0])
	if got := run.ByLink; len(got) != 2 || got[1] != 1 {
		t.Errorf("clicks by link: %v", got)
	}
	// What is deleted leaves nothing.
	r.now += 90 * dayMs
	for i := range sent {
		r.must(campaigns.CommandDelete, campaigns.Ref{ID: sent[i]})
		r.must(campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: templates[i]})
	}
	if n := a().Campaigns.TextBytes(); n != 0 {
		t.Errorf("%d bytes of texts are counted, there are none", n)
	}
	d.reload()
	n := 0
	count := func(_ uint64, rest, _ []byte) error {
		if rest[0] != 'R' { // the click, which orders may belong to
			n++
		}
		return nil
	}
	if err := r.m.store.Each(state.TableText, count); err != nil || n != 0 {
		t.Errorf("%d texts are left, %v", n, err)
	}
}

// TestB2TextsAreBounded: the texts of an account have a bound together, which a
// restart does not move; what becomes shorter is never refused (B2).
func TestB2TextsAreBounded(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	limit := func() { r.m.campaigns.MaxTextBytes = 10_000 }
	limit()
	c := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1, Message: campaigns.Message{Body: strings.Repeat("x", 6000)}}))
	tpl := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, HTML: strings.Repeat("y", 3000)}))
	for range 2 {
		before := hashOf(t, r.m)
		next := r.m.next
		r.refuses("body: the texts of this account's campaigns and templates would have", campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1, Message: campaigns.Message{Body: strings.Repeat("x", 2000)}})
		r.refuses("body: the texts", campaigns.CommandSave, campaigns.Campaign{ID: c.ID, Name: "n", Channel: 1, Message: campaigns.Message{Body: strings.Repeat("x", 8000)}})
		r.refuses("html: the texts", campaigns.CommandTemplateSave, campaigns.Template{ID: tpl.ID, Name: "t", Source: campaigns.TemplateList, HTML: strings.Repeat("y", 5000)})
		r.refuses("html: the texts", campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, HTML: strings.Repeat("y", 2000)})
		x := content
		x.HTML = strings.Repeat("z", 2000)
		r.refuses("body: the texts", campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{BatchSize: 1}, Everybody: true, Variants: []campaigns.Content{x}})
		if len(r.m.accounts[testAccount].Campaigns.All()) != 1 || r.m.next == next || before == "" {
			t.Fatal("what was refused was made")
		}
		d.reload()
		limit()
	}
	r.m.campaigns.MaxTextBytes = 10 // as after a change of the bound
	r.must(campaigns.CommandSave, campaigns.Campaign{ID: c.ID, Name: "n", Channel: 1, Message: campaigns.Message{Body: strings.Repeat("x", 5000)}})
	r.must(campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: tpl.ID})
}

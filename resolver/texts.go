package resolver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Texts are the bodies of campaigns and templates, and what campaigns are sent
// with. They may be long and are seldom read, so they are in the store alone: the
// account has their sizes. They stand in a table apart from entities, so that a
// start does not read them.

// Kinds of texts, the byte behind the account in a text's key.
const (
	textCampaign = 'c' // body of a campaign
	textTemplate = 'm' // texts of a template, see templateTexts
	textContent  = 'y' // what a campaign is being sent with: a list of contents
	textLinks    = 'k' // click targets of what it was sent with last: a list for each variant
)

// maxTextBytes bounds the texts of an account, in bytes.
const maxTextBytes = 1 << 30

func textKey(account uint64, kind byte, id string) string {
	k := state.AccountKey(make([]byte, 0, 10+len(id)), state.TableText, account)
	return string(append(append(k, kind), id...))
}

// roomForText says whether the account's texts may become so much longer, in
// bytes; less is always possible.
func (m *Machine) roomForText(a *account, field string, longer int) *Refusal {
	if longer <= 0 || a.textBytes+int64(longer) <= m.textLimit {
		return nil
	}
	return atLimit(field, "%s: the texts of this account's campaigns and templates would have %d bytes, the most they can have is %d; delete or shorten some first",
		field, a.textBytes+int64(longer), m.textLimit)
}

// putText stores a text in place of one with so many bytes, and returns how many
// it has. An empty one removes it.
func (m *Machine) putText(a *account, kind byte, id string, old int, text []byte) int {
	a.textBytes += int64(len(text) - old)
	switch key := textKey(a.number, kind, id); {
	case len(text) > 0:
		m.store.PutPayload(key, text)
	case old > 0:
		m.store.PutEntity(key, nil)
	}
	return len(text)
}

// text reads a text, empty if there is none.
func (m *Machine) text(a *account, kind byte, id string) ([]byte, error) {
	return m.store.Entity(textKey(a.number, kind, id))
}

// readText decodes a text that is JSON. One that is not there leaves v as it is.
func (m *Machine) readText(a *account, kind byte, id string, v any) error {
	b, err := m.text(a, kind, id)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("text %c of %s: %w", kind, id, err)
	}
	return nil
}

// templateTexts are the texts of a template as they are stored.
type templateTexts struct {
	HTML string `json:"html"`
	Text string `json:"text"`
}

func (t *Template) texts() []byte {
	if t.HTML == "" && t.Text == "" {
		return nil
	}
	return must.JSON(templateTexts{t.HTML, t.Text})
}

// linksOf are the click targets of contents, by variant.
func linksOf(contents []CampaignContent) (links [][]string, counts []int) {
	for _, c := range contents {
		links, counts = append(links, c.Links), append(counts, len(c.Links))
	}
	return links, counts
}

// keepContents stores what a campaign is sent with, in place of what the run old,
// if any, has left. Of what has no links none are stored.
func (m *Machine) keepContents(a *account, r, old *CampaignRun, contents, links []byte) {
	if old == nil {
		old = &CampaignRun{}
	}
	r.ContentBytes = m.putText(a, textContent, r.ID, old.ContentBytes, contents)
	r.LinkBytes = m.putText(a, textLinks, r.ID, old.LinkBytes, links)
}

// dropContents forgets what a run that is over was sent with, but for its links:
// clicks on them come later.
func (m *Machine) dropContents(a *account, r *CampaignRun) {
	r.ContentBytes = m.putText(a, textContent, r.ID, r.ContentBytes, nil)
}

// stopRun ends a run before its end.
func (m *Machine) stopRun(a *account, r *CampaignRun, reason string) {
	r.stop(m.logTime, reason)
	m.dropContents(a, r)
}

// CampaignBody is the body of a campaign.
func (v *View) CampaignBody(id string) (string, error) {
	b, err := v.m.text(v.a, textCampaign, id)
	return string(b), err
}

// WholeCampaign is a campaign with its body.
func (v *View) WholeCampaign(id string) (c Campaign, ok bool, err error) {
	if c, ok = v.Campaign(id); ok {
		c.Body, err = v.CampaignBody(id)
	}
	return c, ok, err
}

// CampaignContents are the variants that a campaign is being sent with, none when
// its run is over.
func (v *View) CampaignContents(id string) (contents []CampaignContent, err error) {
	return contents, v.m.readText(v.a, textContent, id, &contents)
}

// CampaignLinks are the click targets of what a campaign was sent with last, by
// number, for each variant.
func (v *View) CampaignLinks(id string) (links [][]string, err error) {
	return links, v.m.readText(v.a, textLinks, id, &links)
}

// WholeTemplate is a template with its texts.
func (v *View) WholeTemplate(id string) (t Template, ok bool, err error) {
	if t, ok = v.Template(id); !ok {
		return t, false, nil
	}
	var x templateTexts
	err = v.m.readText(v.a, textTemplate, id, &x)
	t.HTML, t.Text = x.HTML, x.Text
	return t, true, err
}

// templateVersion is the version of a template whose texts are in the store.
func (m *Machine) templateVersion(a *account, t Template) string {
	var x templateTexts
	if err := m.readText(a, textTemplate, t.ID, &x); err != nil {
		panic(err)
	}
	t.HTML, t.Text = x.HTML, x.Text
	return t.Version()
}

// hashTexts is the texts' part of the state's hash.
func (m *Machine) hashTexts(put func([]byte), a *account) error {
	read := func(kind byte, id string) error {
		b, err := m.text(a, kind, id)
		if len(b) > 0 {
			put(append([]byte{kind}, id...))
			put(b)
		}
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(a.campaigns)) {
		for _, kind := range [...]byte{textCampaign, textContent, textLinks} {
			if err := read(kind, id); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.templates)) {
		if err := read(textTemplate, id); err != nil {
			return err
		}
	}
	put(fmt.Appendf(nil, "%d bytes of texts", a.textBytes))
	return nil
}

package campaigns

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Content is what is sent: the campaign's own text or a template's, as
// of the start, with its links taken out for tracking.
type Content struct {
	Subject    string             `json:"subject"`
	HTML       string             `json:"html"`
	Text       string             `json:"text"`
	Sender     string             `json:"sender"`
	SenderName string             `json:"sender_name"`
	ReplyTo    string             `json:"reply_to"`
	Link       string             `json:"link,omitempty"`
	WhatsApp   *whatsapp.Template `json:"whatsapp,omitempty"` // in place of the text
	Push       *PushOptions       `json:"push,omitempty"`
	InApp      *card.Options      `json:"in_app,omitempty"`
	Links      []string           `json:"links,omitempty"` // click targets by number, see [Start.KeptLinks]
	// NoLinks says that all of them are kept from runs before.
	NoLinks bool `json:"no_links,omitempty"`
}

// linksOf are the click targets of contents, by variant.
func linksOf(contents []Content) (links [][]string, counts []int) {
	for _, c := range contents {
		links, counts = append(links, c.Links), append(counts, len(c.Links))
	}
	return links, counts
}

// keepContents stores what a campaign is sent with, in place of what the run old,
// if any, has left. Of what has no links none are stored.
func (s *State) keepContents(r, old *Run, contents, links []byte) {
	if old == nil {
		old = &Run{}
	}
	r.ContentBytes = s.putText(textContent, r.ID, old.ContentBytes, contents)
	r.LinkBytes = s.putText(textLinks, r.ID, old.LinkBytes, links)
}

// dropContents removes the contents of a run that is over, except for its links:
// clicks on them come later.
func (s *State) dropContents(r *Run) {
	r.ContentBytes = s.putText(textContent, r.ID, r.ContentBytes, nil)
}

// Body is the body of a campaign.
func (s *State) Body(id string) (string, error) {
	b, err := s.text(textCampaign, id)
	return string(b), err
}

// WholeCampaign is a campaign with its body.
func (s *State) WholeCampaign(id string) (x Campaign, ok bool, err error) {
	if x, ok = s.Campaign(id); ok {
		x.Body, err = s.Body(id)
	}
	return x, ok, err
}

// StartVersion names what a start of a campaign is made of: the campaign, which has its body, and
// the template that stands in for a body, or the one that the start names. A schedule is no part
// of it: starts name theirs. Logs have it, so it must stay what it is for campaigns on record: a
// field that is added to [Campaign] is left out of its JSON while it is empty.
func (s *State) StartVersion(x *Campaign, templateID string) (string, error) {
	if templateID == "" && x.Body == "" {
		templateID = x.TemplateID
	}
	t, ok, err := s.WholeTemplate(templateID)
	if err != nil {
		return "", err
	}
	template := ""
	if ok {
		template = t.Version()
	}
	c := *x
	c.Schedule, c.UpdatedMs = Schedule{}, 0
	return feature.Version(string(must.JSON(c)), template), nil
}

// unchanged refuses a command that was made of another version of a campaign on record, which is
// "" for commands that do not say.
func (s *State) unchanged(id, templateID, version string) *refuse.Refusal {
	if version == "" {
		return nil
	}
	x, _, err := s.WholeCampaign(id)
	var present string
	if err == nil {
		present, err = s.StartVersion(&x, templateID)
	}
	if err != nil {
		panic(err) // as where a version of a template is asked for
	}
	if version != present {
		return refuse.Conflicts("if_version", "the campaign or its template was changed meanwhile; send it again")
	}
	return nil
}

// Contents are the variants that a campaign is being sent with, none when its run is over.
func (s *State) Contents(id string) (contents []Content, err error) {
	err = s.readText(textContent, id, &contents)
	return contents, err
}

// Links are the click targets of what a campaign was sent with, by number, for each variant:
// those of the last run behind those that are kept of runs before.
func (s *State) Links(id string) (links [][]string, err error) {
	err = s.readText(textLinks, id, &links)
	return links, err
}

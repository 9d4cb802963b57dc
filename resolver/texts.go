package resolver

import "github.com/musterhq/muster/resolver/campaigns"

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
	r.ContentBytes = a.sending.PutText(campaigns.TextContent, r.ID, old.ContentBytes, contents)
	r.LinkBytes = a.sending.PutText(campaigns.TextLinks, r.ID, old.LinkBytes, links)
}

// dropContents forgets what a run that is over was sent with, but for its links:
// clicks on them come later.
func (m *Machine) dropContents(a *account, r *CampaignRun) {
	r.ContentBytes = a.sending.PutText(campaigns.TextContent, r.ID, r.ContentBytes, nil)
}

// stopRun ends a run before its end.
func (m *Machine) stopRun(a *account, r *CampaignRun, reason string) {
	r.stop(m.logTime, reason)
	m.dropContents(a, r)
}

// CampaignBody is the body of a campaign.
func (v *View) CampaignBody(id string) (string, error) {
	b, err := v.a.sending.Text(campaigns.TextCampaign, id)
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
	return contents, v.a.sending.ReadText(campaigns.TextContent, id, &contents)
}

// CampaignLinks are the click targets of what a campaign was sent with last, by
// number, for each variant.
func (v *View) CampaignLinks(id string) (links [][]string, err error) {
	return links, v.a.sending.ReadText(campaigns.TextLinks, id, &links)
}

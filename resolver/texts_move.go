package resolver

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Under rules before version 5 texts stood in the entities they belong to. Read
// from such a checkpoint they are moved to where they stand now.

func (m *Machine) moveBody(a *account, c *Campaign) {
	if c.Body == "" {
		return
	}
	c.BodyBytes = a.sending.PutText(campaigns.TextCampaign, c.ID, c.BodyBytes, []byte(c.Body))
	c.Body = ""
	m.store.PutEntity(state.EntityKey(a.number, state.EntityCampaign, c.ID), must.JSON(c))
}

// moveContents keeps what a campaign was last sent with. Runs are read before.
func (m *Machine) moveContents(a *account, id string, value []byte) error {
	var list []CampaignContent
	if err := json.Unmarshal(value, &list); err != nil {
		return err
	}
	m.store.PutEntity(state.EntityKey(a.number, state.EntityContent, id), nil)
	r := a.runs[id]
	if r == nil {
		return nil
	}
	links, counts := linksOf(list)
	r.Links = counts
	var contents []byte
	if r.Busy() {
		contents = append(contents, value...)
	}
	m.keepContents(a, r, r, contents, must.JSON(links))
	a.touchRun(r)
	return nil
}

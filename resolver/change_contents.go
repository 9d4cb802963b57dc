package resolver

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Contents are what flows, templates and settings were as of a change: their versions.
// They may be long and are seldom read, so they stand among the texts, and each goes
// before the change it belongs to. Definitions of segments stand in the changes
// themselves.

const (
	// maxChangeContents is how many bytes the contents of an account may have together;
	// the oldest are dropped.
	maxChangeContents = 8 << 20
	// maxChangeContent is the longest content that is kept, in bytes.
	maxChangeContent = 256 << 10
	// textChange is the kind of their keys; the id is the number of the change.
	textChange = '|'
)

// templateContent is what a template was.
type templateContent struct {
	Name          string `json:"name"`
	Source        string `json:"source"`
	Subject       string `json:"subject"`
	HTML          string `json:"html"`
	Text          string `json:"text"`
	Transactional bool   `json:"transactional"`
}

// contentOf is what a change made of something, nil for nothing whose contents are kept.
func (a *account) contentOf(c *Change, reply []byte) []byte {
	switch c.Action {
	case "flow.create", "flow.update", "flow.duplicate":
		if f, _ := a.flows.Get(c.ID); f != nil {
			return f.Definition
		}
	case "template.create", "template.update":
		var t campaigns.Template // the account has it without its texts
		if json.Unmarshal(reply, &t) == nil {
			return must.JSON(templateContent{t.Name, t.Source, t.Subject, t.HTML, t.Text, t.Transactional})
		}
	case "settings.update":
		return must.JSON(a.Settings.Shown())
	}
	return nil
}

func changeContentKey(account, seq uint64) string {
	return state.TextKey(account, textChange, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// keepContent stores the content of a change, which must be added next.
func (m *Machine) keepContent(a *account, c *Change, content []byte) {
	if c.ContentBytes = len(content); c.keptContent() > 0 {
		m.store.PutPayload(changeContentKey(a.number, c.Seq), content)
	}
}

// keptContent is how many bytes are kept of a change's content, as long as there is
// room.
func (c *Change) keptContent() int {
	if c.ContentBytes > maxChangeContent {
		return 0
	}
	return c.ContentBytes
}

// dropContents drops the contents of the oldest changes that there is no room for. drop
// removes one from the store. What stays follows from the changes alone.
func (g *changeLog) dropContents(drop func(seq uint64)) {
	for i := 0; g.contents > maxChangeContents; i++ {
		g.dropContent(i, drop)
	}
}

func (g *changeLog) dropContent(i int, drop func(seq uint64)) {
	x := &g.lines[i]
	if x.content == 0 {
		return
	}
	drop(x.seq)
	g.contents -= x.content
	x.content = 0
}

// Version is what something was as of a change.
type Version struct {
	Change
	// Content is a flow's definition, a template without its id, or settings; nil for
	// one that is not kept any more, or too long.
	Content json.RawMessage
}

// Versions lists what a flow, a template or the settings were, the newest first: before
// a number, 0 for the end, limit at most.
func (v *View) Versions(kind, id string, before uint64, limit int) ([]Version, error) {
	var out []Version
	for _, x := range slices.Backward(v.a.changes.lines) {
		if len(out) >= limit {
			break
		}
		if x.kind != kind || x.id != id || !x.version || before != 0 && x.seq >= before {
			continue
		}
		c, err := v.m.change(v.a, x.seq)
		if err != nil {
			return nil, err
		}
		out = append(out, Version{Change: c})
		if x.content == 0 {
			continue
		}
		b, err := v.m.store.Entity(changeContentKey(v.a.number, x.seq))
		if err != nil {
			return nil, err
		}
		out[len(out)-1].Content = b
	}
	return out, nil
}

// hashContents is the part of the contents in the state's hash.
func (m *Machine) hashContents(put func([]byte), a *account) error {
	for _, x := range a.changes.lines {
		b, err := m.store.Entity(changeContentKey(a.number, x.seq))
		if err != nil {
			return err
		}
		if (len(b) > 0) != (x.content > 0) {
			put([]byte("content that is not accounted for"))
		}
		put(b)
	}
	return nil
}

// Package changes finds out, for the audit log, what a command changes of an account: by whom,
// which thing, which of its fields, and what it is afterwards. It looks at the command's
// arguments before it is applied, and at the account before and after.
package changes

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
)

// The actions whose fields are compared with what they were.
const (
	actionSettings = "settings.update"
	actionSegment  = "segment.update"
)

// maxFields bounds the names of fields that the audit log keeps of a change.
const maxFields = 50

// Pending is a change whose command is being applied.
type Pending struct {
	account *account.State
	change  audit.Change
	before  []byte // the segment's definition
}

// Begin reads the actor and the subject of a command before it is applied. It is nil for one
// that is not audited, which has no kind, or that names no actor. Without an action the thing
// is created or updated.
func Begin(a *account.State, kind, action string, args []byte) *Pending {
	if kind == "" {
		return nil
	}
	in, ok := audit.ReadSigned(args)
	if !ok {
		return nil
	}
	c := audit.Change{By: in.By, Keeps: in.Keeps, Action: action, Kind: kind, ID: in.ID, Name: in.Name}
	switch kind {
	case "sender_domain":
		c.ID = in.Name
	case "credential":
		c.ID = in.Group + "/" + in.Name
	}
	if c.Name == "" {
		c.Name = a.NameOf(kind, in.ID)
	}
	if c.Action == "" {
		c.Action = kind + ".update"
		if in.ID == "" {
			c.Action = kind + ".create"
		}
	}
	c.Fields = changedFields(a, c.Action, c.ID, args)
	p := &Pending{account: a, change: c}
	if s := a.Segments[c.ID]; s != nil {
		p.before = s.Definition
	}
	return p
}

// Note adds the change to the audit log: the command was carried out, with a reply.
func (p *Pending) Note(tx *feature.Tx, reply []byte) {
	a, c := p.account, &p.change
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	switch err := json.Unmarshal(reply, &made); {
	case err != nil:
	case c.Kind == "event_type":
		c.ID = made.Key
	case c.Kind != "company" && made.ID != "":
		c.ID = made.ID
	}
	// A flow's name is in its definition; older logs have the one of before.
	if name := a.NameOf(c.Kind, c.ID); c.Name == "" || c.Keeps && name != "" {
		c.Name = name
	}
	if s := a.Segments[c.ID]; c.Kind == "segment" && s != nil {
		if bytes.Equal(p.before, s.Definition) {
			c.Fields = slices.DeleteFunc(c.Fields, func(f string) bool { return f == "definition" })
		}
		c.Definition = s.Definition
	}
	var content []byte
	if c.Keeps {
		content = contentOf(a, c, reply)
	}
	a.Audit.Add(tx, c, content)
}

// unnamedFields are arguments that are not the caller's, or say what is named already.
var unnamedFields = []string{"_by", "id", "actor_id", "group", "created_ms", "updated_ms", "text_bytes", "number", "hash", "if_version"}

// changedFields names what a command sets; id is that of what it changes.
func changedFields(a *account.State, action, id string, args []byte) []string {
	var now, old map[string]json.RawMessage
	if json.Unmarshal(args, &now) != nil {
		return nil
	}
	switch action {
	case actionSettings:
		var s account.Settings
		if json.Unmarshal(args, &s) != nil {
			return nil
		}
		s.Fill()
		clear(now)
		_, _ = json.Unmarshal(must.JSON(s.Shown()), &now), json.Unmarshal(must.JSON(a.Settings.Shown()), &old)
		for k := range old {
			if _, given := now[k]; !given {
				now[k] = nil
			}
		}
	case actionSegment:
		if s := a.Segments[id]; s != nil {
			old = map[string]json.RawMessage{"name": must.JSON(s.Name)} // definitions are compared once they are canonical
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if slices.Contains(unnamedFields, k) || old != nil && bytes.Equal(now[k], old[k]) || len(out) == maxFields {
			continue
		}
		out = append(out, strings.TrimSuffix(k, "_hash"))
	}
	return out
}

// templateContent is the content of a template.
type templateContent struct {
	Name          string `json:"name"`
	Source        string `json:"source"`
	Subject       string `json:"subject"`
	HTML          string `json:"html"`
	Text          string `json:"text"`
	Transactional bool   `json:"transactional"`
}

// contentOf is what a change made of something, nil for nothing whose contents are kept.
func contentOf(a *account.State, c *audit.Change, reply []byte) []byte {
	switch c.Action {
	case "flow.create", "flow.update", "flow.duplicate":
		if f, _ := a.Flows.Get(c.ID); f != nil {
			return f.Definition
		}
	case "template.create", "template.update":
		var t campaigns.Template // the account has it without its texts
		if json.Unmarshal(reply, &t) == nil {
			return must.JSON(templateContent{t.Name, t.Source, t.Subject, t.HTML, t.Text, t.Transactional})
		}
	case actionSettings:
		return must.JSON(a.Settings.Shown())
	}
	return nil
}

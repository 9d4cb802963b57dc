package automation

import (
	"bytes"
	"encoding/json"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// TagsField is the attribute that holds a profile's tags.
const TagsField = "tags"

// maxNameBytes bounds the names of profiles.
const maxNameBytes = 512

func (h *host) Tag(_ int, x *flows.Tag) flows.Result {
	have, _ := rawjson.Lookup(h.d.Attributes, []string{TagsField})
	tags, differs := x.Apply(have)
	if !differs {
		return flows.Done
	}
	return h.updateProfile(must.JSON(map[string]any{"attributes": map[string]any{TagsField: json.RawMessage(tags)}}))
}

func (h *host) Update(_ int, x *flows.Update) flows.Result {
	patch, err := x.Patch(h.lookup())
	if err != nil {
		return flows.Refused
	}
	return h.updateProfile(patch)
}

// lookup answers merge tags of what a flow sets on the profile.
func (h *host) lookup() merge.Lookup {
	d := h.d
	return func(path []string) (string, bool) {
		text := func(b []byte) (string, bool) { return string(b), len(b) > 0 }
		switch {
		case len(path) > 1 && path[0] == "geo":
			return rawjson.Scalar(d.Geo, path[1:])
		case len(path) > 1 && path[0] == "attributes":
			return rawjson.Scalar(d.Attributes, path[1:])
		case len(path) > 1 && path[0] == "event":
			return rawjson.Scalar(h.e.Event, path[1:])
		case len(path) > 1:
			return "", false
		}
		switch path[0] {
		case "first_name":
			return text(d.FirstName)
		case "last_name":
			return text(d.LastName)
		case "email":
			return text(d.Newest(identifier.Email))
		case "phone":
			return text(d.Newest(identifier.Phone))
		case "external_id":
			return text(d.Newest(identifier.ExternalID))
		case "profile_id":
			return h.s.port.ProfileID(h.o).String(), true
		}
		return "", false
	}
}

// profilePatch is what a step changes of a profile, as an event would say it.
type profilePatch struct {
	FirstName  nameChange      `json:"first_name"`
	LastName   nameChange      `json:"last_name"`
	Geo        json.RawMessage `json:"geo"`
	Attributes json.RawMessage `json:"attributes"`
}

// nameChange is a name to be set; null removes it.
type nameChange struct {
	set   bool
	value string
}

// UnmarshalJSON reads a text or null.
func (n *nameChange) UnmarshalJSON(b []byte) error {
	n.set = true
	return json.Unmarshal(b, &n.value)
}

// updateProfile changes the profile as a patch says. What would grow too large is not
// changed at all.
func (h *host) updateProfile(patch []byte) flows.Result {
	d, merger := h.d, &h.s.run.merger
	var p profilePatch
	if err := json.Unmarshal(patch, &p); err != nil {
		return flows.Refused
	}
	merger.Reset()
	fields := engine.Fields(0)
	next := *d
	for _, x := range [...]struct {
		dst   *[]byte
		src   nameChange
		field engine.Fields
	}{{&next.FirstName, p.FirstName, engine.FieldFirstName}, {&next.LastName, p.LastName, engine.FieldLastName}} {
		if x.src.set && string(*x.dst) != x.src.value {
			if len(x.src.value) > maxNameBytes {
				return flows.Refused
			}
			*x.dst = []byte(x.src.value)
			fields |= x.field
		}
	}
	for _, x := range [...]struct {
		dst   *[]byte
		src   []byte
		field engine.Fields
	}{{&next.Geo, p.Geo, engine.FieldGeo}, {&next.Attributes, p.Attributes, engine.FieldAttributes}} {
		merged, differs, err := merger.Merge(*x.dst, x.src, profile.Overwrite)
		if err != nil || profile.TooLarge(merged) {
			return flows.Refused
		}
		if differs {
			*x.dst = bytes.Clone(merged)
			fields |= x.field
		}
	}
	if fields == 0 {
		return flows.Done
	}
	d.FirstName, d.LastName, d.Geo, d.Attributes = next.FirstName, next.LastName, next.Geo, next.Attributes
	d.SaidOtherwise(p.FirstName.set, p.LastName.set, p.Geo, p.Attributes, h.s.run.nowMs)
	h.s.port.Update(h.o, d, fields)
	return flows.Done
}

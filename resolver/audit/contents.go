package audit

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/resolver/internal/state"
)

// Contents are the versions of flows, templates and settings as of a change.
// They may be long and are seldom read, so they stand among the texts, and each goes
// before the change it belongs to. Definitions of segments stand in the changes
// themselves.

const (
	// MaxContentBytes is how many bytes the contents of an account may have together;
	// the oldest are dropped.
	MaxContentBytes = 8 << 20
	// MaxContent is the longest content that is kept, in bytes.
	MaxContent = 256 << 10
	// textChange is the kind of their keys; the id is the number of the change.
	textChange = '|'
)

func (s *State) contentKey(seq uint64) string {
	return state.TextKey(s.account, textChange, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// keepContent stores the content of a change, which must be added next.
func (s *State) keepContent(c *Change, content []byte) {
	if c.ContentBytes = len(content); c.keptContent() > 0 {
		s.store.PutPayload(s.contentKey(c.Seq), content)
	}
}

// keptContent is how many bytes are kept of a change's content, as long as there is
// room.
func (c *Change) keptContent() int {
	if c.ContentBytes > MaxContent {
		return 0
	}
	return c.ContentBytes
}

// dropContents drops the contents of the oldest changes that there is no room for. drop
// removes one from the store. What stays follows from the changes alone.
func (s *State) dropContents(drop func(seq uint64)) {
	for i := 0; s.contents > MaxContentBytes; i++ {
		s.dropContent(i, drop)
	}
}

func (s *State) dropContent(i int, drop func(seq uint64)) {
	x := &s.lines[i]
	if x.content == 0 {
		return
	}
	drop(x.seq)
	s.contents -= x.content
	x.content = 0
}

// Version is the content of something as of a change.
type Version struct {
	Change
	// Content is a flow's definition, a template without its id, or settings; nil for
	// one that is not kept any more, or too long.
	Content json.RawMessage
}

// Versions lists what a flow, a template or the settings were, the newest first: before
// a number, 0 for the end, limit at most.
func (s *State) Versions(kind, id string, before uint64, limit int) ([]Version, error) {
	var out []Version
	for _, x := range slices.Backward(s.lines) {
		if len(out) >= limit {
			break
		}
		if x.kind != kind || x.id != id || !x.version || before != 0 && x.seq >= before {
			continue
		}
		c, err := s.change(x.seq)
		if err != nil {
			return nil, err
		}
		out = append(out, Version{Change: c})
		if x.content == 0 {
			continue
		}
		b, err := s.store.Entity(s.contentKey(x.seq))
		if err != nil {
			return nil, err
		}
		out[len(out)-1].Content = b
	}
	return out, nil
}

// hashContents is the part of the contents in the state's hash.
func (s *State) hashContents(put func([]byte)) error {
	for _, x := range s.lines {
		b, err := s.store.Entity(s.contentKey(x.seq))
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

package resolver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// contentVersion names a content by its hash, in 16 hexadecimal digits. Somebody who
// saves over it says by this what they have seen: whatever was saved in between makes
// another version, unless it is the same content.
func contentVersion(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Version names the segment's content, see [SegmentSave].
func (s *Segment) Version() string { return contentVersion(s.Name, string(s.Definition)) }

// Version names the flow's content, see [FlowSave].
func (f *Flow) Version() string { return contentVersion(string(f.Definition)) }

// Version names the template's content, see [TemplateSave]. The texts must be there, as
// [View.WholeTemplate] has them.
func (t *Template) Version() string {
	return contentVersion(t.Name, t.Source, t.Subject, t.HTML, t.Text, strconv.FormatBool(t.Transactional))
}

// otherVersion refuses to save over another version than the caller has seen, which is
// "" for callers that do not say.
func otherVersion(seen string, present func() string) *Refusal {
	if seen == "" || seen == present() {
		return nil
	}
	return conflicts("if_version", "somebody saved another version meanwhile; read it again and repeat your change, or leave if_version out to save over it")
}

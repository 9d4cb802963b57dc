package profile

import (
	"encoding/json"
	"testing"
)

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":null,"c":[1,"}"]}}`))
	f.Add([]byte(`{"a`), []byte(`{"a":{"b":{"c":{"d":{}}}}}`))
	f.Fuzz(func(t *testing.T, dst, src []byte) {
		var j JSONMerger
		for _, mode := range []MergeMode{Overwrite, Fill} {
			out, _, err := j.Merge(dst, src, mode)
			if err != nil {
				continue
			}
			if _, changed, err := j.Merge(out, src, mode); err == nil && changed && isObject(dst) && isObject(src) {
				t.Fatalf("merging %s into %s twice changes it again: %s", src, dst, out)
			}
		}
	})
}

// isObject reports whether b is an object as ingest writes them: without
// repeated keys, which json.Valid does not see.
func isObject(b []byte) bool {
	var m map[string]json.RawMessage
	if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &m) != nil {
		return false
	}
	n := 0
	_ = EachMember(b, func(Member) { n++ })
	for _, v := range m {
		if v[0] == '{' && !isObject(v) {
			return false
		}
	}
	return n == len(m)
}

package record

import (
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/rawjson"
)

// Time is a time in Unix milliseconds as answers write it: ISO 8601 in UTC.
func Time(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// TimeOrNull is [Time], null for 0.
func TimeOrNull(ms int64) *string {
	if ms == 0 {
		return nil
	}
	s := Time(ms)
	return &s
}

// TextOrNull is a text, null when it is empty.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Object is a JSON object, {} when there is no text.
func Object[T string | []byte | json.RawMessage](text T) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}

// Texts is a copy of a list of texts, [] when there is none.
func Texts(list []string) []string { return append([]string{}, list...) }

// Tags are the texts of the array tags in a profile's attributes, [] when there
// is none.
func Tags(attributes json.RawMessage) []string {
	out := []string{}
	raw, ok := rawjson.Lookup(attributes, []string{"tags"})
	if !ok || rawjson.KindOf(raw) != rawjson.Array {
		return out
	}
	rawjson.EachElement(raw, func(v []byte) bool {
		if rawjson.KindOf(v) == rawjson.String {
			if text, ok := rawjson.Unquote(nil, v); ok {
				out = append(out, string(text))
			}
		}
		return true
	})
	return out
}

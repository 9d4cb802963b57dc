package segment

import (
	"testing"
)

// TestS1ColumnsAnswerAsProfilesDo: a condition on a field that has a column holds for a
// profile where it holds for the profile's value there.
func TestS1ColumnsAnswerAsProfilesDo(t *testing.T) {
	profiles := []Fields{
		{},
		{FirstName: []byte("Ada"), LastName: []byte("Lovelace"), Attributes: []byte(`{"plan":"pro","tags":["a","b"]}`), Geo: []byte(`{"country":"DE"}`)},
		{FirstName: []byte("ada"), Attributes: []byte(`{"plan":null,"n":3,"at":"2026-01-02T03:04:05Z","tags":[]}`)},
		{LastName: []byte(`"x"`), Attributes: []byte(`{"plan":{"of":"free"},"n":"3","tags":"a"}`), Geo: []byte(`{"country":["DE","FR"]}`)},
		{Attributes: []byte(`{"plan":true,"n":-1.5}`)},
	}
	const now = 1_767_400_000_000
	compared, holds := 0, 0
	for _, field := range []string{"first_name", "last_name", "geo.country", "attributes.plan", "attributes.plan.of", "attributes.n", "attributes.at", "attributes.tags", "tags"} {
		for _, rest := range []string{
			`"op":"eq","value":"pro"`, `"op":"ne","value":"pro"`, `"op":"eq","value":"Ada"`, `"op":"in","value":["DE","a","free"]`, `"op":"not_in","value":["DE","a"]`,
			`"op":"contains","value":"a"`, `"op":"not_contains","value":"a"`, `"op":"starts_with","value":"A"`, `"op":"exists"`, `"op":"not_exists"`,
			`"op":"gt","value":1`, `"op":"eq","value":3`, `"op":"eq","value":true`, `"op":"in_last_days","value":3`, `"op":"not_in_last_days","value":3`,
		} {
			root, err := Parse([]byte(`{"kind":"attribute","field":"`+field+`",`+rest+`}`), Limits{})
			if err != nil {
				continue // an operator that the field does not have
			}
			column, ok := NewColumn(root.Attribute.Field)
			if !ok {
				t.Fatalf("%s has no column", field)
			}
			for i := range profiles {
				f := Facts{Fields: profiles[i]}
				want, got := f.Holds(root, now), root.Attribute.MatchValue(column.Value(&f.Fields), now)
				if compared++; got {
					holds++
				}
				if got != want {
					t.Errorf("%s %s for profile %d: %t by the column, %t by the profile", field, rest, i, got, want)
				}
			}
		}
	}
	if compared < 300 || holds < 60 || holds > compared-60 {
		t.Errorf("%d comparisons, %d of which hold: not the test it should be", compared, holds)
	}
}

func TestFieldsWithoutAColumn(t *testing.T) {
	for _, field := range []string{"email", "phone", "external_id", "created_at", "last_event_at", "subscribed", "engagement_score", "push_devices", "status.email", "suppressed.sms", "geo", "attributes", ""} {
		if _, ok := NewColumn(field); ok {
			t.Errorf("%s has one", field)
		}
	}
}

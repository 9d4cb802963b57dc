package operation

import "slices"

// KeyPermissions are all that an API key may ever hold.
func KeyPermissions() []string { return permissions(keyAreas...) }

// UserPermissions are all that a person may hold.
func UserPermissions() []string { return permissions(slices.Concat(keyAreas, userAreas)...) }

// keyAreas are what an API key may be permitted to read and write; userAreas
// are for people only.
var (
	keyAreas  = []string{"contacts", "lists", "segments", "campaigns", "flows", "templates", "push", "analytics", "events"}
	userAreas = []string{"settings", "users", "api_keys", "billing"}
)

func permissions(areas ...string) []string {
	out := make([]string, 0, 2*len(areas))
	for _, a := range areas {
		out = append(out, a+":read", a+":write")
	}
	return out
}

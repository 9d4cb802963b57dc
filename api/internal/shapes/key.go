package shapes

import "github.com/musterhq/muster/api/shape"

// Permissions is a list of permissions.
func Permissions(about string) *shape.Schema {
	return shape.List(shape.Text("contacts:read", "`<area>:<read|write>`"), about).Entries(0, 100)
}

// Key is an API key, without the key itself.
var Key = shape.Named("APIKeyRecord", shape.Object(
	shape.Req("_id", shape.KeyID("")), shape.Req("name", shape.Text("Shop", "")), shape.Req("permissions", Permissions("What the key was given.")),
	shape.Req("effective_permissions", Permissions("What it may do now: what it was given and its creator may do at present. Empty for a key that was revoked, or whose creator was removed.")),
	shape.Req("created_by", shape.UserID("")), shape.Req("created_at", shape.Instant("")), shape.Req("last_used_at", shape.Instant("").OrNull()),
	shape.Req("revoked", shape.Boolean(false, "A revoked key keeps its record.")), shape.Req("revoked_at", shape.Instant("").OrNull()),
))

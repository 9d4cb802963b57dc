package accounts

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
)

func passwordShape(example, about string) *shape.Schema {
	return shape.Text(example, about).Bytes(12, 1024)
}

var userShape = shape.Named("User", shape.Object(
	shape.Req("_id", shape.UserID("")), shape.Req("email", shape.Text("ann@example.com", "")), shape.Req("name", shape.Text("Ann Lee", "")), shape.Req("permissions", shapes.Permissions("")),
	shape.Req("admin", shape.Boolean(false, "Whether the person administers the whole system.")), shape.Req("created_at", shape.Instant("")),
))

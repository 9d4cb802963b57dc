package handler

import (
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// Use is something that refers to something else, as it is answered.
type Use struct {
	Kind string `json:"kind"`
	ID   string `json:"_id"`
	Name string `json:"name"`
}

func usesShape() *shape.Schema {
	return shape.List(shape.Named("Use", shape.Object(
		shape.Req("kind", shape.Word("What refers to it.", view.UseKinds()...)),
		shape.Req("_id", shape.Text("flw_0d9b6e3a7c5f4812a4c1e8d7b2f69350", "Its id; of a setting its name.")), shape.Req("name", shape.Text("Welcome", "")))), "")
}

// UsedInRoute is the call that says where something is used: by the same checks that
// refuse its deletion.
func UsedInRoute(path, permission, id, noun, about string, list func(view.UsedIn, string) ([]view.Use, bool), none error) Route {
	handle := func(c *Call) (any, error) {
		out := []Use{}
		err := c.Read(func(v *resolver.View) error {
			found, ok := list(v.UsedIn(), c.Param("id"))
			if !ok {
				return none
			}
			for _, u := range found {
				out = append(out, Use(u))
			}
			return nil
		})
		return out, err
	}
	return Route{handle, operation.Operation{Method: "GET", Path: path + "/{id}/used-in", Permission: permission, ID: id, Summary: "Where " + noun + " is used", About: about, Data: usesShape()}}
}

// KeepsFromDeletion describes a list of uses that keep something from being deleted.
const KeepsFromDeletion = "What is named here keeps it from being deleted. Campaigns that are over are not."

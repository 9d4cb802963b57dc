package profiles

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// inboxRoute is the call about a person's in-app messages.
func (a *API) inboxRoute() handler.Route {
	return handler.Route{Handle: a.inbox, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/inbox", Permission: "contacts:read", ID: "profileInbox", Summary: "List a person's in-app messages",
		About: "As pages show them: by priority, and of one priority the newest first. Those that the person put away are among them until they end. An inbox has the newest 100.",
		Data:  shape.List(shapes.InboxMessage, "")}}
}

// inbox answers GET /profiles/{id}/inbox.
func (a *API) inbox(c *handler.Call) (any, error) {
	out := []record.InboxMessage{}
	err := c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		list, err := v.InApp().Inbox(o, max(a.opts.Now().UnixMilli(), v.LogTimeMs()))
		for i := range list {
			out = append(out, record.NewInboxMessage(&list[i]))
		}
		return err
	})
	return out, err
}

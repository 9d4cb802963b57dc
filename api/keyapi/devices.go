package keyapi

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

func (a *API) deviceOperations() group {
	return group{operation.Group{Surface: operation.SurfaceA, Tag: "Devices", Title: "Devices", About: "Devices that push messages go to. A person may have 20; the oldest makes room."}, []route{
		{a.addDevice, operation.Operation{Method: "POST", Path: "/contacts/{id}/devices", Permission: "contacts:write", ID: "addDevice", Summary: "Register a device",
			About: "The same address again changes nothing. An address that is another contact's moves to this one. A device brings consent to push.",
			Body:  shapes.DeviceBody(), Data: shapes.Device, Fails: []string{"kind Input should be 'webpush', 'fcm' or 'apns'"}}},
		{a.listDevices, operation.Operation{Method: "GET", Path: "/contacts/{id}/devices", Permission: "contacts:read", ID: "listDevices", Summary: "List a contact's devices",
			About: "The oldest first.", Data: shape.List(shapes.Device, ""), Fails: []string{"There is no contact with this id"}}},
		{a.removeDevice, operation.Operation{Method: "DELETE", Path: "/contacts/{id}/devices/{device}", Permission: "contacts:write", ID: "removeDevice", Summary: "Remove a device",
			Fails: []string{"There is no contact with this id"}}},
	}}
}

// addDevice answers POST /contacts/{id}/devices. The same address again changes
// nothing; with another contact it moves there.
func (a *API) addDevice(c *call) (any, error) {
	var in struct {
		ID      string  `json:"device_id"`
		Kind    string  `json:"kind"`
		Address *string `json:"address"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	kind, ok := messaging.PushKind(in.Kind)
	switch {
	case in.Kind == "":
		return nil, Fail("kind Field required")
	case !ok:
		return nil, Fail("kind Input should be 'webpush', 'fcm' or 'apns'")
	case in.Address == nil:
		return nil, Fail("address Field required")
	}
	if err := push.CheckToken(kind, *in.Address, a.opts.AllowPrivate); err != nil {
		return nil, Fail("address %s", err)
	}
	var out contacts.DeviceReply
	if err := c.command(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: c.param("id"), Device: in.ID, Kind: in.Kind, Address: *in.Address}, &out); err != nil {
		return nil, err
	}
	list, err := c.devicesOf(out.Profile)
	for _, d := range list {
		if d.ID == out.Device {
			return d, err
		}
	}
	// Somebody else has moved it away meanwhile.
	return record.Device{ID: out.Device, Kind: in.Kind, CreatedAt: record.Time(c.now.UnixMilli())}, err
}

func (c *call) devicesOf(id string) (list []record.Device, err error) {
	err = c.read(func(v *resolver.View) error {
		o, ok := v.ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profile(o)
		if err == nil {
			list = record.Devices(p)
		}
		return err
	})
	return list, err
}

func (a *API) listDevices(c *call) (any, error) { return c.devicesOf(c.param("id")) }

func (a *API) removeDevice(c *call) (any, error) {
	return nil, c.command(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: c.param("id"), Device: c.param("device")}, nil)
}

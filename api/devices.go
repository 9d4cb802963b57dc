package api

import (
	"net/url"

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
	return group{operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: devices", Title: "Devices", About: "Devices that push messages go to."}, []route{
		{a.listDevices, operation.Operation{Method: "GET", Path: "/profiles/{id}/devices", Permission: "contacts:read", ID: "consoleListDevices", Summary: "List a profile's devices", About: "The oldest first.", Data: shape.List(shapes.Device, "")}},
		{a.addDevice, operation.Operation{Method: "POST", Path: "/profiles/{id}/devices", Permission: "contacts:write", ID: "consoleAddDevice", Summary: "Register a device", Body: shapes.DeviceBody(), Data: shapes.Device}},
		{a.removeDevice, operation.Operation{Method: "DELETE", Path: "/profiles/{id}/devices/{device}", Permission: "contacts:write", ID: "consoleRemoveDevice", Summary: "Remove a device"}},
	}}
}

// listDevices answers GET /profiles/{id}/devices, the oldest first.
func (a *API) listDevices(c *call) (any, error) { return a.devicesOf(c, c.id()) }

func (a *API) devicesOf(c *call, id string) (list []record.Device, err error) {
	err = a.read(c, func(v *resolver.View) error {
		o, ok := v.ResolveText(id)
		if !ok {
			return missing("%s", errNoProfile)
		}
		p, err := v.Profile(o)
		if err == nil {
			list = record.Devices(p)
		}
		return err
	})
	return list, err
}

// addDevice answers POST /profiles/{id}/devices. The same address again changes
// nothing; with another profile it moves there.
func (a *API) addDevice(c *call) (any, error) {
	var in struct {
		ID      string `json:"device_id"`
		Kind    string `json:"kind"`
		Address string `json:"address"`
	}
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	kind, ok := messaging.PushKind(in.Kind)
	if !ok {
		return nil, badField("kind", "kind must be webpush, fcm or apns")
	}
	if err := push.CheckToken(kind, in.Address, a.opts.AllowPrivate); err != nil {
		return nil, badField("address", "address: %s", err)
	}
	var out contacts.DeviceReply
	if err := a.command(c, contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: c.id(), Device: in.ID, Kind: in.Kind, Address: in.Address}, &out); err != nil {
		return nil, err
	}
	list, err := a.devicesOf(c, out.Profile)
	for _, d := range list {
		if d.ID == out.Device {
			return d, err
		}
	}
	// Somebody else has moved it away meanwhile.
	return record.Device{ID: out.Device, Kind: in.Kind, CreatedAt: record.Time(a.opts.Now().UnixMilli())}, err
}

// removeDevice answers DELETE /profiles/{id}/devices/{device}.
func (a *API) removeDevice(c *call) (any, error) {
	return nil, a.command(c, contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: c.id(), Device: c.param("device")}, nil)
}

// param is what the path has in place of a part in braces, "" if it has not got
// one.
func (c *call) param(name string) string {
	if c.shared != nil {
		return c.shared.params[name]
	}
	text, _ := c.UserValue(name).(string)
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

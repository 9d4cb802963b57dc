package profiles

import (
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// Devices are the calls about the devices of profiles.
func (a *API) Devices() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: devices", Title: "Devices", About: "Devices that push messages go to."}, Routes: []handler.Route{
		{Handle: a.listDevices, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/devices", Permission: "contacts:read", ID: "consoleListDevices", Summary: "List a profile's devices", About: "The oldest first.", Data: shape.List(shapes.Device, "")}},
		{Handle: a.addDevice, Operation: operation.Operation{Method: "POST", Path: "/profiles/{id}/devices", Permission: "contacts:write", ID: "consoleAddDevice", Summary: "Register a device", Body: shapes.DeviceBody(), Data: shapes.Device}},
		{Handle: a.removeDevice, Operation: operation.Operation{Method: "DELETE", Path: "/profiles/{id}/devices/{device}", Permission: "contacts:write", ID: "consoleRemoveDevice", Summary: "Remove a device"}},
	}}
}

// listDevices answers GET /profiles/{id}/devices, the oldest first.
func (a *API) listDevices(c *handler.Call) (any, error) { return a.devicesOf(c, c.PathID()) }

func (a *API) devicesOf(c *handler.Call, id string) (list []record.Device, err error) {
	err = c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(id)
		if !ok {
			return handler.ErrNoProfile
		}
		p, err := v.Profiles().Get(o)
		if err == nil {
			list = record.Devices(p)
		}
		return err
	})
	return list, err
}

// addDevice answers POST /profiles/{id}/devices. The same address again changes
// nothing; with another profile it moves there.
func (a *API) addDevice(c *handler.Call) (any, error) {
	var in struct {
		ID      string `json:"device_id"`
		Kind    string `json:"kind"`
		Address string `json:"address"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	kind, ok := messaging.PushKind(in.Kind)
	if !ok {
		return nil, handler.BadField("kind", "kind must be webpush, fcm or apns")
	}
	if err := push.CheckToken(kind, in.Address, a.opts.AllowPrivate); err != nil {
		return nil, handler.BadField("address", "address: %s", err)
	}
	add := contacts.DeviceAdd{Profile: c.PathID(), Device: in.ID, Kind: in.Kind, Address: in.Address}
	if r := contacts.CheckDevice(&add); r != nil && r.Field == "device" {
		return nil, handler.BadField("device_id", "%s", strings.Replace(r.Message, "device", "device_id", 1)) // as this call has it
	}
	var out contacts.DeviceReply
	if err := c.Command(contacts.CommandDeviceAdd, add, &out); err != nil {
		return nil, err
	}
	list, err := a.devicesOf(c, out.Profile)
	for _, d := range list {
		if d.ID == out.Device {
			return d, err
		}
	}
	// Another request has moved it away meanwhile.
	return record.Device{ID: out.Device, Kind: in.Kind, CreatedAt: record.Time(a.opts.Now().UnixMilli())}, err
}

// removeDevice answers DELETE /profiles/{id}/devices/{device}.
func (a *API) removeDevice(c *handler.Call) (any, error) {
	return nil, c.Command(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: c.PathID(), Device: c.Param("device")}, nil)
}

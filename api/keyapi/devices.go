package keyapi

import (
	"strings"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// deviceCalls are the calls about devices. Whether push services may be on private
// addresses is all that they need to know.
type deviceCalls struct{ allowPrivate bool }

func (d deviceCalls) operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Devices", Title: "Devices", About: "Devices that push messages go to. A person may have 20; the oldest makes room."}, Routes: []keycall.Route{
		{Handle: d.add, Operation: operation.Operation{Method: "POST", Path: "/contacts/{id}/devices", Permission: "contacts:write", ID: "addDevice", Summary: "Register a device",
			About: "The same address again changes nothing. An address that is another contact's moves to this one. A device brings consent to push.",
			Body:  shapes.DeviceBody(), Data: shapes.Device, Fails: []string{"kind Input should be 'webpush', 'fcm' or 'apns'"}}},
		{Handle: listDevices, Operation: operation.Operation{Method: "GET", Path: "/contacts/{id}/devices", Permission: "contacts:read", ID: "listDevices", Summary: "List a contact's devices",
			About: "The oldest first.", Data: shape.List(shapes.Device, ""), Fails: []string{"There is no contact with this id"}}},
		{Handle: removeDevice, Operation: operation.Operation{Method: "DELETE", Path: "/contacts/{id}/devices/{device}", Permission: "contacts:write", ID: "removeDevice", Summary: "Remove a device",
			Fails: []string{"There is no contact with this id"}}},
	}}
}

// add answers POST /contacts/{id}/devices. The same address again changes
// nothing; with another contact it moves there.
func (d deviceCalls) add(c *keycall.Call) (any, error) {
	var in struct {
		ID      string  `json:"device_id"`
		Kind    string  `json:"kind"`
		Address *string `json:"address"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	kind, ok := messaging.PushKind(in.Kind)
	switch {
	case in.Kind == "":
		return nil, keycall.Fail("kind Field required")
	case !ok:
		return nil, keycall.Fail("kind Input should be 'webpush', 'fcm' or 'apns'")
	case in.Address == nil:
		return nil, keycall.Fail("address Field required")
	}
	if err := push.CheckToken(kind, *in.Address, d.allowPrivate); err != nil {
		return nil, keycall.Fail("address %s", err)
	}
	add := contacts.DeviceAdd{Profile: c.Param("id"), Device: in.ID, Kind: in.Kind, Address: *in.Address}
	if r := contacts.CheckDevice(&add); r != nil && r.Field == "device" {
		return nil, keycall.Fail("%s", strings.Replace(r.Message, "device", "device_id", 1)) // as this call has it
	}
	var out contacts.DeviceReply
	if err := c.Command(contacts.CommandDeviceAdd, add, &out); err != nil {
		return nil, err
	}
	list, err := devicesOf(c, out.Profile)
	for _, x := range list {
		if x.ID == out.Device {
			return x, err
		}
	}
	// Another request has moved it away meanwhile.
	return record.Device{ID: out.Device, Kind: in.Kind, CreatedAt: record.Time(c.Now.UnixMilli())}, err
}

func devicesOf(c *keycall.Call, id string) (list []record.Device, err error) {
	err = c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profiles().Get(o)
		if err == nil {
			list = record.Devices(p)
		}
		return err
	})
	return list, err
}

func listDevices(c *keycall.Call) (any, error) { return devicesOf(c, c.Param("id")) }

func removeDevice(c *keycall.Call) (any, error) {
	return nil, c.Command(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: c.Param("id"), Device: c.Param("device")}, nil)
}

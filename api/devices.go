package api

import (
	"net/url"

	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver"
)

// registerMessaging adds the calls about devices and about the keys to the
// services that messages go through, and what the public may call.
func (a *API) registerMessaging(r *router.Router) {
	for _, x := range []struct {
		method, path string
		access       access
		handle       func(*call) (any, error)
	}{
		{"GET", "/profiles/{id}/devices", "contacts:read", a.listDevices},
		{"POST", "/profiles/{id}/devices", "contacts:write", a.addDevice},
		{"DELETE", "/profiles/{id}/devices/{device}", "contacts:write", a.removeDevice},

		// No API key reaches the console, and none can hold settings:write.
		{"GET", "/push-credentials", "settings:write", a.listCredentials(pushCredentials)},
		{"PUT", "/push-credentials/{id}", "settings:write", a.setCredential(pushCredentials)},
		{"DELETE", "/push-credentials/{id}", "settings:write", a.deleteCredential(pushCredentials)},
		{"GET", "/message-providers", "settings:write", a.listCredentials(messageProviders)},
		{"PUT", "/message-providers/{id}", "settings:write", a.setCredential(messageProviders)},
		{"DELETE", "/message-providers/{id}", "settings:write", a.deleteCredential(messageProviders)},
		{"GET", "/inbound-providers", "settings:write", a.listCredentials(inboundProviders)},
		{"PUT", "/inbound-providers/{id}", "settings:write", a.setCredential(inboundProviders)},
		{"DELETE", "/inbound-providers/{id}", "settings:write", a.deleteCredential(inboundProviders)},
	} {
		r.Handle(x.method, Prefix+x.path, a.serve(x.method+" "+x.path, x.access, x.handle))
	}
	a.registerTracking(r)
	a.registerInbound(r)
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
	var out resolver.DeviceReply
	if err := a.command(c, resolver.CommandDeviceAdd, resolver.DeviceAdd{Profile: c.id(), Device: in.ID, Kind: in.Kind, Address: in.Address}, &out); err != nil {
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
	return nil, a.command(c, resolver.CommandDeviceRemove, resolver.DeviceRemove{Profile: c.id(), Device: c.param("device")}, nil)
}

// param is what the path has in place of a part in braces, "" if it has not got
// one.
func (c *call) param(name string) string {
	text, _ := c.UserValue(name).(string)
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

package openapi

func devicesA() group {
	return group{surface: surfaceA, tag: "Devices", title: "Devices", about: "Devices that push messages go to. A person may have 20; the oldest makes room.",
		ops: []operation{
			{method: "POST", path: "/contacts/{id}/devices", permission: "contacts:write", id: "addDevice", summary: "Register a device",
				about: "The same address again changes nothing. An address that is another contact's moves to this one. A device brings consent to push.",
				body:  deviceBody(), data: device, fails: []string{"kind Input should be 'webpush', 'fcm' or 'apns'"}},
			{method: "GET", path: "/contacts/{id}/devices", permission: "contacts:read", id: "listDevices", summary: "List a contact's devices",
				about: "The oldest first.", data: list(device, ""), fails: []string{"There is no contact with this id"}},
			{method: "DELETE", path: "/contacts/{id}/devices/{device}", permission: "contacts:write", id: "removeDevice", summary: "Remove a device",
				fails: []string{"There is no contact with this id"}},
		}}
}

func devicesConsole() group {
	return group{surface: surfaceConsole, tag: "Console: devices", title: "Devices", about: "Devices that push messages go to.",
		ops: []operation{
			{method: "GET", path: "/profiles/{id}/devices", permission: "contacts:read", id: "consoleListDevices", summary: "List a profile's devices", about: "The oldest first.", data: list(device, "")},
			{method: "POST", path: "/profiles/{id}/devices", permission: "contacts:write", id: "consoleAddDevice", summary: "Register a device", body: deviceBody(), data: device},
			{method: "DELETE", path: "/profiles/{id}/devices/{device}", permission: "contacts:write", id: "consoleRemoveDevice", summary: "Remove a device"},
		}}
}

func deviceBody() *schema {
	return object(
		opt("device_id", text("anns-phone", "Your own name for the device, without slashes; left out, one is made. The same name again gives the device another address.").bytes(0, 200)),
		req("kind", word("The push service.", "webpush", "fcm", "apns")),
		req("address", text(`{"endpoint":"https://push.example.com/abc","keys":{"p256dh":"BNcR…","auth":"tBHI…"}}`,
			"The registration token, or for webpush the browser's subscription as JSON text. It is never shown again.").bytes(1, 4096)),
	)
}

var device = named("Device", object(
	req("_id", deviceID("Id of the device.")),
	req("kind", word("The push service.", "webpush", "fcm", "apns")),
	req("created_at", instant("When it was registered.")),
))

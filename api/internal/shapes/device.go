package shapes

import "github.com/musterhq/muster/api/shape"

// DeviceBody is what a device is registered with.
func DeviceBody() *shape.Schema {
	return shape.Object(
		shape.Opt("device_id", shape.Text("anns-phone", "Your own name for the device, without slashes; left out, one is made. The same name again gives the device another address.").Bytes(0, 200)),
		shape.Req("kind", shape.Word("The push service.", "webpush", "fcm", "apns")),
		shape.Req("address", shape.Text(`{"endpoint":"https://push.example.com/abc","keys":{"p256dh":"BNcR…","auth":"tBHI…"}}`,
			"The registration token, or for webpush the browser's subscription as JSON text. It is never shown again.").Bytes(1, 4096)),
	)
}

// Device is a registered device.
var Device = shape.Named("Device", shape.Object(
	shape.Req("_id", shape.DeviceID("Id of the device.")),
	shape.Req("kind", shape.Word("The push service.", "webpush", "fcm", "apns")),
	shape.Req("created_at", shape.Instant("When it was registered.")),
))

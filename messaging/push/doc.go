// Package push sends notifications to devices: browsers (Web Push with VAPID),
// Android and others (FCM HTTP v1) and Apple devices (APNs).
//
// # Using it
//
// [Open] makes a [Sender] from an account's stored credentials ([WebPush], [FCM]
// or [APNs] are the types behind it). Send delivers one [Notification] to one
// device token and answers with an outcome.Result. A dry run uses Check and
// CheckToken, which judge everything that can be judged here without talking to
// anyone; [Validate] does so for credentials.
//
// A Web Push token is the JSON of the browser's PushSubscription, an FCM token
// the registration token, an APNs token the device token in hexadecimal.
//
// # What the services' answers mean
//
// Retired: the token is dead and is to be removed. Web Push 404 and 410; FCM
// UNREGISTERED, and INVALID_ARGUMENT when it is about the token; APNs 410 and
// BadDeviceToken. A 404 that does not come from the service itself (a wrong
// address, a proxy) retires nothing.
//
// Refused: our credentials or their settings are not accepted, for every device
// alike. Temporary: 429 and 5xx, with the service's Retry-After. A request that
// left in full without an answer is ambiguous. All else is permanent: it
// concerns this notification or this device, not the token's life.
//
// # Why the encryption is ours
//
// webpush-go's tokens expire by the wall clock whatever its options say, are
// signed again for each message and use a deprecated curve interface. RFC 8291 is
// two HKDFs and one AES-GCM over the standard library, checked against the RFC's
// own example, so it is written out here. Tokens of all three services are
// signed by golang-jwt and kept until they have to change.
//
// # What the browser receives
//
// The decrypted payload is JSON: {"title", "body", "url", "icon", "image",
// "tag", "id", "data"}; absent fields are left out. A service worker shows it and
// opens url on a click.
//
// # Bounds
//
// Payloads are at most 4096 bytes as the services demand, answers are read up to
// 64 KiB, each send has a deadline (Options.Timeout). Web Push endpoints come
// from browsers: they must be https and lead to public addresses.
package push

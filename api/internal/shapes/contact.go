package shapes

import "github.com/musterhq/muster/api/shape"

// ContactFields are those of a request that makes a contact.
func ContactFields() []shape.Field { return contactFields(0) }

// ContactChanges are those of a request that changes a contact. Identifiers are not removed,
// so that none may be empty.
func ContactChanges() []shape.Field { return contactFields(1) }

// contactFields have identifiers of at least so many bytes.
func contactFields(least int) []shape.Field {
	return []shape.Field{
		shape.Opt("email", shape.Text("Ann@example.com", "Stored as given and not validated.").Bytes(least, 512)),
		shape.Opt("first_name", shape.Text("Ann", "First name.").Bytes(0, 512)),
		shape.Opt("last_name", shape.Text("Lee", "Last name.").Bytes(0, 512)),
		shape.Opt("phone", shape.Text("+491701234567", "Phone number; its digits and a leading plus sign count.").Bytes(least, 512)),
		shape.Opt("external_id", shape.Text("42", "The caller's own identifier of the person.").Bytes(least, 512)),
	}
}

// ProfileEvent is an event of a profile.
var ProfileEvent = shape.Named("ProfileEvent", shape.Object(
	shape.Req("event_type", shape.Text("item_purchased", "What happened.")),
	shape.Req("timestamp", shape.Instant("When it happened.")),
	shape.Req("properties", shape.FreeObject(shape.Pairs("value", 79.9, "currency", "EUR"), "What the event says.")),
	shape.Req("idempotency_key", shape.Text("order-1001", "The key that it was sent with.").OrNull()),
))

package openapi

func contactsA() group {
	return group{surface: surfaceA, tag: "Contacts", title: "Contacts",
		about: "A contact is a profile: a person with identifiers, consents, lists and a history of events. `_id` is the `profile_id` of events.",
		ops: []operation{
			{method: "POST", path: "/contacts", permission: "contacts:write", id: "createContact", summary: "Create a contact",
				about: "All fields are optional, and so is the body. The e-mail is unique in the whole system, compared trimmed and without regard to case. " +
					"A phone records consent to SMS with the source `manual`. An `external_id` or `phone` on file leads to its profile, which becomes the contact.",
				body: object(append(contactFields(), opt("list_id", listID("Puts the contact on this list in the same step.")))...), optional: true,
				data: contact, fails: []string{"Contact with this email already exists", "list_id: there is no such list"}},
			{method: "GET", path: "/contacts", permission: "contacts:read", id: "listContacts", summary: "List contacts",
				about: "All profiles in the order in which they were made, or the one with an identifier, or those on a list.",
				query: []parameter{
					query("email", text("ann@example.com", "The profile with this e-mail alone.")),
					query("external_id", text("42", "The profile with this external id alone.")),
					query("phone", text("+491701234567", "The profile with this phone number alone.")),
					query("list_id", listID("Those on this list alone.")),
				}, data: list(contact, ""), paged: true, fails: []string{"limit Input should be a whole number from 1 to 1000"}},
			{method: "GET", path: "/contacts/{id}", permission: "contacts:read", id: "getContact", summary: "Read a contact",
				data: contact, fails: []string{"There is no contact with this id"}},
			{method: "PATCH", path: "/contacts/{id}", permission: "contacts:write", id: "updateContact", summary: "Change a contact",
				about: "What is given is changed: identifiers are added, names removed by an empty text, keys of `geo` and `attributes` by null. It merges nobody: an identifier of somebody else is refused.",
				body: object(append(contactFields(),
					opt("geo", geo("Merged into what is there.")), opt("attributes", attributes("Merged into what is there.")))...),
				data: contact, fails: []string{"phone: another contact has this value"}},
			{method: "DELETE", path: "/contacts/{id}", permission: "contacts:write", id: "eraseContact", summary: "Erase a contact",
				about: "The person is forgotten: profile, events in history and log, checkpoints. Hashes of the identifiers are kept, so that they do not come back; an administrator may lift that.",
				fails: []string{"There is no contact with this id"}},
			{method: "GET", path: "/contacts/{id}/export", permission: "contacts:read", id: "exportContact", summary: "Export all that is known of a contact",
				data: contactExport, fails: []string{"There is no contact with this id"}},
		}}
}

// contactFields are those of a request that makes or changes a contact.
func contactFields() []field {
	return []field{
		opt("email", text("Ann@example.com", "Stored as given and not validated.").bytes(0, 512)),
		opt("first_name", text("Ann", "First name.").bytes(0, 512)),
		opt("last_name", text("Lee", "Last name.").bytes(0, 512)),
		opt("phone", text("+491701234567", "Phone number; its digits and a leading plus sign count.").bytes(0, 512)),
		opt("external_id", text("42", "The caller's own identifier of the person.").bytes(0, 512)),
	}
}

func geo(about string) *schema {
	return freeObject(ordered{{"country", "DE"}, {"city", "Berlin"}}, "Where the person is. "+about)
}

func attributes(about string) *schema {
	return freeObject(ordered{{"plan", "pro"}, {"seats", 3}}, "The person's attributes, of your own. "+about)
}

var contact = named("Contact", object(
	req("_id", profileID("Id of the contact, which is that of its profile.")),
	req("email", text("Ann@example.com", "The newest e-mail, as submitted.").orNull()),
	req("first_name", text("Ann", "").orNull()),
	req("last_name", text("Lee", "").orNull()),
	req("phone", text("+491701234567", "The newest phone number, as submitted.").orNull()),
	req("external_id", text("42", "The newest external id.").orNull()),
	req("subscribed", boolean(true, "Whether the person may get marketing: not after they unsubscribed, bounced, complained or were suppressed.")),
	req("sms_consent", object(
		req("status", word("", "subscribed", "unsubscribed", "never_subscribed")),
		req("source", text("manual", "Where the consent comes from.").orNull()),
	).says("Consent to SMS.")),
	req("status", contactStatus("Status on the channel email; null for somebody who never subscribed.").orNull()),
	req("engagement_score", count(20, "5 for each open and 15 for each click, halved for every 30 days since the last.").with("maximum", 100)),
	req("lists", list(listID(""), "Lists that the contact is on.")),
	req("geo", geo("")),
	req("attributes", attributes("")),
	req("created_at", instant("When the profile was made.")),
	opt("warning", text("phone not added: the profile may have no more identifiers; see its conflicts", "Identifiers beyond those that a profile may have, which stand among its `conflicts`. Only in the answer that makes the contact, and absent when all were added.")),
))

var contactExport = named("ContactExport", object(
	req("contact", contact),
	req("identities", mapOf(list(text("ann@example.com", ""), ""), "Identifiers by kind: email, external_id, phone.").like(ordered{{"email", []string{"ann@example.com"}}})),
	req("merged_ids", list(profileID(""), "Ids of profiles that were merged into this one.")),
	req("consents", list(object(
		req("channel", channel("")),
		req("status", word("", "subscribed", "unsubscribed", "never_subscribed")),
		req("source", text("manual", "")),
		req("since", instant("Since when.").orNull()),
	), "Consents that are on record.")),
	req("suppressions", list(object(
		req("channel", channel("")),
		req("reason", word("", "bounced", "complained", "suppressed", "pending")),
		req("since", instant("Since when.")),
	), "Channels on which the person is not written to, whatever they consented to.")),
	req("devices", list(object(
		req("device_id", deviceID("")),
		req("kind", word("", "webpush", "fcm", "apns")),
		req("added_at", instant("When it was registered.")),
	), "Devices for push messages.")),
	req("segments", list(segmentID(""), "Segments that hold the person now.")),
	req("events", list(profileEvent, "Events, the newest first.")),
	req("events_complete", boolean(true, "False when there are more events than the 10,000 newest, which are here.")),
))

var profileEvent = named("ProfileEvent", object(
	req("event_type", text("item_purchased", "What happened.")),
	req("timestamp", instant("When it happened.")),
	req("properties", freeObject(ordered{{"value", 79.9}, {"currency", "EUR"}}, "What the event says.")),
	req("idempotency_key", text("order-1001", "The key that it was sent with.").orNull()),
))

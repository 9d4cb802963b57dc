package keyapi

// What callers send that a call does not take, each with what to do. To leave it out is
// not enough there: people would get messages that they should not, or data would be lost.

const (
	afterwards   = "a contact is subscribed when it is made; people who opted out come in by POST /imports, with a column subscribed that says false; of a contact on file, PATCH /contacts/{id} with {\"subscribed\": false} withdraws the consent"
	byConsents   = "a status follows from consents and suppressions; send subscribed, or suppress the channel by POST /profiles/{id}/suppression"
	byUpdate     = "make the contact first, then send it to PATCH /contacts/{id}"
	byAttributes = "the customer's own fields go into attributes"
	noDryRun     = "a campaign has no dry run, and this call sends; count the audience by POST /campaign/{id}/audience, or send a test by POST /campaign/{id}/test-send"
	noScheduling = "this call sends now; set date and the audience in the campaign by PATCH /campaign/{id}, and it is sent then"
	oneRecipient = "send to, one address"
	perRecipient = "the message goes to one address; call once for each recipient"
	idOfTemplate = "save the text by POST /api/v1/templates, and send its template_id"
)

// toMake are the fields that a contact does not take when it is made.
var toMake = map[string]string{
	"subscribed": afterwards, "unsubscribed": afterwards, "opt_in": afterwards, "email_consent": afterwards, "sms_consent": afterwards, "consent": afterwards, "consents": afterwards,
	"status": byConsents, "attributes": byUpdate, "custom_fields": byUpdate, "geo": byUpdate,
}

// toUpdate are those that it does not take when it is changed.
var toUpdate = map[string]string{
	"status": byConsents, "sms_consent": "send consents, such as {\"sms\": {\"status\": \"unsubscribed\"}}", "custom_fields": byAttributes,
	"tags": "send attributes with the whole list, such as {\"tags\": [\"vip\"]}", "list_id": "put the contact on a list by POST /lists/{id}/contacts",
}

// toSend are those that a campaign does not take when it is sent.
var toSend = map[string]string{
	"dryRun": noDryRun, "dry_run": noDryRun, "test": noDryRun, "preview": noDryRun,
	"date": noScheduling, "scheduled_at": noScheduling, "send_at": noScheduling, "schedule": noScheduling,
}

// toEmail are those that a single e-mail does not take.
var toEmail = map[string]string{
	"email": oneRecipient, "recipient": oneRecipient, "cc": perRecipient, "bcc": perRecipient, "recipients": perRecipient,
	"html": idOfTemplate, "body": idOfTemplate, "text": idOfTemplate,
}

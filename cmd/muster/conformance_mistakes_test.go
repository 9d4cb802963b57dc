package main

import (
	"os"
	"strings"
)

// mistakesPart makes the mistakes of docs/mistakes.md, whose answers are those that are
// expected here.
func mistakesPart() part {
	return part{"mistakes", []rule{
		{"the answers on the page of mistakes are given, and nothing is sent", func(c *check) {
			x := c.other()
			page, err := os.ReadFile("../../docs/mistakes.md")
			if err != nil {
				c.Fatal(err)
			}
			var told []string
			says := func(answer string) string {
				c.Helper()
				if !strings.Contains(string(page), "`"+answer+"`") {
					c.Errorf("docs/mistakes.md lacks %s", answer)
				}
				told = append(told, answer)
				return answer
			}
			e := x.mail("reader")
			list, campaign := x.list(e), x.campaign(nil)
			send := func(body obj, answer string) {
				c.Helper()
				x.a("POST", "/campaign/"+campaign+"/send", body).failure(says(answer))
			}
			send(obj{"list_ids": []string{list}}, "list_ids is not a field of this call. Did you mean list_id?")
			send(obj{}, `list_id Field required: the campaign has no audience; name lists (list_id) or segments (segment_ids) here or in the campaign, or send with "all_contacts": true`)
			send(obj{"dryRun": true}, "dryRun is not a field of this call: a campaign has no dry run, and this call sends; count the audience by POST /campaign/{id}/audience, or send a test by POST /campaign/{id}/test-send")

			x.a("POST", "/push/send", obj{"title": "x", "segmentID": "seg_1"}).failure(says("segmentID is not a field of this call. Did you mean segmentId?"))
			x.a("POST", "/push/send", obj{"title": "x", "segmentId": nil}).failure(says("segmentId Input should be the id of a segment; leave it out to address every device"))

			for path, body := range map[string]obj{"date": {"date": nil}, "list_id": {"list_id": nil}} {
				x.a("PATCH", "/campaign/"+campaign, body).failure(path + " Input should be something else than null. Leave it out, and it stays as it is")
			}
			x.a("POST", "/campaign/"+campaign+"/send", obj{"list_id": nil}).failure("list_id Input should be something else than null: the variable that should hold it is empty. Leave it out if you mean that")

			x.a("POST", "/contacts", obj{"email": x.mail("optedout"), "subscribed": false}).failure(says(`subscribed is not a field of this call: a contact is subscribed when it is made; people who opted out come in by POST /imports, with a column subscribed that says false; of a contact on file, PATCH /contacts/{id} with {"subscribed": false} withdraws the consent`))
			// What it says is so: a contact imported that way is not subscribed.
			optedOut := x.mail("cameout")
			upload := x.console("POST", "/imports", obj{"name": "out.csv", "kind": "people", "text": "email,subscribed\n" + optedOut + ",false\n"}).http(200).str("data._id")
			x.console("POST", "/imports/"+upload+"/start", nil).http(200)
			x.until("the import is done", func() bool {
				return x.console("GET", "/imports/"+upload, nil).http(200).str("data.status") == "done"
			})
			x.console("GET", "/profiles?email="+optedOut, nil).http(200).eq("data.consent.email.status", "unsubscribed")

			out := x.mail("out")
			id := x.contact(obj{"email": out})
			x.a("PATCH", "/contacts/"+id, obj{"subscribed": false}).success()
			template := x.a("POST", "/templates", obj{"name": "News", "subject": "News", "html": "<p>x</p>"}).success().str("data._id")
			x.c("/email/send", obj{"to": out, "template_id": template}).http(409).eq("message", says(`to: the person has unsubscribed from e-mail; only templates that are marked transactional ("transactional": true) are sent to people who have unsubscribed`))

			first := x.b("/events", obj{"event_type": "bought", "user": obj{"email": x.mail("first")}, "idempotency_key": "k"}).http(202).eq("success", true).str("profile_id")
			x.b("/events", obj{"event_type": "bought", "user": obj{"email": x.mail("second")}, "idempotency_key": "k"}).http(202).eq("success", true).eq("profile_id", first).
				eq("warning", says("not recorded: the idempotency_key was used before, for the event of another person, and this answer repeats the first one; give each event a key of its own"))
			x.b("/events", obj{"event_type": "bought", "user": obj{"external_id": x.name("third"), "mail": x.mail("third")}}).http(202).eq("success", true).
				eq("warning", says("user.mail left out: it is not a field of user; did you mean user.email?"))

			// The page has no answer that is not tried here.
			for i, part := range strings.Split(string(page), "`") {
				if i%2 == 1 && strings.Contains(part, "; ") && !strings.HasPrefix(part, "POST ") {
					found := false
					for _, answer := range told {
						found = found || answer == part
					}
					if !found {
						c.Errorf("docs/mistakes.md has an answer that is not tried: %s", part)
					}
				}
			}
			x.console("GET", "/outbox", nil).http(200).length("data", 0)
			if n := len(x.relay.to(e)) + len(x.relay.to(out)); n != 0 {
				c.Errorf("%d messages came", n)
			}
		}},
	}}
}

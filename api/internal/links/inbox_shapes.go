package links

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver/inapp"
)

func inAppOperations() []operation.Operation {
	failure := shape.Object(shape.Req("status", shape.Word("", "failure")), shape.Req("message", shape.Text("there is no message with this id; it may have ended", "What is wrong.")), shape.Req("data", shape.FreeObject(shape.Pairs(), "")))
	answer := func(status, about string) shape.Member {
		out := shape.Pairs("description", about)
		if status == "429" || status == "503" {
			out = append(out, shape.Pair("headers", shape.Ordered{operation.RetryAfter}))
		}
		return shape.Pair(status, append(out, shape.Pair("content", shape.Pairs("application/json", shape.Pairs("schema", failure)))))
	}
	faults := shape.Ordered{
		answer("401", "No token, or one that does not hold: get another of your server."), answer("403", "Pages of this origin may not show messages."),
		answer("429", "Too often in a minute."), answer("503", "Not just now."),
	}
	json := func(about string, s *shape.Schema) shape.Member {
		return shape.Pair("200", shape.Pairs("description", about, "content", shape.Pairs("application/json", shape.Pairs("schema", s))))
	}
	about := " Pages call it with the token of the signed-in person, `Authorization: Bearer <token>`: a JSON Web Token that your server signs with the in-app secret (HS256), with `iss` (the account id), `sub` (the person's external_id, or with `\"sub_type\":\"email\"` the e-mail) and `exp` within 24 hours. It gives that person's messages and no other's."
	out := []operation.Operation{
		{Method: "GET", Path: "/in-app/inbox", ID: "inAppInbox", Summary: "Read a person's in-app messages", About: "By priority, and of one priority the newest first, without those that ended or were put away." + about,
			Query: []operation.Parameter{
				operation.Query("limit", shape.Integer(20, "Messages of a page.").Between(1, inapp.MaxMessages).Default(defaultInboxPage)),
				operation.Query("cursor", shape.Text("0.1769850000000.01000000070000002a60000000000000", "`next` of the page before.")),
			},
			Other: append(shape.Ordered{json("The messages.", shape.Object(
				shape.Req("messages", shape.List(shapes.InAppMessage(), "")), shape.Req("unseen", shape.Count(2, "Those of the whole inbox that the person has not seen.")),
				shape.Req("next", shape.Text("0.1769850000000.01000000070000002a60000000000000", "The `cursor` of the next page; null at the end.").OrNull()),
			)), answer("400", "limit or cursor is wrong.")}, faults...)},
		{Method: "GET", Path: "/in-app/stream", ID: "inAppStream", Summary: "Stream a person's in-app messages", About: "Server-sent events: `unseen` with their number first and whenever it changes, `message` for each new message, `end` before it ends, at the latest when the token does. Comments are signs of life. After an interruption read the inbox again." + about,
			Other: append(shape.Ordered{shape.Pair("200", operation.Plain("The events.", "text/event-stream", ": watching\n\nevent: unseen\ndata: {\"unseen\":1}\n\n", nil))}, faults...)},
		{Method: "GET", Path: "/in-app/muster-inapp.js", ID: "inAppScript", Summary: "Read the script that shows in-app messages", About: "A few kilobytes without dependencies; see docs/behaviour/in-app.md.",
			Other: shape.Ordered{shape.Pair("200", operation.Plain("The script.", "text/javascript", "", nil))}},
	}
	for _, x := range []struct{ deed, id, summary string }{
		{inapp.Seen, "inAppSeen", "Say that a person saw an in-app message"},
		{inapp.Clicked, "inAppClicked", "Say that a person clicked an in-app message"},
		{inapp.Dismissed, "inAppDismissed", "Put an in-app message away"},
	} {
		out = append(out, operation.Operation{Method: "POST", Path: "/in-app/inbox/{id}/" + x.deed, ID: x.id, Summary: x.summary,
			About: "The first time counts, and is an event of the profile: `in_app_" + x.deed + "`. A repeat changes nothing." + about,
			Other: append(shape.Ordered{json("It is on record.", shape.Object()), answer("404", "The inbox has no such message; it may have ended.")}, faults...)})
	}
	return out
}

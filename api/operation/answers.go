package operation

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/shape"
)

// Response is an answer of one status. Each example has a name.
func Response(about string, s *shape.Schema, headers shape.Ordered, examples ...shape.Member) shape.Ordered {
	out := shape.Pairs("description", about)
	if headers != nil {
		out = append(out, shape.Pair("headers", headers))
	}
	if s == nil {
		return out
	}
	media := shape.Pairs("schema", s)
	if len(examples) == 0 {
		examples = []shape.Member{shape.Pair("answer", s.Sample())}
	}
	var list shape.Ordered
	for _, x := range examples {
		list = append(list, shape.Pair(x.Name, shape.Pairs("value", x.Value)))
	}
	media = append(media, shape.Pair("examples", list))
	return append(out, shape.Pair("content", shape.Pairs("application/json", media)))
}

// Plain is an answer that is not JSON.
func Plain(about, media, example string, headers shape.Ordered) shape.Ordered {
	out := shape.Pairs("description", about)
	if headers != nil {
		out = append(out, shape.Pair("headers", headers))
	}
	if media == "" {
		return out
	}
	m := shape.Pairs("schema", shape.Pairs("type", "string"))
	if example != "" {
		m = append(m, shape.Pair("example", example))
	}
	return append(out, shape.Pair("content", shape.Pairs(media, m)))
}

// shared are the answers that many operations have, by name.
var shared shape.Ordered

// common makes an answer a component of the document, once, and returns a
// reference to it.
func common(name string, r shape.Ordered) shape.Ordered {
	shared = append(shared, shape.Pair(name, r))
	return shape.Pairs("$ref", "#/components/responses/"+name)
}

// Header is a header of an answer.
func Header(name, about, example string) shape.Member {
	return shape.Pair(name, shape.Pairs("description", about, "schema", shape.Text(example, "")))
}

// RetryAfter is the header of that name.
var RetryAfter = Header("Retry-After", "Seconds to wait before the next try.", "2")

var (
	success = shape.Only("SuccessStatus", "success")
	failure = shape.Only("FailureStatus", "failure")
)

// Envelope is the answer of Surface A and the console with this data; nil is none.
func Envelope(data *shape.Schema) *shape.Schema {
	if data == nil {
		data = shape.Nothing()
	}
	return shape.Object(
		shape.Req("status", success),
		shape.Req("message", shape.Text("", "Empty, or something to say about the data.")),
		shape.Req("data", data),
	)
}

func (op *Operation) envelope() *shape.Schema {
	if op.Paged {
		return Envelope(op.Data).Plus(shape.Opt("next", shape.NextCursor))
	}
	return Envelope(op.Data)
}

var failureA = shape.Named("Failure", shape.Object(
	shape.Req("status", failure),
	shape.Req("message", shape.Text("email Field required", "The reason, naming the field at fault.")),
	shape.Req("data", shape.Nothing()),
))

var tooManyA = shape.Named("TooManyRequests", shape.Object(
	shape.Req("message", shape.Text("Too many requests. Try again in 7 seconds.", "")),
	shape.Req("success", shape.Boolean(false, "Always false.")),
))

// FailureSample is a failure that says message.
func FailureSample(message string) shape.Ordered {
	return shape.Pairs("status", "failure", "message", message, "data", shape.Pairs())
}

// outcome is success or failure, as Surface A answers both with status 200.
func (op *Operation) outcome() *shape.Schema {
	name := strings.ToUpper(op.ID[:1]) + op.ID[1:]
	failed := failureA
	if op.FailData {
		failed = shape.Named(name+"Failure", shape.Object(
			shape.Req("status", failure), shape.Req("message", shape.Text("the account is out of e-mail credits; top up and send again", "The reason.")),
			shape.Req("data", op.Data.Partial().Strict().Says("What was done until then; empty where nothing was.")),
		))
	}
	return shape.OneOf(shape.Named(name+"Success", op.envelope()), failed).By("status")
}

func answersA(op *Operation) shape.Ordered {
	examples := []shape.Member{shape.Pair("success", op.envelope().Sample())}
	fails := op.Fails
	if len(fails) == 0 {
		fails = []string{"You don't have permission to perform this action"}
	}
	for i, m := range fails {
		name := "failure"
		if i > 0 {
			name += string(rune('1' + i))
		}
		examples = append(examples, shape.Pair(name, FailureSample(m)))
	}
	if op.Other != nil {
		return append(orFailure(op.Other, examples[1:]), sharedA...)
	}
	out := shape.Pairs("200", Response("Success, or a failure: test `status`.", op.outcome(), nil, examples...))
	return append(out, sharedA...)
}

// orFailure is answers that are not JSON, with failures of Surface A beside success:
// they have the same status and another content type.
func orFailure(answers shape.Ordered, fails []shape.Member) (out shape.Ordered) {
	failed := Response("", failureA, nil, fails...)
	media := failed[len(failed)-1].Value.(shape.Ordered)
	for _, r := range answers {
		var parts shape.Ordered
		for _, m := range r.Value.(shape.Ordered) {
			switch m.Name {
			case "description":
				m.Value = m.Value.(string) + " A failure is `application/json`."
			case "content":
				m.Value = append(slices.Clone(m.Value.(shape.Ordered)), media...)
			}
			parts = append(parts, m)
		}
		out = append(out, shape.Pair(r.Name, parts))
	}
	return out
}

var sharedA = shape.Pairs(
	"401", common("Unauthorized", Response("The key is missing, unknown or revoked, its account is deactivated, or its API access is off. The answer is the same for all.", failureA, nil,
		shape.Pair("answer", FailureSample(`The API key is missing or not valid. Send it as "Authorization: Bearer <API_KEY>".`)))),
	"429", common("TooManyRequests", Response("More than 120 requests of the key in 60 seconds.", tooManyA, shape.Ordered{RetryAfter})),
	"500", common("Fault", Response("A fault of the server.", failureA, nil, shape.Pair("answer", FailureSample("The server failed to answer; its log has the reason.")))),
	"503", common("Unavailable", Response("Overloaded, starting or stopping. Nothing was changed, unless the message says otherwise.", failureA, shape.Ordered{RetryAfter},
		shape.Pair("answer", FailureSample("The server is overloaded; nothing was changed. Try again in a moment.")))),
)

var refusalB = shape.Named("EventRefusal", shape.Object(
	shape.Req("success", shape.Boolean(false, "Always false.")),
	shape.Req("profile_id", shape.Text("", "Empty.")),
	shape.Req("error", shape.Text("event_type is missing; name what happened, such as \"item_viewed\"", "What is wrong, and what to do.")),
))

func refusedB(about, message string, headers shape.Ordered) shape.Ordered {
	return Response(about, refusalB, headers, shape.Pair("answer", shape.Pairs("success", false, "profile_id", "", "error", message)))
}

func answersB(op *Operation) shape.Ordered {
	return shape.Pairs(
		"202", Response("The request was understood. Look at `success` and `error`: credentials that do not hold are answered here, too.", op.Data, nil),
		"400", refusedB("The request is malformed; sending it again does not help.", "events is missing; send an array of events", nil),
		"405", refusedB("Another method than POST.", "use POST", shape.Ordered{Header("Allow", "The methods that the path takes.", "POST")}),
		"413", refusedB("The body, or the number of events, is too large.", "the body is longer than 8388608 bytes (after decompression); send the events in several requests", nil),
		"415", refusedB("Another Content-Type or Content-Encoding than the server understands.", "Content-Type must be application/json", nil),
		"503", refusedB("Overloaded. Send the request again, with the same `idempotency_key`.", "the server is overloaded; nothing was stored, send the request again later", shape.Ordered{RetryAfter}),
	)
}

// errorsC are the codes of Surface C by their status.
var errorsC = []struct{ status, code, message, about string }{
	{"400", "invalid_request", "email Field required", "The request is not valid; the message names the field."},
	{"401", "unauthorized", `The API key is missing or not valid. Send it as "Authorization: Bearer <API_KEY>".`, "The key is missing or does not hold."},
	{"403", "forbidden", "You don't have permission to perform this action", "The key lacks the permission."},
	{"404", "not_found", "template_id: there is no such template", "What the request names is not there."},
	{"405", "method_not_allowed", "This path does not take GET. It takes POST.", "The path does not take the method."},
	{"409", "conflict", "this account has queued as many messages as it may; try again later", "The state does not permit it, or a limit of the account is reached."},
	{"413", "too_large", "body Input should have at most 1048576 bytes", "The body is too large."},
	{"415", "unsupported_media_type", "Content-Type should be application/json", "The body is not sent as JSON."},
	{"429", "rate_limited", "Too many requests. Try again in 7 seconds.", "Too many requests of the key in 60 seconds."},
	{"500", "internal_error", "The server failed to answer; its log has the reason.", "A fault of the server."},
	{"503", "unavailable", "The server is overloaded; nothing was changed. Try again in a moment.", "Overloaded, starting or stopping."},
}

var requestID = shape.Text("req_0f8fad5bd9cb469fa16570867728950e", "Names the request; also in the header X-Request-Id.")

var failureC = func() *shape.Schema {
	var codes []string
	for _, e := range errorsC {
		codes = append(codes, e.code)
	}
	return shape.Named("Error", shape.Object(
		shape.Req("status", shape.Only("ErrorStatus", "error")),
		shape.Req("code", shape.Word("What kind of error; the list never changes.", codes...)),
		shape.Req("message", shape.Text("email Field required", "The reason, naming the field at fault.")),
		shape.Req("request_id", requestID),
	))
}()

func answersC(op *Operation) shape.Ordered {
	out := shape.Pairs("200", Response("Success.", shape.Object(shape.Req("status", success), shape.Req("data", op.Data), shape.Req("request_id", requestID)), shape.Ordered{requestIDHeader}))
	return append(out, sharedC...)
}

var sharedC = func() (out shape.Ordered) {
	for _, e := range errorsC {
		headers := shape.Ordered{requestIDHeader}
		if e.status == "429" || e.status == "503" {
			headers = append(headers, RetryAfter)
		}
		out = append(out, shape.Pair(e.status, common("V1"+e.status, Response("`"+e.code+"`: "+e.about, failureC, headers, shape.Pair("answer",
			shape.Pairs("status", "error", "code", e.code, "message", e.message, "request_id", requestID.Sample()))))))
	}
	return out
}()

var requestIDHeader = Header("X-Request-Id", "Names the request.", "req_0f8fad5bd9cb469fa16570867728950e")

// FailureConsole is the console's answer to what it refuses.
var FailureConsole = shape.Named("ConsoleFailure", shape.Object(
	shape.Req("status", failure),
	shape.Req("message", shape.Text("name is missing; name the segment", "The reason and the remedy.")),
	shape.Req("data", shape.Object(shape.Opt("field", shape.Text("name", "The field at fault, where it is one."))).Strict()),
))

// Problems are the console's failures by status.
var Problems = []struct {
	Status, About, Message, field string
	when                          func(*Operation) bool
}{
	{"400", "The request is not valid.", "limit must be a whole number from 1 to 1000", "limit", func(*Operation) bool { return true }},
	{"401", "No session, or one that has ended.", `sign in first: POST /console/api/v1/session, and send its token as "Authorization: Bearer <token>"`, "", func(*Operation) bool { return true }},
	{"403", "The person lacks the permission, or the CSRF token is missing.", "you need the permission settings:write for this; ask who manages your account", "", func(op *Operation) bool {
		return op.Permission != Anybody && (op.Permission != SignedIn || op.Method != "GET")
	}},
	{"404", "There is nothing with this id.", "there is no segment with this id", "", func(op *Operation) bool { return strings.Contains(op.Path, "{") }},
	{"409", "The state does not permit it, or a limit of the account is reached.", "the list is in use by the segment \"Customers\"; change that first", "", func(op *Operation) bool {
		return op.Method != "GET" && op.Permission != Anybody
	}},
	{"413", "The body is too large.", "the body is longer than 1048576 bytes; send less", "", func(op *Operation) bool { return op.Body != nil }},
	{"415", "The body is not sent as JSON.", "Content-Type must be application/json; set it and send the body as JSON", "", func(op *Operation) bool { return op.Body != nil }},
	{"429", "Too many failed attempts; wait.", "too many failed attempts to sign in; try again in 30 seconds", "", func(*Operation) bool { return false }},
	{"500", "A fault of the server.", "the server failed to answer; its log has the reason", "", func(*Operation) bool { return true }},
	{"503", "Overloaded, starting or stopping.", "the server is overloaded; nothing was changed; try again in a moment", "", func(*Operation) bool { return true }},
}

func answersConsole(op *Operation) shape.Ordered {
	out := op.Other
	if out == nil {
		out = shape.Pairs("200", Response("Success.", op.envelope(), nil))
	}
	for i, p := range Problems {
		switch {
		case op.FailData && p.Status == "409":
			out = append(out, shape.Pair(p.Status, Response(p.About+" It may have what was done until then.", op.failedConsole(), nil, shape.Pair("answer", FailureSample(p.Message)))))
		case p.when(op) || hasStatus(op.Also, p.Status):
			out = append(out, sharedConsole[i])
		}
	}
	return out
}

// failedConsole is the console's answer to what it refuses, with the data of the call.
func (op *Operation) failedConsole() *shape.Schema {
	return shape.Named(strings.ToUpper(op.ID[:1])+op.ID[1:]+"Failure", shape.Object(
		shape.Req("status", failure), shape.Req("message", shape.Text("the account is out of e-mail credits; top up and send again", "The reason.")),
		shape.Req("data", op.Data.Partial().Plus(shape.Opt("field", shape.Text("list_id", "The field at fault, where it is one."))).Strict().Says("What was done until then; empty where nothing was.")),
	))
}

// sharedConsole are the answers to problems.
var sharedConsole = func() (out shape.Ordered) {
	for _, p := range Problems {
		data := shape.Pairs()
		if p.field != "" {
			data = append(data, shape.Pair("field", p.field))
		}
		var headers shape.Ordered
		if p.Status == "429" || p.Status == "503" {
			headers = shape.Ordered{RetryAfter}
		}
		out = append(out, shape.Pair(p.Status, common("Console"+p.Status, Response(p.About, FailureConsole, headers, shape.Pair("answer",
			shape.Pairs("status", "failure", "message", p.Message, "data", data))))))
	}
	return out
}()

func hasStatus(list []int, status string) bool {
	for _, n := range list {
		if status == string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)}) {
			return true
		}
	}
	return false
}

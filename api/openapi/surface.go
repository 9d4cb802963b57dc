package openapi

import "strings"

// surface is one of the ways in.
type surface struct {
	id, title, about, prefix string
	security                 string // name of the scheme, "" for none
	// open is what x-permission says where an operation names no permission.
	open string
	// answers are those of an operation.
	answers func(*operation) ordered
	// seal refuses unknown fields in requests.
	seal bool
}

// operation is a method of a path.
type operation struct {
	method, path string
	// permission is what the caller must hold: a permission, or one of the words
	// below.
	permission string
	id         string // operationId, unique
	summary    string
	about      string
	query      []parameter
	header     []parameter
	body       *schema
	// optional says that the body may be left out.
	optional bool
	media    string // of the body; "" is application/json
	// data is what the envelope carries, or the answer itself on surfaces without
	// one; nil is nothing.
	data  *schema
	paged bool // a page of a list: limit, cursor and next
	// limit is the default of limit and most its bound; 0 is 100 and 1000.
	limit, most int
	// fails are examples of what a failure says.
	fails []string
	// failData: a failure may have the call's data as well.
	failData bool
	// also are further statuses that it may answer.
	also []int
	// other are its answers, where they are in none of the surface's forms.
	other ordered
}

// What stands in place of a permission.
const (
	anybody     = "none"
	signedIn    = "signed-in"
	systemAdmin = "system-admin"
	appSecret   = "app-secret"
)

// group is the operations of a noun.
type group struct {
	surface *surface
	tag     string // unique among all surfaces
	title   string
	about   string
	ops     []operation
}

// parameter is one of the query or a header.
type parameter struct {
	name     string
	schema   *schema
	required bool
}

func query(name string, s *schema) parameter { return parameter{name, s, false} }
func must(name string, s *schema) parameter  { return parameter{name, s, true} }

var surfaceA = &surface{
	id: "A", title: "Surface A", prefix: "/api/v1", security: "apiKey",
	about: "Contacts, lists, campaigns, push and analytics, for programs that hold an API key. At most 120 requests of a key in any 60 seconds. " +
		"All failures but 401, 429 and faults of the server are HTTP 200 with `status` `failure`: test `status`, not the HTTP code. Unknown fields are passed over.",
}

var surfaceB = &surface{
	id: "B", title: "Surface B", prefix: "/api/v1", security: "appID,appSecret", open: appSecret,
	about: "Behavioural events, with the account's App ID and App Secret. A 202 means that the request was understood: look at `success` and `error`. " +
		"An event that is answered with `success` is durable and part of every read from then on. Bodies may be compressed (`Content-Encoding: gzip` or `zstd`).",
}

var surfaceC = &surface{
	id: "C", title: "Surface C", prefix: "/v1", security: "apiKey",
	about: "A short way in for programs that hold an API key, the same as Surface A's, with real HTTP statuses and error codes. At most 600 requests of a key in any 60 seconds, " +
		"unless the account's setting says otherwise.",
}

var surfaceConsole = &surface{
	id: "console", title: "Console API", prefix: "/console/api/v1", security: "session", open: anybody, seal: true,
	about: "What the web console is made of, for signed-in people. Real HTTP statuses; a failure names the field at fault in `data.field`. Unknown fields of a request are refused. " +
		"A session in a cookie needs the header `X-CSRF-Token` for every call that changes something.",
}

var surfacePublic = &surface{
	id: "public", title: "Public and operations", open: anybody,
	about: "What recipients of messages, providers, mail servers and monitoring call.",
}

func init() {
	surfaceA.answers, surfaceB.answers, surfaceC.answers = answersA, answersB, answersC
	surfaceConsole.answers = answersConsole
	surfacePublic.answers = func(op *operation) ordered { return op.other }
}

var surfaces = []*surface{surfaceA, surfaceB, surfaceC, surfaceConsole, surfacePublic}

// response is an answer of one status. Each example has a name.
func response(about string, s *schema, headers ordered, examples ...member) ordered {
	out := ordered{{"description", about}}
	if headers != nil {
		out = append(out, member{"headers", headers})
	}
	if s == nil {
		return out
	}
	media := ordered{{"schema", s}}
	if len(examples) == 0 {
		examples = []member{{"answer", s.sample()}}
	}
	var list ordered
	for _, x := range examples {
		list = append(list, member{x.name, ordered{{"value", x.value}}})
	}
	media = append(media, member{"examples", list})
	return append(out, member{"content", ordered{{"application/json", media}}})
}

// plain is an answer that is not JSON.
func plain(about, media, example string, headers ordered) ordered {
	out := ordered{{"description", about}}
	if headers != nil {
		out = append(out, member{"headers", headers})
	}
	if media == "" {
		return out
	}
	m := ordered{{"schema", ordered{{"type", "string"}}}}
	if example != "" {
		m = append(m, member{"example", example})
	}
	return append(out, member{"content", ordered{{media, m}}})
}

// shared are the answers that many operations have, by name.
var shared ordered

// common makes an answer a component of the document, once, and returns a
// reference to it.
func common(name string, r ordered) ordered {
	shared = append(shared, member{name, r})
	return ordered{{"$ref", "#/components/responses/" + name}}
}

func header(name, about, example string) member {
	return member{name, ordered{{"description", about}, {"schema", text(example, "")}}}
}

var retryAfter = header("Retry-After", "Seconds to wait before the next try.", "2")

var nextCursor = text("BBgYAAAAAAAA", "Cursor of the next page: send it as `cursor`. Absent on the last page.")

var (
	success = only("SuccessStatus", "success")
	failure = only("FailureStatus", "failure")
)

// envelope is the answer of Surface A and the console.
func (op *operation) envelope() *schema {
	data := op.data
	if data == nil {
		data = nothing()
	}
	fields := []field{
		req("status", success),
		req("message", text("", "Empty, or something to say about the data.")),
		req("data", data),
	}
	if op.paged {
		fields = append(fields, opt("next", nextCursor))
	}
	return object(fields...)
}

var failureA = named("Failure", object(
	req("status", failure),
	req("message", text("email Field required", "The reason, naming the field at fault.")),
	req("data", nothing()),
))

var tooManyA = named("TooManyRequests", object(
	req("message", text("Too many requests. Try again in 7 seconds.", "")),
	req("success", boolean(false, "Always false.")),
))

func failureSample(message string) ordered {
	return ordered{{"status", "failure"}, {"message", message}, {"data", ordered{}}}
}

// outcome is success or failure, as Surface A answers both with status 200.
func (op *operation) outcome() *schema {
	name := strings.ToUpper(op.id[:1]) + op.id[1:]
	failed := failureA
	if op.failData {
		var fields []field
		for _, f := range op.data.fields {
			fields = append(fields, opt(f.name, f.schema))
		}
		failed = named(name+"Failure", object(
			req("status", failure), req("message", text("the account is out of e-mail credits; top up and send again", "The reason.")),
			req("data", object(fields...).strict().says("What was done until then; empty where nothing was.")),
		))
	}
	return oneOf(named(name+"Success", op.envelope()), failed).by("status")
}

func answersA(op *operation) ordered {
	examples := []member{{"success", op.envelope().sample()}}
	fails := op.fails
	if len(fails) == 0 {
		fails = []string{"You don't have permission to perform this action"}
	}
	for i, m := range fails {
		name := "failure"
		if i > 0 {
			name += string(rune('1' + i))
		}
		examples = append(examples, member{name, failureSample(m)})
	}
	out := ordered{{"200", response("Success, or a failure: test `status`.", op.outcome(), nil, examples...)}}
	return append(out, sharedA...)
}

var sharedA = ordered{
	{"401", common("Unauthorized", response("The key is missing, unknown or revoked, its account is deactivated, or its API access is off. The answer is the same for all.", failureA, nil,
		member{"answer", failureSample(`The API key is missing or not valid. Send it as "Authorization: Bearer <API_KEY>".`)}))},
	{"429", common("TooManyRequests", response("More than 120 requests of the key in 60 seconds.", tooManyA, ordered{retryAfter}))},
	{"500", common("Fault", response("A fault of the server.", failureA, nil, member{"answer", failureSample("The server failed to answer; its log has the reason.")}))},
	{"503", common("Unavailable", response("Overloaded, starting or stopping. Nothing was changed, unless the message says otherwise.", failureA, ordered{retryAfter},
		member{"answer", failureSample("The server is overloaded; nothing was changed. Try again in a moment.")}))},
}

var refusalB = named("EventRefusal", object(
	req("success", boolean(false, "Always false.")),
	req("profile_id", text("", "Empty.")),
	req("error", text("event_type is missing; name what happened, such as \"item_viewed\"", "What is wrong, and what to do.")),
))

func refusedB(about, message string, headers ordered) ordered {
	return response(about, refusalB, headers, member{"answer", ordered{{"success", false}, {"profile_id", ""}, {"error", message}}})
}

func answersB(op *operation) ordered {
	return ordered{
		{"202", response("The request was understood. Look at `success` and `error`: credentials that do not hold are answered here, too.", op.data, nil)},
		{"400", refusedB("The request is malformed; sending it again does not help.", "events is missing; send an array of events", nil)},
		{"405", refusedB("Another method than POST.", "use POST", ordered{header("Allow", "The methods that the path takes.", "POST")})},
		{"413", refusedB("The body, or the number of events, is too large.", "the body is longer than 8388608 bytes (after decompression); send the events in several requests", nil)},
		{"415", refusedB("Another Content-Type or Content-Encoding than the server understands.", "Content-Type must be application/json", nil)},
		{"503", refusedB("Overloaded. Send the request again, with the same `idempotency_key`.", "the server is overloaded; nothing was stored, send the request again later", ordered{retryAfter})},
	}
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

var requestID = text("req_0f8fad5bd9cb469fa16570867728950e", "Names the request; also in the header X-Request-Id.")

var failureC = func() *schema {
	var codes []string
	for _, e := range errorsC {
		codes = append(codes, e.code)
	}
	return named("Error", object(
		req("status", only("ErrorStatus", "error")),
		req("code", word("What kind of error; the list never changes.", codes...)),
		req("message", text("email Field required", "The reason, naming the field at fault.")),
		req("request_id", requestID),
	))
}()

func answersC(op *operation) ordered {
	out := ordered{{"200", response("Success.", object(req("status", success), req("data", op.data), req("request_id", requestID)), ordered{requestIDHeader})}}
	return append(out, sharedC...)
}

var sharedC = func() (out ordered) {
	for _, e := range errorsC {
		headers := ordered{requestIDHeader}
		if e.status == "429" || e.status == "503" {
			headers = append(headers, retryAfter)
		}
		out = append(out, member{e.status, common("V1"+e.status, response("`"+e.code+"`: "+e.about, failureC, headers, member{"answer",
			ordered{{"status", "error"}, {"code", e.code}, {"message", e.message}, {"request_id", requestID.example}}}))})
	}
	return out
}()

var requestIDHeader = header("X-Request-Id", "Names the request.", "req_0f8fad5bd9cb469fa16570867728950e")

var failureConsole = named("ConsoleFailure", object(
	req("status", failure),
	req("message", text("name is missing; name the segment", "The reason and the remedy.")),
	req("data", object(opt("field", text("name", "The field at fault, where it is one."))).strict()),
))

// problems are the console's failures by status.
var problems = []struct {
	status, about, message, field string
	when                          func(*operation) bool
}{
	{"400", "The request is not valid.", "limit must be a whole number from 1 to 1000", "limit", func(op *operation) bool {
		return op.body != nil || op.paged || len(op.query) > 0
	}},
	{"401", "No session, or one that has ended.", `sign in first: POST /console/api/v1/session, and send its token as "Authorization: Bearer <token>"`, "", func(*operation) bool { return true }},
	{"403", "The person lacks the permission, or the CSRF token is missing.", "you need the permission settings:write for this; ask who manages your account", "", func(op *operation) bool {
		return op.permission != anybody && (op.permission != signedIn || op.method != "GET")
	}},
	{"404", "There is nothing with this id.", "there is no segment with this id", "", func(op *operation) bool { return strings.Contains(op.path, "{") }},
	{"409", "The state does not permit it, or a limit of the account is reached.", "the list is in use by the segment \"Customers\"; change that first", "", func(op *operation) bool {
		return op.method != "GET" && op.permission != anybody
	}},
	{"413", "The body is too large.", "the body is longer than 1048576 bytes; send less", "", func(op *operation) bool { return op.body != nil }},
	{"415", "The body is not sent as JSON.", "Content-Type must be application/json; set it and send the body as JSON", "", func(op *operation) bool { return op.body != nil }},
	{"429", "Too many failed attempts; wait.", "too many failed attempts to sign in; try again in 30 seconds", "", func(*operation) bool { return false }},
	{"500", "A fault of the server.", "the server failed to answer; its log has the reason", "", func(*operation) bool { return true }},
	{"503", "Overloaded, starting or stopping.", "the server is overloaded; nothing was changed; try again in a moment", "", func(*operation) bool { return true }},
}

func answersConsole(op *operation) ordered {
	out := op.other
	if out == nil {
		out = ordered{{"200", response("Success.", op.envelope(), nil)}}
	}
	for i, p := range problems {
		if p.when(op) || hasStatus(op.also, p.status) {
			out = append(out, sharedConsole[i])
		}
	}
	return out
}

// sharedConsole are the answers to problems.
var sharedConsole = func() (out ordered) {
	for _, p := range problems {
		data := ordered{}
		if p.field != "" {
			data = append(data, member{"field", p.field})
		}
		var headers ordered
		if p.status == "429" || p.status == "503" {
			headers = ordered{retryAfter}
		}
		out = append(out, member{p.status, common("Console"+p.status, response(p.about, failureConsole, headers, member{"answer",
			ordered{{"status", "failure"}, {"message", p.message}, {"data", data}}}))})
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

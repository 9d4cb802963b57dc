package operation

import "github.com/musterhq/muster/api/shape"

// Surface is one of the ways in.
type Surface struct {
	ID, Title, About string
	// Prefix begins all its paths.
	Prefix   string
	security string // name of the scheme, "" for none
	// open is what x-permission says where an operation names no permission.
	open string
	// answers are those of an operation.
	answers func(*Operation) shape.Ordered
	// strict reports that fields of bodies that are not described are refused.
	strict bool
}

// The surfaces.
var SurfaceA = &Surface{
	ID: "A", Title: "Contacts and campaigns by API key", Prefix: "/api/v1", security: "apiKey", strict: true,
	About: "Surface A: what people do in the console, for programs that hold an API key: contacts, lists, segments, templates, campaigns, push, flows, events and analytics. At most 120 requests of a key in any 60 seconds. " +
		"All failures but 401, 429 and faults of the server are HTTP 200 with `status` `failure`, an unknown path or method too: test `status`, not the HTTP code. Unknown fields of a body and unknown parameters of a query are refused.",
}

var SurfaceB = &Surface{
	ID: "B", Title: "Sending events", Prefix: "/api/v1", security: "appID,appSecret", open: AppSecret,
	About: "Surface B: behavioural events, with the account's App ID and App Secret. A 202 means that the request was understood: look at `success` and `error`. " +
		"An event that is answered with `success` is durable and part of every read from then on. Bodies may be compressed (`Content-Encoding: gzip` or `zstd`).",
}

var SurfaceC = &Surface{
	ID: "C", Title: "Single events and e-mails by API key", Prefix: "/v1", security: "apiKey", strict: true,
	About: "Surface C: events and e-mails with the same API key, with real HTTP statuses and error codes. Unknown fields of a body and unknown parameters of a query are refused. At most 600 requests of a key in any 60 seconds, " +
		"unless the account's setting says otherwise.",
}

var SurfaceConsole = &Surface{
	ID: "console", Title: "Console API", Prefix: "/console/api/v1", security: "session", open: Anybody, strict: true,
	About: "What the web console is made of, for signed-in people. Real HTTP statuses; a failure names the field at fault in `data.field`. Unknown fields of a body and unknown parameters of a query are refused. " +
		"A session in a cookie needs the header `X-CSRF-Token` for every call that changes something.",
}

var SurfacePublic = &Surface{
	ID: "public", Title: "Links, reports of providers, operations", open: Anybody,
	About: "Called by recipients of messages, providers, mail servers and monitoring.",
}

func init() {
	SurfaceA.answers, SurfaceB.answers, SurfaceC.answers = answersA, answersB, answersC
	SurfaceConsole.answers = answersConsole
	SurfacePublic.answers = func(op *Operation) shape.Ordered { return op.Other }
}

var surfaces = []*Surface{SurfaceA, SurfaceB, SurfaceC, SurfaceConsole, SurfacePublic}

package ingest

import (
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/resolver"
)

// invalidCredentials is the one answer to bad credentials, whatever is wrong
// with them.
const invalidCredentials = "invalid app credentials; check the headers X-App-Id and X-App-Secret"

// keyCredentials takes its place where a request has an API key and no App ID.
const keyCredentials = "invalid app credentials; this endpoint takes the headers X-App-Id and X-App-Secret, not an API key; with a key, send single events to POST /v1/events"

// appendFailure appends the answer that refuses a single event or, with a
// status other than 202, any request.
func appendFailure(dst []byte, text string) []byte {
	dst = append(dst, `{"success":false,"profile_id":"","error":`...)
	dst = jsonscan.AppendQuoted(dst, []byte(text))
	return append(dst, '}')
}

// appendResult appends the outcome of one event. leftOut says what the decoder left out
// of it, empty for nothing.
func appendResult(dst []byte, o *resolver.EventOutcome, leftOut []byte) []byte {
	if o.Status == resolver.EventRefused {
		text := "the event was refused"
		if o.Refusal != nil {
			text = o.Refusal.Message
		}
		return appendFailure(dst, text)
	}
	dst = append(dst, `{"success":true,"profile_id":"`...)
	if o.Profile != (resolver.ProfileID{}) {
		// A row that was imported before is a duplicate whose profile is not looked
		// up.
		dst = o.Profile.AppendText(dst)
	}
	dst = append(dst, `","error":null`...)
	switch w := o.Warning(); {
	case len(leftOut) > 0:
		if w != "" {
			leftOut = fmt.Appendf(nil, "%s; %s", w, leftOut)
		}
		dst = jsonscan.AppendQuoted(append(dst, `,"warning":`...), leftOut)
	case w != "":
		dst = append(append(append(dst, `,"warning":"`...), w...), '"') // it has nothing to escape
	}
	return append(dst, '}')
}

// tally counts what became of a request's events.
type tally struct {
	accepted, duplicate, refused int
}

// appendResults appends an array with one result for each event the decoder
// read, in order. The outcome has one entry for each event in the record,
// unless the record as a whole was refused.
func appendResults(dst []byte, d *Decoder, out *resolver.Outcome) ([]byte, tally) {
	var t tally
	stored := 0
	dst = append(dst, '[')
	for i := range d.results {
		if i > 0 {
			dst = append(dst, ',')
		}
		var o resolver.EventOutcome
		text := d.errorText(i)
		switch {
		case len(text) > 0:
		case out.Refusal != nil:
			o = resolver.EventOutcome{Status: resolver.EventRefused, Refusal: out.Refusal}
		default:
			o = out.Events[stored]
			stored++
		}
		switch o.Status {
		case resolver.EventAccepted:
			t.accepted++
		case resolver.EventDuplicate:
			t.duplicate++
		default:
			t.refused++
		}
		if len(text) > 0 {
			dst = append(dst, `{"success":false,"profile_id":"","error":`...)
			dst = jsonscan.AppendQuoted(dst, text)
			dst = append(dst, '}')
		} else {
			dst = appendResult(dst, &o, d.warning(i))
		}
	}
	return append(dst, ']'), t
}

// appendBatchHead appends the answer to a batch up to its results.
func appendBatchHead(dst []byte, success bool, accepted, total int) []byte {
	dst = append(dst, `{"success":`...)
	dst = strconv.AppendBool(dst, success)
	dst = append(dst, `,"accepted":`...)
	dst = strconv.AppendInt(dst, int64(accepted), 10)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, int64(total), 10)
	return append(dst, `,"results":`...)
}

// appendImportTail closes the answer to an import of so many rows.
func appendImportTail(dst []byte, rows int, out *resolver.Outcome) []byte {
	dst = append(dst, `,"next_row":`...)
	dst = strconv.AppendUint(dst, out.NextRow, 10)
	if rows == 0 {
		dst = append(dst, `,"refused_rows":[`...)
		for i, row := range out.RefusedRows {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(dst, uint64(row), 10)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"error":`...)
	if out.Refusal == nil {
		return append(dst, "null}"...)
	}
	dst = jsonscan.AppendQuoted(dst, []byte(out.Refusal.Message))
	return append(dst, '}')
}

// appendDenied appends the answer to bad credentials, text.
func appendDenied(dst []byte, e endpoint, text string) []byte {
	if e == endpointEvent {
		return appendFailure(dst, text)
	}
	dst = append(dst, `{"success":false,"accepted":0,"total":0,"results":[]`...)
	if e == endpointImport {
		dst = append(dst, `,"next_row":0`...)
	}
	dst = append(dst, `,"error":`...)
	dst = jsonscan.AppendQuoted(dst, []byte(text))
	return append(dst, '}')
}

// Refuse answers a request in the form of Surface B.
func Refuse(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.SetBody(appendFailure(nil, text))
}

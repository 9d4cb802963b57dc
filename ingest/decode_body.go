package ingest

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
)

// requestError refuses a whole request.
type requestError struct {
	status int
	text   string
}

func badRequest(format string, args ...any) *requestError {
	return &requestError{status: 400, text: fmt.Sprintf(format, args...)}
}

func (d *Decoder) badJSON() *requestError {
	err := d.scan.Err()
	return badRequest("the body is not valid JSON at byte %d: %s; fix the request", err.Offset, err.Reason)
}

// single reads the body of one event.
func (d *Decoder) single(body []byte, nowMs int64) *requestError {
	d.reserve(body)
	d.start(eventlog.KindEvents)
	d.nowMs = nowMs
	i, refused := d.open(body, endpointEvent)
	if refused != nil {
		return refused
	}
	if i = d.event(i); i >= 0 {
		i = d.scan.End(i)
	}
	if i < 0 {
		return d.badJSON()
	}
	malformed := d.fault.malformed
	d.endEvent()
	d.spans(0, len(body))
	if malformed {
		return badRequest("%s", d.errorText(0))
	}
	return nil
}

// compressed are the first bytes of compressed bodies.
var compressed = []struct{ magic, coding string }{{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}}

// open starts on a body, which must be an object; it returns where.
func (d *Decoder) open(body []byte, e endpoint) (int, *requestError) {
	s := d.scan
	s.Reset(body)
	i := s.Space(0)
	if i == len(body) {
		return 0, badRequest("the body is empty; send a JSON object")
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return 0, badRequest("the body is not valid JSON at byte 0: it begins with a byte order mark; send UTF-8 without one")
	}
	for _, c := range compressed {
		if bytes.HasPrefix(body, []byte(c.magic)) {
			return 0, badRequest("the body is compressed with %s and no header says so; set Content-Encoding: %s", c.coding, c.coding)
		}
	}
	if s.Byte(i) != '{' {
		first := s.Byte(i)
		if i = s.Skip(i); i >= 0 {
			i = s.End(i)
		}
		switch {
		case i < 0:
			return 0, d.badJSON()
		case first == '[' && e == endpointEvent:
			return 0, badRequest(`the body must be a JSON object, one event; send several to POST /api/v1/events/batch as {"events": [...]}`)
		case first == '[':
			return 0, badRequest(`the body must be a JSON object, and is an array; put it into one as {"events": [...]}`)
		}
		return 0, badRequest("the body must be a JSON object")
	}
	return i, nil
}

// The members of a batch's or an import's body that are understood.
const (
	bodyUnknown = iota
	bodyEvents
	bodyFile
	bodyFirstRow
	bodyTriggerFlows
)

func bodyMember(name []byte, kind eventlog.Kind) uint {
	switch string(name) {
	case "events":
		return bodyEvents
	case "file":
		if kind == eventlog.KindImport {
			return bodyFile
		}
	case "first_row":
		if kind == eventlog.KindImport {
			return bodyFirstRow
		}
	case "trigger_flows":
		if kind == eventlog.KindImport {
			return bodyTriggerFlows
		}
	}
	return bodyUnknown
}

// batch reads the body of a batch or of an import. Text that is not JSON is
// reported whatever else is wrong, so that the body is read to its end.
func (d *Decoder) batch(body []byte, kind eventlog.Kind, nowMs int64) *requestError {
	d.reserve(body)
	d.start(kind)
	d.head, d.nowMs = eventlog.ImportHead{}, nowMs
	e := endpointBatch
	if kind == eventlog.KindImport {
		e = endpointImport
	}
	i, refused := d.open(body, e)
	if refused != nil {
		return refused
	}
	s := d.scan
	var seen uint
	var unknown jsonscan.Object
	oneEvent := false // it has what an event has
	unknownName := "" // the first unknown name
	more := true
	if i = s.Space(i + 1); s.Byte(i) == '}' {
		i, more = i+1, false
	}
	for more {
		name, v := s.Key(i)
		if v < 0 {
			return d.badJSON()
		}
		m := bodyMember(name, kind)
		oneEvent = oneEvent || string(name) == "event_type"
		var wrong *requestError
		switch {
		case s.HasFault():
			wrong = badRequest("a key of the body holds a character that cannot be kept; fix the request")
			s.ClearFault()
			m = bodyUnknown
		case m != bodyUnknown && seen&(1<<m) != 0, m == bodyUnknown && unknown.Add(bytes.Clone(name)):
			wrong = badRequest("%s occurs twice in the body; send each key of an object once", jsonscan.Clip(name, 80))
			m = bodyUnknown
		case unknown.Len() > maxUnknown:
			// Stop here: the keys are held in memory.
			return badRequest("the body has more than %d unknown fields; send the events in events", maxUnknown)
		}
		if m == bodyUnknown && wrong == nil && unknownName == "" {
			unknownName = string(name)
		}
		seen |= 1 << m
		switch m {
		case bodyEvents:
			var err *requestError
			i, err = d.array(v)
			if err != nil && i < 0 {
				return err
			}
			wrong = err
		case bodyFile:
			i, wrong = d.fileHash(v)
		case bodyFirstRow:
			i, wrong = d.firstRow(v)
		case bodyTriggerFlows:
			i, wrong = d.triggerFlows(v)
		default:
			i = s.Skip(v)
		}
		if i >= 0 {
			i, more = s.More(i, '}')
		}
		if i < 0 {
			return d.badJSON()
		}
		if refused == nil {
			refused = wrong
		}
	}
	if s.End(i) < 0 {
		return d.badJSON()
	}
	switch {
	case refused != nil:
		return refused
	case seen&(1<<bodyEvents) == 0 && oneEvent:
		return badRequest(`events is missing, and the body looks like one event; send it to POST /api/v1/events, or as {"events": [...]}`)
	case seen&(1<<bodyEvents) == 0:
		return badRequest("events is missing; send an array of events")
	case unknownName != "" && !d.ignoreUnknown:
		return unknownOfBody(unknownName, kind)
	case kind != eventlog.KindImport:
	case seen&(1<<bodyFile) == 0:
		return badRequest("file is missing; send the SHA-256 of the file's content in 64 hexadecimal digits")
	case seen&(1<<bodyFirstRow) == 0:
		return badRequest("first_row is missing; send the number of the first row in events, counted from 0")
	}
	return nil
}

// array reads the events at i. An error with a negative position ends the
// request; with another the body may continue.
func (d *Decoder) array(i int) (int, *requestError) {
	s := d.scan
	if s.Byte(i) != '[' {
		if i = s.Skip(i); i < 0 {
			return i, d.badJSON()
		}
		return i, badRequest("events must be an array of events")
	}
	if i = s.Space(i + 1); s.Byte(i) == ']' {
		return i + 1, nil
	}
	for more := true; more; {
		if len(d.results) == d.limits.Events {
			return -1, &requestError{status: 413, text: fmt.Sprintf("events holds more than %d events; send them in several requests", d.limits.Events)}
		}
		from := i
		if i = d.event(i); i < 0 {
			return i, d.badJSON()
		}
		d.endEvent()
		d.spans(from, i)
		if i, more = s.More(i, ']'); i < 0 {
			return i, d.badJSON()
		}
	}
	return i, nil
}

func (d *Decoder) fileHash(i int) (int, *requestError) {
	s := d.scan
	var next int
	if s.Byte(i) == '"' {
		var text []byte
		text, next = s.Text(i)
		s.ClearFault()
		if len(text) == hex.EncodedLen(len(d.head.File)) {
			if _, err := hex.Decode(d.head.File[:], text); err == nil {
				return next, nil
			}
		}
	} else {
		next = s.Skip(i)
	}
	return next, badRequest("file must be a string: the SHA-256 of the file's content in 64 hexadecimal digits")
}

func (d *Decoder) firstRow(i int) (int, *requestError) {
	next := d.scan.Skip(i)
	if next < 0 {
		return next, nil
	}
	// 18 digits leave room for the rows to be added.
	var row uint64
	ok := next-i <= 18
	for _, c := range d.scan.Source(i, next) {
		ok = ok && c-'0' <= 9
		row = row*10 + uint64(c-'0')
	}
	if !ok {
		return next, badRequest("first_row must be a whole number from 0, the number of the first row in events")
	}
	d.head.FirstRow = row
	return next, nil
}

func (d *Decoder) triggerFlows(i int) (int, *requestError) {
	s := d.scan
	c := s.Byte(i)
	next := s.Skip(i)
	if c != 't' && c != 'f' && c != 'n' {
		return next, badRequest("trigger_flows must be true or false")
	}
	d.head.TriggerFlows = c == 't'
	return next, nil
}

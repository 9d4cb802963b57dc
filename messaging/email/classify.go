package email

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/messaging/outcome"
)

// classifyConnect sorts failures before a message was spoken of.
func classifyConnect(err error) outcome.Result {
	var answer *smtp.SMTPError
	var connect *connectError
	var network net.Error
	var protocol textproto.ProtocolError
	var alert tls.AlertError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &answer):
		answer = withStatus(answer)
		if answer.Code/100 == 5 {
			return answered(outcome.Refused, answer)
		}
		return answered(outcome.Temporary, answer)
	case errors.As(err, &certificate):
		return outcome.Failed(outcome.Refused, "certificate", err)
	case errors.As(err, &connect) && connect.network, errors.As(err, &network), errors.As(err, &protocol), errors.As(err, &alert),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, errLongAnswer):
		return outcome.Failed(outcome.Temporary, "network", err)
	default:
		// What is left says that both sides do not fit: no STARTTLS, no login we know.
		return outcome.Failed(outcome.Refused, "configuration", err)
	}
}

// classify sorts a failure of a transaction.
func classify(at stage, err error) outcome.Result {
	var answer *smtp.SMTPError
	if !errors.As(err, &answer) {
		if at == stageDot {
			return outcome.Failed(outcome.Ambiguous, "network", fmt.Errorf("the answer to the message was lost: %w", err))
		}
		return outcome.Failed(outcome.Temporary, "network", err)
	}
	answer = withStatus(answer)
	status := answer.EnhancedCode
	if answer.Code/100 != 5 {
		return answered(outcome.Temporary, answer)
	}
	switch {
	case wantsAuth(answer), status == smtp.EnhancedCode{5, 1, 7}, status == smtp.EnhancedCode{5, 1, 8}:
		// 5.1.7 and 5.1.8 are about the sender's address, wherever they are said.
		return answered(outcome.Refused, answer)
	case answer.Code == 552 && at != stageRcpt, status == smtp.EnhancedCode{5, 3, 4}:
		return answered(outcome.Permanent, answer) // too large
	case at == stageMail:
		return answered(outcome.Refused, answer)
	}
	r := answered(outcome.Permanent, answer)
	r.Hard = dead(at, answer.Code, status)
	return r
}

var statusAtLineStart = regexp.MustCompile(`(?m)^([245])\.(\d{1,3})\.(\d{1,3})(?:\s|$)`)

// withStatus finds the enhanced status code of relays that put it on another
// line than the first, where go-smtp looks.
func withStatus(e *smtp.SMTPError) *smtp.SMTPError {
	if e.EnhancedCode[0] > 0 {
		return e
	}
	m := statusAtLineStart.FindStringSubmatchIndex(e.Message)
	if m == nil || int(e.Message[m[2]]-'0') != e.Code/100 {
		return e
	}
	found := *e
	for i := range found.EnhancedCode {
		found.EnhancedCode[i], _ = strconv.Atoi(e.Message[m[2+2*i]:m[3+2*i]]) // three digits at most
	}
	found.Message = e.Message[:m[0]] + e.Message[m[1]:]
	return &found
}

// wantsAuth reports whether the relay misses a login or dislikes ours.
func wantsAuth(e *smtp.SMTPError) bool {
	switch e.Code {
	case 530, 534, 535, 538:
		return true
	}
	return e.EnhancedCode == smtp.EnhancedCode{5, 7, 8} || e.EnhancedCode == smtp.EnhancedCode{5, 7, 9}
}

// dead reports whether the answer says that the address takes no mail at all.
func dead(at stage, code int, status smtp.EnhancedCode) bool {
	if status[0] == 5 && (status[1] != 0 || status[2] != 0) {
		// 5.2.1 is a disabled mailbox; a full one (5.2.2) and policy (5.7.x) may pass.
		return status[1] == 1 || status == smtp.EnhancedCode{5, 2, 1}
	}
	return at == stageRcpt && (code == 550 || code == 551 || code == 553)
}

func answered(class outcome.Class, e *smtp.SMTPError) outcome.Result {
	code := fmt.Sprint(e.Code)
	if e.EnhancedCode[0] > 0 {
		code += fmt.Sprintf(" %d.%d.%d", e.EnhancedCode[0], e.EnhancedCode[1], e.EnhancedCode[2])
	}
	return outcome.New(class, code, e.Message)
}

// queueID finds the relay's id in its answer to a message. There is no standard;
// these are the forms of the widespread servers.
func queueID(text string) string {
	fields := strings.Fields(text)
	for i, f := range fields {
		f = strings.ToLower(strings.TrimLeft(f, "<("))
		if i+1 < len(fields) && (f == "as" || f == "id" || f == "queued:") {
			return outcome.Clean(strings.Trim(fields[i+1], "<>()[];,"), outcome.MaxCode)
		}
		if v, ok := strings.CutPrefix(f, "id="); ok {
			return outcome.Clean(strings.Trim(v, "<>()[];,"), outcome.MaxCode)
		}
	}
	return ""
}

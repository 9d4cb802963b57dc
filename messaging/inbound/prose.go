package inbound

import (
	"regexp"
	"strings"
)

// maxProse bounds how much of a bounce's text is read: the reasons stand at the top.
const maxProse = 64 << 10

var (
	// reBlock is a line that begins with an address: what follows is about it.
	reBlock = regexp.MustCompile(`^\s*<?([^\s<>:;,"@]{1,64}@[^\s<>:;,"@]{1,255}?)>?[:.,]?(?:\s|$)`)
	reAddr  = regexp.MustCompile(`[^\s<>:;,"'()\[\]@=]{1,64}@[A-Za-z0-9.-]{1,255}[A-Za-z0-9]`)
)

// copyMarks begin the copy of the message in bounces without MIME parts.
var copyMarks = []string{"below this line is a copy", "this is a copy of", "original message follows", "original message header", "--- original message",
	"----- original message", "message header follows", "the original message was", "text of your message follows", "unsent message below", "returned message follows"}

// prose reads a bounce that brings no report: those of qmail, old Exim and many
// appliances. ok is false when the mail is no bounce, or gives no reason.
func prose(m *part, opts MailOptions) (events []Event, ok bool) {
	if !looksLikeBounce(m.header) {
		return nil, false
	}
	p := m.find("text/plain")
	html := false
	if p == nil {
		if p = m.find("text/html"); p != nil {
			html = true
		} else if p = m; len(m.parts) > 0 {
			return nil, false // else the parts could not be told apart: read it as it is
		}
	}
	body := p.text()
	body = body[:min(len(body), maxProse)]
	text := strings.ToValidUTF8(string(body), "")
	if html {
		text = stripTags(text)
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	top := len(lines)
	for i, ln := range lines {
		if anyWord(strings.ToLower(ln), copyMarks) {
			top = i
			break
		}
	}

	sendID, msgID := sendOf(m, m.original(), opts)
	if sendID == "" || msgID == "" {
		quoted := quotedHeader(lines)
		if sendID == "" {
			sendID = identifier(quoted.get(opts.SendHeader))
		}
		if msgID == "" {
			msgID = messageID(quoted.get("message-id"))
		}
	}
	event := func(recipient, said string) {
		status, hard, _ := verdict("", said)
		events = append(events, Event{Type: Bounce, SendID: sendID, MessageID: msgID, Recipient: recipient, Hard: hard, Status: status, Reason: line(said, maxReason)})
	}

	head := strings.Join(lines[:top], "\n")
	if isWarning(strings.ToLower(head + " " + m.header.get("subject"))) {
		return nil, true
	}
	// One block per recipient, up to an empty line or the next address.
	for i := 0; i < top && len(events) < maxParts; i++ {
		match := reBlock.FindStringSubmatch(lines[i])
		if match == nil || address(match[1]) == "" {
			continue
		}
		said := []string{strings.TrimSpace(lines[i][len(match[0]):])}
		for i+1 < top && len(said) < 30 && strings.TrimSpace(lines[i+1]) != "" && reBlock.FindString(lines[i+1]) == "" {
			i++
			said = append(said, strings.TrimSpace(lines[i]))
		}
		all := strings.Join(said, " ")
		if _, _, known := verdict("", all); known || anyWord(strings.ToLower(all), wordsHard) {
			event(address(match[1]), all)
		}
	}
	if len(events) > 0 {
		return events, true
	}
	// No blocks: the whole text is about the recipients that the header names, or the
	// first address in it.
	if _, _, known := verdict("", head); !known && !anyWord(strings.ToLower(head), wordsHard) {
		return nil, false
	}
	for i, r := range strings.Split(m.header.get("x-failed-recipients"), ",") {
		if a := address(r); a != "" && i < maxParts {
			event(a, head)
		}
	}
	if len(events) == 0 {
		event(address(reAddr.FindString(head)), head)
	}
	return events, true
}

// looksLikeBounce tells bounces from people's mails and automatic replies: they
// have no sender to answer to, or come from the mail system.
func looksLikeBounce(h fields) bool {
	if h.get("x-failed-recipients") != "" || strings.TrimSpace(h.get("return-path")) == "<>" {
		return !strings.Contains(strings.ToLower(h.get("auto-submitted")), "auto-replied") || h.get("x-failed-recipients") != ""
	}
	local, _, _ := strings.Cut(strings.ToLower(address(h.get("from"))), "@")
	if local == "" {
		// Some write no address but a name.
		local = strings.ToLower(h.get("from"))
	}
	return strings.Contains(local, "mailer-daemon") || local == "postmaster" || strings.Contains(local, "mail delivery")
}

func isWarning(text string) bool {
	for _, w := range []string{"this is a warning message only", "you do not need to resend", "will be retried", "will keep trying", "will continue to try", "delivery status notification (delay)", "message delayed", "has not yet been delivered", "no action is required on your part"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// quotedHeader collects the first of each field in a copy of the message.
func quotedHeader(lines []string) fields {
	var out fields
	for _, ln := range lines {
		ln = strings.TrimLeft(ln, "> \t")
		name, value, ok := strings.Cut(ln, ":")
		if !ok || len(name) > 60 || strings.ContainsAny(name, " \t") || len(out) >= maxFields {
			continue
		}
		out = append(out, field{strings.ToLower(name), strings.TrimSpace(value[:min(len(value), maxFieldBytes)])})
	}
	return out
}

// stripTags makes lines of HTML; it only has to be good enough to find a reason.
func stripTags(text string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		j := strings.IndexByte(text[i:], '>')
		if j < 0 {
			break
		}
		tag := strings.ToLower(text[i+1 : i+j])
		text = text[i+j+1:]
		if strings.HasPrefix(tag, "p") || strings.HasPrefix(tag, "br") || strings.HasPrefix(tag, "/p") || strings.HasPrefix(tag, "div") || strings.HasPrefix(tag, "tr") {
			b.WriteByte('\n')
		}
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&nbsp;", " ", "&#64;", "@").Replace(b.String())
}

package inbound

import (
	"regexp"
	"strings"
)

// Which failures are hard, that is for good. Suppressing a good address costs a
// reader; sending on to a dead one costs the sender's reputation. So a failure is
// hard when it speaks of the address, and soft when it speaks of the message, the
// sender, the moment or the way there.
//
// In this order, the first that says something decides:
//
//  1. class 4 (or an SMTP reply 4xx): soft. Class 2: no failure.
//  2. full mailboxes, in code (x.2.2) or words: soft.
//  3. the codes below.
//  4. words: of spam, policy, reputation, size: soft; of unknown, closed or
//     disabled users and domains that do not exist: hard. Servers answer 5.0.0, 5.5.0,
//     5.4.1 and 5.7.1 for unknown users as well, so words decide over codes that are
//     not in the table.
//  5. class 5 with a subject of 0 (nothing is known but that it is final): hard.
//  6. everything else (5.2, 5.3, 5.4, 5.5, 5.6, 5.7): soft.
var statusHard = map[string]bool{
	"5.1.0":  true,  // address, other: refused for what it is
	"5.1.1":  true,  // no such mailbox
	"5.1.2":  true,  // no such domain
	"5.1.3":  true,  // not an address
	"5.1.4":  false, // ambiguous
	"5.1.6":  true,  // moved without a new address
	"5.1.7":  false, // the sender's address
	"5.1.8":  false, // the sender's domain
	"5.1.9":  false, // relayed to a system that cannot
	"5.1.10": true,  // the domain takes no mail
	"5.2.1":  true,  // disabled
	"5.2.2":  false, // full
	"5.2.3":  false, // this message is too long
	"5.2.4":  false, // list expansion
	"5.3.4":  false, // this message is too big
	"5.4.4":  true,  // the domain cannot be routed to
	"5.4.6":  false, // a loop
	"5.7.13": true,  // the user's account is disabled
	"5.7.17": true,  // the mailbox's owner has changed
	"5.7.18": true,  // the domain's owner has changed
}

var (
	wordsFull = []string{"mailbox full", "mailbox is full", "over quota", "overquota", "quota exceeded", "exceeded quota", "out of storage", "exceeded storage",
		"insufficient storage", "quotaexceeded", "mailfolder is full", "not enough space"}
	wordsSoft = []string{"spam", "blacklist", "blocklist", "block list", "blocked", "banned", "reputation", "policy", "dmarc", "dkim", "spf ", "rbl", "unsolicited",
		"rate limit", "too many", "greylist", "graylist", "too large", "too big", "size limit", "message size", "virus", "content rejected", "try again", "temporar"}
	wordsHard = []string{"user unknown", "unknown user", "no such user", "no such recipient", "no such mailbox", "no mailbox here", "no such address", "unknown recipient",
		"recipient unknown", "recipientnotfound", "recipient not found", "user not found", "does not exist", "doesn't exist", "not a valid mailbox",
		"invalid recipient", "invalid mailbox", "invalid address", "mailbox unavailable", "mailbox not found", "mailbox disabled", "account disabled", "account is disabled", "account has been disabled",
		"account is inactive", "inactive user", "user is inactive", "user disabled", "unrouteable address", "unroutable address", "address rejected: access denied", "undeliverable address",
		"unknown or illegal alias", "not listed in", "isn't listed", "not our customer", "no longer available", "no longer valid", "mailbox has been closed",
		"couldn't find any host", "host not found", "domain not found", "no mail hosts for domain", "address not found", "addressee unknown", "bad destination mailbox"}
)

func anyWord(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

var (
	reEnhanced = regexp.MustCompile(`(?:^|[^0-9.])([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:$|\.?$|\.?[^0-9.])`)
	reReply    = regexp.MustCompile(`(?:^|[^0-9.:/-])([45][0-5][0-9])(?:[ #-]|$)`)
)

// enhancedStatus finds a status code such as 5.1.1 in text, empty when there is none.
// Of several the one that says most counts.
func enhancedStatus(text string) string {
	first := ""
	for _, m := range reEnhanced.FindAllStringSubmatch(text, 8) {
		if _, known := statusHard[m[1]]; known {
			return m[1]
		}
		if first == "" {
			first = m[1]
		}
	}
	return first
}

// smtpReply finds a reply code such as 550.
func smtpReply(text string) string {
	if m := reReply.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// verdict judges a failure. known reports whether anything spoke for it at all.
func verdict(status, diagnostic string) (code string, hard, known bool) {
	text := strings.ToLower(diagnostic)
	if strings.HasSuffix(status, ".0.0") || status == "" {
		if s := enhancedStatus(diagnostic); s != "" && (status == "" || s[0] == status[0] || status[0] == '5') {
			status = s
		}
	}
	reply := smtpReply(diagnostic)
	switch {
	case status != "" && status[0] == '2':
		return status, false, true
	case status != "" && status[0] == '4', status == "" && strings.HasPrefix(reply, "4"):
		return status, false, true
	case strings.HasSuffix(status, ".2.2"), anyWord(text, wordsFull):
		return status, false, true
	}
	if hard, listed := statusHard[status]; listed {
		return status, hard, true
	}
	switch {
	case anyWord(text, wordsSoft):
		return status, false, true
	case anyWord(text, wordsHard):
		return status, true, true
	case strings.HasPrefix(status, "5.0."):
		return status, true, true
	case status != "":
		return status, false, true
	}
	// A bare 550 or 551 speaks of the mailbox, 552 to 554 of the transaction.
	return "", reply == "550" || reply == "551" || reply == "553", reply != ""
}

package tracking

import "strings"

// Agent says who seems to have fetched a pixel or followed a link.
type Agent uint8

const (
	// Person: nothing speaks against a person's mail program or browser.
	Person Agent = iota
	// Proxy: a mail service's image proxy that fetches when a person opens the
	// message. The open is real; address and program are the proxy's.
	Proxy
	// Prefetch: a privacy proxy that fetches images of messages, read or not.
	Prefetch
	// Machine: a link scanner or a crawler that says so. What fetches with a
	// common HTTP library may be anybody's mail program.
	Machine
)

func (a Agent) String() string {
	return [...]string{"person", "proxy", "prefetch", "machine"}[a&3]
}

// Suspect reports whether the open or click should be left out of rates. It is a flag
// on the event, which is recorded all the same: the judgement rests on a text that
// anyone can set.
func (a Agent) Suspect() bool { return a >= Prefetch }

// Parts of user agents, in lower case.
var (
	proxyParts   = []string{"googleimageproxy", "yahoomailproxy", "yahoocachesystem", "outlookimageproxy"}
	machineParts = []string{
		"barracuda", "proofpoint", "mimecast", "symantec", "messagelabs", "trendmicro", "fireeye", "forcepoint", "sophos", "cloudmark",
		"bingpreview", "skypeuripreview", "slackbot", "facebookexternalhit", "whatsapp/", "telegrambot", "twitterbot", "linkedinbot",
		"bot/", "bot;", "bot ", "+http", "crawler", "spider", "scanner", "headless", "phantomjs", "puppeteer", "playwright", "selenium",
	}
)

// maxAgentBytes bounds how much of a user agent is looked at.
const maxAgentBytes = 512

// JudgeAgent judges the user agent of a request for a pixel or link.
func JudgeAgent(userAgent string) Agent {
	ua := strings.ToLower(strings.TrimSpace(userAgent[:min(len(userAgent), maxAgentBytes)]))
	switch ua {
	case "":
		return Machine
	case "mozilla/5.0":
		// The privacy proxy of Apple Mail sends exactly this.
		return Prefetch
	}
	for _, p := range proxyParts {
		if strings.Contains(ua, p) {
			return Proxy
		}
	}
	for _, p := range machineParts {
		if strings.Contains(ua, p) {
			return Machine
		}
	}
	return Person
}

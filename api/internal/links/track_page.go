package links

import (
	"net/http"

	"github.com/valyala/fasthttp"
)

// webPage is one of the few pages that recipients of messages see. They name no
// person: anyone with the link sees them.
type webPage struct {
	status      int
	title, text string
	button      string // of a form that sends the same address with POST
}

var (
	pageNoLink       = webPage{http.StatusNotFound, "This link does not work", "It may be incomplete, or what it led to is no longer there.", ""}
	pageFault        = webPage{http.StatusServiceUnavailable, "Please try again", "This did not work just now. Try again in a few minutes.", ""}
	pageMethod       = webPage{http.StatusMethodNotAllowed, "This link is for a browser", "Open it in a browser.", ""}
	pageTooLarge     = webPage{http.StatusRequestEntityTooLarge, "Too much was sent", "Open the link again.", ""}
	pageUnsubscribe  = webPage{http.StatusOK, "Unsubscribe", "You will no longer get messages of this kind.", "Unsubscribe"}
	pageUnsubscribed = webPage{http.StatusOK, "You are unsubscribed", "You will no longer get messages of this kind.", ""}
	pageConfirm      = webPage{http.StatusOK, "Confirm your subscription", "You will get messages once you have confirmed that this address is yours.", "Confirm"}
	pageErased       = webPage{http.StatusGone, "Your data was erased", "Nothing is stored about you any more, and no messages are sent to you.", ""}
	pageNoForm       = webPage{http.StatusBadRequest, "This did not work", "Open the link again, and choose there.", ""}
	pageTooOften     = webPage{http.StatusTooManyRequests, "Please wait a minute", "Your choices were saved too often in a minute. Nothing was changed now.", ""}

	pageTooManyTopics = webPage{http.StatusConflict, "Too many topics", "You are on as many lists as you can be on. Leave one first. Nothing was changed.", ""}

	pageTooLate = webPage{http.StatusGone, "This link is too old", "Please sign up again, and confirm within a week.", ""}

	pageMoved = webPage{http.StatusGone, "This link no longer fits", "It was sent to an address that has been replaced since. Nothing was changed. Use the link in the message to the new address, or sign up again.", ""}

	pageLeft = webPage{http.StatusOK, "You are unsubscribed", "This link was used before, and you have unsubscribed since. Nothing was changed. To get messages again, sign up again.", ""}

	pageConfirmed = webPage{http.StatusOK, "Thank you", "Your subscription is confirmed.", ""}
)

// noStore keeps an answer from being kept: the next look is to reach us.
func noStore(rc *fasthttp.RequestCtx) {
	h := &rc.Response.Header
	h.Set(fasthttp.HeaderCacheControl, "no-store, max-age=0")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
}

// beginPage sets the status and the headers of a page.
func beginPage(rc *fasthttp.RequestCtx, status int) {
	noStore(rc)
	rc.Response.Header.Set(fasthttp.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	rc.SetStatusCode(status)
	rc.SetContentType("text/html; charset=utf-8")
}

// writePage answers with a page. Its texts are ours, so nothing needs escaping.
func writePage(rc *fasthttp.RequestCtx, p webPage) {
	beginPage(rc, p.status)
	if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		rc.Response.Header.Set(fasthttp.HeaderRetryAfter, "60")
	}
	form := ""
	if p.button != "" {
		form = `<form method="post"><button>` + p.button + `</button></form>`
	}
	rc.SetBodyString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` + p.title +
		`</title><style>body{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto 0;padding:0 1rem;color:#222}` +
		`button{font:inherit;padding:.6rem 1.4rem;border:0;border-radius:.4rem;background:#1a56db;color:#fff;cursor:pointer}</style></head><body><h1>` +
		p.title + `</h1><p>` + p.text + `</p>` + form + `</body></html>
`)
}

package openapitest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"
)

// personToken is a token by which a page asks for the in-app messages of a person.
func personToken(secret, account, person string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	text := part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(fmt.Sprintf(`{"iss":%q,"sub":%q,"exp":%d}`, account, person, time.Now().Add(time.Hour).Unix()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// inAppCampaign has all fields of a campaign by in-app message.
const inAppCampaign = `{"name":"In-app","channel":2,"type":4,"service":"in_app","date":"2026-01-31T09:00:00Z","subject":"Sale","body":"Now","link":"https://example.com/sale","in_app":{"display":"banner","image":"https://example.com/a.jpg","priority":3,"ttl_hours":48}}`

// inApp sends in-app messages, and shows them as a page does.
func inApp() []Step {
	return []Step{
		{Request: "GET " + c + "/in-app/settings"},
		{Request: "PUT " + c + "/in-app/settings", Body: `{"allowed_origins":["https://shop.example"]}`},
		{Request: "PUT " + c + "/in-app/settings", Body: `{"allowed_origins":["shop"]}`, Fails: true},
		{Request: "PUT " + c + "/in-app/settings", Body: `{}`, Fails: true},
		{Request: "POST " + c + "/in-app/secret", Body: `{"overlap_hours":169}`, Fails: true},
		{Request: "POST " + c + "/in-app/secret", Body: `{"overlap_hours":2}`},
		{Request: "POST " + c + "/in-app/secret"},
		{Request: "PUT " + a + "/in-app/settings", Body: `{"allowed_origins":["https://shop.example","https://*.eu.example"]}`},
		{Request: "PUT " + a + "/in-app/settings", Body: `{"allowed_origins":[""]}`, Fails: true},
		{Request: "POST " + a + "/in-app/secret", Body: `{"overlap_hours":-1}`, Fails: true},
		{Request: "POST " + a + "/in-app/secret", Body: `{"overlap_hours":1}`, Keep: "ias=data.secret"},
		{Request: "GET " + c + "/in-app/settings"},
		{Request: "POST " + a + "/contacts", Body: `{"external_id":"in-app-1","email":"in-app@example.com"}`, Keep: "shown=data._id"},
		{Request: "POST " + a + "/lists", Body: `{"name":"In-app"}`, Keep: "shownlist=data._id"},
		{Request: "POST " + a + "/lists/$shownlist/contacts", Body: `{"email":"in-app@example.com"}`},
		{Request: "POST " + a + "/campaign", Body: inAppCampaign, Keep: "shows=data._id"},
		{Request: "POST " + a + "/campaign", Body: `{"name":"In-app","channel":2,"type":4,"service":"in_app","date":"2026-01-31T09:00:00Z","in_app":{"display":"popup"}}`, Fails: true},
		{Request: "POST " + a + "/campaign/$shows/send", Body: `{"list_id":["$shownlist"]}`},
		{Request: "GET " + c + "/campaigns/$shows/stats"},
		{Request: "GET " + c + "/profiles/$shown/inbox", Keep: "message=data.0.id"},
		{Request: "GET " + c + "/profiles/prf_none/inbox", Fails: true},
		{Request: "GET /in-app/inbox?limit=1", Person: "in-app-1"},
		{Request: "GET /in-app/inbox?limit=1&cursor=0.0.x", Person: "in-app-1"},
		{Request: "GET /in-app/inbox?limit=0", Person: "in-app-1", Fails: true},
		{Request: "GET /in-app/inbox", Fails: true},
		{Request: "GET /in-app/stream", Person: "in-app-1"},
		{Request: "GET /in-app/stream", Fails: true},
		{Request: "GET /in-app/muster-inapp.js"},
		{Request: "POST /in-app/inbox/$message/seen", Person: "in-app-1"},
		{Request: "POST /in-app/inbox/$message/clicked", Person: "in-app-1"},
		{Request: "POST /in-app/inbox/$message/dismissed", Person: "in-app-1"},
		{Request: "POST /in-app/inbox/x/seen", Person: "in-app-1", Fails: true},
		{Request: "POST /in-app/inbox/x/clicked", Person: "in-app-1", Fails: true},
		{Request: "POST /in-app/inbox/x/dismissed", Person: "in-app-1", Fails: true},
	}
}

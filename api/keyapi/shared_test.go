package keyapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/internal/eventually"
)

// keyCaller makes calls of Surface A with the company's key.
type keyCaller struct{ *service }

// must makes a call that succeeds, and reads its data.
func (k keyCaller) must(method, path, body string, data any) (message string) {
	k.t.Helper()
	res, b := k.with(k.creds.APIKey, method, "/api/v1"+path, body)
	var a struct {
		Status, Message string
		Data            json.RawMessage
	}
	ok(k.t, json.Unmarshal([]byte(b), &a))
	if res.StatusCode != 200 || a.Status != "success" {
		k.t.Fatalf("%s %s %s: %d %s", method, path, body, res.StatusCode, b)
	}
	if data != nil {
		ok(k.t, json.Unmarshal(a.Data, data))
	}
	return a.Message
}

// refused makes a call that fails as calls of Surface A do, with a message that has
// says in it.
func (k keyCaller) refused(method, path, body, says string) {
	k.t.Helper()
	res, b := k.with(k.creds.APIKey, method, "/api/v1"+path, body)
	if m := failureOf(k.t, res.StatusCode, b); res.StatusCode != 200 || !strings.Contains(m, says) || !strings.Contains(b, `"data":{}`) {
		k.t.Errorf("%s %s %s: %d %s does not say %q", method, path, body, res.StatusCode, b, says)
	}
}

// event records an event and returns the id of its profile.
func (k keyCaller) event(typ, email string) string {
	k.t.Helper()
	var e struct {
		ProfileID string `json:"profile_id"`
	}
	res, b := k.with(k.creds.APIKey, "POST", "/v1/events", `{"email":"`+email+`","event":"`+typ+`","properties":{"value":3}}`)
	var a struct{ Data json.RawMessage }
	ok(k.t, json.Unmarshal([]byte(b), &a))
	ok(k.t, json.Unmarshal(a.Data, &e))
	if res.StatusCode != 200 || e.ProfileID == "" {
		k.t.Fatalf("event: %d %s", res.StatusCode, b)
	}
	return e.ProfileID
}

// TestKeysCanWhatPeopleCan: for every call of the console whose permission a key can
// hold there is a call of Surface A with the same permission.
func TestKeysCanWhatPeopleCan(t *testing.T) {
	t.Parallel()
	permissions := map[string]string{}
	for _, g := range new(API).Operations() {
		for i := range g.Operations {
			if g.Surface == operation.SurfaceA {
				permissions[g.Operations[i].Method+" "+g.Operations[i].Path] = g.Operations[i].Permission
			}
		}
	}
	tried := 0
	for _, g := range new(api.API).Operations() {
		for i := range g.Operations {
			op := &g.Operations[i]
			if g.Surface != operation.SurfaceConsole || !slices.Contains(operation.KeyPermissions(), op.Permission) {
				continue
			}
			tried++
			name := op.Method + " " + op.Path
			own := handler.CallOfKeys(op.Method, op.Path)
			if permission, there := permissions[own]; !there || permission != op.Permission {
				t.Errorf("people with %s have %s; keys have %q with %q", op.Permission, name, own, permission)
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d calls of the console need a permission that keys can hold", tried)
	}
}

// TestSegmentsByKey makes, reads, changes and deletes a segment with a key.
func TestSegmentsByKey(t *testing.T) {
	t.Parallel()
	k := keyCaller{newServiceWith(t, &rowHistory{}, nil)}
	ann := k.event("bought", "ann@x.io")
	k.event("seen", "bob@x.io")
	const buyers = `{"kind":"attribute","field":"email","op":"=","value":"ann@x.io"}`
	var preview struct {
		Count  int
		Sample []struct {
			ProfileID string `json:"profile_id"`
		}
	}
	if k.must("POST", "/segments/preview", `{"definition":`+buyers+`}`, &preview); preview.Count != 1 || len(preview.Sample) != 1 || preview.Sample[0].ProfileID != ann {
		t.Errorf("preview: %+v", preview)
	}
	var s struct {
		ID           string `json:"_id"`
		Name, Status string
		Count        int
	}
	k.must("POST", "/segments", `{"name":"Buyers","definition":`+buyers+`}`, &s)
	eventually.Holds(t, "the segment is built", func() bool {
		k.clock.Advance(time.Second) // within the rate of the key
		k.must("GET", "/segments/"+s.ID, "", &s)
		return s.Status == "live"
	})
	if s.Count != 1 || s.Status != "live" {
		t.Errorf("segment: %+v", s)
	}
	k.clock.Advance(time.Minute)
	var members struct{ Members []string }
	if k.must("GET", "/segments/"+s.ID+"/members", "", &members); !slices.Equal(members.Members, []string{ann}) {
		t.Errorf("members: %v", members.Members)
	}
	var why struct{ Member bool }
	if k.must("GET", "/segments/"+s.ID+"/explain?profile_id="+ann, "", &why); !why.Member {
		t.Error("explain: not a member")
	}
	k.must("PUT", "/segments/"+s.ID, `{"name":"All buyers","definition":`+buyers+`}`, &s)
	var list []struct{ Name string }
	if k.must("GET", "/segments", "", &list); len(list) != 1 || list[0].Name != "All buyers" {
		t.Errorf("list: %+v", list)
	}
	k.refused("POST", "/segments", `{"name":"x","definitions":`+buyers+`}`, "definitions is not a field of this call. Did you mean definition?")
	k.refused("POST", "/segments", `{"name":"x"}`, "definition is missing")
	k.refused("POST", "/segments/preview", `{"definition":{"kind":"activity"}}`, "definition: ")
	k.refused("GET", "/segments/seg_none", "", "there is no segment with this id")
	k.refused("GET", "/segments/"+s.ID+"/explain", "", "profile_id is missing")
	k.must("DELETE", "/segments/"+s.ID, "", nil)
	k.refused("GET", "/segments/"+s.ID+"/members", "", "there is no segment with this id")
}

// TestTemplatesByKey makes, reads, changes and deletes a template with a key, as the
// console reads it.
func TestTemplatesByKey(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	var x, y struct {
		ID            string `json:"_id"`
		Name, Subject string
		HTML          string `json:"html"`
	}
	k.must("POST", "/templates", `{"name":"Order","subject":"Hi {{first_name}}","html":"<p>x</p>"}`, &x)
	k.must("PUT", "/templates/"+x.ID, `{"name":"Order 2","subject":"Hi","html":"<p>y</p>"}`, &x)
	if k.console1("GET", "/templates/"+x.ID, "", &y); x != y || y.Name != "Order 2" || y.HTML != "<p>y</p>" {
		t.Errorf("%+v, the console has %+v", x, y)
	}
	var list []struct{ Name string }
	if k.must("GET", "/templates?limit=1", "", &list); len(list) != 1 || list[0].Name != "Order 2" {
		t.Errorf("list: %+v", list)
	}
	k.refused("POST", "/templates", `{"name":"x","source":"list"}`, "source")
	k.refused("POST", "/templates", `{"name":"x","sbject":"y"}`, "Did you mean subject?")
	k.must("DELETE", "/templates/"+x.ID, "", nil)
	k.refused("GET", "/templates/"+x.ID, "", "there is no template with this id")
}

// TestFlowsByKey writes a flow with a key, publishes it, and reads its enrolments.
func TestFlowsByKey(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	const steps = `"steps":[{"id":"w","type":"wait","seconds":3600,"next":"x"},{"id":"x","type":"exit"}]`
	var f struct {
		ID           string `json:"_id"`
		Name, Status string
	}
	k.must("POST", "/custom-flows", `{"name":"Welcome"}`, &f)
	var v struct {
		Valid  bool
		Faults []struct{ Path string }
	}
	if k.must("GET", "/custom-flows/"+f.ID+"/validate", "", &v); v.Valid || len(v.Faults) == 0 {
		t.Errorf("a flow without steps: %+v", v)
	}
	k.refused("POST", "/custom-flows/"+f.ID+"/publish", "", "trigger")
	k.must("PUT", "/custom-flows/"+f.ID, `{"name":"Welcome 2","trigger":{"type":"api"},`+steps+`}`, nil)
	if k.must("POST", "/custom-flows/"+f.ID+"/publish", "", &f); f.Status != "live" || f.Name != "Welcome 2" {
		t.Errorf("published: %+v", f)
	}
	k.refused("PUT", "/custom-flows/"+f.ID, `{"name":"Welcome 3","trigger":{"type":"api"},`+steps+`}`, "duplicate")
	k.refused("POST", "/custom-flows", `{"name":"x","stps":[]}`, "stps")
	k.event("seen", "ann@x.io")
	k.must("POST", "/custom-flows/"+f.ID+"/trigger", `{"email":"ann@x.io"}`, nil)
	var in struct {
		Enrolments []struct {
			ProfileID string `json:"profile_id"`
			Status    string
			Path      []struct{ ID string }
		}
	}
	k.must("GET", "/custom-flows/"+f.ID+"/enrolments?status=in_progress", "", &in)
	if len(in.Enrolments) != 1 || in.Enrolments[0].Status != "in_progress" {
		t.Fatalf("enrolments: %+v", in)
	}
	id := in.Enrolments[0].ProfileID
	if k.must("GET", "/custom-flows/"+f.ID+"/enrolments/"+id, "", &in); len(in.Enrolments) != 1 || len(in.Enrolments[0].Path) != 1 || in.Enrolments[0].Path[0].ID != "w" {
		t.Errorf("path: %+v", in)
	}
	k.refused("GET", "/custom-flows/"+f.ID+"/enrolments?status=some", "", "status must be all or in_progress")
	k.refused("DELETE", "/custom-flows/"+f.ID, "", "live")
	k.must("POST", "/custom-flows/"+f.ID+"/pause", "", nil)
	k.must("DELETE", "/custom-flows/"+f.ID, "", nil)
	k.refused("GET", "/custom-flows/"+f.ID, "", "there is no flow with this id")
}

// TestProfilesByKey reads a profile and its events with a key, and changes its
// consents and suppressions.
func TestProfilesByKey(t *testing.T) {
	t.Parallel()
	k := keyCaller{newServiceWith(t, &rowHistory{}, nil)}
	ann := k.event("bought", "ann@x.io")
	type profile struct {
		ProfileID              string `json:"profile_id"`
		Consent                map[string]struct{ Status, Source string }
		Suppressions, Statuses map[string]string
	}
	var p profile
	if k.must("GET", "/profiles?email=ANN@x.io", "", &p); p.ProfileID != ann || p.Consent["email"].Status != "never_subscribed" {
		t.Errorf("found: %+v", p)
	}
	k.refused("GET", "/profiles", "", "give exactly one of email, external_id and phone")
	k.must("POST", "/profiles/"+ann+"/consent", `{"channel":"email","status":"subscribed"}`, &p)
	if c := p.Consent["email"]; c.Status != "subscribed" || c.Source != "api" {
		t.Errorf("consent: %+v", c)
	}
	k.must("POST", "/profiles/"+ann+"/suppression", `{"channel":"email"}`, nil)
	p = profile{}
	if k.must("GET", "/profiles/"+ann, "", &p); p.Suppressions["email"] != "suppressed" {
		t.Errorf("suppressed: %+v", p)
	}
	p = profile{}
	if k.must("DELETE", "/profiles/"+ann+"/suppression?channel=email", "", &p); len(p.Suppressions) != 0 || p.Statuses["email"] != "Subscribed" {
		t.Errorf("not suppressed: %+v", p)
	}
	var line struct {
		Events []struct {
			Type string `json:"event_type"`
		}
	}
	k.must("GET", "/profiles/"+ann+"/events", "", &line)
	if len(line.Events) == 0 || line.Events[len(line.Events)-1].Type != "bought" {
		t.Errorf("events: %+v", line)
	}
	k.refused("GET", "/profiles/prf_none/events", "", "there is no profile with this id")
	var catalog struct{ Key string }
	if k.must("POST", "/catalog", `{"name":"Item returned"}`, &catalog); catalog.Key != "item_returned" {
		t.Errorf("defined: %+v", catalog)
	}
	var all []struct{ Key string }
	if k.must("GET", "/catalog", "", &all); !slices.Contains(all, struct{ Key string }{"bought"}) || !slices.Contains(all, catalog) {
		t.Errorf("catalogue: %+v", all)
	}
	res, b := k.with(k.creds.APIKey, "GET", "/api/v1/export/profiles", "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" || !strings.Contains(b, ann) {
		t.Errorf("export: %d %s", res.StatusCode, b)
	}
}

// TestStreamsByKey: a key watches events and transitions, until it is revoked or may
// no longer.
func TestStreamsByKey(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	var s struct {
		ID string `json:"_id"`
	}
	k.must("POST", "/segments", `{"name":"Buyers","definition":{"kind":"attribute","field":"email","op":"exists"}}`, &s)
	maker, id := newMaker(t, k.service, []string{"events:read", "segments:read", "api_keys:write"})
	for path, x := range map[string]struct {
		permission, sees string
		stop             func(key keyRecord)
	}{
		"/events/live": {"events:read", `"event_type":"bought"`, func(key keyRecord) { k.console1("DELETE", "/api-keys/"+key.ID, "", nil) }},
		"/segments/" + s.ID + "/transitions": {"segments:read", "event: entered", func(keyRecord) {
			k.console1("PATCH", "/users/"+id, `{"permissions":["events:read","api_keys:write"]}`, nil)
		}},
	} {
		var key keyRecord
		maker("POST", "/api-keys", `{"name":"k","permissions":["`+x.permission+`"]}`, &key)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://muster.test/api/v1"+path, nil)
		ok(t, err)
		req.Header.Set("Authorization", "Bearer "+key.Key)
		res, err := k.client.Do(req)
		ok(t, err)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%s: %d %s", path, res.StatusCode, res.Header)
		}
		lines := bufio.NewScanner(res.Body)
		lines.Scan() // it watches by now
		k.event("bought", "p"+x.permission[:2]+"@x.io")
		seen, ended := false, false
		for lines.Scan() {
			if strings.Contains(lines.Text(), x.sees) && !seen {
				seen = true
				x.stop(key)
			}
			ended = ended || strings.Contains(lines.Text(), "event: end")
		}
		ok(t, res.Body.Close())
		if !seen || ended || ctx.Err() != nil {
			t.Errorf("%s: seen is %t, ended is %t, %v", path, seen, ended, ctx.Err())
		}
	}
}

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
)

type contentID struct {
	ID string `json:"_id"`
}

// TestContentsOfAnAccount: lists, templates, campaigns and credits are made,
// read, changed and removed; what is not there is 404.
func TestContentsOfAnAccount(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var l, m struct {
		contentID
		Name     string
		Contacts int
	}
	s.want("POST", "/lists", `{"name":"a","description":"d"}`, &l)
	s.want("PUT", "/lists/"+l.ID, `{"name":"b","description":""}`, &m)
	if m.ID != l.ID || m.Name != "b" {
		t.Errorf("changed list: %+v", m)
	}
	var created contacts.Reply
	b, err := s.node.Command(t.Context(), s.account(), contacts.CommandCreate, contacts.Create{Email: "a@x.io", ListID: l.ID})
	ok(t, err)
	ok(t, json.Unmarshal(b, &created))
	var members struct{ Members []string }
	s.want("GET", "/lists/"+l.ID+"/members", "", &members)
	if len(members.Members) != 1 || members.Members[0] != created.ID {
		t.Errorf("members %v", members)
	}
	s.want("DELETE", "/lists/"+l.ID+"/members/"+created.ID, "", nil)
	if s.want("GET", "/lists/"+l.ID, "", &m); m.Contacts != 0 {
		t.Errorf("after removal: %+v", m)
	}

	var tpl struct {
		contentID
		Source, HTML string
	}
	s.want("POST", "/templates", `{"name":"t","source":"DRAFT","html":"<p>1</p>"}`, &tpl)
	s.want("PUT", "/templates/"+tpl.ID, `{"name":"t","source":"LIST","html":"<p>2</p>"}`, nil)
	s.want("GET", "/templates/"+tpl.ID, "", &tpl)
	if tpl.Source != "LIST" || tpl.HTML != "<p>2</p>" {
		t.Errorf("template %+v", tpl)
	}
	if status, a := s.do("POST", "/templates", `{"name":"t","source":"x"}`); status != 400 || a.field() != "source" {
		t.Errorf("a wrong source: %d %s", status, a.Message)
	}
	var all []contentID
	if s.want("GET", "/templates", "", &all); len(all) != 1 {
		t.Errorf("templates %v", all)
	}
	s.want("DELETE", "/templates/"+tpl.ID, "", nil)

	b, err = s.node.Command(t.Context(), s.account(), campaigns.CommandSave, campaigns.Campaign{Name: "c", Channel: 1})
	ok(t, err)
	var c campaigns.Campaign
	ok(t, json.Unmarshal(b, &c))
	var stats struct{ Status string }
	s.want("GET", "/campaigns/"+c.ID+"/stats", "", &stats)
	if s.want("GET", "/campaigns", "", &all); stats.Status != "draft" || len(all) != 1 || all[0].ID != c.ID {
		t.Errorf("campaigns %v, stats %+v", all, stats)
	}
	var credits struct {
		N int64 `json:"email_credits"`
	}
	if s.want("GET", "/credits", "", &credits); credits.N != 100_000 {
		t.Errorf("credits %+v", credits)
	}
	s.want("DELETE", "/lists/"+l.ID, "", nil)
	for _, path := range []string{"/lists/" + l.ID, "/lists/" + l.ID + "/members", "/templates/" + tpl.ID, "/campaigns/x", "/campaigns/x/stats", "/sender-domains/x.io", "/export/segments/x"} {
		if status, _ := s.get(path); status != 404 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
}

// TestContactCalls: a profile is changed, consents and suppressions are set and
// lifted and show; erased, it stays out until that is lifted.
func TestContactCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	id := s.event(`{"event_type":"x","user":{"email":"a@x.io"}}`)
	type shown struct {
		FirstName              string `json:"first_name"`
		Attributes             map[string]any
		Statuses, Suppressions map[string]string
		Consent                map[string]struct{ Status, Source string }
	}
	profile := func(method, path, body string) (p shown) {
		t.Helper()
		s.want(method, "/profiles/"+id+path, body, &p)
		return p
	}
	if p := profile("PATCH", "", `{"first_name":"Ada","attributes":{"plan":"pro"}}`); p.FirstName != "Ada" || p.Attributes["plan"] != "pro" || len(p.Statuses) != 0 {
		t.Errorf("changed: %+v", p)
	}
	if p := profile("POST", "/consent", `{"channel":"email","status":"subscribed"}`); p.Consent["email"].Status != "subscribed" || p.Statuses["email"] != "Subscribed" {
		t.Errorf("subscribed: %+v", p)
	}
	if p := profile("POST", "/suppression", `{"channel":"email"}`); p.Suppressions["email"] != "suppressed" || p.Statuses["email"] != "Suppressed" {
		t.Errorf("suppressed: %+v", p)
	}
	if p := profile("DELETE", "/suppression?channel=email", ""); len(p.Suppressions) != 0 || p.Statuses["email"] != "Subscribed" {
		t.Errorf("lifted: %+v", p)
	}
	if status, a := s.do("POST", "/profiles/"+id+"/consent", `{"channel":"pigeon","status":"subscribed"}`); status != 400 || a.field() != "channel" {
		t.Errorf("a wrong channel: %d %s", status, a.Message)
	}
	s.want("DELETE", "/profiles/"+id, "", nil)
	if status, _ := s.get("/profiles/" + id); status != 404 {
		t.Errorf("an erased profile: %d", status)
	}
	if status, _ := s.do("DELETE", "/profiles/"+id, ""); status != 404 {
		t.Errorf("erased again: %d", status)
	}
	var list []struct{ Hash, Kind string }
	if s.want("GET", "/erasures", "", &list); len(list) != 1 || list[0].Kind != "email" || strings.Contains(list[0].Hash, "@") {
		t.Errorf("erasures %v", list)
	}
	s.want("DELETE", "/erasures/"+list[0].Hash, "", nil)
	if status, _ := s.do("DELETE", "/erasures/a@x.io", ""); status != 404 {
		t.Errorf("lifted twice: %d", status)
	}
	if again := s.event(`{"event_type":"x","user":{"email":"a@x.io"}}`); again == id {
		t.Error("the erased profile is back")
	}
}

// dnsRecords is a DNS in memory.
type dnsRecords map[string][]string

func (r dnsRecords) LookupTXT(_ context.Context, name string) ([]string, error) {
	if t, ok := r[name]; ok {
		return t, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// TestSenderDomains: a domain is verified once DNS has the records that were
// answered, or an administrator vouches for it; the key is never shown.
func TestSenderDomains(t *testing.T) {
	t.Parallel()
	dns := dnsRecords{}
	s := newService(t, &memHistory{}, func(o *Options) { o.Providers.DNS = dns })
	type shown struct {
		Domain   string
		Verified bool
		By       string `json:"verified_by"`
		Records  []struct {
			Name, Value string
			Required    bool
			OK          *bool
		}
	}
	var d shown
	a := s.want("POST", "/sender-domains", `{"domain":"mail.example.com"}`, &d)
	if d.Verified || len(d.Records) != 3 || strings.Contains(string(a.Data), "PRIVATE") {
		t.Fatalf("%s", a.Data)
	}
	s.want("POST", "/sender-domains/mail.example.com/verify", "", &d)
	if d.Verified || *d.Records[0].OK {
		t.Errorf("verified without records: %+v", d)
	}
	for _, r := range d.Records[:2] { // the third is advice
		dns[r.Name] = []string{r.Value}
	}
	s.want("POST", "/sender-domains/mail.example.com/verify", "", &d)
	if !d.Verified || d.By != "dns" || !*d.Records[1].OK {
		t.Errorf("not verified: %+v", d)
	}
	s.want("POST", "/sender-domains", `{"domain":"other.example.com"}`, nil)
	s.want("POST", "/sender-domains/other.example.com/verify", `{"force":true}`, &d)
	if !d.Verified || d.By != "administrator" {
		t.Errorf("not vouched for: %+v", d)
	}
	if status, a := s.do("POST", "/sender-domains", `{"domain":"no domain"}`); status != 400 || a.field() != "domain" {
		t.Errorf("no domain: %d %s", status, a.Message)
	}
	var list []shown
	if s.want("GET", "/sender-domains", "", &list); len(list) != 2 {
		t.Errorf("domains %v", list)
	}
	s.want("DELETE", "/sender-domains/other.example.com", "", nil)
}

// hookedDNS calls a function after each look-up in a DNS.
type hookedDNS struct {
	dnsRecords
	after func()
}

func (d *hookedDNS) LookupTXT(ctx context.Context, name string) ([]string, error) {
	defer d.after()
	return d.dnsRecords.LookupTXT(ctx, name)
}

// TestSenderDomainIsAddedAgainWhileItIsVerified: records of a domain that is removed while DNS
// is asked do not verify the domain of the same name that is added then.
func TestSenderDomainIsAddedAgainWhileItIsVerified(t *testing.T) {
	t.Parallel()
	dns := &hookedDNS{dnsRecords: dnsRecords{}}
	s := newService(t, &memHistory{}, func(o *Options) { o.Providers.DNS = dns })
	var d struct {
		Verified bool
		Records  []struct{ Name, Value string }
	}
	s.want("POST", "/sender-domains", `{"domain":"mail.example.com"}`, &d)
	for _, r := range d.Records {
		dns.dnsRecords[r.Name] = []string{r.Value}
	}
	asked := 0
	dns.after = func() {
		if asked++; asked == len(d.Records) {
			removed, _ := s.do("DELETE", "/sender-domains/mail.example.com", "")
			if added, _ := s.do("POST", "/sender-domains", `{"domain":"mail.example.com"}`); removed != 200 || added != 200 {
				t.Errorf("removed %d, added again %d", removed, added)
			}
		}
	}
	status, a := s.do("POST", "/sender-domains/mail.example.com/verify", "")
	if asked != len(d.Records) || status != 409 || !strings.Contains(a.Message, "verify it again") {
		t.Errorf("after %d look-ups answered %d %s", asked, status, a.Message)
	}
	if s.want("GET", "/sender-domains/mail.example.com", "", &d); d.Verified {
		t.Error("the domain is verified by the records of the one before")
	}
}

// TestR2OutboxIsTheAccounts (R2): captured messages are those of the account,
// a page at a time, though the store is one for all.
func TestR2OutboxIsTheAccounts(t *testing.T) {
	t.Parallel()
	store, err := capture.Open(capture.Options{Dir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { ok(t, store.Close()) })
	s := newService(t, &memHistory{}, func(o *Options) { o.Captured.Messages = store })
	for i := range 30 {
		account := s.account()
		if i%3 == 0 {
			account++
		}
		_, err := store.Add(capture.Message{ID: fmt.Sprint(i), Channel: []string{"email", "sms"}[i%2], To: fmt.Sprint("to", i), At: time.UnixMilli(1),
			SendID: compose.SendText(account, messages.CampaignSend(1, uint32(i), 0))})
		ok(t, err)
	}
	var got []string
	for cursor, calls := "", 0; ; calls++ {
		var list []capture.Message
		a := s.want("GET", "/outbox?limit=7&cursor="+cursor, "", &list)
		for _, m := range list {
			got = append(got, m.ID)
		}
		if a.Next == nil {
			break
		}
		if cursor = *a.Next; calls > 10 {
			t.Fatal("paging does not end")
		}
	}
	want := []string{}
	for i := 29; i >= 0; i-- {
		if i%3 != 0 {
			want = append(want, fmt.Sprint(i))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("R2: %v, want %v", got, want)
	}
	var list []capture.Message
	if s.want("GET", "/outbox?channel=sms&to=to29", "", &list); len(list) != 1 || list[0].ID != "29" {
		t.Errorf("filtered: %+v", list)
	}
}

// TestExports: profiles, members and events come as JSON lines, all of them once.
func TestExports(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	const n = exportPage + 30
	for i := range n {
		s.event(fmt.Sprintf(`{"event_type":%q,"user":{"email":"u%d@x.io"},"properties":{"i":%d}}`, []string{"odd", "even"}[i%2], i, i))
	}
	var seg contentID
	s.want("POST", "/segments", `{"name":"s","definition":{"kind":"attribute","field":"email","op":"contains","value":"u1"}}`, &seg)
	s.live(seg.ID)
	lines := func(what string) []map[string]any {
		t.Helper()
		res, b := s.send("GET", Prefix+"/export/"+what, "", "Authorization", "Bearer "+s.token)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("%s: %d %s", what, res.StatusCode, b)
		}
		var out []map[string]any
		seen := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var x map[string]any
			ok(t, json.Unmarshal([]byte(line), &x))
			if seen[line] {
				t.Errorf("%s: twice: %s", what, line)
			}
			seen[line] = true
			out = append(out, x)
		}
		return out
	}
	if got := lines("profiles"); len(got) != n || got[n-1]["identities"].(map[string]any)["email"].([]any)[0] != fmt.Sprintf("u%d@x.io", n-1) {
		t.Errorf("%d profiles", len(got))
	}
	if got := lines("segments/" + seg.ID); len(got) != 1+10+100 || got[0]["segments"].([]any)[0] != seg.ID {
		t.Errorf("%d members", len(got))
	}
	if got := lines("events"); len(got) != n || got[0]["profile_id"] == "" {
		t.Errorf("%d events", len(got))
	}
	if got := lines("events?event_type=odd"); len(got) != n/2 || got[0]["event_type"] != "odd" || got[0]["properties"].(map[string]any)["i"] == nil {
		t.Errorf("%d odd events", len(got))
	}
}

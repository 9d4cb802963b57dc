package keyapi

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/reach"
)

// TestAudienceTellsWhoWouldGetIt: the numbers are those of the send that follows, and
// nothing is sent by asking.
func TestAudienceTellsWhoWouldGetIt(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32 // several are sent at once
	s := withMailer(t, func(*email.Message) outcome.Result { sends.Add(1); return outcome.New(outcome.Accepted, "", "") })
	p := person{s, s.token}
	var list, x, y struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/lists", `{"name":"Readers"}`, &list)
	ids := map[string]string{}
	add := func(name, body string) {
		t.Helper()
		p.must("POST", "/contacts", `{"list_id":"`+list.ID+`",`+body+`}`, &x)
		ids[name] = x.ID
	}
	for i := range audiencePiece + 20 { // more than one piece
		add(fmt.Sprint(i), fmt.Sprintf(`"email":"p%d@people.example"`, i))
	}
	add("phone", `"phone":"+4917012345"`)
	add("gone", `"email":"gone@people.example"`)
	add("spam", `"email":"spam@people.example"`)
	p.must("POST", "/profiles/"+ids["gone"]+"/consent", `{"channel":"email","status":"unsubscribed"}`, nil)
	p.must("POST", "/profiles/"+ids["spam"]+"/suppression", `{"channel":"email","reason":"complained"}`, nil)
	p.must("POST", "/campaigns", `{"name":"n","channel":1,"subject":"S","body":"<p>B</p>","list_id":["`+list.ID+`"]}`, &x)
	type audience struct {
		Count, Reachable int
		Skipped          map[string]int
	}
	ask := func(body string, want audience) {
		t.Helper()
		var have audience
		if p.must("POST", "/campaigns/"+x.ID+"/audience", body, &have); have.Count != want.Count || have.Reachable != want.Reachable || !maps.Equal(have.Skipped, want.Skipped) {
			t.Errorf("audience %s: %+v, want %+v", body, have, want)
		}
	}
	const many = audiencePiece + 20
	skipped := map[string]int{"no e-mail": 1, "unsubscribed": 1, "complained": 1}
	ask("", audience{many + 3, many, skipped})
	var preview struct {
		Count     int
		Reachable map[string]int
	}
	preview.Count = -1
	definition := `{"definition":{"kind":"list","list_id":"` + list.ID + `"}}`
	if p.must("POST", "/segments/preview", definition, &preview); preview.Count != many+3 || preview.Reachable["email"] != many {
		t.Errorf("a preview has %+v", preview)
	}
	preview.Reachable = nil
	if s.a("POST", "/segments/preview", definition, &preview); preview.Reachable["email"] != many || len(preview.Reachable) != len(reach.Channels) {
		t.Errorf("a preview by key has %+v", preview)
	}
	ask(`{"all_contacts":true}`, audience{many + 3, many, skipped})
	p.must("POST", "/lists", `{"name":"Few"}`, &y)
	p.must("POST", "/lists/"+y.ID+"/contacts", `{"email":"p1@people.example"}`, nil)
	ask(`{"list_id":["`+y.ID+`"]}`, audience{1, 1, nil})
	p.refused("POST", "/campaigns/"+x.ID+"/audience", `{"list_id":["lst_none"]}`, 404, "list_id", "there is no list")
	p.refused("POST", "/campaigns/"+x.ID+"/audience", `{"list_id":[]}`, 400, "", "name at least one")
	if sends.Load() != 0 {
		t.Errorf("%d messages were sent by asking", sends.Load())
	}
	var sent struct {
		Sent int `json:"emails_sent"`
	}
	p.must("POST", "/campaigns/"+x.ID+"/send", `{"list_id":["`+y.ID+`"]}`, &sent)
	p.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"late@people.example"}`, nil)
	ask("", audience{many + 4, many, map[string]int{"already sent": 1, "no e-mail": 1, "unsubscribed": 1, "complained": 1}})
	p.must("POST", "/campaigns/"+x.ID+"/send", "", &sent)
	var stats struct {
		Sent    int `json:"sent"`
		Skipped map[string]int
	}
	skipped = maps.Clone(skipped)
	skipped["already sent"] = 1
	if p.must("GET", "/campaigns/"+x.ID+"/stats", "", &stats); sent.Sent != many || stats.Sent != many+1 || !maps.Equal(stats.Skipped, skipped) {
		t.Errorf("sent %d, stats %+v", sent.Sent, stats)
	}
}

// TestAudienceOfSomebodyErasedMeanwhile: an audience is read in pieces; profiles that
// were erased in between are not counted.
func TestAudienceOfSomebodyErasedMeanwhile(t *testing.T) {
	t.Parallel()
	s := withMailer(t, func(*email.Message) outcome.Result { return outcome.New(outcome.Accepted, "", "") })
	p := person{s, s.token}
	var x struct {
		ID string `json:"_id"`
	}
	ids := make([]string, 2)
	var ordinals []uint32
	for i := range ids {
		p.must("POST", "/contacts", fmt.Sprintf(`{"email":"p%d@people.example"}`, i), &x)
		ids[i] = x.ID
	}
	read := func(fn func(v *resolver.View) error) {
		t.Helper()
		ok(t, s.node.Read(t.Context(), s.account, fn))
	}
	read(func(v *resolver.View) error {
		for _, id := range ids {
			o, _ := v.Profiles().ResolveText(id)
			ordinals = append(ordinals, o)
		}
		return nil
	})
	p.must("DELETE", "/profiles/"+ids[1], "", nil)
	out := campaignAudience{Count: 2, Channels: map[string]uint64{}, Skipped: map[string]uint64{}}
	read(func(v *resolver.View) error {
		return out.judge(v, []channelPart{{part: campaigns.Campaign{Channel: campaigns.ChannelOmni}}}, false, ordinals, 0)
	})
	if out.Count != 1 || out.Reachable != 1 || len(out.Skipped) != 0 {
		t.Errorf("the audience is %+v", out)
	}
}

// TestRenderFillsInAndSendsNothing renders a campaign and a template for a person.
func TestRenderFillsInAndSendsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	p := person{s, s.token}
	var ann, x, tpl struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/contacts", `{"email":"ann@people.example","first_name":"Ann & Co"}`, &ann)
	p.must("POST", "/profiles/"+ann.ID+"/consent", `{"channel":"email","status":"unsubscribed"}`, nil)
	p.must("POST", "/campaigns", `{"name":"n","channel":1,"subject":"Hi {{first_name}}","body":"<p>{{first_name}}, <a href=\"https://shop.example/a?b=1\">look</a> <a href=\"{{unsubscribe_url}}\">bye</a></p>","sender":"news@muster.local"}`, &x)
	type rendered struct {
		ProfileID           string `json:"profile_id"`
		Channel, Sender     string
		Subject, HTML, Text string
		Skipped             *string
	}
	var r rendered
	p.must("POST", "/campaigns/"+x.ID+"/render", `{"email":"ANN@people.example"}`, &r)
	if r.ProfileID != ann.ID || r.Subject != "Hi Ann & Co" || r.Channel != "email" || r.Sender != "news@muster.local" || r.Skipped == nil || *r.Skipped != "unsubscribed" ||
		r.HTML != `<p>Ann &amp; Co, <a href="https://shop.example/a?b=1">look</a> <a href="#unsubscribe">bye</a></p>` {
		t.Errorf("campaign: %+v", r)
	}
	p.must("POST", "/templates", `{"name":"Order","subject":"Order {{order}}","html":"<p>{{first_name}}: {{order}}</p>","text":"{{order}}"}`, &tpl)
	p.must("POST", "/campaigns/"+x.ID+"/render", `{"profile_id":"`+ann.ID+`","template_id":"`+tpl.ID+`"}`, &r)
	if r.Subject != "Order " || r.HTML != "<p>Ann &amp; Co: </p>" {
		t.Errorf("campaign with a template: %+v", r)
	}
	p.must("POST", "/templates/"+tpl.ID+"/render", `{"profile_id":"`+ann.ID+`","data":{"order":7}}`, &r)
	if r.Subject != "Order 7" || r.HTML != "<p>Ann &amp; Co: 7</p>" || r.Text != "7" {
		t.Errorf("template: %+v", r)
	}
	// Texts that are not saved.
	p.must("POST", "/campaigns/"+x.ID+"/render", `{"profile_id":"`+ann.ID+`","subject":"Draft","body":"<b>{{first_name}}</b>","sender_name":"Us"}`, &r)
	if r.Subject != "Draft" || r.HTML != "<b>Ann &amp; Co</b>" {
		t.Errorf("campaign with other texts: %+v", r)
	}
	p.must("POST", "/templates/"+tpl.ID+"/render", `{"profile_id":"`+ann.ID+`","subject":"Draft {{first_name}}","html":"<b>{{order}}</b>","text":"","data":{"order":8}}`, &r)
	if r.Subject != "Draft Ann & Co" || r.HTML != "<b>8</b>" || r.Text != "" {
		t.Errorf("template with other texts: %+v", r)
	}
	p.refused("POST", "/campaigns/"+x.ID+"/render", `{"profile_id":"`+ann.ID+`","body":"{{first_name"}`, 400, "body", "body")
	p.refused("POST", "/templates/"+tpl.ID+"/render", `{"profile_id":"`+ann.ID+`","html":"{{first_name"}`, 400, "html", "html")
	var saved struct{ Subject, HTML string }
	if p.must("GET", "/templates/"+tpl.ID, "", &saved); saved.Subject != "Order {{order}}" || saved.HTML != "<p>{{first_name}}: {{order}}</p>" {
		t.Errorf("the template changed: %+v", saved)
	}
	for _, path := range []string{"/campaigns/" + x.ID, "/templates/" + tpl.ID} {
		p.refused("POST", path+"/render", `{}`, 400, "profile_id", "profile_id")
		p.refused("POST", path+"/render", `{"profile_id":"a","email":"b"}`, 400, "profile_id", "profile_id")
		p.refused("POST", path+"/render", `{"email":"nobody@people.example"}`, 404, "email", "no such person")
		p.refused("POST", path+"x/render", `{"email":"ann@people.example"}`, 404, "", "with this id")
	}
	p.refused("POST", "/templates/"+tpl.ID+"/render", `{"profile_id":"`+ann.ID+`","data":[]}`, 400, "data", "data must be an object")
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func sendPart() part {
	return part{"campaigns: sending", []rule{
		{"audiences are arrays, also of one", func(c *check) {
			id := c.campaign(nil)
			for _, field := range []string{"list_id", "segment_ids"} {
				for _, value := range []any{"lst_1", 5, obj{}} {
					c.a("POST", "/campaign/"+id+"/send", obj{field: value}).failure(field + " Input should be a valid list")
				}
			}
			c.send(id, c.list(c.mail("one"))).success().eq("data.total_members", 1)
		}},
		{"lists and segments together reach each person once", func(c *check) {
			both, listed, found := c.mail("both"), c.mail("listed"), c.mail("found")
			first, second := c.list(both, listed), c.list(both)
			c.contact(obj{"email": found})
			tag := c.name("tag")
			for _, e := range []string{both, found} {
				c.event("tagged", obj{"email": e, "attributes": obj{"tag": tag}}, nil)
			}
			seg := c.segment(obj{"kind": "attribute", "field": "attributes.tag", "op": "=", "value": tag})
			a := c.a("POST", "/campaign/"+c.campaign(nil)+"/send", obj{"list_id": []string{first, second}, "segment_ids": []string{seg}}).success()
			a.eq("data.total_members", 3).eq("data.emails_sent", 3)
			for _, e := range []string{both, listed, found} {
				if n := len(c.relay.to(e)); n != 1 {
					c.Errorf("%d messages came for %s", n, e)
				}
			}
		}},
		{"an audience that is not there is refused and nothing is sent", func(c *check) {
			e := c.mail("kept")
			list, id := c.list(e), c.campaign(nil)
			c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list, "lst_none"}}).fails("lst_none")
			c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "segment_ids": []string{"seg_none"}}).fails("seg_none")
			foreign := c.other()
			c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{foreign.list()}}).fails("list_id")
			foreign.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{foreign.list(c.mail("f"))}}).fails("campaign")
			if n := len(c.relay.to(e)); n != 0 {
				c.Errorf("%d messages came", n)
			}
		}},
		{"template_source LIST sends a saved template, DRAFT a draft", func(c *check) {
			for _, source := range []string{"LIST", "DRAFT"} {
				template := c.console("POST", "/templates", obj{"name": c.name("t"), "source": source, "subject": "Of " + source, "html": "<p>Body of " + source + "</p>"}).http(200).str("data._id")
				e := c.mail("template")
				list, id := c.list(e), c.campaign(nil)
				wrong := map[string]string{"LIST": "DRAFT", "DRAFT": "LIST"}[source]
				c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "template_source": wrong, "template_id": template}).names("template_id")
				c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "template_source": source, "template_id": template}).success().eq("data.emails_sent", 1)
				// Without a body the campaign sends its template, however it is started.
				own := c.campaign(obj{"template_id": template, "subject": "", "body": ""})
				c.a("POST", "/campaign/"+own+"/send", obj{"list_id": []string{c.list(c.mail("own"))}}).success().eq("data.emails_sent", 1)
				if got := c.relay.to(e); len(got) != 1 || got[0].subject != "Of "+source || !strings.Contains(got[0].html, "Body of "+source) {
					c.Errorf("%s: came %+v", source, got)
				}
			}
		}},
		{"any other template_source is refused by its name", func(c *check) {
			id := c.campaign(nil)
			for _, value := range []any{"list", "SAVED", 1, true} {
				c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{c.list()}, "template_source": value}).names("template_source ")
			}
		}},
		{"without template_source and audiences the campaign's own body is sent", func(c *check) {
			x := c.other()
			e := x.mail("own")
			x.contact(obj{"email": e})
			id := x.campaign(obj{"subject": "Own subject", "body": "<p>Own body</p>"})
			x.a("POST", "/campaign/"+id+"/send", nil).fails("the campaign has no audience")
			x.a("PATCH", "/campaign/"+id, obj{"list_id": []string{x.list(e)}}).success()
			x.a("POST", "/campaign/"+id+"/send", nil).success().eq("data.total_members", 1).eq("data.emails_sent", 1)
			if got := x.relay.to(e); len(got) != 1 || got[0].subject != "Own subject" || !strings.Contains(got[0].html, "Own body") {
				c.Errorf("came %+v", got)
			}
		}},
		{"batch_size is 1 to 1000", func(c *check) {
			list := c.list(c.mail("batch"))
			id := c.campaign(nil)
			for _, n := range []any{0, 1001, -1, 1.5, 1e9, "many", "10", true, []int{5}} {
				c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "batch_size": n}).names("batch_size ")
			}
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.emails_sent", 0)
			for _, n := range []int{1, 1000} {
				c.a("POST", "/campaign/"+c.campaign(nil)+"/send", obj{"list_id": []string{list}, "batch_size": n}).success().eq("data.emails_sent", 1)
			}
		}},
		{"delay_between_batches is 0.1 to 60 seconds", func(c *check) {
			list := c.list(c.mail("delay"))
			id := c.campaign(nil)
			for _, n := range []any{0, 0.09, 60.1, -1, 1e9, "long", "1", true, obj{}} {
				c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "delay_between_batches": n}).names("delay_between_batches ")
			}
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.emails_sent", 0)
			for _, n := range []float64{0.1, 60} {
				c.a("POST", "/campaign/"+c.campaign(nil)+"/send", obj{"list_id": []string{list}, "delay_between_batches": n}).success().eq("data.emails_sent", 1)
			}
		}},
		{"the answer has its fields in their types, in UTC", func(c *check) {
			a := c.send(c.campaign(nil), c.list(c.mail("fields"), c.mail("fields"))).success()
			a.only("data", "success", "message", "total_members", "emails_sent", "errors", "started_at", "finished_at")
			a.kinds("data", map[string]string{"success": "boolean", "message": "string", "total_members": "integer", "emails_sent": "integer", "errors": "array", "started_at": "time", "finished_at": "time"})
			a.eq("data.success", true).eq("data.total_members", 2).eq("data.emails_sent", 2).length("data.errors", 0)
			if began, ended := a.recent("data.started_at"), a.recent("data.finished_at"); ended.Before(began) {
				a.fault("it ended before it began")
			}
		}},
		{"everything is sent when the answer comes", func(c *check) {
			people := []string{}
			for range 30 {
				people = append(people, c.mail("before"))
			}
			list, id := c.list(people...), c.campaign(nil)
			c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "batch_size": 10, "delay_between_batches": 0.1}).success().eq("data.emails_sent", 30)
			for _, e := range people {
				if n := len(c.relay.to(e)); n != 1 {
					c.Errorf("%d messages came for %s", n, e)
				}
			}
		}},
		{"without credits nothing is sent, which is a failure with its numbers", func(c *check) {
			x := &check{c.T, c.world, c.companyOf(c.T, obj{"name": c.name("poor"), "email": c.mail("owner"), "email_credits": 0})}
			e := x.mail("unpaid")
			list, id := x.list(e), x.campaign(nil)
			const why = "the account is out of e-mail credits; top up and send again"
			a := x.send(id, list).failure(why).eq("data.success", false).eq("data.message", why).eq("data.total_members", 1).eq("data.emails_sent", 0).length("data.errors", 1)
			a.only("data", "success", "message", "total_members", "emails_sent", "errors", "started_at", "finished_at")
			x.a("POST", "/campaign/"+x.campaign(nil)+"/ab-test/start", obj{"list_id": []string{list}, "variants": []obj{{"subject": "A"}, {"subject": "B"}}}).failure(why)
			x.a("GET", "/campaign/"+id, nil).success().eq("data.status", "stopped")
			x.asAdmin(x.T, "POST", "/companies/"+x.id+"/credits", obj{"amount": 1}).http(200)
			x.send(id, list).success().eq("data.success", true).eq("data.emails_sent", 1)
			if n := len(c.relay.to(e)); n != 1 {
				c.Errorf("%d messages came", n)
			}
		}},
		{"credits that end in the middle stop the campaign, which is a failure that tells how many were sent", func(c *check) {
			x := &check{c.T, c.world, c.companyOf(c.T, obj{"name": c.name("poor"), "email": c.mail("owner"), "email_credits": 2})}
			list, id := x.list(x.mail("paid"), x.mail("paid"), x.mail("unpaid")), x.campaign(nil)
			x.send(id, list).fails("out of e-mail credits").eq("data.success", false).eq("data.total_members", 3).eq("data.emails_sent", 2)
		}},
		{"a campaign that every recipient's server refuses is a failure, one that some refuse a success with errors", func(c *check) {
			x := c.other()
			gone, alive := x.mail("gone"), x.mail("alive")
			x.send(x.campaign(nil), x.list(gone)).fails("no such user").eq("data.success", false).eq("data.emails_sent", 0).eq("data.total_members", 1).length("data.errors", 1)
			x.send(x.campaign(nil), x.list(alive, x.mail("gone"))).success().eq("data.success", true).eq("data.emails_sent", 1).eq("data.total_members", 2).length("data.errors", 1)
		}},
		{"there is no dry run: what asks for one is refused, and nothing is sent", func(c *check) {
			e := c.mail("nodry")
			list := c.list(e)
			id := c.campaign(nil)
			c.a("POST", "/campaign/"+id+"/send", obj{"list_id": []string{list}, "dryRun": true}).fails("dryRun is not a field of this call")
			if n := len(c.relay.to(e)); n != 0 {
				c.Errorf("%d messages came", n)
			}
			c.send(id, list).success().eq("data.emails_sent", 1)
			if n := len(c.relay.to(e)); n != 1 {
				c.Errorf("%d messages came", n)
			}
		}},
		{"SMS, instant messages and push go out on their channels; what is not set up is kept to look at", func(c *check) {
			x := c.other()
			id := x.contact(obj{"phone": "+4930900900", "first_name": "Ada"})
			x.console("POST", "/profiles/"+id+"/consent", obj{"channel": "im", "status": "subscribed"}).http(200)
			x.a("POST", "/contacts/"+id+"/devices", obj{"kind": "fcm", "address": "token-1234567890-ghijkl"}).success()
			for kind, channel := range map[int]string{2: "sms", 3: "im", 4: "push"} {
				campaign := x.campaign(obj{"type": kind, "subject": "Hi {{first_name}}", "body": "To {{first_name}} by " + channel})
				x.a("POST", "/campaign/"+campaign+"/send", obj{"all_contacts": true}).success().eq("data.total_members", 1).eq("data.emails_sent", 1)
				x.console("GET", "/outbox?channel="+channel, nil).http(200).length("data", 1).eq("data.0.body", "To Ada by "+channel)
			}
		}},
		{"what the relay refuses is counted and not sent", func(c *check) {
			good := c.mail("good")
			a := c.send(c.campaign(nil), c.list(good, c.mail("gone"))).success()
			a.eq("data.total_members", 2).eq("data.emails_sent", 1)
			c.lastStats().eq("data.emails_sent", 1).eq("data.bounces", 1)
		}},
	}}
}

// sendDefaultsPart measures what the relay sees of batches and pauses.
func sendDefaultsPart() part {
	// gaps are the pauses of at least half of the shortest that is looked for.
	gaps := func(c *check, people []string, atLeast time.Duration) (out []int) {
		c.Helper()
		var times []time.Time
		for _, e := range people {
			list := c.relay.to(e)
			if len(list) == 0 {
				c.Fatalf("nothing came for %s", e)
			}
			times = append(times, list[len(list)-1].at)
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			if times[i].Sub(times[i-1]) >= atLeast {
				out = append(out, i)
			}
		}
		return out
	}
	return part{"sending: pace", []rule{
		{"by default 100 are sent, then nothing for a second", func(c *check) {
			people := []string{}
			list := c.list()
			for range 201 {
				e := c.mail("pace")
				people = append(people, e)
				c.contact(obj{"email": e, "list_id": list})
			}
			a := c.send(c.campaign(nil), list).success().eq("data.emails_sent", 201)
			if took := a.recent("data.finished_at").Sub(a.recent("data.started_at")); took < 2*time.Second {
				c.Errorf("it took %v, expected two pauses of a second", took)
			}
			// A slow machine may pause elsewhere too; it cannot pause less.
			got := gaps(c, people, 800*time.Millisecond)
			if !slices.Contains(got, 100) || !slices.Contains(got, 200) {
				c.Errorf("there were pauses behind the messages %v, expected them behind 100 and 200", got)
			}
		}},
		{"batch_size and delay_between_batches set the pace", func(c *check) {
			people := []string{}
			for i := range 6 {
				people = append(people, fmt.Sprintf("p%d.%s", i, c.mail("pace")))
			}
			c.a("POST", "/campaign/"+c.campaign(nil)+"/send", obj{"list_id": []string{c.list(people...)}, "batch_size": 2, "delay_between_batches": 0.4}).success()
			if got := gaps(c, people, 300*time.Millisecond); !slices.Contains(got, 2) || !slices.Contains(got, 4) {
				c.Errorf("there were pauses behind the messages %v, expected them behind 2 and 4", got)
			}
		}},
	}}
}

// resultPart is the reports of campaigns.
func resultPart() part {
	var id, opener, reader string
	return part{"campaigns: results", []rule{
		{"statistics count what was sent", func(c *check) {
			opener, reader = c.mail("opener"), c.mail("reader")
			id = c.campaign(obj{"body": `<p><a href="https://shop.example/a">A</a> <a href="https://shop.example/b">B</a></p>`})
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.emails_sent", 0)
			c.send(id, c.list(opener, reader)).success()
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.total_members", 2).eq("data.emails_sent", 2).eq("data.unique_opens", 0).eq("data.unique_clicks", 0)
		}},
		{"a fetched picture is an open, a followed link leads on and is a click", func(c *check) {
			l := c.links(opener)
			if len(l.clicks) < 2 {
				c.Fatalf("links %+v", l)
			}
			pixel := c.fetch(l.pixel).http(200)
			if kind := pixel.header.Get("Content-Type"); !strings.HasPrefix(kind, "image/") {
				pixel.fault("the picture is %q", kind)
			}
			click := c.fetch(l.clicks[1])
			if to := click.header.Get("Location"); click.status != 302 && click.status != 303 || to != "https://shop.example/b" {
				click.fault("led to %q", to)
			}
			c.until("they are counted", func() bool {
				a := c.a("GET", "/campaign/"+id+"/stats", nil).success()
				return a.num("data.unique_opens") == 1 && a.num("data.unique_clicks") == 1
			})
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.open_rate", 0.5).eq("data.click_rate", 0.5)
		}},
		{"activity tells of each recipient's opens and clicks", func(c *check) {
			a := c.a("GET", "/campaign/"+id+"/recipients/activity", nil).success().length("data", 2)
			for i := range 2 {
				at := fmt.Sprintf("data.%d.", i)
				switch a.str(at + "email") {
				case opener:
					a.eq(at+"opens", 1).eq(at+"clicks", 1).eq(at+"opened", true).eq(at+"clicked", true).eq(at+"links.0.url", "https://shop.example/b")
					a.recent(at + "opened_at")
					a.recent(at + "clicked_at")
				case reader:
					a.eq(at+"opens", 0).eq(at+"clicks", 0).eq(at+"opened", false).eq(at+"opened_at", nil)
				default:
					a.fault("unknown recipient")
				}
			}
		}},
		{"sends, opens and clicks are events of the profile", func(c *check) {
			profile := c.a("GET", "/contacts?email="+opener, nil).success().str("data.0._id")
			types := []any{}
			for _, x := range c.console("GET", "/profiles/"+profile+"/events", nil).http(200).array("data.events") {
				types = append(types, x.(obj)["event_type"])
			}
			for _, want := range []string{"email_sent", "email_opened", "email_clicked"} {
				if !slices.Contains(types, any(want)) {
					c.Errorf("the profile has the events %v", types)
				}
			}
			seg := c.segment(obj{"kind": "activity", "event": "email_clicked", "where": []obj{{"property": "campaign_id", "op": "=", "value": id}}})
			if got := c.members(seg); !slices.Equal(got, []string{profile}) {
				c.Errorf("who clicked: %v", got)
			}
		}},
		{"results of another company's campaign are as unknown", func(c *check) {
			x := c.other()
			for _, path := range []string{"/stats", "/recipients/activity", ""} {
				unknown, foreign := x.a("GET", "/campaign/cmp_none"+path, nil), x.a("GET", "/campaign/"+id+path, nil).fails("campaign")
				if string(unknown.raw) != string(foreign.raw) {
					foreign.fault("expected the answer of an unknown id: %s", unknown.raw)
				}
			}
		}},
		{"a test of variants sends variants and the better of them to the rest", func(c *check) {
			people := []string{}
			for range 10 {
				people = append(people, c.mail("ab"))
			}
			list, test := c.list(people...), c.campaign(nil)
			c.a("POST", "/campaign/"+test+"/ab-test/start", obj{"list_id": []string{list}, "variants": []obj{{"subject": "A"}}}).names("variants ")
			c.a("POST", "/campaign/"+test+"/ab-test/start", obj{"list_id": []string{list}, "variants": []obj{{"subject": "A"}, {"subject": "B"}}, "metric": "luck"}).names("metric ")
			c.a("POST", "/campaign/"+test+"/ab-test/start", obj{"list_id": []string{list}, "variants": []obj{{"subject": "A"}, {"subject": "B"}},
				"test_percent": 40, "wait_seconds": 0, "batch_size": 1000, "delay_between_batches": 0.1}).success().length("data.ab_test.variants", 2)
			c.until("all are sent to", func() bool {
				return c.a("GET", "/campaign/"+test+"/stats", nil).success().num("data.emails_sent") == 10
			})
			for _, e := range people {
				if got := c.relay.to(e); len(got) != 1 || got[0].subject != "A" && got[0].subject != "B" {
					c.Errorf("%s got %+v", e, got)
				}
			}
		}},
		{"messages carry a link to unsubscribe that works with one click", func(c *check) {
			header := c.relay.to(reader)[0].header
			link := strings.Trim(strings.Split(header.Get("List-Unsubscribe"), ",")[0], "<> ")
			if !strings.HasPrefix(link, c.server.origin) {
				c.Fatalf("List-Unsubscribe is %q", header.Get("List-Unsubscribe"))
			}
			c.do(c.T, "POST", strings.TrimPrefix(link, c.server.origin), "List-Unsubscribe=One-Click", "Content-Type", "application/x-www-form-urlencoded").http(200)
			c.a("GET", "/contacts?email="+reader, nil).success().eq("data.0.status", "Unsubscribed")
		}},
	}}
}

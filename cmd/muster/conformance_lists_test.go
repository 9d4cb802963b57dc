package main

func listPart() part {
	return part{"lists", []rule{
		{"a list is made with a name and a description", func(c *check) {
			a := c.a("POST", "/lists", obj{"name": "Readers", "description": "Who reads"}).success()
			a.eq("data.name", "Readers").eq("data.description", "Who reads").kinds("data", map[string]string{"_id": "string"})
			c.a("GET", "/lists/"+a.str("data._id"), nil).success().eq("data.name", "Readers")
		}},
		{"a list without a name is refused, the field named", func(c *check) {
			c.a("POST", "/lists", obj{"description": "x"}).failure("name Field required")
			c.a("POST", "/lists", obj{"name": 5}).failure("name Input should be a valid string")
		}},
		{"adding makes the contact when its e-mail is not on file, and answers it", func(c *check) {
			list, e := c.list(), c.mail("new")
			a := c.a("POST", "/lists/"+list+"/contacts", obj{"email": e, "first_name": "New", "last_name": "Comer"}).success()
			a.eq("data.email", e).eq("data.first_name", "New").eq("data.last_name", "Comer").eq("data.subscribed", true).
				kinds("data", map[string]string{"_id": "string", "sms_consent": "object", "created_at": "time"})
			c.a("GET", "/contacts?email="+e, nil).success().length("data", 1).eq("data.0.lists", []string{list})
		}},
		{"adding takes the contact that is on file", func(c *check) {
			list, e := c.list(), c.mail("known")
			id := c.contact(obj{"email": e, "first_name": "Known"})
			for range 2 {
				c.a("POST", "/lists/"+list+"/contacts", obj{"email": e}).success().eq("data._id", id).eq("data.first_name", "Known")
			}
			c.a("GET", "/contacts?list_id="+list, nil).success().length("data", 1)
			c.a("GET", "/lists/"+list, nil).success().eq("data.contacts", 1)
		}},
		{"membership is static: events change nothing", func(c *check) {
			e := c.mail("static")
			list := c.list(e)
			c.event("looked", obj{"email": e, "attributes": obj{"plan": "pro"}}, nil)
			c.event("looked", obj{"email": c.mail("stranger")}, nil)
			c.a("GET", "/contacts?list_id="+list, nil).success().length("data", 1).eq("data.0.email", e)
		}},
		{"a contact may be on several lists", func(c *check) {
			e := c.mail("several")
			first, second := c.list(e), c.list(e)
			c.a("GET", "/contacts?email="+e, nil).success().holds("data.0.lists", first, true).holds("data.0.lists", second, true)
		}},
		{"adding without an e-mail is refused, the field named", func(c *check) {
			c.a("POST", "/lists/"+c.list()+"/contacts", obj{"first_name": "Nobody"}).failure("email Field required")
		}},
		{"a list that is not there, or another company's, takes no contact", func(c *check) {
			e := c.mail("nowhere")
			c.a("POST", "/lists/lst_none/contacts", obj{"email": e}).fails("list")
			list := c.list()
			c.other().a("POST", "/lists/"+list+"/contacts", obj{"email": e}).fails("list")
			c.a("GET", "/contacts?email="+e, nil).success().length("data", 0)
			c.a("GET", "/lists/"+list, nil).success().eq("data.contacts", 0)
		}},
		{"a list can be an audience and a condition", func(c *check) {
			e := c.mail("reader")
			list := c.list(e)
			c.send(c.campaign(nil), list).success().eq("data.emails_sent", 1)
			seg := c.segment(obj{"kind": "list", "list_id": list})
			c.console("GET", "/segments/"+seg, nil).http(200).eq("data.count", 1)
		}},
	}}
}

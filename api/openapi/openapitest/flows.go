package openapitest

func flows() []Step {
	waits := `"trigger":{"type":"api"},"reentry":"after_exit","steps":[{"id":"pause","type":"wait","seconds":60,"next":"done"},{"id":"done","type":"tag","add":["a"],"remove":["b"],"next":null}]`
	all := `{"name":"All","trigger":{"type":"list_joined","list_id":"$list"},"reentry":"once","steps":[
		{"id":"s1","type":"email","template_id":"","subject":"Hi","body":"<p>Hi</p>","text":"Hi","sender":"news@muster.local","sender_name":"Ex","reply_to":"a@example.com","ignore_sending_limits":true,"next":"s2"},
		{"id":"s2","type":"sms","text":"Hi","track_links":true,"ignore_sending_limits":false,"next":"i1"},{"id":"i1","type":"im","text":"Hi","track_links":true,"ignore_sending_limits":false,"next":"s3"},{"id":"s3","type":"wait","until":"09:00","timezone":"Europe/Berlin","next":"s4"},
		{"id":"s4","type":"condition","open_cart":true,"if":{"kind":"list","list_id":"$list"},"yes":"s5","no":null},{"id":"s5","type":"split","branches":[{"weight":1,"next":"s6"},{"weight":2,"next":null}]},
		{"id":"s6","type":"update_contact","set":{"attributes.plan":"x"},"next":"s7"},
		{"id":"s7","type":"webhook","url":"https://hooks.example.com/x","method":"PUT","headers":{"X-Key":"k"},"body":{"a":"{{email}}"},"timeout_seconds":5,"attempts":2,"on_failure":"exit","next":"s8"},
		{"id":"s8","type":"push","title":"Hi","body":"Hi","link":"https://example.com","image":"https://example.com/a.jpg","ttl_seconds":60,"collapse":"hi","track_links":true,"ignore_sending_limits":false,"next":"s8a"},
		{"id":"s8a","type":"in_app","title":"Hi","body":"Hi","link":"https://example.com","image":"https://example.com/a.jpg","display":"modal","priority":3,"ttl_hours":48,"ignore_sending_limits":false,"next":"s8b"},
		{"id":"s8b","type":"whatsapp","template":"visit","language":"en","header_type":"location","header_location":{"latitude":"52.52","longitude":"13.405","name":"Shop","address":"Unter den Linden 1"},"buttons":[{"type":"copy_code","index":0,"value":"SALE25"}],"next":"s9"},
		{"id":"s9","type":"omnichannel","channels":[{"channel":"in_app","title":"Hi","body":"Hi","link":"https://example.com","image":"https://example.com/a.jpg","display":"modal","priority":3,"ttl_hours":48,"ignore_sending_limits":false},{"channel":"push","title":"Hi","body":"Hi","link":"myapp://hi","image":"https://example.com/a.jpg","ttl_seconds":60,"collapse":"hi","track_links":false,"ignore_sending_limits":false},
			{"channel":"im","text":"Hi","track_links":true,"ignore_sending_limits":false},{"channel":"whatsapp","text":"","template":"hi","language":"en",` + templateOptions + `,"track_links":false,"ignore_sending_limits":false},{"channel":"sms","text":"Hi","track_links":true,"ignore_sending_limits":false},
			{"channel":"email","template_id":"","subject":"Hi","body":"<p>Hi</p>","text":"Hi","sender":"news@muster.local","sender_name":"Ex","reply_to":"a@example.com","ignore_sending_limits":false}],"next":"s10"},{"id":"s10","type":"exit"}]}`
	steps := []Step{
		{Request: "POST " + c + "/flows", Body: `{"name":"Waits",` + waits + `}`, Keep: "flow=data._id"},
		{Request: "POST " + c + "/flows", Body: `{"steps":[{"id":"a","type":"b"}]}`, Fails: true},
		{Request: "POST " + c + "/flows", Body: `{"name":"Empty"}`, Keep: "empty=data._id"},
		{Request: "POST " + c + "/flows/$empty/publish", Fails: true},
		{Request: "PATCH " + c + "/flows/$empty/toggle", Fails: true},
		{Request: "GET " + c + "/flows/$empty/validate"},
		{Request: "GET " + c + "/flows/flw_none/validate", Fails: true},
		{Request: "PUT " + c + "/flows/$empty", Body: all},
		{Request: "GET " + c + "/flows/$empty/validate"},
		{Request: "POST " + c + "/flows/$flow/publish"},
		{Request: "PUT " + c + "/flows/$flow", Body: all, Fails: true},
		{Request: "DELETE " + c + "/flows/$flow", Fails: true},
		{Request: "POST " + c + "/flows/$flow/trigger", Body: `{"email":"ann@work.example","external_id":"42","phone":"+491701","data":{"order":"7"},"idempotency_key":"f-1"}`},
		{Request: "POST " + a + "/custom-flows/$flow/trigger", Body: `{"email":"cy@example.com","external_id":"77","phone":"+491702","data":{"order":"8"},"idempotency_key":"f-2"}`},
		{Request: "GET " + c + "/flows/$flow/enrolments?limit=1&status=in_progress", Keep: "next=data.next"},
		{Request: "GET " + c + "/flows/$flow/enrolments?limit=1&cursor=$next"},
		{Request: "GET " + c + "/flows/$flow/enrolments?status=asleep", Fails: true},
		{Request: "GET " + c + "/flows/$flow/versions?limit=1"},
		{Request: "GET " + c + "/flows/$flow/used-in"},
		{Request: "GET " + c + "/profiles/$ann/timeline?kinds=flow,step"},
		{Request: "GET " + c + "/flows/$flow/enrolments/$ann"},
		{Request: "POST " + c + "/flows/$flow/dry-run", Body: `{"profile_id":"$ann"}`},
		{Request: "POST " + c + "/flows/$flow/dry-run", Body: `{}`, Fails: true},
		{Request: "GET " + c + "/flows/$flow/enrolments/prf_none", Fails: true},
		{Request: "GET " + c + "/flows?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/flows?limit=1&cursor=$next"},
		{Request: "GET " + a + "/custom-flows?limit=1", Keep: "next=next"},
		{Request: "GET " + a + "/custom-flows?limit=1&cursor=$next"},
		{Request: "GET " + a + "/custom-flows?limit=0", Fails: true},
	}
	for _, x := range []string{c + "/flows", a + "/custom-flows"} {
		steps = append(steps,
			Step{Request: "GET " + x + "/$flow"}, Step{Request: "GET " + x + "/flw_none", Fails: true},
			Step{Request: "POST " + x + "/$flow/pause"}, Step{Request: "POST " + x + "/$empty/pause", Fails: true},
			Step{Request: "POST " + x + "/$flow/trigger", Body: `{"email":"ann@work.example"}`, Fails: true},
			Step{Request: "POST " + x + "/$flow/resume"}, Step{Request: "POST " + x + "/$empty/resume", Fails: true},
			Step{Request: "PATCH " + x + "/$flow/toggle"}, Step{Request: "PATCH " + x + "/$empty/toggle", Fails: true},
			Step{Request: "PATCH " + x + "/$flow", Body: `{"status":"live"}`}, Step{Request: "PATCH " + x + "/$flow", Body: `{"status":"live","name":"x"}`, Fails: true},
			Step{Request: "POST " + x + "/$flow/duplicate", Keep: "copy=data._id"}, Step{Request: "POST " + x + "/flw_none/duplicate", Fails: true},
			Step{Request: "DELETE " + c + "/flows/$copy"},
		)
	}
	return append(steps, Step{Request: "DELETE " + c + "/flows/$empty"})
}

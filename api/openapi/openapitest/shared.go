package openapitest

// keys makes the calls with an API key that people have in the console and that change
// something; the walker makes those that read, beside the console's.
func keys() []Step {
	return []Step{
		{Request: "GET " + a + "/key"},
		{Request: "POST " + a + "/segments", Body: `{"name":"By key","definition":` + whole + `}`, Keep: "bykey=data._id"},
		{Request: "POST " + a + "/segments", Body: `{"name":"Bad","definition":{"kind":"activity"}}`, Fails: true},
		{Request: "GET " + a + "/segments/$bykey", Until: `"status":"live"`},
		{Request: "PUT " + a + "/segments/$bykey", Body: `{"name":"By a key","definition":` + whole + `}`},
		{Request: "GET " + a + "/segments/$whole/transitions?after=x", Fails: true},
		{Request: "GET " + a + "/export/segments/seg_none", Fails: true},
		{Request: "DELETE " + a + "/segments/$bykey"},
		{Request: "POST " + a + "/catalog", Body: `{"name":"Item kept"}`},
		{Request: "PATCH " + a + "/catalog/item_kept", Body: `{"description":"Somebody kept it.","hidden":true}`},
		{Request: "GET " + a + "/profiles/$ann/preferences-link"},
		{Request: "POST " + a + "/profiles/$ann/consent", Body: `{"channel":"email","status":"subscribed","source":"form"}`},
		{Request: "POST " + a + "/profiles/$ann/suppression", Body: `{"channel":"sms","reason":"complained"}`},
		{Request: "DELETE " + a + "/profiles/$ann/suppression?channel=sms"},
		{Request: "POST " + a + "/templates", Body: `{"name":"By key","transactional":false,"source":"LIST","subject":"Hi","html":"<p>x</p>","text":"x"}`, Keep: "bykey=data._id"},
		{Request: "POST " + a + "/templates", Body: `{"name":"By key","transactional":false,"source":"list"}`, Fails: true},
		{Request: "PUT " + a + "/templates/$bykey", Body: `{"name":"By a key","transactional":true,"source":"DRAFT","subject":"Hi","html":"<p>x</p>","text":"x"}`},
		{Request: "DELETE " + a + "/templates/$bykey"},
		{Request: "POST " + a + "/forms", Body: signupForm, Keep: "bykey=data._id"},
		{Request: "POST " + a + "/forms", Body: `{"name":"Bad","fields":[]}`, Fails: true},
		{Request: "GET " + a + "/forms/$bykey/stats?from=2020-01-01&to=2100-01-01"},
		{Request: "PATCH " + a + "/forms/$bykey?if_version=0000000000000000", Body: `{"title":"Mine"}`, Fails: true},
		{Request: "PATCH " + a + "/forms/$bykey", Body: signupForm},
		{Request: "DELETE " + a + "/forms/$bykey"},
		{Request: "POST " + a + "/custom-flows", Body: `{"name":"By key","trigger":{"type":"api"},"reentry":"once","steps":[{"id":"w","type":"wait","seconds":60}]}`, Keep: "bykey=data._id"},
		{Request: "GET " + a + "/custom-flows/$bykey/validate"},
		{Request: "PUT " + a + "/custom-flows/$bykey", Body: `{"name":"By a key","trigger":{"type":"api"},"reentry":"after_exit","steps":[{"id":"w","type":"wait","seconds":3600}]}`},
		{Request: "POST " + a + "/custom-flows/$bykey/publish"},
		{Request: "POST " + a + "/custom-flows/$bykey/trigger", Body: `{"email":"ann@example.com"}`},
		{Request: "POST " + a + "/custom-flows/$bykey/trigger", Body: `{"external_id":"43"}`},
		{Request: "GET " + a + "/custom-flows/$bykey/enrolments?limit=1&status=in_progress", Keep: "next=data.next"},
		{Request: "GET " + a + "/custom-flows/$bykey/enrolments?limit=1&status=all&cursor=$next"},
		{Request: "GET " + a + "/custom-flows/$bykey/enrolments/$ann"},
		{Request: "POST " + a + "/custom-flows/$bykey/pause"},
		{Request: "DELETE " + a + "/custom-flows/$bykey"},
	}
}

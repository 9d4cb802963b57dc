package openapitest

// people makes the calls with a session that keys have and that change something; the
// walker makes those that read, beside the keys'.
func people() []Step {
	return []Step{
		{Request: "POST " + c + "/contacts", Body: `{"email":"zoe@example.com","first_name":"Zoe","last_name":"Lee","phone":"+491799","external_id":"z-1","list_id":"$list"}`, Keep: "zoe=data._id"},
		{Request: "POST " + c + "/contacts", Body: `{"email":"zoe@example.com"}`, Fails: true},
		{Request: "POST " + c + "/lists/$list/contacts", Body: `{"email":"yan@example.com","first_name":"Yan","last_name":"Lee","phone":"+491798","external_id":"y-1"}`},
		{Request: "POST " + c + "/lists/lst_none/contacts", Body: `{"email":"yan@example.com"}`, Fails: true},
		{Request: "POST " + c + "/events", Body: `{"email":"zoe@example.com","event":"item_viewed","properties":{"value":1},"idempotency_key":"z-1","timestamp":"2026-01-31T09:00:00Z"}`},
		{Request: "POST " + c + "/email/send", Body: `{"to":"zoe@example.com","template_id":"$template","data":{"order":"8"},"subject":"Order","sender":"shop@muster.local","sender_name":"Shop","idempotency_key":"o-8"}`},
		{Request: "POST " + c + "/email/send", Body: `{"to":"zoe@example.com","template_id":"tpl_none"}`, Fails: true},
		{Request: "POST " + c + "/push/send", Body: `{"title":"Hi","body":"there","segmentId":"$buyers","link":"https://example.com/","dryRun":true}`},
		{Request: "POST " + c + "/push/send", Body: `{"title":"Hi","segmentId":"seg_none"}`, Fails: true},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"Spring","channel":2,"type":1,"date":"2026-01-31T09:00:00Z","subject":"Spring","body":"<p>Hi</p>",
			"sender":"news@muster.local","sender_name":"Example","reply_to":"help@example.com","link":"","template_id":"$template","list_id":["$list"],"segment_ids":["$buyers"]}`, Keep: "spring=data._id"},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"Spring","channel":3}`, Fails: true},
		{Request: "PATCH " + c + "/campaigns/$spring", Body: `{"name":"Spring 2","channel":2,"type":1,"date":"2026-02-01","subject":"Spring!","body":"<p>Hi</p>","sender":"news@muster.local",
			"sender_name":"Ex","reply_to":"","link":"","template_id":"","list_id":["$list"],"segment_ids":["$buyers"]}`},
		{Request: "POST " + c + "/campaigns/$spring/send", Body: `{"batch_size":0}`, Fails: true},
		{Request: "POST " + c + "/campaigns/$spring/send", Body: `{"list_id":["$list"],"segment_ids":["$buyers"],"template_source":"LIST","template_id":"$template","batch_size":10,"delay_between_batches":0.1}`},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"Sun","channel":1,"subject":"S","body":"<p>Hi</p>"}`, Keep: "sun=data._id"},
		{Request: "POST " + c + "/campaigns/$sun/ab-test/start", Body: `{"variants":[{"subject":"A","body":"<p>A</p>","sender_name":"A"},{"subject":"B"}],"test_percent":50,"metric":"clicks","wait_seconds":3600,
			"list_id":["$list"],"segment_ids":["$buyers"],"template_source":"LIST","template_id":"$template","batch_size":10,"delay_between_batches":0.5}`},
		{Request: "POST " + c + "/campaigns/$sun/ab-test/start", Body: `{"variants":[],"all_contacts":true}`, Fails: true},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"All 3","channel":1,"subject":"All","body":"<p>Hi</p>"}`, Keep: "all=data._id"},
		{Request: "POST " + c + "/campaigns/$all/ab-test/start", Body: `{"variants":[{"subject":"A"},{"subject":"B"}],"wait_seconds":0,"all_contacts":true}`},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"All 4","channel":1,"subject":"All","body":"<p>Hi</p>"}`, Keep: "all=data._id"},
		{Request: "POST " + c + "/campaigns/$all/send", Body: `{"all_contacts":true}`},
		{Request: "DELETE " + c + "/campaigns/$later/schedule"},
		{Request: "DELETE " + c + "/campaigns/cmp_none/schedule", Fails: true},
		{Request: "POST " + c + "/campaigns", Body: `{"name":"Draft","channel":1}`, Keep: "draft=data._id"},
		{Request: "DELETE " + c + "/campaigns/$draft"},
	}
}

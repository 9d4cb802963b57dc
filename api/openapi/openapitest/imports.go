package openapitest

// imports uploads a CSV file of people, in two parts, and one of events.
func imports() []Step {
	return []Step{
		{Request: "POST " + c + "/imports", Body: `{"name":"people.csv","kind":"people","text":"email,first_name,customer_no,zip\nimp1@example.com,Ida,1234567890123456789,01067\n","more":true}`, Keep: "import=data._id bytes=data.bytes"},
		{Request: "POST " + c + "/imports", Body: `{"name":"people.csv","kind":"pets","text":"a"}`, Fails: true},
		{Request: "POST " + c + "/imports/$import/start", Body: `{}`, Fails: true},
		{Request: "POST " + c + "/imports/$import/parts", Body: `{"offset":3,"text":"x"}`, Fails: true},
		{Request: "POST " + c + "/imports/$import/parts", Body: `{"offset":$bytes,"text":"imp2@example.com,Igor,1234567890123456780,10115\n,Nobody,,\n","more":false}`},
		{Request: "POST " + c + "/imports/$import/preview", Body: `{"columns":[{"name":"zip","field":"attributes.zip","type":"text"}],"event_type":"","list_id":"$list","trigger_flows":false}`},
		{Request: "POST " + c + "/imports/$import/preview", Body: `{"columns":[{"name":"nobody"}]}`, Fails: true},
		{Request: "POST " + a + "/imports/$import/start", Body: `{"columns":[{"name":"zip","field":"attributes.zip","type":"text"}],"event_type":"","list_id":"lst_none","trigger_flows":false}`, Fails: true},
		{Request: "POST " + c + "/imports/$import/start", Body: `{"columns":[{"name":"zip","field":"attributes.zip","type":"text"}],"event_type":"","list_id":"$list","trigger_flows":false}`},
		{Request: "GET " + c + "/imports/$import", Until: `"status":"done"`},
		{Request: "GET " + c + "/imports/imp_none", Fails: true},
		{Request: "GET " + c + "/imports/$import/refused"},
		{Request: "GET " + c + "/imports/imp_none/refused", Fails: true},
		{Request: "POST " + a + "/imports", Body: `{"name":"events.csv","kind":"events","text":"email,time,value\nimp1@example.com,2026-01-03 10:00:00,7\n","more":true}`, Keep: "events=data._id bytes=data.bytes"},
		{Request: "POST " + a + "/imports/$events/parts", Body: `{"offset":$bytes,"text":"imp2@example.com,1767434400,8\n","more":false}`},
		{Request: "POST " + a + "/imports/$events/start", Body: `{"columns":[{"name":"value","field":"properties.value","type":"number"}],"event_type":"visited","list_id":"","trigger_flows":true}`},
		{Request: "GET " + a + "/imports/$events", Until: `"status":"done"`},
		{Request: "GET " + c + "/imports?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/imports?limit=1&cursor=$next"},
		{Request: "POST " + c + "/imports", Body: `{"name":"no.csv","kind":"people","text":"email\na@example.com\n","more":false}`, Keep: "import=data._id"},
		{Request: "POST " + c + "/imports/$import/cancel"},
		{Request: "POST " + c + "/imports/$import/cancel", Fails: true},
		{Request: "DELETE " + c + "/imports/$import"},
		{Request: "DELETE " + c + "/imports/$import", Fails: true},
		{Request: "POST " + a + "/imports", Body: `{"name":"no.csv","kind":"people","text":"email\na@example.com\n","more":false}`, Keep: "import=data._id"},
		{Request: "POST " + a + "/imports/$import/cancel"},
		{Request: "DELETE " + a + "/imports/$import"},
	}
}

package openapi

func exportsConsole() group {
	lines := func(about, example string) ordered {
		return ordered{{"200", plain(about+" One JSON object a line. A fault in the middle breaks the answer off.", "application/x-ndjson", example, nil)}}
	}
	person := "{\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",…}\n"
	return group{surface: surfaceConsole, tag: "Console: exports", title: "Exports", about: "All that the account holds, as JSON lines. `muster export` does the same.", ops: []operation{
		{method: "GET", path: "/export/profiles", permission: "contacts:read", id: "exportProfiles", summary: "Export all profiles", other: lines("Profiles, as `GET /profiles/{id}` has them.", person)},
		{method: "GET", path: "/export/segments/{id}", permission: "contacts:read", id: "exportSegment", summary: "Export the members of a segment", other: lines("Profiles, as `GET /profiles/{id}` has them.", person), also: []int{409}},
		{method: "GET", path: "/export/events", permission: "events:read", id: "exportEvents", summary: "Export all events", query: []parameter{query("event_type", text("item_purchased", "Those of a type alone."))},
			other: lines("Events, type by type. `idempotency_key` is null where there was none.", "{\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"event_type\":\"item_purchased\",\"timestamp\":\"2026-01-31T09:00:00.000Z\",\"properties\":{\"value\":79.9},\"idempotency_key\":\"order-1001\"}\n")},
	}}
}

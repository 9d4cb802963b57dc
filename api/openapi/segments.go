package openapi

func segmentsConsole() group {
	body := func() *schema {
		return object(req("name", text("Customers", "Name of the segment.").bytes(1, 200)), req("definition", definition))
	}
	return group{surface: surfaceConsole, tag: "Console: segments", title: "Segments",
		about: "A segment is a saved definition. Counts and members are exact at the moment of reading: every acknowledged event is in them.",
		ops: []operation{
			{method: "GET", path: "/segments", permission: "segments:read", id: "listSegments", summary: "List segments", about: "The oldest first; all counts are of one instant.",
				data: list(segmentRecord, ""), paged: true, limit: 1000},
			{method: "POST", path: "/segments", permission: "segments:write", id: "createSegment", summary: "Save a segment", about: "A segment on a long history is built in the background; its counts are exact meanwhile.",
				body: body(), data: segmentRecord},
			{method: "POST", path: "/segments/preview", permission: "segments:read", id: "previewSegment", summary: "Count who a definition holds", about: "Without saving it.",
				body: object(req("definition", definition)),
				data: object(req("count", count(512, "")), req("as_of", instant("The instant of the count.")), req("sample", list(profile, "Some of them, 10 at most."))), also: []int{503}},
			{method: "GET", path: "/segments/{id}", permission: "segments:read", id: "getSegment", summary: "Read a segment", data: segmentRecord},
			{method: "PUT", path: "/segments/{id}", permission: "segments:write", id: "updateSegment", summary: "Replace a segment's name and definition", body: body(), data: segmentRecord},
			{method: "DELETE", path: "/segments/{id}", permission: "segments:write", id: "deleteSegment", summary: "Delete a segment", about: "Refused while another segment or a campaign that was not sent uses it."},
			{method: "GET", path: "/segments/{id}/members", permission: "segments:read", id: "segmentMembers", summary: "List members",
				about: "In the order in which profiles were made. Each page is of its own instant; who is a member all the time is on exactly one.", query: pageQuery(),
				data: object(req("members", list(profileID(""), "")), req("next", nextCursor.orNull()), req("as_of", instant("The instant of the page.")))},
			{method: "GET", path: "/segments/{id}/explain", permission: "segments:read", id: "explainSegment", summary: "Why a profile is in a segment, or not",
				query: []parameter{must("profile_id", profileID("The profile."))},
				data: object(req("segment_id", segmentID("")), req("profile_id", profileID("The profile's present id.")), req("member", boolean(true, "")),
					req("as_of", instant("")), req("definition", explained)), also: []int{409}},
			{method: "GET", path: "/segments/{id}/transitions", permission: "segments:read", id: "segmentTransitions", summary: "Watch who enters and leaves",
				about:  "A stream of server-sent events, `entered` and `left`, in the order in which they were made, each once. The id of a message is its position: send it as `after`, or in `Last-Event-ID`, to go on behind it.",
				query:  []parameter{query("after", text("0-0", "Position to go on behind; 0-0 is the beginning. Left out, from now on."))},
				header: []parameter{query("Last-Event-ID", text("1042-3", "As `after`; browsers send it by themselves."))},
				other: ordered{{"200", plain("Entries and exits.", "text/event-stream",
					": watching\nid: 7-0\n\nid: 8-1\nevent: left\ndata: {\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"segment_id\":\"seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481\",\"cause\":\"event\",\"at\":\"2026-01-31T09:00:00.000Z\",\"position\":\"8-1\"}\n\n", nil)}}},
		}}
}

var segmentRecord = named("Segment", object(
	req("_id", segmentID("Id of the segment.")),
	req("name", text("Customers", "")),
	req("definition", definition),
	req("status", word("building until its members are kept up to date by the engine, live from then on.", "live", "building")),
	req("progress", number(1, "How much of that is done.").between(0, 1)),
	req("count", count(512, "Members; null when they could not be counted in time, which the message says.").orNull()),
	req("as_of", instant("The instant of the count.")),
	req("created_at", instant("When it was made.")),
	req("updated_at", instant("When it was changed last.")),
))

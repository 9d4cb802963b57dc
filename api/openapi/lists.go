package openapi

func listsA() group {
	return group{surface: surfaceA, tag: "Lists", title: "Lists", about: "A list is static: who was put on it is on it.",
		ops: []operation{
			{method: "POST", path: "/lists", permission: "lists:write", id: "createList", summary: "Create a list", about: "An account has at most 10,000 lists.",
				body: listBody(true), data: staticList, fails: []string{"name Field required"}},
			{method: "GET", path: "/lists", permission: "lists:read", id: "listLists", summary: "List lists", about: "The oldest first.", data: list(staticList, ""), paged: true},
			{method: "GET", path: "/lists/{id}", permission: "lists:read", id: "getList", summary: "Read a list", data: staticList, fails: []string{"list_id: there is no such list"}},
			{method: "PATCH", path: "/lists/{id}", permission: "lists:write", id: "updateList", summary: "Change a list", about: "What is left out stays.",
				body: listBody(false), data: staticList, fails: []string{"list_id: there is no such list"}},
			{method: "DELETE", path: "/lists/{id}", permission: "lists:write", id: "deleteList", summary: "Delete a list",
				about: "Refused while a segment or a campaign that was not sent uses it; the message names them. Its contacts stay.",
				fails: []string{"list_id: there is no such list"}},
			{method: "POST", path: "/lists/{id}/contacts", permission: "lists:write", id: "addToList", summary: "Put a contact on a list",
				about: "The contact is made if its e-mail is not on file. Of a contact on file, names that are missing are filled in and nothing is changed.",
				body:  object(append([]field{req("email", text("ann@example.com", "Whom to put on the list.").bytes(1, 512))}, contactFields()[1:]...)...),
				data:  contact, fails: []string{"email Field required"}},
			{method: "DELETE", path: "/lists/{id}/contacts/{contact}", permission: "lists:write", id: "removeFromList", summary: "Take a contact off a list",
				fails: []string{"There is no contact with this id"}},
		}}
}

func listsConsole() group {
	return group{surface: surfaceConsole, tag: "Console: lists", title: "Lists", about: "Static lists of contacts.",
		ops: []operation{
			{method: "GET", path: "/lists", permission: "lists:read", id: "consoleListLists", summary: "List lists", about: "The oldest first.", data: list(staticList, ""), paged: true},
			{method: "POST", path: "/lists", permission: "lists:write", id: "consoleCreateList", summary: "Create a list", body: listBody(true), data: staticList},
			{method: "GET", path: "/lists/{id}", permission: "lists:read", id: "consoleGetList", summary: "Read a list", data: staticList},
			{method: "PUT", path: "/lists/{id}", permission: "lists:write", id: "consoleUpdateList", summary: "Replace a list's name and description", body: listBody(true), data: staticList},
			{method: "DELETE", path: "/lists/{id}", permission: "lists:write", id: "consoleDeleteList", summary: "Delete a list", about: "Refused while a segment or a campaign that was not sent uses it."},
			{method: "GET", path: "/lists/{id}/members", permission: "lists:read", id: "consoleListMembers", summary: "List who is on a list",
				query: pageQuery(), data: object(req("members", list(profileID(""), "Profiles, in the order in which they were made.")), req("next", nextCursor.orNull()))},
			{method: "DELETE", path: "/lists/{id}/members/{profile}", permission: "lists:write", id: "consoleRemoveMember", summary: "Take a profile off a list"},
		}}
}

// pageQuery is the query of lists whose cursor is in the data.
func pageQuery() []parameter {
	return []parameter{
		query("limit", integer(100, "How many entries a page may have.").between(1, 1000).def(100)),
		query("cursor", text("BhgAAAA", "Where the page begins: `next` of the page before.")),
	}
}

func listBody(named bool) *schema {
	name := text("Newsletter", "Name of the list.").bytes(1, 200)
	first := opt("name", name)
	if named {
		first = req("name", name)
	}
	return object(first, opt("description", text("Monthly news", "What the list is for.").bytes(0, 2000)))
}

var staticList = named("List", object(
	req("_id", listID("Id of the list.")),
	req("name", text("Newsletter", "")),
	req("description", text("Monthly news", "")),
	req("contacts", count(1204, "How many are on it.")),
	req("created_at", instant("When it was made.")),
	req("updated_at", instant("When it was changed last.")),
))

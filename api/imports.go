package api

import (
	"net/http"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
)

func (a *API) importOperations() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: imports", Title: "Imports",
		About: "CSV files of people or of past events: upload, preview, start, progress. The first row names the columns. The file is kept until its rows are stored, and then removed."}, Routes: []handler.Route{
		{Handle: a.createImport, Operation: operation.Operation{Method: "POST", Path: "/imports", Permission: "contacts:write", ID: "createImport", Summary: "Upload a CSV file",
			About: "`text` is the file, or its beginning with `more`. Nothing is imported before `/imports/{id}/start`; a file that is not started within 24 hours is removed. " +
				"An uploaded file stays on the node that the account is on. If the account moves to another node meanwhile, the import continues when it comes back; or upload the file again there: no event of a file is stored twice.",
			Body: shape.Object(
				shape.Req("name", shape.Text("customers.csv", "What the file is called.").Bytes(1, 200)),
				shape.Req("kind", shape.Word("What a row is: a person, or an event.", ImportPeople, ImportEvents)),
				shape.Req("text", shape.Text("email,first_name,customer_no\nann@example.com,Ann,1234567890123456789\n", "The file in UTF-8, or its beginning.")),
				shape.Opt("more", shape.Boolean(false, "Parts follow, by `POST /imports/{id}/parts`.").Default(false)),
			), Data: importShape}},
		{Handle: a.listImports, Operation: operation.Operation{Method: "GET", Path: "/imports", Permission: "contacts:read", ID: "listImports", Summary: "List imports", About: "The newest first; the last 200 that have ended are kept.", Data: shape.List(importShape, ""), Paged: true}},
		{Handle: a.getImport, Operation: operation.Operation{Method: "GET", Path: "/imports/{id}", Permission: "contacts:read", ID: "getImport", Summary: "Read the progress of an import", Data: importShape}},
		{Handle: a.appendImport, Operation: operation.Operation{Method: "POST", Path: "/imports/{id}/parts", Permission: "contacts:write", ID: "appendImport", Summary: "Upload a further part of a file",
			About: "`offset` must be the `bytes` received so far; of a part whose answer was lost, read them first.",
			Body: shape.Object(
				shape.Req("offset", shape.Count(1_000_000, "How many bytes of the file are before this part.")),
				shape.Req("text", shape.Text("bob@example.com,Bob,1234567890123456780\n", "The part, in UTF-8; it may end anywhere between two characters.")),
				shape.Opt("more", shape.Boolean(false, "Further parts follow.").Default(false)),
			), Data: importShape}},
		{Handle: a.previewImport, Operation: operation.Operation{Method: "POST", Path: "/imports/{id}/preview", Permission: "contacts:read", ID: "previewImport", Summary: "Preview an import",
			About: "What each column is taken for, the first rows, and which rows would be refused. The types of columns are by all rows; problems are looked for in the first 10,000. What only the state knows, such as an erased person, shows at the import.",
			Body:  importPlanShape, BodyRules: operation.BodyRules{Optional: true}, Data: importPreviewShape}},
		{Handle: a.startImport, Operation: operation.Operation{Method: "POST", Path: "/imports/{id}/start", Permission: "contacts:write", ID: "startImport", Summary: "Start an import",
			About: "The same body as the preview. Each row has the effect of `POST /contacts` and `PATCH /contacts/{id}`, or of an imported event: **people** are found by e-mail, else by external id, else by phone; a person who is not on file becomes a contact and counts as subscribed, as with `POST /contacts`: import only people who agreed, or say who did in a column `subscribed`: false makes them with their e-mail, and the SMS of a phone in the row, unsubscribed, and withdraws these consents of people on file as `PATCH /contacts/{id}` does; true subscribes who has said nothing of e-mail, and lifts no refusal; empty is as without the column. " +
				"**Events** need a `timestamp` in the past and start no flows unless `trigger_flows`; a file is its content, so no row of it is stored twice, however often it is uploaded. One import of a node runs at a time, and takes half of its time at most.",
			Body: importPlanShape, BodyRules: operation.BodyRules{Optional: true}, Data: importShape}},
		{Handle: a.cancelImport, Operation: operation.Operation{Method: "POST", Path: "/imports/{id}/cancel", Permission: "contacts:write", ID: "cancelImport", Summary: "Cancel an import", About: "Rows that were stored stay. The file is removed.", Data: importShape}},
		{Handle: a.refusedRows, Operation: operation.Operation{Method: "GET", Path: "/imports/{id}/refused", Permission: "contacts:read", ID: "refusedRows", Summary: "Download the refused rows",
			About: "Of an import that has ended: a CSV file with `line`, `reason` and the cells, to be mended and uploaded as another file. Rows of people who were erased since are blank.",
			Other: shape.Pairs("200", operation.Plain("The rows.", "text/csv", "line,reason,email\n17,\"user has no identifier; send at least one of email, external_id and phone, not empty\",\n", nil)), Also: []int{409}}},
		{Handle: a.deleteImport, Operation: operation.Operation{Method: "DELETE", Path: "/imports/{id}", Permission: "contacts:write", ID: "deleteImport", Summary: "Remove an import from the list", About: "Its file and its refused rows are removed. Rows that were stored stay. A running import is cancelled first."}},
	}}
}

var importRefusals = func(about string) *shape.Schema {
	return shape.List(shape.Object(shape.Req("line", shape.Count(17, "Line of the file, from 1.")), shape.Req("reason", shape.Text("user has no identifier; send at least one of email, external_id and phone, not empty", ""))), about)
}

var importShape = shape.Named("Import", shape.Object(
	shape.Req("_id", importID("")),
	shape.Req("name", shape.Text("customers.csv", "")),
	shape.Req("kind", shape.Word("", ImportPeople, ImportEvents)),
	shape.Req("status", shape.Word("", ImportReceiving, ImportReady, ImportQueued, ImportRunning, ImportDone, ImportCancelled, ImportFailed)),
	shape.Req("bytes", shape.Count(64, "How many were received.")),
	shape.Req("rows", shape.Count(1, "Rows of the file; null while parts are missing.").OrNull()),
	shape.Req("rows_read", shape.Count(1, "Rows that were worked off.")),
	shape.Req("taken", shape.Count(1, "Rows that are stored.")),
	shape.Req("duplicates", shape.Count(0, "Rows that were stored before: by an import of the same file, or under the same idempotency key.")),
	shape.Req("refused", shape.Count(0, "Rows that were refused.")),
	shape.Req("rows_per_second", shape.Number(2500, "Of the last stretch.").With("minimum", 0)),
	shape.Req("refusals", importRefusals("The first 20 of them.")),
	shape.Req("list_id", shape.ListID("The list that the people are put on.").OrNull()),
	shape.Req("error", shape.Text("", "Why it failed, or what it waits for.").OrNull()),
	shape.Req("created_at", shape.Instant("")),
	shape.Req("started_at", shape.Instant("").OrNull()),
	shape.Req("ended_at", shape.Instant("").OrNull()),
))

// importID is the id of an import.
func importID(about string) *shape.Schema {
	return shape.Text("imp_4f1c8a7e6b2d4930a5c1e7f3d9b80642", about)
}

var importColumnName = shape.Text("Customer No", "As the first row of the file has it.")

var importPlanShape = shape.Object(
	shape.Opt("columns", shape.List(shape.Object(
		shape.Req("name", importColumnName),
		shape.Opt("field", shape.Text("external_id", "What it becomes: `email`, `external_id`, `phone`, `first_name`, `last_name`, `attributes.x`, `geo.x`; of people also `subscribed` or `unsubscribed` (true or false, yes or no, 1 or 0); of events also `event_type`, `timestamp`, `idempotency_key`, `properties.x`. Empty leaves the column out.")),
		shape.Opt("type", shape.Word("Left out, by the cells: a column is of numbers, or of true and false, if all its cells are and nothing is lost; else of text. `time` is the type of `timestamp` alone; a date in an attribute or a property is text.", "text", "number", "boolean", "time")),
	), "Columns that are read otherwise than the preview without it says.").Entries(0, 1000)),
	shape.Opt("event_type", shape.Text("item_purchased", "Event type of all rows, where no column is.").Bytes(0, 200)),
	shape.Opt("list_id", shape.ListID("Puts all people on this list, whose flows start; those without an e-mail only if they are new.")),
	shape.Opt("trigger_flows", shape.Boolean(false, "Lets the events start flows.").Default(false)),
)

var importPreviewShape = shape.Object(
	shape.Req("columns", shape.List(shape.Object(
		shape.Req("name", importColumnName),
		shape.Req("field", shape.Text("external_id", "What it becomes; null where it is left out.").OrNull()),
		shape.Req("type", shape.Word("`time` for `timestamp` alone.", "text", "number", "boolean", "time")),
	), "In the order of the file.")),
	shape.Req("rows", shape.List(shape.List(shape.Text("ann@example.com", ""), ""), "The first ten rows, cell by cell.")),
	shape.Req("row_count", shape.Count(1, "Rows of the file.")),
	shape.Req("checked_rows", shape.Count(1, "How many rows were looked at for problems.")),
	shape.Req("problems", importRefusals("The first 20 rows that would be refused.")),
	shape.Req("problem_count", shape.Count(0, "How many of the rows that were looked at would be refused.")),
	shape.Req("fault", shape.Text("no column is email, external_id or phone", "Why the import cannot be started so; null if it can.").OrNull()),
)

// imports are the uploaded files, unless this server keeps none.
func (a *API) imports() (Imports, error) {
	if a.opts.Imports == nil {
		return nil, &handler.Problem{Status: http.StatusNotFound, Message: "this server takes no uploads; use muster import"}
	}
	return a.opts.Imports, nil
}

// imported makes a call about an import, with the body that its operation takes.
func imported[B, R any](a *API, c *handler.Call, do func(i Imports, body B) (R, error)) (any, error) {
	i, err := a.imports()
	if err != nil {
		return nil, err
	}
	var body B
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	return do(i, body)
}

type noBody struct{}

func (a *API) createImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, f ImportFile) (Import, error) { return i.Create(c.Account, f) })
}

func (a *API) appendImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, p ImportPart) (Import, error) { return i.Append(c.Account, c.PathID(), p) })
}

func (a *API) previewImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, p ImportPlan) (ImportPreview, error) {
		return i.Preview(c.Ctx, c.Account, c.PathID(), p)
	})
}

func (a *API) startImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, p ImportPlan) (Import, error) { return i.Start(c.Ctx, c.Account, c.PathID(), p) })
}

func (a *API) cancelImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, _ noBody) (Import, error) { return i.Cancel(c.Account, c.PathID()) })
}

func (a *API) getImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, _ noBody) (Import, error) { return i.Get(c.Account, c.PathID()) })
}

func (a *API) deleteImport(c *handler.Call) (any, error) {
	return imported(a, c, func(i Imports, _ noBody) (any, error) { return nil, i.Delete(c.Account, c.PathID()) })
}

// listImports answers GET /imports.
func (a *API) listImports(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := c.Cursor(paging.Imports, 0)
	if err != nil {
		return nil, err
	}
	i, err := a.imports()
	if err != nil {
		return nil, err
	}
	all, err := i.List(c.Account)
	if err != nil {
		return nil, err
	}
	place := func(x Import) string { return x.CreatedAt + x.ID }
	if after != nil {
		all = slices.DeleteFunc(all, func(x Import) bool { return place(x) >= string(after) })
	}
	next := ""
	if len(all) > limit {
		all = all[:limit]
		next = paging.Encode(paging.Imports, []byte(place(all[limit-1])))
	}
	return handler.Page{Items: all, Next: next}, nil
}

// refusedRows answers GET /imports/{id}/refused.
func (a *API) refusedRows(c *handler.Call) (any, error) {
	i, err := a.imports()
	if err != nil {
		return nil, err
	}
	r, err := i.Refused(c.Account, c.PathID())
	if err != nil {
		return nil, err
	}
	c.SetStatusCode(http.StatusOK)
	c.SetContentType("text/csv; charset=utf-8")
	c.Response.Header.Set("Cache-Control", "no-store")
	c.Response.Header.Set("Content-Disposition", `attachment; filename="refused.csv"`)
	c.Response.SetBodyStream(ingest.GuardStream(a.opts.Metrics, a.opts.Logger, "the refused rows of an import", r), -1)
	return handler.Streaming, nil
}

package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// reading is how the rows of a file are read.
type reading struct {
	columns []column
	options importer.CSVOptions
	// fault is why the file cannot be imported so, "" if it can.
	fault string
}

// plan works out how the rows are read: as guessed, but for what the plan says.
func (u *upload) plan(p *api.ImportPlan) (r reading, err error) {
	people := u.Kind == api.ImportPeople
	r.columns = u.guess()
	given := map[int]bool{}
	for n, c := range p.Columns {
		at := func(name, format string, args ...any) error {
			field := fmt.Sprintf("columns[%d].%s", n, name)
			return refuse(400, field, "%s %s", field, fmt.Sprintf(format, args...))
		}
		i := slices.Index(u.Header, strings.TrimSpace(c.Name))
		switch {
		case i < 0:
			return r, at("name", "is %q, and the file has no such column; its first row has %s", c.Name, list(u.Header))
		case given[i]:
			return r, at("name", "is %q, which occurs twice; name each column once", c.Name)
		}
		given[i] = true
		x := &r.columns[i]
		if c.Field != nil {
			if x.field = strings.TrimSpace(*c.Field); x.field == "" {
				*x = column{kind: "text"}
				continue
			}
			own, err := importer.CheckField(x.field, people)
			if err != nil {
				return r, at("field", "%s", err)
			}
			switch {
			case own:
				x.kind = "text"
			case x.own && x.kind != "text":
				x.kind = u.kindOf(i) // that of the field guessed is not this one's
			}
			x.own = own
			x.setOwnKind()
		}
		switch {
		case c.Type == "", c.Type == x.kind && x.own:
		case x.own:
			return r, at("type", "must be left out: %s is always %s", x.field, x.kind)
		case c.Type == "time":
			return r, at("type", "must be text, number or boolean; time is the type of timestamp alone, and a date in another field is text")
		case !slices.Contains([]string{"text", "number", "boolean"}, c.Type):
			return r, at("type", "must be text, number or boolean")
		default:
			x.kind = c.Type
		}
	}
	// A guess gives way to what was given.
	taken := map[string]int{}
	for i := range r.columns {
		if given[i] && r.columns[i].field != "" {
			if other, twice := taken[r.columns[i].field]; twice {
				return r, refuse(400, "columns", "columns %q and %q both are %s; leave one of them out", u.Header[other], u.Header[i], r.columns[i].field)
			}
			taken[r.columns[i].field] = i
		}
	}
	for i := range r.columns {
		x := &r.columns[i]
		if given[i] || x.field == "" {
			continue
		}
		if _, twice := taken[x.field]; twice {
			*x = column{kind: "text"}
			continue
		}
		taken[x.field] = i
	}

	r.options = importer.CSVOptions{Map: map[string]string{}, Types: map[string]string{}, People: people}
	r.options.Found(u.Types)
	for i, x := range r.columns {
		r.options.Map[u.Header[i]] = x.field
		if x.field != "" && !x.own {
			r.options.Types[x.field] = x.kind
		}
	}
	_, hasType := taken["event_type"]
	switch {
	case people && p.EventType != "":
		return r, refuse(400, "event_type", "event_type is for events; leave it out")
	case people && p.TriggerFlows:
		return r, refuse(400, "trigger_flows", "trigger_flows is for events; leave it out")
	case !people && p.ListID != "":
		return r, refuse(400, "list_id", "list_id is for people; leave it out")
	case hasType && p.EventType != "":
		return r, refuse(400, "event_type", "event_type is a column of the file; leave one of them out")
	}
	r.options.EventType = p.EventType
	_, email := taken["email"]
	_, id := taken["external_id"]
	_, phone := taken["phone"]
	_, when := taken["timestamp"]
	switch {
	case !people && !hasType && p.EventType == "":
		r.fault = "no column is event_type; say which one is, or give the event_type of all rows"
	case !people && !when:
		r.fault = "no column is timestamp; say which one is when it happened"
	case !email && !id && !phone:
		r.fault = "no column is email, external_id or phone; say which one tells who it is"
	default:
		// What only the columns together show.
		if _, err := importer.NewRows(strings.NewReader(headerLine(u.Header)), r.options); err != nil {
			r.fault = err.Error()
		}
	}
	return r, nil
}

func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// headerLine is the first row of a file.
func headerLine(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
	}
	return strings.Join(quoted, ",") + "\n"
}

// Preview implements [api.Imports].
func (s *Uploads) Preview(ctx context.Context, account uint64, id string, p api.ImportPlan) (x api.ImportPreview, err error) {
	s.mu.Lock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
	case u.Status == api.ImportReceiving:
		err = refuse(409, "", "the file is not complete; send the rest of it by POST /imports/{id}/parts")
	case u.ended():
		err = refuse(409, "", "the import has ended, and its file was removed; upload it again")
	}
	if err != nil {
		s.mu.Unlock()
		return x, err
	}
	copied := &upload{saved: u.saved, account: account, dir: u.dir}
	s.mu.Unlock()

	r, err := copied.plan(&p)
	if err != nil {
		return x, err
	}
	x = api.ImportPreview{AllRows: copied.Rows, Fault: orNull(r.fault), Rows: [][]string{}, Problems: []api.ImportRefusal{}}
	for i, c := range r.columns {
		x.Columns = append(x.Columns, api.ImportPreviewColumn{Name: copied.Header[i], Field: orNull(c.field), Type: c.kind})
	}
	f, err := os.Open(copied.path(nameContent))
	if err != nil {
		return x, refuse(409, "", "the import has ended, and its file was removed; upload it again")
	}
	defer f.Close()
	if r.fault != "" {
		t, err := importer.ReadTable(ctx, io.LimitReader(f, 1<<20), showRows)
		if t.First != nil {
			x.Rows = t.First
		}
		if ctx.Err() != nil {
			return x, ctx.Err()
		}
		_ = err // the part that was read may end in the middle of a row
		return x, nil
	}
	return x, s.judge(ctx, f, copied, r.options, &x)
}

// judge looks for rows that would be refused.
func (s *Uploads) judge(ctx context.Context, f io.Reader, u *upload, o importer.CSVOptions, x *api.ImportPreview) error {
	rows, err := importer.NewRows(f, o)
	if err != nil {
		return err
	}
	check, err := s.checks(ctx, u)
	if err != nil {
		return err
	}
	var row importer.Row
	for x.Checked < checkRows && ctx.Err() == nil {
		switch err := rows.Next(&row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			x.ProblemCount++
			x.Problems = append(x.Problems, api.ImportRefusal{Line: row.Line, Reason: err.Error()})
			return nil
		}
		x.Checked++
		if len(x.Rows) < showRows && len(row.Cells) == len(u.Header) {
			x.Rows = append(x.Rows, slices.Clone(row.Cells))
		}
		if reason := check(&row); reason != "" {
			x.ProblemCount++
			if len(x.Problems) < showRefusals {
				x.Problems = append(x.Problems, api.ImportRefusal{Line: row.Line, Reason: reason})
			}
		}
	}
	return ctx.Err()
}

// checks says why rows of a file would be refused.
func (s *Uploads) checks(ctx context.Context, u *upload) (func(*importer.Row) string, error) {
	if u.Kind == api.ImportPeople {
		j, err := s.newPersonJudge(u.account)
		if err == nil {
			err = j.begin(ctx)
		}
		return func(row *importer.Row) string { _, refused := j.person(row); return refused }, err
	}
	c, err := importer.NewChecker(false, s.opts.Now)
	if err != nil {
		return nil, err
	}
	return c.Check, nil
}

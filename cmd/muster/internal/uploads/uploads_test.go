package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// customers is a file of n people. Their numbers have 19 digits, their zip codes look
// like numbers, and all of them share a switchboard.
func customers(n int) string {
	var b strings.Builder
	b.WriteString("E-Mail,First name,Customer No,Telephone,Zip,Seats,Note\n")
	for i := range n {
		fmt.Fprintf(&b, "person%d@people.example,Person %d,%d,+49 30 1234567,%05d,%d,\"two\nlines\"\n", i, i, 1234567890123450000+i, 10115+i%3, i%9)
	}
	return b.String()
}

// TestPeopleAreImportedAsTheyAre: 10,000 people whose customer numbers have 19 digits, on
// a list; a shared number merges no rows, and faults of a row are reported with its line.
func TestPeopleAreImportedAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 10_000
	b, err := w.node.Command(t.Context(), w.account, contacts.CommandListCreate, contacts.ListSave{Name: "Newsletter"})
	ok(t, err)
	list := string(b[strings.Index(string(b), "lst_"):][:36])
	x := w.upload(api.ImportPeople, customers(n)+",Nobody,,,,,\nperson7@people.example,too few\n")
	if x.Status != api.ImportReady || x.Rows == nil || *x.Rows != n+2 {
		t.Fatalf("%+v", x)
	}
	p, err := w.Preview(t.Context(), w.account, x.ID, api.ImportPlan{})
	ok(t, err)
	var fields []string
	for _, c := range p.Columns {
		fields = append(fields, *c.Field+":"+c.Type)
	}
	if want := []string{"email:text", "first_name:text", "external_id:text", "phone:text", "attributes.zip:text", "attributes.seats:number", "attributes.note:text"}; !slices.Equal(fields, want) {
		t.Errorf("%v, want %v", fields, want)
	}
	if p.Fault != nil || len(p.Rows) != showRows || p.Rows[0][2] != "1234567890123450000" || p.ProblemCount != 0 {
		t.Errorf("%+v", p)
	}
	w.begin(x.ID, api.ImportPlan{ListID: list})
	x = w.until(x.ID, hasEnded)
	if x.Status != api.ImportDone || x.Read != n+2 || x.Taken != n || x.Refused != 2 || x.Duplicates != 0 {
		t.Fatalf("%+v", x)
	}
	// Two lines for each row above.
	if len(x.Refusals) != 2 || x.Refusals[0].Line != 2*n+2 || !strings.Contains(x.Refusals[0].Reason, "at least one of email") || !strings.Contains(x.Refusals[1].Reason, "2 cells") {
		t.Errorf("%+v", x.Refusals)
	}
	r, err := w.Refused(w.account, x.ID)
	ok(t, err)
	rows, err := io.ReadAll(r)
	ok(t, err)
	ok(t, r.Close())
	if want := "line,reason,E-Mail,First name,Customer No,Telephone,Zip,Seats,Note\n"; !strings.HasPrefix(string(rows), want) || !strings.Contains(string(rows), "person7@people.example,too few\n") || strings.Count(string(rows), "\n") != 3 {
		t.Errorf("%s", rows)
	}
	w.read(func(v *resolver.View) {
		l, _ := v.Contacts().Find(list)
		if got := v.Contacts().Members(l).GetCardinality(); got != n {
			t.Errorf("%d are on the list", got)
		}
	})
	ids := map[string]bool{}
	for _, i := range []int{0, 1, 4711, n - 1} {
		p := w.profile(fmt.Sprintf("person%d@people.example", i))
		ids[p.ID.String()] = true
		if got := p.Newest(resolver.IdentityExternalID); got != fmt.Sprint(1234567890123450000+i) {
			t.Errorf("%d has the number %s", i, got)
		}
		if want := fmt.Sprintf(`{"zip":"%05d","seats":%d,"note":"two\nlines"}`, 10115+i%3, i%9); string(p.Attributes) != want {
			t.Errorf("%s, want %s", p.Attributes, want)
		}
		if !p.Subscribed() || p.FirstName != fmt.Sprintf("Person %d", i) {
			t.Errorf("%+v", p)
		}
	}
	if len(ids) != 4 {
		t.Errorf("%v: people were merged", ids)
	}
	// The same again finds them all.
	y := w.upload(api.ImportPeople, strings.ReplaceAll(customers(300), "Person 299", "Petra"))
	w.begin(y.ID, api.ImportPlan{ListID: list})
	if y = w.until(y.ID, hasEnded); y.Taken != 300 || y.Refused != 0 {
		t.Errorf("%+v", y)
	}
	if p := w.profile("person299@people.example"); p.FirstName != "Petra" {
		t.Errorf("%+v", p)
	}
	w.read(func(v *resolver.View) {
		if got := len(v.Profiles().Page(0, 2*n)); got != n {
			t.Errorf("%d profiles", got)
		}
	})
	for _, id := range []string{x.ID, y.ID} {
		if _, err := os.Stat(filepath.Join(w.dirOf(id), nameContent)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file of %s: %v", id, err)
		}
	}
}

// TestPlaceholdersAndAddresses: what is no identifier is left out beside another one and
// refused alone, in the preview as in the import; so is an e-mail that is none.
func TestPlaceholdersAndAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportPeople, "email,customer id\nnull,c-1\nNULL,\nann at people.example,c-2\n@people.example,c-3\nann@people.example,null\n")
	p, err := w.Preview(t.Context(), w.account, x.ID, api.ImportPlan{})
	ok(t, err)
	w.begin(x.ID, api.ImportPlan{})
	x = w.until(x.ID, hasEnded)
	if x.Taken != 2 || !slices.Equal(p.Problems, x.Refusals) || len(x.Refusals) != 3 {
		t.Fatalf("%+v\n%+v", p.Problems, x)
	}
	for i, want := range []string{`email "NULL" is a placeholder`, "not an e-mail address", "not an e-mail address"} {
		if r := x.Refusals[i]; r.Line != 3+i || !strings.Contains(r.Reason, want) {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	w.read(func(v *resolver.View) {
		if _, found := v.Profiles().Find(resolver.IdentityEmail, "null"); found || len(v.Profiles().Page(0, 10)) != 2 {
			t.Error("a profile has the e-mail null")
		}
	})
}

// dirOf is the directory of an import.
func (w *world) dirOf(id string) string {
	w.Uploads.mu.Lock()
	defer w.Uploads.mu.Unlock()
	return w.Uploads.mu.files[w.account][id].dir
}

// TestEventsAreStoredOnce: times are understood or refused, ids of 19 digits stay what
// they are, and a file that is uploaded again, or continues after a stop, stores no row
// twice.
func TestEventsAreStoredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b strings.Builder
	b.WriteString("event,email,when,order,value\n")
	const n = 5000
	for i := range n {
		fmt.Fprintf(&b, "item_purchased,buyer%d@people.example,%s,%d,%d.5\n", i%100, []string{"2026-01-03 10:00:00", "1767434400", "2026-01-03T10:00:00Z"}[i%3], 1234567890123456700+i, i)
	}
	b.WriteString("item_purchased,late@people.example,17674344,1,1\nitem_purchased,late@people.example,2031-01-01,1,1\nitem_purchased,,2026-01-03,1,1\n")
	x := w.upload(api.ImportEvents, b.String())
	if _, err := w.Start(t.Context(), w.account, x.ID, api.ImportPlan{}); err == nil || !strings.Contains(err.Error(), "no column is timestamp") {
		t.Fatal(err)
	}
	plan := api.ImportPlan{Columns: []api.ImportColumn{{Name: "when", Field: text("timestamp")}, {Name: "order", Field: text("properties.order_id")}}}
	p, err := w.Preview(t.Context(), w.account, x.ID, plan)
	ok(t, err)
	if p.Checked != n+3 || p.ProblemCount != 2 && p.ProblemCount != 3 || p.Columns[3].Type != "text" || p.Columns[4].Type != "number" || p.Columns[2].Type != "time" {
		t.Errorf("%+v", p)
	}
	w.begin(x.ID, plan)
	// Stops in the middle, as often as there is a middle.
	for range 3 {
		w.until(x.ID, func(x api.Import) bool { return x.Read > 0 })
		w.Close()
		w.open(16 << 20)
	}
	x = w.until(x.ID, hasEnded)
	if x.Status != api.ImportDone || x.Taken+x.Refused != n+3 || x.Duplicates != 0 {
		t.Fatalf("%+v", x)
	}
	for _, r := range x.Refusals {
		if r.Line < n+2 {
			t.Errorf("%+v", r)
		}
	}
	count := func() uint64 {
		var out uint64
		w.read(func(v *resolver.View) {
			if typ := v.EventTypes().Get("item_purchased"); typ != nil {
				out = typ.Count
			}
		})
		return out
	}
	if got := count(); got != x.Taken {
		t.Errorf("%d events of %d", got, x.Taken)
	}
	y := w.upload(api.ImportEvents, b.String())
	w.begin(y.ID, plan)
	if y = w.until(y.ID, hasEnded); y.Taken != 0 || y.Duplicates != x.Taken || y.Refused != x.Refused {
		t.Errorf("%+v", y)
	}
	if got := count(); got != x.Taken {
		t.Errorf("%d events after the same file again", got)
	}
	// The type of all rows.
	z := w.upload(api.ImportEvents, "email,time\na@people.example,2026-01-03\n")
	w.begin(z.ID, api.ImportPlan{EventType: "visited"})
	if z = w.until(z.ID, hasEnded); z.Taken != 1 {
		t.Errorf("%+v", z)
	}
}

// TestPartsAndBounds: a file in parts is one file; what is not as it must be is refused
// and changes nothing.
func TestPartsAndBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := func(err error, status int, message string) {
		t.Helper()
		var r *api.Refusal
		if !errors.As(err, &r) || r.Status != status || !strings.Contains(r.Message, message) {
			t.Errorf("%v, want %d %s", err, status, message)
		}
	}
	for _, f := range []struct {
		file    api.ImportFile
		message string
	}{
		{api.ImportFile{Kind: api.ImportPeople, Text: "a"}, "name must have"},
		{api.ImportFile{Name: "a", Kind: "x", Text: "a"}, "kind must be"},
		{api.ImportFile{Name: "a", Kind: api.ImportPeople}, "text is empty"},
		{api.ImportFile{Name: "a", Kind: api.ImportPeople, Text: "email\n"}, "no rows"},
		{api.ImportFile{Name: "a", Kind: api.ImportPeople, Text: "email,email\na,b\n"}, "stands twice"},
		{api.ImportFile{Name: "a", Kind: api.ImportPeople, Text: "email,\na,b\n"}, "column 2 has no name"},
	} {
		_, err := w.Create(w.account, f.file)
		refused(err, 400, f.message)
	}
	if list, err := w.List(w.account); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	x, err := w.Create(w.account, api.ImportFile{Name: "a.csv", Kind: api.ImportPeople, Text: "email,fir", More: true})
	ok(t, err)
	_, err = w.Append(w.account, x.ID, api.ImportPart{Offset: 3, Text: "x"})
	refused(err, 409, "offset must be 9")
	_, err = w.Start(t.Context(), w.account, x.ID, api.ImportPlan{})
	refused(err, 409, "not complete")
	_, err = w.Append(w.account, x.ID, api.ImportPart{Offset: 9, Text: strings.Repeat("x", 4<<20)})
	refused(err, 413, "longer than")
	x, err = w.Append(w.account, x.ID, api.ImportPart{Offset: 9, Text: "st_name\nann@people.example,Ann\n"})
	ok(t, err)
	if x.Status != api.ImportReady || *x.Rows != 1 {
		t.Errorf("%+v", x)
	}
	for _, c := range []struct {
		plan    api.ImportPlan
		status  int
		message string
	}{
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "nobody"}}}, 400, `columns[0].name is "nobody", and the file has no such column`},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "email", Field: text("mail")}}}, 400, "columns[0].field must be email"},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "email", Field: text("timestamp")}}}, 400, "columns[0].field is of events"},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "email", Type: "number"}}}, 400, "columns[0].type must be left out"},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "first_name", Field: text("attributes.born"), Type: "time"}}}, 400, "columns[0].type must be text, number or boolean; time is the type of timestamp alone"},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "email", Field: text("phone")}, {Name: "first_name", Field: text("phone")}}}, 400, "both are phone"},
		{api.ImportPlan{Columns: []api.ImportColumn{{Name: "email", Field: text("")}}}, 400, "no column is email"},
		{api.ImportPlan{EventType: "a"}, 400, "event_type is for events"},
		{api.ImportPlan{ListID: "lst_none"}, 404, "no such list"},
	} {
		_, err := w.Start(t.Context(), w.account, x.ID, c.plan)
		refused(err, c.status, c.message)
	}
	other := w.account + 1
	_, err = w.Get(other, x.ID)
	refused(err, 404, "no import")
	_, err = w.Cancel(other, x.ID)
	refused(err, 404, "no import")
	refused(w.Delete(other, x.ID), 404, "no import")

	w.begin(x.ID, api.ImportPlan{})
	x = w.until(x.ID, hasEnded)
	_, err = w.Cancel(w.account, x.ID)
	refused(err, 409, "ended already")
	_, err = w.Preview(t.Context(), w.account, x.ID, api.ImportPlan{})
	refused(err, 409, "has ended")

	// All together are bounded, what is removed makes room, and a file that is not started
	// is removed in the end.
	var ids []string
	for {
		y, err := w.Create(w.account, api.ImportFile{Name: "a.csv", Kind: api.ImportPeople, Text: "email\n" + strings.Repeat("x@y.example\n", 300_000)})
		if err != nil {
			refused(err, 409, "all uploads together")
			break
		}
		ids = append(ids, y.ID)
	}
	if len(ids) != 4 {
		t.Errorf("%d files of 3.6 MB found room in 16 MiB", len(ids))
	}
	if y, err := w.Cancel(w.account, ids[0]); err != nil || y.Status != api.ImportCancelled {
		t.Errorf("%+v, %v", y, err)
	}
	ok(t, w.Delete(w.account, ids[1]))
	w.Close()
	w.open(16 << 20)
	w.clock.Advance(unstartedTime + time.Second)
	eventually.Succeeds(t, func() error {
		list, err := w.List(w.account)
		ok(t, err)
		if len(list) != 2 { // what was imported and what was cancelled
			return fmt.Errorf("%d imports are listed", len(list))
		}
		return nil
	})
	if w.Uploads.mu.bytes != 0 {
		t.Errorf("%d bytes are taken", w.Uploads.mu.bytes)
	}
}

// TestErasedPeopleLeaveTheFiles: a row of an erased person leaves files that wait,
// parts of files, and refused rows; the others stay as they are.
func TestErasedPeopleLeaveTheFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tag = "zqgone"
	file := "Email,Phone,Note,List\n\"" + tag + "@people.example\",+49301,\"" + tag + "\nof two lines\",1\nann@people.example,+49302,a note,2\n" + tag + "@people.example,+49303,\"" + tag + "\",3\n"
	waiting := w.upload(api.ImportPeople, file)
	part, err := w.Create(w.account, api.ImportFile{Name: "part.csv", Kind: api.ImportPeople, Text: file + "bob@", More: true})
	ok(t, err)
	// Which columns are meant is not known yet.
	others := "Kundenmail,Mobil,Note\nann@people.example,+49302,asked by somebody\n"
	strange := w.upload(api.ImportPeople, others+strings.ToUpper(tag)+"@people.example,+49309,\""+tag+"\"\n")
	semicolons := w.upload(api.ImportPeople, "Kundenmail;Note\nann@people.example;a\n"+tag+"@people.example;"+tag+"\n")
	// Both rows are refused, one for each reason that the importer has.
	ended := w.upload(api.ImportPeople, file)
	plan := api.ImportPlan{Columns: []api.ImportColumn{{Name: "List", Type: "boolean"}}}
	w.begin(ended.ID, plan)
	if ended = w.until(ended.ID, hasEnded); ended.Refused != 3 {
		t.Fatalf("%+v", ended)
	}
	_, err = w.node.Command(t.Context(), w.account, contacts.CommandCreate, contacts.Create{Email: tag + "@people.example"})
	ok(t, err)
	_, err = w.node.Command(t.Context(), w.account, resolver.CommandContactErase, resolver.ContactErase{ID: w.profile(tag + "@people.example").ID.String()})
	ok(t, err)
	eventually.Succeeds(t, func() error {
		var in []string
		ok(t, filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
			if b, e := os.ReadFile(path); e == nil && strings.Contains(string(b), tag) {
				in = append(in, path)
			}
			return err
		}))
		if len(in) != 0 {
			return fmt.Errorf("%v have something of the person", in)
		}
		return nil
	})
	r, err := w.Refused(w.account, ended.ID)
	ok(t, err)
	rows, err := io.ReadAll(r)
	ok(t, err)
	ok(t, r.Close())
	if !strings.Contains(string(rows), "ann@people.example,+49302,a note,2\n") {
		t.Errorf("%s", rows)
	}
	if x := w.until(ended.ID, func(x api.Import) bool { return x.Refusals[0].Reason == textErased }); x.Refusals[1].Reason == textErased {
		t.Errorf("%+v", x.Refusals)
	}
	w.Close()
	w.open(16 << 20)
	if x, err := w.Get(w.account, ended.ID); err != nil || len(x.Refusals) != 3 || x.Refusals[0].Reason != textErased || x.Refusals[1].Line != 4 {
		t.Errorf("after a start: %+v, %v", x.Refusals, err)
	}
	for id, want := range map[string]string{strange.ID: others, semicolons.ID: "ann@people.example;a\n"} {
		if b, err := os.ReadFile(filepath.Join(w.dir, strconv.FormatUint(w.account, 16), id, nameContent)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %v", b, err)
		}
	}
	w.begin(waiting.ID, api.ImportPlan{})
	if x := w.until(waiting.ID, hasEnded); x.Taken != 1 || x.Refused != 2 || x.Refusals[1].Line != 5 {
		t.Errorf("%+v", x)
	}
	part, err = w.Append(w.account, part.ID, api.ImportPart{Offset: part.Bytes, Text: "people.example,+49304,b,4\n"})
	ok(t, err)
	w.begin(part.ID, api.ImportPlan{})
	if x := w.until(part.ID, hasEnded); x.Taken != 2 || x.Refused != 2 {
		t.Errorf("%+v", x)
	}
}

// TestCancelLeavesWhatIsStored: a cancelled import stops, and its file is gone.
func TestCancelLeavesWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportPeople, customers(5000))
	w.begin(x.ID, api.ImportPlan{})
	w.until(x.ID, func(x api.Import) bool { return x.Read > 0 })
	_, err := w.Cancel(w.account, x.ID)
	ok(t, err)
	x = w.until(x.ID, hasEnded)
	if x.Status != api.ImportCancelled || x.Taken == 0 || x.Taken == 5000 {
		t.Errorf("%+v", x)
	}
	w.read(func(v *resolver.View) {
		if got := uint64(len(v.Profiles().Page(0, 10_000))); got != x.Taken {
			t.Errorf("%d profiles, and %d rows were taken", got, x.Taken)
		}
	})
}

// TestCancelOutlastsAStop: an import whose cancellation was answered is over after a kill or
// a stop in the window at hand, which imports no more of it.
func TestCancelOutlastsAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close() // the test is the worker
	running := func() *upload {
		x := w.upload(api.ImportPeople, customers(3))
		w.begin(x.ID, api.ImportPlan{})
		u, err := w.find(w.account, x.ID)
		ok(t, err)
		u.busy = true
		ok(t, w.begun(u, 0))
		return u
	}
	cancel := func(u *upload) {
		if _, err := w.Cancel(w.account, u.ID); err != nil {
			t.Error(err)
		}
	}
	killed := running()
	cancel(killed)
	// The other is stopped as its window begins, which asks for the time.
	stopped := running()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begins := sync.OnceFunc(func() { cancel(stopped); stop() })
	w.opts.Now = func() time.Time { begins(); return w.clock.Now() }
	w.work(ctx, stopped)
	if x, err := w.Get(w.account, stopped.ID); err != nil || x.Status != api.ImportCancelled {
		t.Errorf("after the stop: %+v, %v", x, err)
	}
	w.open(16 << 20)
	for _, id := range []string{killed.ID, stopped.ID} {
		if x := w.until(id, hasEnded); x.Status != api.ImportCancelled || x.Read != 0 {
			t.Errorf("after the start: %+v", x)
		}
	}
}

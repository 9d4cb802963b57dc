package uploads

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// sharing is a file of people who share identifiers, written in several ways. The columns
// are as [sharingHeader] has them.
func sharing(rng *rand.Rand, rows int) string {
	some := func(chance float64, values ...string) string {
		if rng.Float64() >= chance {
			return ""
		}
		return values[rng.IntN(len(values))]
	}
	var b strings.Builder
	b.WriteString(sharingHeader)
	// Few values for many rows, and some rows that share none.
	of := max(rows/4, 2)
	for i := range rows {
		n := rng.IntN(of)
		email := some(0.6, fmt.Sprintf("p%d@people.example", n), fmt.Sprintf("P%d@People.example", n), fmt.Sprintf(" p%d@people.example ", n),
			fmt.Sprintf("stra%c%ce%d@people.example", 's', 's', n%5), fmt.Sprintf("straße%d@people.example", n%5))
		id := some(0.5, fmt.Sprint("c-", rng.IntN(of)))
		phone := some(0.5, fmt.Sprintf("+49 30 %03d", rng.IntN(of)), fmt.Sprintf("+4930%03d", rng.IntN(of)), fmt.Sprintf("+49 (30) %03d", rng.IntN(of)))
		if rng.IntN(5) == 0 {
			email, id, phone = fmt.Sprintf("alone%d@people.example", i), "", ""
		}
		fmt.Fprintf(&b, "%s,%s,%s,%s,%s,%s,%s\n", email, id, phone, some(0.7, fmt.Sprint("F", i)), some(0.3, fmt.Sprint("L", i)), some(0.5, fmt.Sprint("r", i)), some(0.4, "yes", "no", "TRUE", "0"))
	}
	return b.String()
}

const sharingHeader = "email,external_id,phone,first_name,last_name,attributes.row,subscribed\n"

// everybody is what is known of all people, in no order that depends on when they came.
func (w *world) everybody() (out []string) {
	w.t.Helper()
	w.read(func(v *resolver.View) {
		for _, o := range v.Profiles().Page(0, 1_000_000) {
			p, err := v.Profiles().Get(o)
			ok(w.t, err)
			// Which of its kind is the newest matters; a window that is done again mixes kinds.
			slices.SortStableFunc(p.Identities, func(x, y view.Identity) int { return cmp.Compare(x.Kind, y.Kind) })
			var said []string
			for _, c := range p.Consents {
				said = append(said, c.Channel+" "+c.Status)
			}
			for _, c := range p.Conflicts {
				said = append(said, fmt.Sprint(c.Kind, c.Value, c.Reason))
			}
			out = append(out, fmt.Sprint(p.Identities, p.FirstName, p.LastName, string(p.Attributes), said, len(p.Lists)))
		}
	})
	slices.Sort(out)
	return out
}

// count is how many people there are.
func (w *world) count() (n int) {
	w.read(func(v *resolver.View) { n = len(v.Profiles().Page(0, 1_000_000)) })
	return n
}

// oneByOne takes the rows of a file one after the other. It returns the lines that were
// refused, with the reasons.
func (w *world) oneByOne(text, list string) (refused []api.ImportRefusal) {
	w.t.Helper()
	u := &upload{account: w.account, saved: saved{Kind: api.ImportPeople, fileFacts: fileFacts{Header: strings.Split(strings.SplitN(text, "\n", 2)[0], ",")}, Plan: api.ImportPlan{ListID: list}}}
	r, err := u.plan(&u.Plan)
	ok(w.t, err)
	rows, err := importer.NewRows(strings.NewReader(text), r.options)
	ok(w.t, err)
	p, err := w.newPeople(u)
	ok(w.t, err)
	_, err = p.begin(w.t.Context())
	ok(w.t, err)
	for {
		var row importer.Row
		if rows.Next(&row) != nil {
			return refused
		}
		result, err := p.take(w.t.Context(), 0, []importer.Row{row})
		ok(w.t, err)
		refused = append(refused, result.refused...)
	}
}

// newList makes a list.
func (w *world) newList() string {
	w.t.Helper()
	b, err := w.node.Command(w.t.Context(), w.account, contacts.CommandListCreate, contacts.ListSave{Name: "Newsletter"})
	ok(w.t, err)
	var l struct{ ID string }
	ok(w.t, json.Unmarshal(b, &l))
	return l.ID
}

// TestRowsThatShareApplyInOrder: files whose rows share identifiers make the same people,
// and are refused the same rows, as one row after the other; so does a second file of
// people on file, of whom the state alone knows that two rows are of one.
func TestRowsThatShareApplyInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, want := newWorld(t), newWorld(t)
			rng := rand.New(rand.NewPCG(seed, 67))
			for range 2 {
				list, listOfWant := "", ""
				if rng.IntN(2) == 0 {
					list, listOfWant = w.newList(), want.newList()
				}
				file := sharing(rng, 100+rng.IntN(500))
				x := w.upload(api.ImportPeople, file)
				w.begin(x.ID, api.ImportPlan{ListID: list})
				x = w.until(x.ID, hasEnded)
				refused := want.oneByOne(file, listOfWant)
				sameRefusals(t, x, refused)
				samePeople(t, w.everybody(), want.everybody())
			}
		})
	}
}

// TestRowsThatShareAfterStops: the same, when the import is stopped in the middle of
// windows, so that they are done again.
func TestRowsThatShareAfterStops(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, want := newWorld(t), newWorld(t)
			rng := rand.New(rand.NewPCG(seed, 68))
			file := sharing(rng, 1000)
			list, listOfWant := w.newList(), want.newList()
			for _, w := range []*world{w, want} {
				// On file without the list, some of them without an e-mail.
				w.oneByOne(sharing(rand.New(rand.NewPCG(seed, 69)), 60), "")
			}
			x := w.upload(api.ImportPeople, file)
			w.begin(x.ID, api.ImportPlan{ListID: list})
			for range 12 {
				from, more := w.count(), rng.IntN(40)
				w.until(x.ID, func(x api.Import) bool { return hasEnded(x) || w.count() >= from+more })
				w.Close()
				w.open(16 << 20)
			}
			x = w.until(x.ID, hasEnded)
			refused := want.oneByOne(file, listOfWant)
			sameRefusals(t, x, refused)
			samePeople(t, w.everybody(), want.everybody())
		})
	}
}

func sameRefusals(t *testing.T, x api.Import, want []api.ImportRefusal) {
	t.Helper()
	if x.Status != api.ImportDone || x.Refused != uint64(len(want)) || !slices.Equal(x.Refusals, want[:min(len(want), showRefusals)]) {
		t.Errorf("%d rows were refused, %d one by one:\n%v\n%v", x.Refused, len(want), x.Refusals, want)
	}
}

func samePeople(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	var more, less []string
	for _, x := range got {
		if !slices.Contains(want, x) {
			more = append(more, x)
		}
	}
	for _, x := range want {
		if !slices.Contains(got, x) {
			less = append(less, x)
		}
	}
	t.Errorf("%d people, %d one by one; %d differ, such as\n%s\nwhere one by one has\n%s", len(got), len(want), len(more), strings.Join(more[:min(len(more), 3)], "\n"), strings.Join(less[:min(len(less), 3)], "\n"))
}

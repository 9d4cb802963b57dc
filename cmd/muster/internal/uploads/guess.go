package uploads

import (
	"slices"
	"strings"
	"unicode"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// Names of columns that other programs write, by what they stand for. Of several in one
// file the first is it.
var names = map[string][]string{
	"email":       {"email", "e_mail", "mail", "email_address", "e_mail_address", "emailaddress"},
	"external_id": {"external_id", "externalid", "customer_id", "customerid", "customer_no", "customer_number", "user_id", "userid", "contact_id", "client_id", "member_id", "id"},
	"phone":       {"phone", "phone_number", "phonenumber", "mobile", "mobile_phone", "mobile_number", "telephone", "tel", "cell", "cell_phone"},
	"first_name":  {"first_name", "firstname", "given_name", "vorname", "prenom"},
	"last_name":   {"last_name", "lastname", "surname", "family_name", "nachname", "nom"},
	"geo.country": {"country", "country_code"},
	"geo.city":    {"city", "town"},
	"geo.region":  {"region", "state", "province"},
}

// Those of people alone. Both of them in one file are a fault: neither is passed over.
var peopleNames = map[string][]string{
	"subscribed":   {"subscribed", "is_subscribed", "opt_in", "opted_in", "accepts_marketing"},
	"unsubscribed": {"unsubscribed", "is_unsubscribed", "opt_out", "opted_out"},
}

// Those of events alone.
var eventNames = map[string][]string{
	"event_type":      {"event_type", "event", "event_name", "eventname", "type", "action"},
	"timestamp":       {"timestamp", "time", "date", "datetime", "date_time", "occurred_at", "event_time", "created_at", "order_date"},
	"idempotency_key": {"idempotency_key", "event_id", "message_id"},
}

// textWords end the names of columns whose cells look like numbers and are none.
var textWords = []string{"id", "ids", "no", "nr", "number", "code", "zip", "zipcode", "postcode", "postal", "plz", "sku", "ean", "gtin", "isbn", "iban", "vat", "phone", "mobile", "fax", "reference", "ref", "version"}

// snake is a name in snake case: letters and digits, with single underscores between.
func snake(name string) string {
	var b strings.Builder
	gap := false
	for _, c := range strings.ToLower(name) {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(c)
	}
	return b.String()
}

// column is how a column of a file is read.
type column struct {
	field string // "" leaves it out
	kind  string // text, number, boolean or time
	own   bool   // the field has a type of its own
}

// setOwnKind sets the type of a field that has another of its own than text.
func (c *column) setOwnKind() {
	switch {
	case c.field == "timestamp":
		c.kind = "time"
	case c.own && (c.field == "subscribed" || c.field == "unsubscribed"):
		c.kind = "boolean"
	}
}

// guess says what the columns of a file are taken for, in their order. Names that muster
// import takes stand for themselves.
func (u *upload) guess() []column {
	people := u.Kind == api.ImportPeople
	out := make([]column, len(u.Header))
	used := map[string]bool{}
	for i, name := range u.Header {
		if _, err := importer.CheckField(name, people); err == nil && !used[name] {
			out[i].field, used[name] = name, true
		}
	}
	synonyms := func(list map[string][]string) {
		for field, known := range list {
			if used[field] {
				continue
			}
			// In the order of the names, so that customer_id comes before id.
			for _, k := range known {
				if i := slices.IndexFunc(u.Header, func(name string) bool { return snake(name) == k }); i >= 0 && out[i].field == "" {
					out[i].field, used[field] = field, true
					break
				}
			}
		}
	}
	if people {
		synonyms(peopleNames)
	} else {
		synonyms(eventNames)
	}
	synonyms(names)
	rest := map[bool]string{true: "attributes.", false: "properties."}[people]
	for i, name := range u.Header {
		if out[i].field == "" {
			if s := snake(name); s != "" && !used[rest+s] {
				out[i].field, used[rest+s] = rest+s, true
			}
		}
	}
	for i := range out {
		own, _ := importer.CheckField(out[i].field, people)
		out[i].own, out[i].kind = own, u.kindOf(i)
		words := strings.Split(snake(u.Header[i]), "_")
		if own || slices.Contains(textWords, words[len(words)-1]) {
			out[i].kind = "text"
		}
		out[i].setOwnKind()
	}
	return out
}

// kindOf is the type of a column's cells.
func (u *upload) kindOf(i int) string {
	if i < len(u.Types) && u.Types[i] != "" {
		return u.Types[i]
	}
	return "text"
}

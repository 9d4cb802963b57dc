package orders

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// The standard events.
const (
	EventPlaced   = "order_placed"
	EventRefunded = "order_refunded"
	EventCart     = "cart_updated"
)

// Kind is which standard event an event is.
type Kind uint8

// The kinds. None is any other event.
const (
	None Kind = iota
	Placed
	Refunded
	CartUpdated
)

// KindOf is the kind of events of a type. It is asked of every event, so it looks nothing up.
func KindOf(eventType []byte) Kind {
	switch string(eventType) {
	case EventPlaced:
		return Placed
	case EventRefunded:
		return Refunded
	case EventCart:
		return CartUpdated
	}
	return None
}

// The bounds of what events say.
const (
	MaxIDBytes = 200
	// MaxItems is how many items are kept of an order or a cart, the first ones.
	MaxItems     = 50
	maxItemBytes = 200 // of a product's id and of its name
)

// Item is a line of an order or a cart.
type Item struct {
	ProductID string  `json:"product_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Quantity  float64 `json:"quantity"`
	Price     Amount  `json:"price"`
}

// Event is a standard event as it was read.
type Event struct {
	Kind     Kind
	ID       string // of the order, or of the cart
	Total    Amount
	Currency string // three capital letters; "" for a cart that names none
	Items    []Item // the first MaxItems
	Count    int    // of all items
	Empty    bool   // of a cart: it says that nothing is in it
	// Refund is what a refund takes off, Whole that it is all that is left.
	Refund Amount
	Whole  bool
}

// Problem is why an event changed less than the sender may think.
type Problem uint8

// The problems.
const (
	Fine Problem = iota
	BadOrder
	BadRefund
	BadCart
	PublicKey
	Repeated
	TooMany
	RefundsMore
	BadTotal
	BadCurrency
	BadItems
)

// The texts have nothing that JSON escapes.
var problems = [...]string{
	BadOrder:    "recorded as an event, not as an order: order_placed needs order_id (a text of 1 to 200 bytes), total (a number from 0 on, below 1e11) and currency (three letters of ISO 4217); items is a list of objects with product_id, name, quantity and price",
	BadRefund:   "recorded as an event, not as a refund: order_refunded needs order_id (a text of 1 to 200 bytes); amount is a number above 0 and below 1e11, and is left out for all that is left of the order",
	BadCart:     "recorded as an event, not as a cart: items of cart_updated is a list of objects with product_id, name, quantity and price; cart_id is a text of at most 200 bytes, total a number from 0 on, currency three letters of ISO 4217",
	PublicKey:   "recorded as an event, and revenue did not change: orders and refunds are taken from servers, not with a key of a browser, which everybody can read",
	Repeated:    "not recorded again: there is an order with this order_id, and this answer has its profile",
	TooMany:     "recorded as an event, and revenue did not change: the profile has 1000 orders, or the account has reached the most currencies or revenue that it can have",
	RefundsMore: "recorded; refunds take off no more than what is left of the order",
	BadTotal:    "recorded as an event, not as an order or a cart: total must be a number from 0 on, below 1e11",
	BadCurrency: "recorded as an event, not as an order or a cart: currency must be a code of ISO 4217, such as EUR or usd",
	BadItems:    "recorded as an event, not as an order or a cart: quantity and price of items must be numbers from 0 on, below 1e11",
}

// Warning is the warning that the sender gets of a problem, "" for none.
func (p Problem) Warning() string { return problems[p] }

// bad is the problem of properties that are not as documented.
var bad = [...]Problem{Placed: BadOrder, Refunded: BadRefund, CartUpdated: BadCart}

// properties are those of all standard events. What is null is as if it were left out.
type properties struct {
	OrderID  *string         `json:"order_id"`
	CartID   *string         `json:"cart_id"`
	Total    *float64        `json:"total"`
	Amount   *float64        `json:"amount"`
	Currency *string         `json:"currency"`
	Items    *[]itemProperty `json:"items"`
}

type itemProperty struct {
	ProductID *string  `json:"product_id"`
	Name      *string  `json:"name"`
	Quantity  *float64 `json:"quantity"`
	Price     *float64 `json:"price"`
}

// exact are the names of the properties: encoding/json takes them in any case, and conditions
// of segments do not.
func exact(raw []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	kept := map[string]json.RawMessage{}
	for _, name := range [...]string{"order_id", "cart_id", "total", "amount", "currency", "items"} {
		if v, ok := all[name]; ok {
			kept[name] = v
		}
	}
	return json.Marshal(kept)
}

// Read reads the properties of a standard event of a kind under a version of the state
// machine's rules. redacted says that the event was redacted: then the order's id may be masked.
func Read(kind Kind, raw []byte, redacted bool, rules int) (x Event, problem Problem) {
	var p properties
	raw, err := exact(raw)
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return Event{}, bad[kind]
	}
	x.Kind = kind
	ok := true
	switch kind {
	case Placed:
		if ok = p.OrderID != nil && p.Total != nil && p.Currency != nil && x.readID(p.OrderID, redacted); ok {
			problem = x.readSum(&p, rules)
		}
	case Refunded:
		ok = p.OrderID != nil && x.readID(p.OrderID, redacted)
		if x.Whole = p.Amount == nil; !x.Whole && ok {
			x.Refund, ok = amountOf(*p.Amount)
			ok = ok && x.Refund > 0
		}
	case CartUpdated:
		if ok = (p.Items != nil || rules >= rulesCarts) && (p.CartID == nil || *p.CartID == "" || x.readID(p.CartID, redacted)); ok {
			problem = x.readSum(&p, rules)
			x.Empty = rules >= rulesCarts && saysEmpty(&p)
		}
	}
	if !ok || problem != Fine && rules < rulesProblems {
		problem = bad[kind]
	}
	if problem != Fine {
		return Event{}, problem
	}
	return x, Fine
}

// saysEmpty reports whether a cart says that nothing is in it: by a list without items, by a
// total of 0, or by saying nothing of either.
func saysEmpty(p *properties) bool {
	switch {
	case p.Items != nil && len(*p.Items) == 0:
		return true
	case p.Total != nil:
		return *p.Total == 0
	}
	return p.Items == nil
}

// PlacedID reads the id of order_placed alone: whatever the rest of the event says, it repeats the
// order that has the id.
func PlacedID(raw []byte, redacted bool) (id string, ok bool) {
	var all map[string]json.RawMessage
	var given *string
	if json.Unmarshal(raw, &all) != nil || json.Unmarshal(all["order_id"], &given) != nil || given == nil {
		return "", false
	}
	var x Event
	return *given, x.readID(given, redacted)
}

func (x *Event) readID(id *string, redacted bool) bool {
	x.ID = *id
	return strings.TrimSpace(x.ID) != "" && len(x.ID) <= MaxIDBytes && utf8.ValidString(x.ID) && (redacted || !identifier.IsMasked(x.ID))
}

// readSum reads what orders and carts have in common.
func (x *Event) readSum(p *properties, rules int) Problem {
	var ok bool
	if p.Total != nil {
		if x.Total, ok = amountOf(*p.Total); !ok {
			return BadTotal
		}
	}
	if p.Currency != nil {
		if x.Currency, ok = currencyOf(*p.Currency); !ok || rules >= rulesCurrencies && !currencies[x.Currency] {
			return BadCurrency
		}
	}
	if p.Items == nil {
		return Fine
	}
	x.Count = len(*p.Items)
	for _, it := range *p.Items {
		if len(x.Items) == MaxItems {
			break
		}
		var item Item
		if it.ProductID != nil {
			item.ProductID = clip.Valid(*it.ProductID, maxItemBytes)
		}
		if it.Name != nil {
			item.Name = clip.Valid(*it.Name, maxItemBytes)
		}
		if item.Quantity = 1; it.Quantity != nil {
			item.Quantity = *it.Quantity
		}
		if rules >= rulesQuantities && !(item.Quantity >= 0 && item.Quantity < maxAmount) {
			return BadItems
		}
		if it.Price != nil {
			if item.Price, ok = amountOf(*it.Price); !ok {
				return BadItems
			}
		}
		x.Items = append(x.Items, item)
	}
	return Fine
}

// currencyOf is a currency's code of three letters in capitals, whether or not there is one.
func currencyOf(text string) (string, bool) {
	code := []byte(text)
	if len(code) != 3 {
		return "", false
	}
	for i, c := range code {
		if c |= 0x20; c < 'a' || c > 'z' {
			return "", false
		}
		code[i] = c &^ 0x20
	}
	return string(code), true
}

// Mask is what is left of the properties of a standard event of an erased person: what a
// replay of the log needs for the figures of the account, with the order's id in the place of
// which mask gives another text. It is nil for events that were no orders. Of one that has the
// id of an order and is none otherwise, the id is left, for it may repeat an order. What is left
// is an order, or none, under the same versions of the rules as the event.
func Mask(kind Kind, raw []byte, redacted bool, mask func(id string) string) []byte {
	if kind != Placed && kind != Refunded {
		return nil
	}
	x, problem := Read(kind, raw, redacted, 0) // later rules take fewer events as orders
	if problem != Fine {
		id, ok := PlacedID(raw, redacted)
		if kind != Placed || !ok {
			return nil
		}
		x.ID = id
	}
	if !identifier.IsMasked(x.ID) {
		x.ID = mask(x.ID)
	}
	out := map[string]any{"order_id": x.ID}
	switch {
	case problem != Fine:
	case kind == Placed:
		out["total"], out["currency"] = x.Total.Number(), x.Currency
		if _, problem := Read(kind, raw, redacted, rulesQuantities); problem == BadItems {
			out["items"] = []any{map[string]any{"quantity": -1}}
		}
	case !x.Whole:
		out["amount"] = x.Refund.Number()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		panic(err) // texts and numbers encode
	}
	return bytes.TrimSpace(b.Bytes())
}

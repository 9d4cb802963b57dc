package revenue

import (
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/orders"
)

// Operations are the calls about orders and revenue.
func Operations() handler.Group {
	order := shape.Named("Order", shape.Object(
		shape.Req("order_id", shape.Text("A-1001", "")), shape.Req("profile_id", shape.ProfileID("")), shape.Req("ordered_at", shape.Instant("The event's own time.")),
		shape.Req("currency", shape.Text("EUR", "")), shape.Req("total", shapes.Amount("59.90", "Before refunds: a decimal, as a text.")), shape.Req("refunded", shapes.Amount("9.90", "")),
		shape.Req("refunded_at", shape.Instant("Time of the newest refund.").OrNull()),
		shape.Req("items", shapes.Items()), shape.Req("item_count", shape.Count(2, "Of all lines, also of those that are not kept.")),
		shape.Req("attributed_to", shape.Named("OrderAttribution", shape.Object(
			shape.Req("kind", shape.Word("What the person did with the message before the order.", orders.TouchClick, orders.TouchOpen)), shape.Req("at", shape.Instant("")), shape.Req("channel", shape.Text("email", "")),
			shape.Req("campaign_id", shape.CampaignID("").OrNull()), shape.Req("flow_id", shape.FlowID("").OrNull()), shape.Req("step_id", shape.Text("remind", "").OrNull()),
		)).Says("The newest click or open of a message within the windows of the settings; null for none.").OrNull()),
	))
	cart := shape.Named("Cart", shape.Object(
		shape.Req("cart_id", shape.Text("c-7", "").OrNull()), shape.Req("updated_at", shape.Instant("")), shape.Req("currency", shape.Text("EUR", "").OrNull()), shape.Req("total", shapes.Amount("59.90", "")),
		shape.Req("items", shapes.Items()), shape.Req("item_count", shape.Count(2, "")), shape.Req("ordered", shape.Boolean(false, "Whether an order followed.")),
	)).Says("The newest one; null for none.").OrNull()
	day := shape.Named("RevenueDay", shape.Object(append([]shape.Field{
		shape.Req("date", shape.Text("2026-11-26", "A day of UTC, of orders by their own time and of refunds by theirs.")),
		shape.Req("attributed_orders", shape.Count(1, "Orders that belong to messages.")), shape.Req("attributed_revenue", shapes.Amount("49.90", "What they brought, after refunds.")),
	}, shapes.RevenueFields()...)...))
	all := shape.Named("RevenueTotal", shape.Object(append([]shape.Field{
		shape.Req("attributed_orders", shape.Count(1, "Orders that belong to messages.")), shape.Req("attributed_revenue", shapes.Amount("49.90", "What they brought, after refunds.")),
	}, shapes.RevenueFields()...)...))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: orders", Title: "Orders and revenue",
		About: "Orders come by the events `order_placed` and `order_refunded`, carts by `cart_updated`. An order counts once, however often it is sent."}, Routes: []handler.Route{
		{Handle: ofProfile, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/orders", Permission: "contacts:read", ID: "profileOrders", Summary: "List a profile's orders", About: "The newest first, with what the person bought in all, and the newest cart.", Query: operation.PageQuery(),
			Data: shape.Object(shape.Req("revenue", shape.List(shapes.Revenue(), "By currency.")), shape.Req("first_order_at", shape.Instant("").OrNull()), shape.Req("last_order_at", shape.Instant("").OrNull()),
				shape.Req("cart", cart), shape.Req("orders", shape.List(order, "")), shape.Req("next", shape.NextCursor.OrNull()))}},
		{Handle: get, Operation: operation.Operation{Method: "GET", Path: "/orders", Permission: "contacts:read", ID: "getOrder", Summary: "Read an order", About: "By its `order_id`, which is required.",
			Query: []operation.Parameter{operation.Query("order_id", shape.Text("A-1001", "Id of the order, as the shop sent it."))}, Data: order, Also: []int{404}}},
		{Handle: report, Operation: operation.Operation{Method: "GET", Path: "/revenue", Permission: "analytics:read", ID: "getRevenue", Summary: "Read revenue by day and by message", About: "An account keeps the newest 400 days. Totals and sources are of all days together.",
			Query: []operation.Parameter{
				operation.Query("from", shape.Text("2026-11-01", "First day, of UTC.")), operation.Query("to", shape.Text("2026-11-26", "Last day, of UTC.")),
				operation.Query("campaign_id", shape.CampaignID("Sources of this campaign alone.")), operation.Query("flow_id", shape.FlowID("Sources of this flow alone.")),
			}, Data: shape.Object(shape.Req("totals", shape.List(all, "By currency.")), shape.Req("days", shape.List(day, "By day and currency, the oldest first; days on which nothing happened are left out.")),
				shape.Req("sources", shape.List(shapes.SourceRevenue(), "What belongs to messages: by campaign, or flow and step, with channel and currency. Of each currency the 200 with the most revenue; `campaign_id` or `flow_id`, one of them, chooses before."))), Also: []int{404}}},
	}}
}

// item is a line of an order or a cart.
type item struct {
	ProductID string  `json:"product_id"`
	Name      string  `json:"name"`
	Quantity  float64 `json:"quantity"`
	Price     string  `json:"price"`
}

func newItems(list []orders.Item) []item {
	out := []item{}
	for _, x := range list {
		out = append(out, item{x.ProductID, x.Name, x.Quantity, x.Price.String()})
	}
	return out
}

type order struct {
	ID           string       `json:"order_id"`
	ProfileID    string       `json:"profile_id"`
	OrderedAt    string       `json:"ordered_at"`
	Currency     string       `json:"currency"`
	Total        string       `json:"total"`
	Refunded     string       `json:"refunded"`
	RefundedAt   *string      `json:"refunded_at"`
	Items        []item       `json:"items"`
	ItemCount    int          `json:"item_count"`
	AttributedTo *attribution `json:"attributed_to"`
}

type attribution struct {
	Kind       string  `json:"kind"`
	At         string  `json:"at"`
	Channel    string  `json:"channel"`
	CampaignID *string `json:"campaign_id"`
	FlowID     *string `json:"flow_id"`
	StepID     *string `json:"step_id"`
}

func newOrder(x *orders.Order, profile string) order {
	out := order{ID: x.ID, ProfileID: profile, OrderedAt: record.Time(x.AtMs), Currency: x.Currency, Total: x.Total.String(), Refunded: x.Refunded().String(), RefundedAt: record.TimeOrNull(x.RefundMs),
		Items: newItems(x.Items), ItemCount: x.Count}
	if t := x.Touch; t != nil {
		out.AttributedTo = &attribution{t.Kind, record.Time(t.AtMs), t.Channel, record.TextOrNull(t.Campaign), record.TextOrNull(t.Flow), record.TextOrNull(t.Step)}
	}
	return out
}

type cart struct {
	ID        *string `json:"cart_id"`
	UpdatedAt string  `json:"updated_at"`
	Currency  *string `json:"currency"`
	Total     string  `json:"total"`
	Items     []item  `json:"items"`
	ItemCount int     `json:"item_count"`
	Ordered   bool    `json:"ordered"`
}

const cursorBytes = 8 + 16

// ofProfile answers GET /profiles/{id}/orders.
func ofProfile(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	place, err := c.Cursor(paging.Orders, cursorBytes)
	if err != nil {
		return nil, err
	}
	var before *orders.Position
	if place != nil {
		before = &orders.Position{AtMs: int64(binary.LittleEndian.Uint64(place))}
		copy(before.Hash[:], place[8:])
	}
	var out struct {
		Revenue      []record.Revenue `json:"revenue"`
		FirstOrderAt *string          `json:"first_order_at"`
		LastOrderAt  *string          `json:"last_order_at"`
		Cart         *cart            `json:"cart"`
		Orders       []order          `json:"orders"`
		Next         *string          `json:"next"`
	}
	out.Revenue, out.Orders = []record.Revenue{}, []order{}
	return &out, c.Read(func(v *resolver.View) error {
		ordinal, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		s := v.Orders().Summary(ordinal)
		for _, f := range s.Totals {
			out.Revenue = append(out.Revenue, record.NewRevenue(f.Currency, f.Figures))
		}
		out.FirstOrderAt, out.LastOrderAt = record.TimeOrNull(s.FirstMs), record.TimeOrNull(s.LastMs)
		if x := s.Cart; x != nil {
			out.Cart = &cart{record.TextOrNull(x.ID), record.Time(x.AtMs), record.TextOrNull(x.Currency), x.Total.String(), newItems(x.Items), x.Count, s.Ordered}
		}
		list, next := v.Orders().Orders(ordinal, before, limit)
		for i := range list {
			out.Orders = append(out.Orders, newOrder(&list[i], v.Profiles().ID(ordinal).String()))
		}
		if next != nil {
			cursor := paging.Encode(paging.Orders, append(binary.LittleEndian.AppendUint64(nil, uint64(next.AtMs)), next.Hash[:]...))
			out.Next = &cursor
		}
		return nil
	})
}

var errNoOrder = handler.NotFound("there is no order with this order_id")

// get answers GET /orders.
func get(c *handler.Call) (out any, err error) {
	id := string(c.QueryArgs().Peek("order_id"))
	if id == "" || len(id) > orders.MaxIDBytes {
		return nil, handler.BadField("order_id", "order_id must have 1 to %d bytes", orders.MaxIDBytes)
	}
	return out, c.Read(func(v *resolver.View) error {
		x, ordinal, ok := v.Orders().Get(id)
		if !ok {
			return errNoOrder
		}
		out = newOrder(&x, v.Profiles().ID(ordinal).String())
		return nil
	})
}

// total is revenue with the part that belongs to messages.
type total struct {
	AttributedOrders  int64  `json:"attributed_orders"`
	AttributedRevenue string `json:"attributed_revenue"`
	record.Revenue
}

func newTotal(d *orders.Day) total {
	return total{d.Attributed.Orders, d.Attributed.Revenue().String(), record.NewRevenue(d.Currency, d.Figures)}
}

type day struct {
	Date string `json:"date"`
	total
}

// topSources is how many sources an answer has of each currency.
const topSources = 200

// report answers GET /revenue.
func report(c *handler.Call) (any, error) {
	from, to, err := c.Days()
	if err != nil {
		return nil, err
	}
	campaign, err := c.Filled("campaign_id")
	if err != nil {
		return nil, err
	}
	flow, err := c.Filled("flow_id")
	if err != nil {
		return nil, err
	}
	if campaign != "" && flow != "" {
		return nil, handler.BadField("flow_id", "flow_id must be left out beside campaign_id: revenue belongs to one of them")
	}
	out := struct {
		Totals  []total                `json:"totals"`
		Days    []day                  `json:"days"`
		Sources []record.SourceRevenue `json:"sources"`
	}{[]total{}, []day{}, nil}
	var totals, days []orders.Day
	var sources []*orders.SourceFigures
	if err := c.Read(func(v *resolver.View) error {
		totals, days = v.Orders().Totals(), v.Orders().Days(from, to)
		sources = v.Orders().Sources(func(s *orders.Source) bool {
			return (campaign == "" || s.Campaign == campaign) && (flow == "" || s.Flow == flow)
		})
		// What is deleted keeps its revenue.
		if len(sources) == 0 && campaign != "" {
			if _, ok := v.Campaigns().Campaign(campaign); !ok {
				return handler.NotFound("campaign_id: there is no such campaign")
			}
		}
		if len(sources) == 0 && flow != "" {
			if _, ok := v.Flows().Find(flow); !ok {
				return handler.NotFound("flow_id: there is no such flow")
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, d := range totals {
		out.Totals = append(out.Totals, newTotal(&d))
	}
	for _, d := range days {
		out.Days = append(out.Days, day{d.Date, newTotal(&d)})
	}
	out.Sources = record.SourceRevenues(orders.TopSources(sources, topSources))
	return &out, nil
}

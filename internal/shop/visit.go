package shop

import (
	"fmt"
	"maps"
)

// visit is one time a customer is there.
type visit struct {
	atMs int64
	who  uint32
	buys bool
}

// visit makes the events of a visit.
func (g *generator) visit(v visit) {
	c := &g.people[v.who]
	t := v.atMs
	step := func(lo, hi int64) int64 {
		t += (lo + g.rng.Int64N(hi-lo)) * msPerSecond
		return t
	}
	if c.guest && !c.account && !v.buys {
		// A guest who only looks leaves no name.
		return
	}
	if !c.guest && !c.account {
		if c.newsletter && g.rng.IntN(2) == 0 {
			g.add(&event{EventType: subscribed, User: person{Email: c.email()}, atMs: t, who: c})
			step(60, 3000)
		}
		g.signUp(c, t)
		step(20, 200)
	}
	if c.newsletter && c.seen && c.emailKnown(t) && g.rng.IntN(5) == 0 {
		g.add(&event{EventType: clicked, User: person{Email: c.email()}, atMs: t, who: c,
			Properties: map[string]any{"campaign": fmt.Sprintf("week-%02d", (t/msPerDay+3)/7%52+1)}})
		step(5, 40)
	}
	if !c.guest || c.account {
		g.add(&event{EventType: pageViewed, User: g.user(c, t), atMs: t, who: c,
			Properties: map[string]any{"path": []string{"/", "/sale", "/new", "/gifts"}[g.rng.IntN(4)]}})
	}
	looks := 1 + g.rng.IntN(3)
	var cart []*product
	for range looks {
		p := pick(g.rng, g.catalogue)
		if !c.guest || c.account {
			step(8, 120)
			g.add(&event{EventType: productViewed, User: g.user(c, t), atMs: t, who: c,
				Properties: map[string]any{"product_id": p.id, "category": p.category}})
		}
		if v.buys || g.rng.IntN(6) == 0 {
			cart = append(cart, p)
		}
	}
	for _, p := range cart {
		if v.buys && c.guest && !c.account {
			break
		}
		step(5, 60)
		g.add(&event{EventType: addedToCart, User: g.user(c, t), atMs: t, who: c,
			Properties: map[string]any{"product_id": p.id, "unit_price": amount(p.cents)}})
	}
	if v.buys {
		step(60, 400)
		g.buy(c, t, cart)
	}
}

// signUp makes an account; its e-mail is confirmed later, or never.
func (g *generator) signUp(c *customer, t int64) {
	u := person{ExternalID: c.externalID(), FirstName: c.first, LastName: c.last, Geo: c.place(),
		Attributes: map[string]any{"newsletter": c.newsletter, "tier": c.tier}}
	if c.guest {
		// The e-mail of the guest's orders comes with it and joins the two.
		u.Email = c.email()
		c.emailKnownMs = t
	}
	c.account = true
	g.add(&event{EventType: signedUp, User: u, atMs: t, who: c})
	if c.guest || !c.confirms {
		return
	}
	// Half confirm at once, the others within days.
	late := (30 + g.rng.Int64N(600)) * msPerSecond
	if g.rng.IntN(2) == 0 {
		late = msPerHour + g.rng.Int64N(6*24)*msPerHour
	}
	c.emailKnownMs = t + late
	g.add(&event{EventType: confirmed, User: person{Email: c.email(), ExternalID: c.externalID()}, atMs: c.emailKnownMs, who: c})
}

// buy makes an order, and what is sent back of it.
func (g *generator) buy(c *customer, t int64, cart []*product) {
	g.orders++
	c.orders++
	order := fmt.Sprintf("O%06d", g.orders)
	user := g.user(c, t)
	if c.hasPhone {
		user.Phone = c.phone()
	}
	if c.guest && c.orders == 1 {
		user.FirstName, user.LastName, user.Geo = c.first, c.last, c.place()
	}
	for i, p := range cart {
		quantity := int64(1)
		for quantity < 6 && g.rng.IntN(4) == 0 {
			quantity++
		}
		cents := p.cents * quantity
		c.spentCents += cents
		u := user
		if tier := tierOf(c.spentCents); tier != c.tier {
			c.tier = tier
			u.Attributes = map[string]any{"tier": tier}
		}
		properties := map[string]any{"order_id": order, "product_id": p.id, "category": p.category,
			"quantity": quantity, "unit_price": amount(p.cents), "value": amount(cents), "currency": "EUR"}
		g.add(&event{EventType: purchased, User: u, atMs: t + int64(i)*msPerSecond, who: c, cents: cents, Properties: properties})
		if g.rng.IntN(100) < 6 {
			back := maps.Clone(properties)
			back["reason"] = []string{"damaged", "too late", "not as expected"}[g.rng.IntN(3)]
			at := t + (3*24+g.rng.Int64N(18*24))*msPerHour + g.rng.Int64N(3600)*msPerSecond
			g.add(&event{EventType: returned, User: g.user(c, t), atMs: at, who: c, Properties: back})
		}
	}
	if c.guest && !c.account && c.signsUp && c.orders >= 2 {
		g.signUp(c, t+5*msPerMinute)
	}
}

// user is how the shop knows the customer of a visit at t.
func (g *generator) user(c *customer, t int64) person {
	switch {
	case !c.account:
		return person{Email: c.email()}
	case c.emailKnown(t) && g.rng.IntN(5) == 0:
		return person{Email: c.email(), ExternalID: c.externalID()}
	default:
		return person{ExternalID: c.externalID()}
	}
}

func (c *customer) emailKnown(t int64) bool { return t > c.emailKnownMs || c.guest && c.orders > 0 }

func (c *customer) place() *place { return &place{c.country.code, c.city} }

func tierOf(cents int64) string {
	switch {
	case cents >= 100_000:
		return "gold"
	case cents >= 30_000:
		return "silver"
	default:
		return "basic"
	}
}

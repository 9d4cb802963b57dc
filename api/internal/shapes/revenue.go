package shapes

import "github.com/musterhq/muster/api/shape"

// Amount is an amount of money.
func Amount(example, about string) *shape.Schema { return shape.Text(example, about) }

func currency() *shape.Schema {
	return shape.Text("EUR", "A code of ISO 4217. Currencies are never added up.")
}

// RevenueFields are the fields of revenue in one currency.
func RevenueFields() []shape.Field {
	return []shape.Field{
		shape.Req("currency", currency()), shape.Req("orders", shape.Count(3, "")),
		shape.Req("total", Amount("179.70", "Of the orders, before refunds: a decimal, as a text.")),
		shape.Req("refunded", Amount("19.90", "Taken off by refunds.")),
		shape.Req("revenue", Amount("159.80", "What is left.")),
		shape.Req("average_order", Amount("59.90", "Average total, before refunds.")),
	}
}

// Revenue is revenue in one currency.
func Revenue() *shape.Schema { return shape.Named("Revenue", shape.Object(RevenueFields()...)) }

// SourceRevenue is the revenue that belongs to messages of a campaign or a step of a flow.
func SourceRevenue() *shape.Schema {
	return shape.Named("SourceRevenue", shape.Object(append([]shape.Field{
		shape.Req("campaign_id", shape.CampaignID("Null for flows.").OrNull()), shape.Req("flow_id", shape.FlowID("Null for campaigns.").OrNull()),
		shape.Req("step_id", shape.Text("remind", "The step that sent the message.").OrNull()), shape.Req("channel", shape.Text("email", "")),
	}, RevenueFields()...)...))
}

// Items are lines of an order or a cart.
func Items() *shape.Schema {
	return shape.List(shape.Named("OrderItem", shape.Object(
		shape.Req("product_id", shape.Text("sku-7", "")), shape.Req("name", shape.Text("Shoe", "")),
		shape.Req("quantity", shape.Number(2, "")), shape.Req("price", Amount("29.95", "Of one.")),
	)), "The first 50.")
}

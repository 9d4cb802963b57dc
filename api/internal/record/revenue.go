package record

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/orders"
)

// Revenue is the revenue of orders in one currency. Amounts are decimals as texts.
type Revenue struct {
	Currency     string `json:"currency"`
	Orders       int64  `json:"orders"`
	Total        string `json:"total"`    // of the orders, before refunds
	Refunded     string `json:"refunded"` // taken off by refunds
	Revenue      string `json:"revenue"`  // what is left
	AverageOrder string `json:"average_order"`
}

// NewRevenue writes figures in a currency.
func NewRevenue(currency string, f orders.Figures) Revenue {
	return Revenue{currency, f.Orders, f.Total.String(), f.Refunded.String(), f.Revenue().String(), f.Average().String()}
}

// SourceRevenue is the revenue of a campaign, or of a step of a flow, on a channel.
type SourceRevenue struct {
	CampaignID *string `json:"campaign_id"`
	FlowID     *string `json:"flow_id"`
	StepID     *string `json:"step_id"`
	Channel    string  `json:"channel"`
	Revenue
}

// CampaignRevenue is the revenue of a campaign on all its channels, by currency.
func CampaignRevenue(v *resolver.View, campaign string) []Revenue {
	return newRevenues(v.Orders().OfCampaign(campaign))
}

// RevenueByCurrency adds up the revenue of sources, by currency.
func RevenueByCurrency(list []*orders.SourceFigures) []Revenue {
	return newRevenues(orders.ByCurrency(list))
}

func newRevenues(list []orders.CurrencyFigures) []Revenue {
	out := []Revenue{}
	for _, f := range list {
		out = append(out, NewRevenue(f.Currency, f.Figures))
	}
	return out
}

// SourceRevenues is the revenue that belongs to messages, in order of what sent them.
func SourceRevenues(list []*orders.SourceFigures) []SourceRevenue {
	orders.SortSources(list)
	out := []SourceRevenue{}
	for _, f := range list {
		out = append(out, SourceRevenue{TextOrNull(f.Campaign), TextOrNull(f.Flow), TextOrNull(f.Step), f.Channel, NewRevenue(f.Currency, f.Figures)})
	}
	return out
}

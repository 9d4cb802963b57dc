package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestL2OrdersSurviveKills kills the process while orders stream in, each sent twice under keys
// of its own, and some refunded: each counts once on the profile, in a segment and in the report.
// The ready flow for carts goes live as it is.
func TestL2OrdersSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inModesAndCluster(t, ordersSurviveKills)
}

func ordersSurviveKills(t *testing.T, start start) {
	t.Parallel()
	kills := rounds(3, 20)
	c := start(t, plainly, "--checkpoint-interval", "300ms")
	var ready []struct {
		ID         string
		Definition json.RawMessage
	}
	var made struct {
		ID     string `json:"_id"`
		Status string
	}
	c.console("GET", "/ready-flows", "", &ready)
	if len(ready) != 1 || ready[0].ID != "abandoned_cart" {
		t.Fatalf("%+v", ready)
	}
	c.console("POST", "/flows", string(ready[0].Definition), &made)
	flow := made.ID
	c.console("POST", "/flows/"+flow+"/publish", "", &made)
	if made.Status != "live" {
		t.Fatalf("the flow is %s", made.Status)
	}
	c.console("POST", "/segments", `{"name":"buyers","definition":{"kind":"activity","event":"revenue_recorded","where":[{"property":"currency","op":"=","value":"EUR"}],"aggregate":{"fn":"sum","property":"amount","op":">=","value":9.99}}}`, &made)
	segment := made.ID
	c.untilLive(segment)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(kills)*20*time.Second)
	defer cancel()
	finish := make(chan struct{})
	load, ctx := errgroup.WithContext(ctx)
	var sent [3]int
	var profiles [3][]string
	var came atomic.Int64
	for w := range sent {
		load.Go(func() error {
			for n := 0; ; n++ {
				select {
				case <-finish:
					return nil
				default:
				}
				person := fmt.Sprintf("p%d-%d", w, n)
				send := func(typ, key, properties string) (profile string, err error) {
					var a struct {
						Success   bool
						ProfileID string `json:"profile_id"`
					}
					err = c.until(ctx, http.StatusAccepted, "/api/v1/events", map[string]any{"event_type": typ, "idempotency_key": person + key, "user": map[string]any{"external_id": person}, "properties": json.RawMessage(properties)}, &a,
						"X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret)
					if err == nil && !a.Success {
						err = fmt.Errorf("%s of %s was refused", typ, person)
					}
					return a.ProfileID, err
				}
				order := fmt.Sprintf(`{"order_id":%q,"total":9.99,"currency":"EUR"}`, person)
				id := ""
				for _, x := range [][3]string{{"cart_updated", "c", `{"items":[],"total":9.99,"currency":"EUR"}`}, {"order_placed", "1", order}, {"order_placed", "2", order}} {
					var err error
					if id, err = send(x[0], x[1], x[2]); err != nil {
						return err
					}
				}
				if n%3 == 0 {
					if _, err := send("order_refunded", "r", fmt.Sprintf(`{"order_id":%q,"amount":0.01}`, person)); err != nil {
						return err
					}
				}
				profiles[w] = append(profiles[w], id)
				sent[w]++
				came.Add(1)
			}
		})
	}
	c.killAtRandom(ctx, t, 4, kills, "orders come", func(kill int) bool { return came.Load() >= int64(10*(kill+1)) })
	close(finish)
	ok(t, load.Wait())
	all, refunds := 0, 0
	for w := range sent {
		all += sent[w]
		refunds += (sent[w] + 2) / 3
	}
	money := func(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
	type revenue struct {
		Orders                   int
		Total, Refunded, Revenue string
	}
	want := revenue{all, money(999 * all), money(refunds), money(999*all - refunds)}
	var report struct{ Totals, Days []revenue }
	c.console("GET", "/revenue", "", &report)
	if len(report.Totals) != 1 || report.Totals[0] != want {
		t.Fatalf("the report has %+v, want %+v", report.Totals, want)
	}
	days := 0
	for _, d := range report.Days {
		days += d.Orders
	}
	if days != all {
		t.Errorf("%d orders on days, want %d", days, all)
	}
	var members struct{ Count int }
	c.console("GET", "/segments/"+segment, "", &members)
	if members.Count != all-refunds {
		t.Errorf("%d in the segment, want %d", members.Count, all-refunds)
	}
	for w := range profiles {
		for n, id := range profiles[w] {
			if n > 10 && n%7 != 0 {
				continue
			}
			var p struct {
				Revenue []revenue
				Orders  []struct {
					ID string `json:"order_id"`
				}
				Cart struct{ Ordered bool }
			}
			c.console("GET", "/profiles/"+id+"/orders", "", &p)
			one := revenue{1, "9.99", "0.00", "9.99"}
			if n%3 == 0 {
				one.Refunded, one.Revenue = "0.01", "9.98"
			}
			if len(p.Revenue) != 1 || p.Revenue[0] != one || len(p.Orders) != 1 || p.Orders[0].ID != fmt.Sprintf("p%d-%d", w, n) || !p.Cart.Ordered {
				t.Fatalf("p%d-%d: %+v", w, n, p)
			}
		}
	}
	var f struct {
		Counts struct {
			Entered int
		}
	}
	c.console("GET", "/flows/"+flow, "", &f)
	if f.Counts.Entered != all {
		t.Errorf("%d carts are in the flow, want %d", f.Counts.Entered, all)
	}
	t.Logf("%d orders, %d refunds", all, refunds)
}

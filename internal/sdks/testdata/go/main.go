// The visit of visit.mjs, sent by Segment's SDK for Go:
//
//	visit ORIGIN WRITE_KEY NAME
//
// Its clock cannot be set. EVENTS in the environment is that of visit.mjs.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/analytics-go/v3"
)

// reporter prints what could not be sent, and knows what is still to be.
type reporter struct{ *sync.WaitGroup }

func (r reporter) Success(analytics.Message) { r.Done() }
func (r reporter) Failure(_ analytics.Message, err error) {
	fmt.Println("error:", err)
	r.Done()
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Logf(string, ...any)   {}
func (silent) Errorf(string, ...any) {}

func main() {
	origin, key, name := os.Args[1], os.Args[2], os.Args[3]
	// Close tries nothing again, so that it must not come before the last message is sent.
	var pending sync.WaitGroup
	events, _ := strconv.Atoi(os.Getenv("EVENTS"))
	batch, pause := 6, time.Millisecond
	if events > 0 {
		batch, pause = 250, 2*time.Second // ten attempts last longer than a start of the server
	}
	client, err := analytics.NewWithConfig(key, analytics.Config{
		Endpoint: origin, Callback: reporter{&pending}, Logger: silent{}, BatchSize: batch,
		RetryAfter: func(int) time.Duration { return pause },
	})
	if err != nil {
		panic(err)
	}
	user, device := "u-"+name, "d-"+name
	at := time.Now()
	send := func(m analytics.Message) {
		pending.Add(1)
		if err := client.Enqueue(m); err != nil {
			fmt.Println("error:", err)
			pending.Done()
		}
	}
	if events > 0 {
		for n := range events {
			send(analytics.Track{UserId: fmt.Sprint("u-", name, "-", n%100), Event: "Loaded go", Properties: analytics.NewProperties().Set("n", n)})
			if n%1000 == 999 {
				pending.Wait()
			}
		}
		pending.Wait()
		if err := client.Close(); err != nil {
			fmt.Println("error:", err)
		}
		fmt.Println("done")
		return
	}
	for _, m := range []analytics.Message{
		analytics.Page{AnonymousId: device, Name: "Home", Properties: analytics.NewProperties().SetURL("https://shop.example/"), Timestamp: at},
		analytics.Track{AnonymousId: device, Event: "Product Viewed", Properties: analytics.NewProperties().Set("sku", "sku-7"), Timestamp: at},
		analytics.Identify{UserId: user, AnonymousId: device, Timestamp: at, Traits: analytics.NewTraits().
			SetEmail(name+"@shop.example").SetFirstName("Ann").SetLastName("Lee").Set("plan", "pro").Set("address", map[string]any{"city": "Berlin", "country": "DE"})},
		analytics.Track{UserId: user, AnonymousId: device, Event: "Order Completed", Properties: analytics.Properties{"total": 79.9, "currency": "EUR", "products": []string{"sku-7"}}, Timestamp: at},
		analytics.Group{UserId: user, GroupId: "acme", Traits: analytics.NewTraits().Set("industry", "shops"), Timestamp: at},
		analytics.Screen{UserId: user, Name: "Receipt", Timestamp: at},
	} {
		send(m)
	}
	pending.Wait()
	if err := client.Close(); err != nil {
		fmt.Println("error:", err)
	}
	fmt.Println("done")
}

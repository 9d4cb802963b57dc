package muster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/musterhq/muster/muster-go"
)

// A server to try the examples with: it refuses events of the type "Page Viewed".
func exampleServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"success":false,"accepted":1,"total":2,"results":[{"success":true,"profile_id":"prf_1","error":null},{"success":false,"profile_id":"","error":"event_type must be a key in snake case"}]}`)
	}))
}

func Example() {
	server := exampleServer()
	defer server.Close()

	client, err := muster.New(muster.Config{
		URL:       server.URL, // such as https://muster.example.com
		AppID:     "app_1",
		AppSecret: "secret",
		OnDropped: func(d muster.Dropped) {
			var refused *muster.RefusedError
			if errors.As(d.Err, &refused) {
				fmt.Printf("%s is refused: %s\n", d.Event.Type, refused.Message)
				return
			}
			fmt.Printf("%s is not recorded: %v\n", d.Event.Type, d.Err)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	client.Send(ctx, muster.Event{
		Type:           "item_purchased",
		User:           muster.User{Email: "ann@example.com", ExternalID: "42"},
		Properties:     map[string]any{"value": 79.90, "currency": "EUR"},
		IdempotencyKey: "order-1001",
	})
	client.Send(ctx, muster.Event{Type: "Page Viewed", User: muster.User{ExternalID: "42"}})

	// At the end of the program: what is in the queue is sent, for ten seconds at most.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(client.Stats().Recorded, "recorded")
	// Output:
	// Page Viewed is refused: event_type must be a key in snake case
	// 1 recorded
}

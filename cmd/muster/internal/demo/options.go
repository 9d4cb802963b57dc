package demo

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterhq/muster/api"
)

// Options configure [Fill]. Client, Origin, Credentials and Now are required.
type Options struct {
	// Client reaches the service at Origin, such as http://127.0.0.1:8080.
	Client      *http.Client
	Origin      string
	Credentials api.Credentials
	Now         func() time.Time
	Seed        uint64
	// Customers and Orders are the size of the shop, with the days to come; 0 is 2,500
	// and 8,000. At the fill about an eighth of the customers are still to come.
	Customers, Orders int
	// TempDir takes the events on their way, for a moment; empty is the system's.
	TempDir string
	Logger  *slog.Logger
}

const (
	pastDays   = 42
	futureDays = 7
	// subscribers are on the newsletter's list.
	subscribers = 400
	// readers are looked through for those who open and click.
	readers = 150
	// longestQuiet is the longest pause between two live events, firstQuiet that of the
	// first minutes, when a user looks whether anything happens.
	longestQuiet = 20 * time.Second
	firstQuiet   = 4 * time.Second
	firstMinutes = 10 * time.Minute
)

func (o *Options) validate() error {
	if o.Client == nil || o.Origin == "" || o.Now == nil {
		return errors.New("demo: Options.Client, Origin and Now must be set")
	}
	if o.Customers == 0 {
		o.Customers, o.Orders = 2500, 8000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/api/openapi"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/cluster/peer"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/cmd/muster/internal/uploads"
	"github.com/musterhq/muster/console"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/ingest/trackingapi"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver/campaigns"
)

// services are the parts that requests meet, over the engine.
type services struct {
	console    *api.API
	keys       *keyapi.API
	tracking   *trackingapi.Handler
	dispatcher *messaging.Dispatcher
	webhooks   *webhook.Client
	outbox     *messaging.Outbox
	relay      *email.Sender
	capture    *capture.Store
	uploads    *uploads.Uploads
	stop       []func() // what remains to be stopped, the newest last

	// handler answers requests; router is before it where there are other nodes.
	handler fasthttp.RequestHandler
	router  *peer.Router
	// working ends at the drain, with what runs in the background.
	working context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// background runs something until the services drain.
func (s *services) background(work func(ctx context.Context)) {
	s.running.Go(func() { work(s.working) })
}

// open makes what answers requests. origin is where the service is reached, unless the
// configuration says otherwise.
func (c *serveConfig) open(ctx context.Context, eng *engine.Engine, origin string) (s *services, err error) {
	s = &services{}
	s.working, s.end = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.drain()
			err = errors.Join(err, s.close())
		}
	}()
	if c.engine.Kafka != nil {
		c.ingest.Current = func(ctx context.Context, account uint64, exactly bool) error {
			if exactly {
				return eng.Node.Barrier(ctx, account)
			}
			return eng.Node.Recent(ctx, account)
		}
	}
	events, err := ingest.New(eng.Node, eng.Node, c.ingest)
	if err != nil {
		return s, err
	}
	s.tracking, err = trackingapi.New(trackingapi.Options{
		Node: eng.Node, Memory: c.ingest.Memory, Now: time.Now, Rand: rand.Reader, Limits: c.ingest.Limits, BodyBytes: c.ingest.BodyBytes, RecordBytes: c.ingest.RecordBytes,
		Current: c.ingest.Current, Metrics: c.ingest.Metrics, Logger: c.log,
	})
	if err != nil {
		return s, err
	}
	if s.capture, err = capture.Open(capture.Options{Dir: filepath.Join(c.engine.Dir, "outbox"), Logger: c.log}); err != nil {
		return s, fmt.Errorf("captured messages: %w", err)
	}
	if c.messaging.publicURL == "" {
		c.messaging.publicURL = origin
	}
	var mailer messaging.Mailer = messaging.CaptureMailer{Store: s.capture}
	if c.messaging.smtp.Host != "" {
		if s.relay, err = email.NewSender(c.messaging.smtp); err != nil {
			return s, err
		}
		mailer = s.relay
	}
	var campaignRun func(ctx context.Context, account uint64, campaign string) (campaigns.Run, error)
	if eng.Peers() != nil {
		campaignRun = func(ctx context.Context, account uint64, campaign string) (campaigns.Run, error) {
			return s.console.CampaignRun(ctx, account, campaign)
		}
	}
	s.dispatcher, err = messaging.New(ctx, messaging.Options{
		Node: eng.Node, Mailer: mailer, PublicURL: c.messaging.publicURL, Now: time.Now, Metrics: c.ingest.Metrics, Logger: c.log,
		Capture: s.capture, Push: push.Options{AllowPrivate: c.messaging.allowPrivate}, Text: text.Options{AllowPrivate: c.messaging.allowPrivate},
		CampaignRun: campaignRun,
	})
	if err != nil {
		return s, err
	}
	if s.webhooks, err = webhook.NewClient(webhook.Options{Guard: webhook.Guard{AllowPrivate: c.messaging.allowPrivate}, Now: time.Now}); err != nil {
		return s, err
	}
	s.outbox, err = messaging.NewOutbox(messaging.OutboxOptions{
		Node: eng.Node, Mailer: mailer, Webhooks: s.webhooks, PublicURL: c.messaging.publicURL, Now: time.Now, Rand: mathrand.Uint64,
		Metrics: c.ingest.Metrics, Logger: c.log, Capture: s.capture, Text: text.Options{AllowPrivate: c.messaging.allowPrivate},
		Push: push.Options{AllowPrivate: c.messaging.allowPrivate},
	})
	if err != nil {
		return s, err
	}
	var others api.Peers
	if eng.Peers() != nil {
		others = eng.Peers()
	}
	s.uploads, err = uploads.Open(uploads.Options{
		Dir: filepath.Join(c.engine.Dir, engine.UploadsDir), Node: eng.Node, Now: time.Now, Rand: rand.Reader, Bytes: c.uploadBytes, Logger: c.log,
		OwnedElsewhere: eng.OwnedElsewhere,
	})
	if err != nil {
		return s, err
	}
	s.console, err = api.New(api.Options{
		Peers: others, Imports: s.uploads,
		Node: eng.Node, History: eng.History, Now: time.Now, Rand: rand.Reader, Metrics: c.ingest.Metrics, Logger: c.log,
		AllowPrivate: c.messaging.allowPrivate, Memory: c.ingest.Memory,
		Providers: api.ProviderOptions{Events: events, PublicURL: c.messaging.publicURL, DNS: c.messaging.dns},
		Captured:  api.CapturedOptions{Messages: s.capture, Email: s.relay == nil},
		LastUsed: api.LastUsedOptions{
			APIKey:   func(account uint64, key string) int64 { return s.keys.LastUsed(account, key) },
			WriteKey: s.tracking.LastUsed,
		},
	})
	if err != nil {
		return s, err
	}
	s.keys, err = keyapi.New(keyapi.Options{
		Node: eng.Node, History: eng.History, Events: events, Console: s.console, Campaigns: s.dispatcher, Now: time.Now, Rand: rand.Reader, Metrics: c.ingest.Metrics, Logger: c.log,
		AllowPrivate: c.messaging.allowPrivate, Memory: c.ingest.Memory,
	})
	if err != nil {
		return s, err
	}
	r := api.NewRouter()
	if err := c.route(r, s, events); err != nil {
		return s, err
	}
	s.stop = append(s.stop, api.RegisterStateMetrics(c.ingest.Metrics, eng.Node, eng.WriteLogMetrics, eng.History, time.Now))
	c.ingest.Metrics.RegisterMetricsWriter(eng.History.WriteMetrics)
	c.ingest.Metrics.RegisterMetricsWriter(s.uploads.WriteMetrics)
	s.handler = s.tracking.Before(r.Handler)
	if eng.Peers() != nil {
		s.router = routed(eng.Peers(), eng.Node, c, s.handler)
		s.handler = s.router.Handle
	}
	return s, nil
}

// route says who answers what.
func (c *serveConfig) route(r *router.Router, s *services, events *ingest.Handler) error {
	events.Register(r.ANY)
	s.console.Register(r)
	s.keys.Register(r) // all else under /api/v1, and /v1
	if c.pprof {
		addPprof(r)
	}
	if err := console.Register(r); err != nil {
		return err
	}
	return openapi.Register(r, append(operations(s.keys, events, s.console), trackingapi.Operations()...))
}

func addPprof(r *router.Router) {
	r.GET("/debug/pprof/{profile:*}", fasthttp.RequestHandler(pprofhandler.PprofHandler))
}

// operations are those of the document, in its order.
func operations(keys *keyapi.API, events *ingest.Handler, people *api.API) []operation.Group {
	return slices.Concat(keys.Operations(), events.Operations(), people.Operations(), keys.SessionOperations())
}

// drain ends what requests wait for, so that they end.
func (s *services) drain() {
	s.end()
	s.running.Wait()
	if s.router != nil {
		s.router.Drain()
	}
	if s.uploads != nil {
		s.uploads.Close()
	}
	if s.console != nil {
		s.console.Close()
	}
	if s.dispatcher != nil {
		s.dispatcher.Close()
	}
	if s.outbox != nil {
		s.outbox.Close()
	}
	if s.webhooks != nil {
		s.webhooks.Close()
	}
}

// close stops the rest, once no more requests come and before the state closes.
func (s *services) close() error {
	if s.keys != nil {
		s.keys.Close()
	}
	if s.tracking != nil {
		s.tracking.Close()
	}
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
	if s.relay != nil {
		s.relay.Close()
	}
	if s.capture != nil {
		return s.capture.Close()
	}
	return nil
}

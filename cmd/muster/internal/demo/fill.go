package demo

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"regexp"
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// Shop is a shop that was filled.
type Shop struct {
	client *client
	future []event
}

// step is a part of the filling.
type step struct {
	name string
	do   func(context.Context) error
}

// filling is a shop while it is filled.
type filling struct {
	*client
	history                    *history
	list, cart, back, campaign string
	segments                   []string
}

// Fill fills the account, which must be new. The error names the step.
func Fill(ctx context.Context, o Options) (*Shop, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &filling{client: &client{Options: o}}
	var err error
	if f.history, err = newHistory(&o); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	for _, s := range []step{
		{"signing in", f.signIn}, {"subscribers", f.subscribers}, {"six weeks of events", f.importPast}, {"segments", f.saveSegments},
		{"templates", f.saveTemplates}, {"a webhook", f.saveWebhook}, {"flows", f.publishFlows}, {"a campaign", f.sendCampaign}, {"readers", f.read},
	} {
		began := o.Now()
		if err := s.do(ctx); err != nil {
			return nil, fmt.Errorf("demo: %s: %w", s.name, err)
		}
		o.Logger.Info("the demo shop is being filled", "done", s.name, "took", o.Now().Sub(began).Round(time.Millisecond))
	}
	return &Shop{f.client, f.history.future}, nil
}

// subscribers uploads the newsletter's subscribers.
func (f *filling) subscribers(ctx context.Context) (err error) {
	if f.list, err = f.id(ctx, "/lists", object{"name": "Newsletter", "description": "Everybody who subscribed on the site"}); err != nil {
		return err
	}
	text, rows, err := f.history.csv(subscribers)
	if err != nil {
		return err
	}
	id, err := f.id(ctx, "/imports", object{"name": "subscribers.csv", "kind": "people", "text": text})
	if err != nil {
		return err
	}
	if err := f.call(ctx, "POST", "/imports/"+id+"/start", object{"list_id": f.list}, nil); err != nil {
		return err
	}
	return f.until(ctx, "/imports/"+id, func(x *progress) (bool, error) {
		if x.Status == "failed" {
			return false, fmt.Errorf("%d of %d rows were imported: %s", x.Read, rows, x.Error)
		}
		return x.Status == "done", nil
	})
}

// progress is what records of long work say of it.
type progress struct {
	Status string
	Error  string
	Read   int `json:"rows_read"`
}

// until asks until a record is as wanted.
func (f *filling) until(ctx context.Context, path string, wanted func(*progress) (bool, error)) error {
	for {
		var x progress
		if err := f.call(ctx, "GET", path, nil, &x); err != nil {
			return err
		}
		if done, err := wanted(&x); done || err != nil {
			return err
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// importPast imports the past as muster import does.
func (f *filling) importPast(ctx context.Context) error {
	src, err := importer.Open(ctx, "-", bytes.NewReader(f.history.past), f.TempDir)
	if err != nil {
		return err
	}
	defer src.Close()
	sum, err := importer.Run(ctx, src, importer.JSONLines, importer.ToServer(importer.Server{Client: f.Client, URL: f.Origin + "/api/v1", AppID: f.Credentials.AppID, AppSecret: f.Credentials.AppSecret}), nil)
	if err == nil && sum.RefusedRows > 0 {
		err = fmt.Errorf("%d rows were refused: %s", sum.RefusedRows, sum.Refused[0].Reason)
	}
	return err
}

func (f *filling) saveSegments(ctx context.Context) error {
	for _, s := range segments(f.list) {
		id, err := f.id(ctx, "/segments", s)
		if err != nil {
			return err
		}
		f.segments = append(f.segments, id)
	}
	return nil
}

func (f *filling) saveTemplates(ctx context.Context) (err error) {
	for i, t := range templates() {
		if *[]*string{&f.cart, &f.back}[i], err = f.id(ctx, "/templates", t); err != nil {
			return err
		}
	}
	return nil
}

// saveWebhook makes an endpoint that never answers: its log shows retries.
func (f *filling) saveWebhook(ctx context.Context) error {
	return f.call(ctx, "POST", "/webhooks", object{"url": "https://warehouse.example/muster", "events": []string{"contact.unsubscribed"}, "description": "To the warehouse (of the demo: nobody answers there)"}, nil)
}

func (f *filling) publishFlows(ctx context.Context) error {
	for _, x := range flows(f.cart, f.back, f.segments[len(f.segments)-1]) {
		id, err := f.id(ctx, "/flows", x)
		if err == nil {
			err = f.call(ctx, "POST", "/flows/"+id+"/publish", nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendCampaign sends the newsletter. Without a relay all of it is captured.
func (f *filling) sendCampaign(ctx context.Context) (err error) {
	f.campaign, err = f.id(ctx, "/campaigns", object{"name": "Spring sale", "channel": 2, "type": 1, "date": f.Now().UTC().Add(-time.Minute).Format(time.RFC3339), "sender": sender, "sender_name": "The demo shop", "subject": "Spring is here, {{first_name|friend}}", "body": saleHTML})
	if err != nil {
		return err
	}
	if err := f.call(ctx, "POST", "/campaigns/"+f.campaign+"/send", object{"list_id": []string{f.list}}, nil); err != nil {
		return err
	}
	return f.until(ctx, "/campaigns/"+f.campaign, func(x *progress) (bool, error) { return x.Status == "sent", nil })
}

var link = regexp.MustCompile(`https?://[^"'\s<>]*/t/[^"'\s<>]*`)

// read has some people open their e-mails, fewer click, and a few unsubscribe.
func (f *filling) read(ctx context.Context) error {
	var mails []struct{ To, HTML string }
	if err := f.call(ctx, "GET", fmt.Sprintf("/outbox?channel=email&limit=%d", readers), nil, &mails); err != nil {
		return err
	}
	for _, m := range mails {
		links := link.FindAllString(m.HTML, -1)
		if len(links) < 4 {
			return fmt.Errorf("an e-mail to %s has %d links of the service, want 4", m.To, len(links))
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %s", f.Seed, m.To)
		mood := h.Sum32() % 100
		if mood >= 46 {
			continue
		}
		// Behind the shop's links are the one to unsubscribe and the pixel that opens.
		err := f.fetch(ctx, links[len(links)-1], "")
		if err == nil && mood < 13 {
			err = f.fetch(ctx, links[int(mood)%2], "")
		}
		if err == nil && mood < 2 {
			err = f.fetch(ctx, links[len(links)-2], "List-Unsubscribe=One-Click")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sleep reports whether the whole pause passed.
func sleep(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package messaging_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// newScheduling returns a mailing, and the id of a list with its only contact. The relay answers
// the first message only after a call of release; hangs is closed once it has that message.
func newScheduling(t *testing.T) (x *mailing, list string, hangs <-chan struct{}, release func()) {
	t.Helper()
	x = newMailing(t, 0, 600)
	var l contacts.List
	ok(t, json.Unmarshal(x.must(contacts.CommandListCreate, contacts.ListSave{Name: "l"}), &l))
	x.must(contacts.CommandCreate, contacts.Create{Email: "p0@x.io", ListID: l.ID})
	begun, released := make(chan struct{}), make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	x.answer = func() {
		select {
		case <-first:
			close(begun)
			<-released
		default:
		}
	}
	x.relay = func(int, int) outcome.Result { return takes }
	return x, l.ID, begun, sync.OnceFunc(func() { close(released) })
}

// runOf is the present or last run of a campaign.
func runOf(v *resolver.View, c campaigns.Campaign) campaigns.Run {
	r, _ := v.Campaigns().Run(c.ID)
	return r
}

// schedule saves a campaign to be sent to a list in a minute.
func (x *mailing) schedule(c campaigns.Campaign, list string) (saved campaigns.Campaign) {
	x.t.Helper()
	c.Date, c.ListIDs = x.Now().Add(time.Minute).Format(time.RFC3339), []string{list}
	ok(x.t, json.Unmarshal(x.must(campaigns.CommandSave, campaigns.Save{Campaign: c, SetsDate: true}), &saved))
	return saved
}

// TestAnUnfinishedRunDelaysNoOtherSchedule: a campaign that is due while the last message of its
// cancelled run hangs at the relay does not keep others from starting, and starts after that.
func TestAnUnfinishedRunDelaysNoOtherSchedule(t *testing.T) {
	t.Parallel()
	x, list, hangs, release := newScheduling(t)
	d := x.dispatcher(nil)
	defer d.Close()
	defer release()
	done := make(chan error, 1)
	go func() {
		_, err := x.sendBy(d)
		done <- err
	}()
	<-hangs
	x.must(campaigns.CommandUnschedule, campaigns.Unschedule{ID: x.campaign.ID})
	x.campaign.Body = "<p>Hi"
	first := x.schedule(x.campaign, list)
	second := x.schedule(campaigns.Campaign{Name: "second", Channel: campaigns.ChannelSingle, Type: campaigns.TypeEmail, Message: campaigns.Message{Subject: "s", Body: "<p>Hi"}}, list)
	x.Advance(time.Hour)
	x.until("the other campaign is sent", func(v *resolver.View) bool { return runOf(v, second).Status == campaigns.RunDone })
	x.until("the first has not started again", func(v *resolver.View) bool { return runOf(v, first).Run == 1 })
	release()
	ok(t, <-done)
	x.until("the first is sent by its schedule", func(v *resolver.View) bool {
		r := runOf(v, first)
		return r.Run == 2 && r.Status == campaigns.RunDone
	})
}

// TestACancelledRunLeavesTheQueue: a run that waits until fewer campaigns are being sent ends
// as soon as it is cancelled.
func TestACancelledRunLeavesTheQueue(t *testing.T) {
	t.Parallel()
	x, _, hangs, release := newScheduling(t)
	x.runs = 1
	d := x.dispatcher(nil)
	defer d.Close()
	defer release()
	first := x.campaign
	go func() { _, _ = x.sendOf(d, first) }()
	<-hangs
	x.save(campaigns.Campaign{Name: "second", Channel: campaigns.ChannelSingle, Type: campaigns.TypeEmail, Date: "2026-01-01", Pacing: first.Pacing})
	second, done := x.campaign, make(chan campaigns.Run, 1)
	go func() {
		r, err := x.sendOf(d, second)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	x.until("the second run has begun", func(v *resolver.View) bool { return runOf(v, second).Status == campaigns.RunSending })
	x.must(campaigns.CommandUnschedule, campaigns.Unschedule{ID: second.ID})
	select {
	case r := <-done:
		if r.Status != campaigns.RunStopped || r.Sent != 0 {
			t.Errorf("%+v", r)
		}
	case <-time.After(20 * time.Second):
		t.Error("the cancelled run still waits for the other campaign")
	}
}

// editedLog has an edit acknowledged right before it takes a command for the first time.
type editedLog struct {
	eventlog.Log
	command string
	edit    func() // called once
}

func (l *editedLog) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	if _, body, err := eventlog.DecodeEnvelope(data); err == nil {
		if name, _, err := eventlog.DecodeCommand(body); err == nil && string(name) == l.command {
			l.edit()
		}
	}
	return l.Log.Append(ctx, partition, data)
}

// TestTheLastEditIsSent: what a schedule sends is what was acknowledged last, also where that
// comes between the look at the campaign and its start, or mends what keeps it from starting.
func TestTheLastEditIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command    string
		inTemplate bool
		sender     string // before the edit
	}{
		"campaign": {command: campaigns.CommandStart},
		"template": {command: campaigns.CommandStart, inTemplate: true},
		"mended":   {command: campaigns.CommandUnschedule, sender: "a@nowhere.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, list, _, release := newScheduling(t)
			release()
			log := &editedLog{command: c.command}
			x.behind(func(files eventlog.Log) eventlog.Log { log.Log = files; return log })
			d := x.dispatcher(nil)
			defer d.Close()
			template := campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "old", HTML: "<p>Hi"}
			ok(t, json.Unmarshal(x.must(campaigns.CommandTemplateSave, template), &template))
			news := campaigns.Campaign{Name: "news", Channel: campaigns.ChannelSingle, Type: campaigns.TypeEmail, Message: campaigns.Message{Subject: "old", Body: "<p>Hi", Sender: c.sender}}
			if c.inTemplate {
				news.Body, news.TemplateID = "", template.ID
			}
			news = x.schedule(news, list)
			log.edit = sync.OnceFunc(func() {
				if c.inTemplate {
					template.Subject = "new"
					x.must(campaigns.CommandTemplateSave, template)
					return
				}
				news.Subject, news.Body, news.Sender = "new", "<p>Hi", ""
				x.must(campaigns.CommandSave, campaigns.Save{Campaign: news})
			})
			x.Advance(time.Hour)
			x.until("it is sent", func(v *resolver.View) bool { return runOf(v, news).Status == campaigns.RunDone })
			x.mu.Lock()
			defer x.mu.Unlock()
			if !slices.Equal(x.subjects, []string{"new"}) {
				t.Errorf("sent: %q", x.subjects)
			}
		})
	}
}

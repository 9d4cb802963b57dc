package flows

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/smtp"
	"testing"
	"time"
)

func TestSinkTellsProbesFromOthersAndCountsRepeats(t *testing.T) {
	s, err := newSinks()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for _, path := range []string{"/probe/3", "/other", "/probe/x", "/probe/3", "/probe/4"} {
		resp, err := client.Post(s.url+path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
	}
	for _, subject := range []string{probeSubject + "5", "flow-7"} {
		text := fmt.Sprintf("Subject: %s\r\n\r\nHello\r\n", subject)
		if err := smtp.SendMail(s.relay.Addr, nil, "a@b.example", []string{"c@d.example"}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if all, probes, again := s.calls.counts(); all != 5 || probes != 2 || again != 1 {
		t.Errorf("%d calls, of %d probes, %d once more", all, probes, again)
	}
	if all, probes, again := s.mails.counts(); all != 2 || probes != 1 || again != 0 {
		t.Errorf("%d e-mails, of %d probes, %d once more", all, probes, again)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.calls.until(ctx, []int{3, 4}); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if err := s.calls.until(ctx, []int{3, 5}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestTheFirstArrivalCounts(t *testing.T) {
	var a arrivals
	a.note("p1", "p", time.Unix(10, 0))
	a.note("p1", "p", time.Unix(20, 0))
	if at, ok := a.at(1); !ok || !at.Equal(time.Unix(10, 0)) {
		t.Errorf("%v, %v", at, ok)
	}
	if _, ok := a.at(2); ok {
		t.Error("what never came has arrived")
	}
}

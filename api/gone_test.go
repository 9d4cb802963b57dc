package api

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/query"
)

// patientHistory answers conditions when the test lets it, or not at all.
type patientHistory struct {
	query.History
	asked, ended chan struct{}
	answer       chan struct{}
}

func (h *patientHistory) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	h.asked <- struct{}{}
	select {
	case <-h.answer:
		return h.History.Activity(ctx, q)
	case <-ctx.Done():
		h.ended <- struct{}{}
		return nil, ctx.Err()
	}
}

// TestQuestionEndsWithItsCaller: history is no longer asked when the caller has closed
// the connection. Requests that wait behind the first one do not end it.
func TestQuestionEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	h := &patientHistory{&memHistory{}, make(chan struct{}, 9), make(chan struct{}, 9), make(chan struct{}, 9)}
	s := newService(t, h, nil)
	s.fill(2)
	ln := servertest.Listen(t)
	servertest.Serve(t, ingest.NewServer(ingest.Options{Now: s.clock.Now, Rand: rand.Reader, Metrics: metrics.NewSet()}, s.ops.Handle), ln)
	body := `{"definition":` + buyers + `}`
	request := fmt.Sprintf("POST /console/api/v1/segments/preview HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.token, len(body), body)

	patient, err := net.Dial("tcp", ln.Addr().String())
	ok(t, err)
	defer patient.Close()
	_, err = patient.Write([]byte(request))
	ok(t, err)
	<-h.asked
	_, err = patient.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	ok(t, err)
	// Others leave, one after the other. It takes longer than to look after the first one.
	for range 2 {
		hasty, err := net.Dial("tcp", ln.Addr().String())
		ok(t, err)
		_, err = hasty.Write([]byte(request))
		ok(t, err)
		<-h.asked
		ok(t, hasty.Close())
		select {
		case <-h.ended:
		case <-time.After(20 * time.Second):
			t.Fatal("history is asked on")
		}
	}
	h.answer <- struct{}{}
	res, err := http.ReadResponse(bufio.NewReader(patient), nil)
	ok(t, err)
	if res.StatusCode != 200 {
		t.Errorf("who waited is answered %s", res.Status)
	}
}

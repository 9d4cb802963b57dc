package keyapi

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrentCreators: of 64 who make a contact with one e-mail at once, in two
// accounts and over both ways to make one, exactly one makes it; all others are
// told that it is there. The e-mail is written differently each time.
func TestConcurrentCreators(t *testing.T) {
	t.Parallel()
	s := newService(t, func(o *Options) { o.PerMinute = 10_000 })
	var other struct {
		ID        string `json:"_id"`
		APIKey    string `json:"api_key"`
		AccountID string `json:"account_id"`
	}
	// Both accounts in one partition: e-mails are unique within one.
	same := false
	for i := 0; !same; i++ {
		s.console1("POST", "/companies", fmt.Sprintf(`{"name":"other","email":"boss%d@other.example"}`, i), &other)
		var n uint64
		_, err := fmt.Sscanf(strings.TrimPrefix(other.AccountID, "acc_"), "%x", &n)
		ok(t, err)
		same = n%2 == s.account%2
	}
	s.console1("PATCH", "/companies/"+other.ID, `{"api_access":true}`, nil)
	for round := range 5 {
		email := fmt.Sprintf("Ada%d@Mail.Example", round)
		var made, refused atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			wg.Go(func() {
				<-start
				key := s.creds.APIKey
				if i%2 == 1 {
					key = other.APIKey
				}
				written := email
				if i%3 == 0 {
					written = " " + strings.ToUpper(email) + " "
				}
				_, b := s.with(key, "POST", "/api/v1/contacts", fmt.Sprintf(`{"email":%q,"first_name":"n%d"}`, written, i))
				switch {
				case strings.Contains(b, `"status":"success"`):
					made.Add(1)
				case strings.Contains(b, `"message":"Contact with this email already exists"`):
					refused.Add(1)
				default:
					t.Errorf("have %s", b)
				}
			})
		}
		close(start)
		wg.Wait()
		if made.Load() != 1 || refused.Load() != 63 {
			t.Errorf("%d made, %d were refused", made.Load(), refused.Load())
		}
	}
}

package email

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/musterhq/muster/messaging/outcome"
)

// Record is a DNS record to publish.
type Record struct {
	Type, Name, Value string
	// Purpose is ownership, dkim or dmarc.
	Purpose string
	// Required records must be there before the domain may send.
	Required bool
}

// DomainSetup is what a sender domain publishes.
type DomainSetup struct {
	Domain string
	// Token proves that the account that claims the domain controls its DNS.
	Token string
	Keys  []*Key
}

// TokenPrefix starts the value of the ownership record.
const TokenPrefix = "muster-verification="

// Records returns the records to publish, the required ones first. The policy
// record (DMARC) is advice: large receivers want one.
func (s DomainSetup) Records() ([]Record, error) {
	domain, err := checkDomain(s.Domain)
	if err != nil {
		return nil, err
	}
	if s.Token == "" || len(s.Token) > 200 || strings.Trim(s.Token, headerNameBytes+"_") != "" {
		return nil, errors.New("email: verification token must be up to 200 letters, digits, - and _")
	}
	records := []Record{{Type: "TXT", Name: "_muster." + domain, Value: TokenPrefix + s.Token, Purpose: "ownership", Required: true}}
	for _, k := range s.Keys {
		if k.domain != domain {
			return nil, fmt.Errorf("email: a key signs for %s, not for %s", k.domain, domain)
		}
		r, err := k.Record()
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return append(records, Record{Type: "TXT", Name: "_dmarc." + domain, Value: "v=DMARC1; p=none", Purpose: "dmarc"}), nil
}

// Resolver looks TXT records up; *net.Resolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Verifier checks what a sender domain publishes.
type Verifier struct {
	Resolver Resolver
	// Timeout bounds one look-up. Default 5 seconds.
	Timeout time.Duration
}

// RecordCheck is the finding about one record.
type RecordCheck struct {
	Record
	OK bool
	// Problem says what is wrong and what to do, "" when OK.
	Problem string
}

// Verification is the finding about a domain.
type Verification struct {
	// Verified: all required records are right.
	Verified bool
	Checks   []RecordCheck
}

// Verify looks all records of s up. The error says that DNS did not answer: the
// finding is unknown, try again. A domain once verified should not lose that
// for an error.
func (v *Verifier) Verify(ctx context.Context, s DomainSetup) (Verification, error) {
	records, err := s.Records()
	if err != nil {
		return Verification{}, err
	}
	timeout := v.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	result := Verification{Verified: true}
	for _, r := range records {
		lookup, cancel := context.WithTimeout(ctx, timeout)
		texts, err := v.Resolver.LookupTXT(lookup, r.Name)
		cancel()
		var dns *net.DNSError
		if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
			return Verification{}, fmt.Errorf("email: looking %s up: %w", r.Name, err)
		}
		c := RecordCheck{Record: r, Problem: judge(r, texts)}
		c.OK = c.Problem == ""
		if !c.OK && r.Required {
			result.Verified = false
		}
		result.Checks = append(result.Checks, c)
	}
	return result, nil
}

// judge returns what is wrong with the texts found for r.
func judge(r Record, texts []string) string {
	if len(texts) == 0 {
		return fmt.Sprintf("no TXT record at %s; publish %s (new records may take hours to be seen)", r.Name, r.Value)
	}
	if len(texts) > 100 {
		texts = texts[:100]
	}
	switch r.Purpose {
	case "dkim":
		want := tags(r.Value)
		var keys int
		for _, t := range texts {
			if got := tags(t); got["p"] != "" || strings.Contains(strings.ToLower(t), "v=dkim1") {
				keys++
				k := got["k"]
				if k == "" {
					k = "rsa"
				}
				if got["p"] == want["p"] && k == want["k"] && (got["v"] == "" || got["v"] == "DKIM1") {
					continue
				}
				return fmt.Sprintf("%s holds another key; replace it by %s", r.Name, r.Value)
			}
		}
		switch {
		case keys > 1:
			return fmt.Sprintf("%s holds %d keys; leave only %s", r.Name, keys, r.Value)
		case keys == 1:
			return ""
		}
	case "dmarc":
		for _, t := range texts {
			if strings.HasPrefix(strings.TrimSpace(t), "v=DMARC1") {
				return "" // any policy will do
			}
		}
	default:
		for _, t := range texts {
			if strings.TrimSpace(t) == r.Value {
				return ""
			}
		}
	}
	return fmt.Sprintf("%s says %q; publish %s", r.Name, outcome.Clean(texts[0], 100), r.Value)
}

// tags reads name=value pairs between semicolons; white space inside of values,
// as long records are split, does not count.
func tags(s string) map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Split(s, ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			m[strings.TrimSpace(name)] = strings.Join(strings.Fields(value), "")
		}
	}
	return m
}

package email

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

type dns map[string][]string

func (d dns) LookupTXT(_ context.Context, name string) ([]string, error) {
	if t, ok := d[name]; ok {
		if t == nil {
			return nil, &net.DNSError{Err: "timeout", IsTimeout: true}
		}
		return t, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func TestVerifier(t *testing.T) {
	keys := testKeys(t, "example.com")
	other := testKeys(t, "example.com")
	setup := DomainSetup{Domain: "Example.com.", Token: "tok-1", Keys: keys}
	records, err := setup.Records()
	if err != nil || len(records) != 4 {
		t.Fatalf("%v, %v", records, err)
	}
	published := func() dns {
		d := dns{}
		for _, r := range records {
			d[r.Name] = []string{r.Value}
		}
		return d
	}
	rsaName, rsaValue := records[1].Name, records[1].Value
	otherRecord, _ := other[0].Record()
	for name, c := range map[string]struct {
		change   func(dns)
		verified bool
		problem  string
	}{
		"all there":     {func(dns) {}, true, ""},
		"beside others": {func(d dns) { d["_muster.example.com"] = []string{"x", " muster-verification=tok-1 "} }, true, ""},
		"spread by spaces": {func(d dns) {
			d[rsaName] = []string{"k=rsa;  p=" + rsaValue[len("v=DKIM1; k=rsa; p="):100] + " " + rsaValue[100:]}
		}, true, ""},
		"no policy":           {func(d dns) { delete(d, "_dmarc.example.com") }, true, "no TXT record at _dmarc"},
		"stricter policy":     {func(d dns) { d["_dmarc.example.com"] = []string{"v=DMARC1; p=reject"} }, true, ""},
		"no token":            {func(d dns) { delete(d, "_muster.example.com") }, false, "publish muster-verification=tok-1"},
		"wrong token":         {func(d dns) { d["_muster.example.com"] = []string{"muster-verification=tok-2"} }, false, "tok-2"},
		"token as a part":     {func(d dns) { d["_muster.example.com"] = []string{"muster-verification=tok-11"} }, false, "tok-11"},
		"no key":              {func(d dns) { delete(d, rsaName) }, false, "no TXT record"},
		"another key":         {func(d dns) { d[rsaName] = []string{otherRecord.Value} }, false, "another key"},
		"revoked key":         {func(d dns) { d[rsaName] = []string{"v=DKIM1; p="} }, false, "another key"},
		"two keys":            {func(d dns) { d[rsaName] = []string{rsaValue, rsaValue} }, false, "2 keys"},
		"key of another kind": {func(d dns) { d[rsaName] = []string{strings.Replace(rsaValue, "k=rsa", "k=ed25519", 1)} }, false, "another key"},
		"something else":      {func(d dns) { d[rsaName] = []string{"hello"} }, false, `says "hello"`},
	} {
		d := published()
		c.change(d)
		got, err := (&Verifier{Resolver: d}).Verify(t.Context(), setup)
		if err != nil || got.Verified != c.verified || len(got.Checks) != 4 {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		problems := ""
		for _, check := range got.Checks {
			if check.OK != (check.Problem == "") {
				t.Errorf("%s: %+v", name, check)
			}
			problems += check.Problem
		}
		if (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: %s", name, problems)
		}
	}

	d := published()
	d[rsaName] = nil // a time-out says nothing about the domain
	var dnsErr *net.DNSError
	if got, err := (&Verifier{Resolver: d}).Verify(t.Context(), setup); !errors.As(err, &dnsErr) || got.Verified {
		t.Errorf("%+v, %v", got, err)
	}
	setup.Domain = "example.org"
	if _, err := setup.Records(); err == nil {
		t.Error("keys of another domain were taken")
	}
}

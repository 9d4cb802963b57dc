package kafka

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

// secureKafka starts a broker with a listener that asks for TLS and SASL, and
// returns its address and the certificate.
func secureKafka(t *testing.T) (addr string, cert []byte) {
	t.Helper()
	dir := t.TempDir()
	c, err := services.StartKafka(within(t, time.Minute), dir, 1)
	if errors.Is(err, services.ErrMissing) {
		if os.Getenv(services.EnvRequire) == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	// The users of SCRAM are Kafka's own data.
	transport := &kgo.Transport{}
	client := &kgo.Client{Addr: kgo.TCP(c.Addrs()...), Transport: transport}
	salt := []byte("salt of a test")
	for _, scram := range []struct {
		mechanism kgo.ScramMechanism
		hash      func() hash.Hash
	}{{kgo.ScramMechanismSha256, sha256.New}, {kgo.ScramMechanismSha512, sha512.New}} {
		salted, err := pbkdf2.Key(scram.hash, "secret", salt, 4096, scram.hash().Size())
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.AlterUserScramCredentials(within(t, 20*time.Second), &kgo.AlterUserScramCredentialsRequest{
			Upsertions: []kgo.UserScramCredentialsUpsertion{{
				Name: "muster", Mechanism: scram.mechanism, Iterations: 4096, Salt: salt, SaltedPassword: salted,
			}},
		})
		if err == nil {
			err = res.Results[0].Error
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	transport.CloseIdleConnections()
	ports, err := services.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	cert, key := tlspairtest.Make(t, "127.0.0.1")
	store := filepath.Join(dir, "store.pem")
	if err := os.WriteFile(store, append(key, cert...), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "kafka-0", "server.properties")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch name, _, _ := strings.Cut(line, "="); name {
		case "listeners", "advertised.listeners":
			line += ",SECURE://" + addr
		case "listener.security.protocol.map":
			line += ",SECURE:SASL_SSL"
		}
		lines = append(lines, line)
	}
	const login = "org.apache.kafka.common.security."
	lines = append(lines,
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		`listener.name.secure.plain.sasl.jaas.config=`+login+`plain.PlainLoginModule required user_muster="secret";`,
		`listener.name.secure.scram-sha-256.sasl.jaas.config=`+login+`scram.ScramLoginModule required;`,
		`listener.name.secure.scram-sha-512.sasl.jaas.config=`+login+`scram.ScramLoginModule required;`,
		"ssl.keystore.type=PEM", "ssl.keystore.location="+store, "")
	if err := os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(within(t, time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	return addr, cert
}

// TestSecureKafka: TLS with each way to prove who we are, and what is said when
// one of them is wrong.
func TestSecureKafka(t *testing.T) {
	ownBrokers(t)
	addr, cert := secureKafka(t)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		t.Fatal("no certificate")
	}
	good := Options{
		Brokers: []string{addr}, TLS: &tls.Config{RootCAs: roots}, Timeouts: Timeouts{DialTimeout: 30 * time.Second}, Limits: Limits{MaxRecordBytes: 1000}, Logger: testLogger(t),
		SASL: &SASL{Mechanism: "PLAIN", Username: "muster", Password: "secret"},
	}
	for i, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		o := good
		o.SASL = &SASL{Mechanism: mechanism, Username: "muster", Password: "secret"}
		l := mustOpen(t, o)
		if off := mustAppend(t, l, 0, []byte(mechanism)); off != int64(i) {
			t.Fatal(off)
		}
		r, err := l.Read(0, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Next(within(t, time.Minute))
		if err != nil || string(e.Data) != mechanism {
			t.Fatalf("%q, %v", e.Data, err)
		}
		// A context that ends in the midst of TLS does no harm.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
		r.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		set        func(*Options)
	}{
		{"no TLS", "expects TLS", func(o *Options) { o.TLS = nil }},
		{"unknown certificate", "certificate", func(o *Options) { o.TLS = &tls.Config{} }},
		{"other name", "match kafka.example", func(o *Options) { o.TLS = &tls.Config{RootCAs: roots, ServerName: "kafka.example"} }},
		{"no SASL", "SASL", func(o *Options) { o.SASL = nil }},
		{"wrong password", "uthentication", func(o *Options) {
			o.SASL = &SASL{Mechanism: "PLAIN", Username: "muster", Password: "wrong"}
		}},
		{"wrong password, SCRAM", "uthentication", func(o *Options) {
			o.SASL = &SASL{Mechanism: "SCRAM-SHA-512", Username: "muster", Password: "wrong"}
		}},
	} {
		o := good
		c.set(&o)
		l, err := Open(within(t, 15*time.Second), o)
		if err == nil {
			l.Close()
			t.Errorf("%s: opened", c.name)
			continue
		}
		t.Logf("%s: %v", c.name, err)
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), `wrong"`) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

package openapitest

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
)

// makeKeys keeps keys of all forms that credentials take: vapidpublic and
// vapidprivate, rsa and ec as JSON texts in PEM, and sendgrid.
func (w *walker) makeKeys() {
	fail := func(err error) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	vapid, err := ecdh.P256().GenerateKey(rand.Reader)
	fail(err)
	w.kept["vapidpublic"] = base64.RawURLEncoding.EncodeToString(vapid.PublicKey().Bytes())
	w.kept["vapidprivate"] = base64.RawURLEncoding.EncodeToString(vapid.Bytes())
	secret := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		fail(err)
		text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
		fail(err)
		return string(text)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	fail(err)
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	w.kept["rsa"], w.kept["ec"] = secret(r), secret(e)
	public, err := x509.MarshalPKIXPublicKey(&e.PublicKey)
	fail(err)
	w.kept["sendgrid"] = base64.StdEncoding.EncodeToString(public)
}

// listen keeps the address of an endpoint that refuses webhooks for good.
func (w *walker) listen() {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) }))
	w.t.Cleanup(s.Close)
	w.kept["hook"] = s.URL
}

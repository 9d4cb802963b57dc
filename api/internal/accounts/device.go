package accounts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver/access"
)

// A known device is a browser or program that a person has signed in with before.
// Failures of others with the same e-mail do not hold it up (login_throttle.go). It shows a
// token, which is random bytes, the second it was made in, and a code over both and
// the user. The key of the code is the stored hash of the user's password: any node
// of a cluster can check it, nothing has to be stored, and a new password makes all
// devices unknown.
const (
	deviceCookie = "muster_device"
	devicePrefix = "dev_"
	// deviceTTL is how long a device stays known after a sign-in with it.
	deviceTTL    = 365 * 24 * time.Hour
	deviceRandom = 16
	deviceBytes  = deviceRandom + 8 + sha256.Size
)

// device is a token taken apart.
type device struct {
	head [deviceRandom + 8]byte // random bytes, and Unix seconds as a big-endian number
	code []byte
}

// newDeviceToken makes a device known to a user.
func newDeviceToken(rand io.Reader, u *access.User, now time.Time) (string, error) {
	var d device
	if _, err := io.ReadFull(rand, d.head[:deviceRandom]); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	binary.BigEndian.PutUint64(d.head[deviceRandom:], uint64(now.Unix()))
	return devicePrefix + base64.RawURLEncoding.EncodeToString(d.codeOf(u, d.head[:])), nil
}

// parseDevice takes a token apart; ok is false where it is none, or too old.
func parseDevice(token string, now time.Time) (d device, ok bool) {
	text, ok := strings.CutPrefix(token, devicePrefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(deviceBytes) {
		return d, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return d, false
	}
	copy(d.head[:], b)
	d.code = b[len(d.head):]
	age := now.Sub(time.Unix(int64(binary.BigEndian.Uint64(d.head[deviceRandom:])), 0))
	return d, age >= -time.Hour && age < deviceTTL // the clocks of nodes differ
}

// codeOf appends the code of the device for a user.
func (d *device) codeOf(u *access.User, to []byte) []byte {
	h := hmac.New(sha256.New, []byte(u.PasswordHash))
	h.Write([]byte("muster known device\x00" + u.ID + "\x00"))
	h.Write(d.head[:])
	return h.Sum(to)
}

// knownTo reports whether the device is known to one of the candidates. For none
// it takes as long as for one.
func (d *device) knownTo(candidates []candidate, decoy string) bool {
	if len(candidates) == 0 {
		candidates = []candidate{{User: access.User{PasswordHash: decoy}}}
	}
	known := false
	for i := range candidates {
		if hmac.Equal(d.codeOf(&candidates[i].User, nil), d.code) {
			known = true
		}
	}
	return known
}

// key is that of the device's failures.
func (d *device) key() throttleKey { return newThrottleKey("d", d.head[:]) }

// shownDevice is the token that a sign-in shows: of the body, else of the cookie.
func shownDevice(rc *fasthttp.RequestCtx, inBody string) string {
	if inBody != "" {
		return inBody
	}
	return string(rc.Request.Header.Cookie(deviceCookie))
}

func setDeviceCookie(rc *fasthttp.RequestCtx, token string) {
	k := handler.NewCookie(rc, deviceCookie)
	defer fasthttp.ReleaseCookie(k)
	k.SetValue(token)
	k.SetMaxAge(int(deviceTTL.Seconds()))
	rc.Response.Header.SetCookie(k)
}

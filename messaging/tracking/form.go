package tracking

import (
	"crypto/hmac"
	"encoding/binary"
)

// FormsPath is where the server answers the pages of forms, by the id of the form.
const FormsPath = "/forms/"

// formTag begins what the token of a form's page signs, so that it is no token of a link.
const formTag = 0xf0

// FormToken is what a form's page carries in a hidden field: when it was shown (Unix ms), and a
// nonce by which the form is taken once.
func (k Key) FormToken(form string, atMs int64, nonce [16]byte) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(atMs))
	raw = append(raw, nonce[:]...)
	sum := k.mac(append(append([]byte{formTag}, form...), raw...))
	return encoding.EncodeToString(append(raw, sum[:macBytes]...))
}

// ParseFormToken reads the token of a form's page; ok is false for one that the key did not
// sign for this form.
func (k Key) ParseFormToken(form, token string) (atMs int64, nonce [16]byte, ok bool) {
	raw, err := encoding.DecodeString(token)
	if err != nil || len(raw) != 8+len(nonce)+macBytes {
		return 0, nonce, false
	}
	said := raw[:8+len(nonce)]
	sum := k.mac(append(append([]byte{formTag}, form...), said...))
	if !hmac.Equal(sum[:macBytes], raw[len(said):]) {
		return 0, nonce, false
	}
	copy(nonce[:], said[8:])
	return int64(binary.BigEndian.Uint64(said)), nonce, true
}

// FormKey names what was sent by a form without a token, so that the same within a while is
// one. It does not reveal what was sent.
func (k Key) FormKey(form string, window int64, content string) string {
	raw := binary.BigEndian.AppendUint64([]byte{formTag + 1}, uint64(window))
	sum := k.mac(append(append(append(raw, form...), 0), content...))
	return encoding.EncodeToString(sum[:macBytes])
}

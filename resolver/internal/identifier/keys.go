package identifier

// HashDevice names a device's address in an account's index of identifiers, apart from all
// of them; buf is scratch.
func (h Hasher) HashDevice(kind byte, address []byte, buf *[]byte) Hash {
	if m, ok := Unmask(MaskDevice, address, 1); ok {
		return m[0]
	}
	*buf = append(append((*buf)[:0], 0xfd, kind), address...)
	return h.Sum(*buf)
}

// SendKeyParts is how many values are remembered of the key of a single e-mail.
const SendKeyParts = 4

// HashSendKey names a part of what is remembered of the key of a single e-mail; buf is
// scratch.
func (h Hasher) HashSendKey(key string, part byte, buf *[]byte) Hash {
	if m, ok := Unmask(MaskIdempotencyKey, []byte(key), SendKeyParts); ok {
		return m[part]
	}
	return h.HashIdempotencyKey(append([]byte{'s', 'e', 'n', 'd', 0, part}, key...), buf)
}

// HashFlowKey names the key of a call that enrols in a flow; buf is scratch.
func (h Hasher) HashFlowKey(flow, key string, buf *[]byte) Hash {
	if m, ok := Unmask(MaskIdempotencyKey, []byte(key), 1); ok {
		return m[0]
	}
	return h.HashIdempotencyKey([]byte("flow\x00"+flow+"\x00"+key), buf)
}

// HashReportKey names the key of what a provider reported; buf is scratch.
func (h Hasher) HashReportKey(key string, buf *[]byte) Hash {
	if m, ok := Unmask(MaskIdempotencyKey, []byte(key), 1); ok {
		return m[0]
	}
	return h.HashIdempotencyKey([]byte("engagement\x00"+key), buf)
}

// MaskText masks what is compared, and no identifier: the name of a device, an address of
// one.
func (h Hasher) MaskText(letter byte, text string) string {
	if text == "" || IsMasked(text) {
		return text
	}
	return string(Masked(letter, h.Sum(append([]byte{0xfa, letter}, text...))))
}

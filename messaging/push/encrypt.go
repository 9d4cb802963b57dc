package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	saltSize   = 16
	recordSize = 4096
	// headerSize is salt, record size, key length and key.
	headerSize = saltSize + 4 + 1 + 65
	// maxPlain leaves room for the header, the delimiter and the tag.
	maxPlain = MaxPayload - headerSize - 1 - 16
)

// encrypt makes the one-record aes128gcm body of RFC 8291: plain for the
// browser's key and secret, by a key pair and a salt used once.
func encrypt(plain []byte, browser *ecdh.PublicKey, secret []byte, own *ecdh.PrivateKey, salt [saltSize]byte) ([]byte, error) {
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("push: payload has %d bytes, at most %d are allowed", len(plain), maxPlain)
	}
	shared, err := own.ECDH(browser)
	if err != nil {
		return nil, fmt.Errorf("push: key agreement: %w", err)
	}
	info := append([]byte("WebPush: info\x00"), browser.Bytes()...)
	info = append(info, own.PublicKey().Bytes()...)
	ikm, err := hkdf.Key(sha256.New, shared, secret, string(info), 32)
	if err != nil {
		return nil, fmt.Errorf("push: key derivation: %w", err)
	}
	key, err := hkdf.Key(sha256.New, ikm, salt[:], "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, fmt.Errorf("push: key derivation: %w", err)
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt[:], "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, fmt.Errorf("push: key derivation: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("push: cipher: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("push: cipher: %w", err)
	}
	body := make([]byte, 0, headerSize+len(plain)+17)
	body = append(body, salt[:]...)
	body = binary.BigEndian.AppendUint32(body, recordSize)
	body = append(body, byte(len(own.PublicKey().Bytes())))
	body = append(body, own.PublicKey().Bytes()...)
	return gcm.Seal(body, nonce, append(plain[:len(plain):len(plain)], 2), nil), nil // 2 ends the last record
}

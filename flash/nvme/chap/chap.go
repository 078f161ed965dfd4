// Package chap implements DH-HMAC-CHAP, the in-band authentication of NVMe over Fabrics: a host proves that it has its
// key, and a controller, if the host asks, that it has its own. Neither key is sent. It authenticates the start of an
// association only: what follows is neither encrypted nor protected from changes, so it belongs into a tunnel.
//
// Controller and Host are the two sides of one exchange, as plain state machines over messages: they have no goroutine
// and do no I/O. Key is a secret in the form that nvme-cli writes.
//
// It follows the NVM Express Base Specification 2.0, section 8.13.5, with the groups of RFC 7919. It leaves out secure
// channel concatenation, by which TLS keys are derived from the exchange.
package chap

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

var le = binary.LittleEndian

// Hash is a hash function, by its identifier in messages and keys.
type Hash uint8

// The hash functions.
const (
	SHA256 Hash = 1 + iota
	SHA384
	SHA512
)

// function returns the hash function, or nil if there is none.
func (h Hash) function() func() hash.Hash {
	switch h {
	case SHA256:
		return sha256.New
	case SHA384:
		return sha512.New384
	case SHA512:
		return sha512.New
	}
	return nil
}

// size is the length of a hash in bytes.
func (h Hash) size() int { return h.function()().Size() }

func (h Hash) mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(h.function(), key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// Key is a secret.
type Key struct {
	secret []byte
	hash   Hash // transforms the secret together with the name of its owner; 0: it is used as it is
}

// ErrKey is wrapped by the errors of ParseKey, which never contain the key.
var ErrKey = errors.New("not a DH-HMAC-CHAP key")

// ParseKey parses a key such as nvme gen-dhchap-key prints: DHHC-1:HH:BASE64: with a hash HH of 00 to 03, over a secret
// of 32, 48 or 64 bytes and its CRC-32.
func ParseKey(text string) (k Key, err error) {
	rest, ok := strings.CutPrefix(text, "DHHC-1:")
	if !ok {
		return k, fmt.Errorf("%w: it begins with DHHC-1:", ErrKey)
	}
	kind, rest, _ := strings.Cut(rest, ":")
	encoded, ends := strings.CutSuffix(rest, ":")
	if !ends {
		return k, fmt.Errorf("%w: it ends with a colon", ErrKey)
	}
	if len(kind) != 2 || kind[0] != '0' || kind[1] < '0' || kind[1] > '3' {
		return k, fmt.Errorf("%w: the hash is 00, 01, 02 or 03", ErrKey)
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return k, fmt.Errorf("%w: its middle part is not base64", ErrKey)
	}
	n := len(b) - 4
	if n != 32 && n != 48 && n != 64 {
		return k, fmt.Errorf("%w: the secret has 32, 48 or 64 bytes and a checksum of 4", ErrKey)
	}
	k = Key{b[:n], Hash(kind[1] - '0')}
	if k.hash != 0 && k.hash.size() != n {
		return Key{}, fmt.Errorf("%w: a secret for hash %s has %d bytes, not %d", ErrKey, kind, k.hash.size(), n)
	}
	if crc32.ChecksumIEEE(b[:n]) != le.Uint32(b[n:]) {
		return Key{}, fmt.Errorf("%w: its checksum does not match, so it was mistyped", ErrKey)
	}
	return k, nil
}

// NewKey returns a random key of 32 bytes, transformed by SHA-256.
func NewKey(random io.Reader) (Key, error) {
	k := Key{make([]byte, 32), SHA256}
	_, err := io.ReadFull(random, k.secret)
	return k, err
}

// Text returns the key as ParseKey takes it.
func (k Key) Text() string {
	b := le.AppendUint32(append([]byte(nil), k.secret...), crc32.ChecksumIEEE(k.secret))
	return fmt.Sprintf("DHHC-1:%02d:%s:", k.hash, base64.StdEncoding.EncodeToString(b))
}

// String implements fmt.Stringer without the secret, which must not get into logs.
func (k Key) String() string { return "key" }

// GoString implements fmt.GoStringer.
func (k Key) GoString() string { return "chap.Key{}" }

// Zero reports whether there is no key.
func (k Key) Zero() bool { return len(k.secret) == 0 }

// of returns the secret as the owner of the given name uses it.
func (k Key) of(name string) []byte {
	if k.hash == 0 {
		return k.secret
	}
	return k.hash.mac(k.secret, []byte(name), []byte("NVMe-over-Fabrics"))
}

// Names are the NVMe qualified names of both sides.
type Names struct{ Host, Subsystem string }

// proof is what both sides compute.
type proof struct {
	hash        Hash
	transaction uint16
	secure      uint8  // SC_C of the negotiation
	session     []byte // hash of the shared secret; nil with the null group
}

// response is the proof that a side with a key has received a challenge.
func (p *proof) response(k Key, owner string, challenge []byte, sequence uint32, role, first, second string) []byte {
	if p.session != nil {
		challenge = p.hash.mac(p.session, challenge)
	}
	var b [7]byte
	le.PutUint32(b[:], sequence)
	le.PutUint16(b[4:], p.transaction)
	b[6] = p.secure
	return p.hash.mac(k.of(owner), challenge, b[:], []byte(role), []byte(first), []byte{0}, []byte(second))
}

// ofHost is the host's response to the controller's challenge.
func (p *proof) ofHost(k Key, n Names, challenge []byte, sequence uint32) []byte {
	return p.response(k, n.Host, challenge, sequence, "HostHost", n.Host, n.Subsystem)
}

// ofController is the controller's response to the host's challenge.
func (p *proof) ofController(k Key, n Names, challenge []byte, sequence uint32) []byte {
	return p.response(k, n.Subsystem, challenge, sequence, "Controller", n.Subsystem, n.Host)
}

// share sets the session's key from the other side's public value.
func (p *proof) share(e *exponent, public []byte) bool {
	if e == nil {
		return len(public) == 0
	}
	secret, ok := e.shared(public)
	if !ok {
		return false
	}
	h := p.hash.function()()
	h.Write(secret)
	p.session = h.Sum(nil)
	return true
}

// equal compares proofs in constant time.
func equal(a, b []byte) bool { return hmac.Equal(a, b) }

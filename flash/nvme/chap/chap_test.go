package chap

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"farflash/internal/patience"
)

var names = Names{"nqn.2026-01.example:host", "nqn.2026-01.example:disk"}

const text = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"

func key(t testing.TB) Key {
	t.Helper()
	k, err := NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKeys verifies that keys are read and written as nvme-cli does, that mistakes are named, and that no error or
// print contains the secret.
func TestKeys(t *testing.T) {
	k, err := ParseKey(text)
	if err != nil || k.Text() != text {
		t.Fatalf("%v, %v", k.Text(), err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(s, "AAEC") || strings.Contains(s, "0102") {
		t.Errorf("the secret is printed: %s", s)
	}
	for wrong, want := range map[string]string{
		"secret":                                  "begins with",
		strings.TrimSuffix(text, ":"):             "colon",
		strings.Replace(text, ":01:", ":04:", 1):  "hash",
		strings.Replace(text, ":01:", ":02:", 1):  "48 bytes",
		strings.Replace(text, ":01:", ":11:", 1):  "hash",
		strings.Replace(text, ":01:", ":0/:", 1):  "hash",
		strings.Replace(text, ":01:", ":001:", 1): "hash",
		strings.Replace(text, "AAEC", "AAED", 1):  "mistyped",
		strings.Replace(text, "AAEC", "A_EC", 1):  "base64",
		"DHHC-1:00:AAAA:":                         "32, 48 or 64",
	} {
		if _, err := ParseKey(wrong); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", wrong, err, want)
		} else if strings.Contains(err.Error(), "AAEC") {
			t.Errorf("the error contains the secret: %v", err)
		}
	}
}

const (
	hostResponse       = "7dfb049515c0e71c9a6e06e9cd7d945614d9db1b60f000fc769c5587e422345c"
	controllerResponse = "04681e1c98b1bf64c4fcc26756dcf298c7dbcdc39ab6d1b9a5b655b873560b84" +
		"797d609a66d12891b3c42b4053cf772d"
)

// TestResponses verifies proofs against values that were computed by another program from the specification.
func TestResponses(t *testing.T) {
	k, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	c := make([]byte, 48)
	for i := range c {
		c[i] = byte(100 + i)
	}
	p := proof{hash: SHA256, transaction: 9}
	if got := hex.EncodeToString(p.ofHost(k, names, c[:32], 7)); got != hostResponse {
		t.Errorf("the host's is %s", got)
	}
	s := sha512.Sum384([]byte("shared secret"))
	for i := range c[32:] {
		c[32+i] = byte(100 + i)
	}
	p.hash, p.session, k.hash = SHA384, s[:], 0
	if got := hex.EncodeToString(p.ofController(k, names, c, 7)); got != controllerResponse {
		t.Errorf("the controller's is %s", got)
	}
}

// TestPrimes verifies the groups: safe primes that begin and end with 64 ones, and the digits of RFC 7919 in between.
func TestPrimes(t *testing.T) {
	for g := FFDHE2048; g < groups; g++ {
		p := g.prime()
		half := new(big.Int).Rsh(p, 1)
		s := fmt.Sprintf("%X", p)
		if p.BitLen() != int(parameters[g].bits) ||
			!strings.HasPrefix(s, "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1") ||
			!strings.HasSuffix(s, "FFFFFFFFFFFFFFFF") {
			t.Errorf("group %d: %s", g, s)
		}
		if g < FFDHE4096 && (!p.ProbablyPrime(1) || !half.ProbablyPrime(1)) {
			t.Errorf("group %d has no safe prime", g)
		}
	}
	if s := fmt.Sprintf("%X", FFDHE2048.prime()); !strings.HasSuffix(s, "886B423861285C97FFFFFFFFFFFFFFFF") {
		t.Errorf("group 1 ends with %s", s[len(s)-32:])
	}
}

// exchange runs an exchange to its end. change may alter each message, which is to the controller or to the host.
func exchange(c *Controller, h *Host, change func(toController bool, b []byte) []byte) {
	for range 4 {
		b := h.Send()
		if b == nil {
			return
		}
		c.Receive(change(true, b))
		if c.Done() {
			return
		}
		h.Receive(change(false, c.Send()))
	}
}

func same(_ bool, b []byte) []byte { return b }

// TestExchange runs exchanges with every hash and group, in one and in both directions, and with wrong keys.
func TestExchange(t *testing.T) {
	k, sub := key(t), key(t)
	for _, c := range []struct {
		name             string
		controller, host Keys
		hash             Hash
		group            Group
		controllers      error
		hosts            error
	}{
		{"one way", Keys{Host: k}, Keys{Host: k}, SHA256, FFDHE3072, nil, nil},
		{"both ways", Keys{k, sub}, Keys{k, sub}, SHA256, FFDHE2048, nil, nil},
		{"SHA-384", Keys{k, sub}, Keys{k, sub}, SHA384, FFDHE4096, nil, nil},
		{"SHA-512", Keys{k, sub}, Keys{k, sub}, SHA512, FFDHE6144, nil, nil},
		{"the largest group", Keys{Host: k}, Keys{Host: k}, SHA512, FFDHE8192, nil, nil},
		{"no group", Keys{k, sub}, Keys{k, sub}, SHA512, Null, nil, nil},
		{"a wrong host", Keys{k, sub}, Keys{sub, sub}, SHA256, FFDHE2048, Failed, Failed},
		{"a wrong subsystem", Keys{k, k}, Keys{k, sub}, SHA256, FFDHE2048, Failed, Failed},
		{"a subsystem without a key", Keys{Host: k}, Keys{k, sub}, SHA256, FFDHE2048, Failed, Failed},
		{"a host without a key on the controller", Keys{}, Keys{Host: k}, SHA256, FFDHE2048, Failed, Failed},
		{"an unknown hash", Keys{k, sub}, Keys{k, sub}, 9, FFDHE2048, NoHash, NoHash},
		{"an unknown group", Keys{k, sub}, Keys{k, sub}, SHA256, 99, NoGroup, NoGroup},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := NewController(c.controller, names, rand.Reader)
			b := NewHost(c.host, names, 77, rand.Reader)
			b.Hashes, b.Groups = []Hash{c.hash}, []Group{c.group}
			exchange(a, b, same)
			if !errors.Is(a.Err(), c.controllers) || !errors.Is(b.Err(), c.hosts) ||
				a.Done() != (c.controllers == nil) ||
				b.Done() != (c.hosts == nil) {
				t.Errorf("the controller: %v, %v; the host: %v, %v", a.Done(), a.Err(), b.Done(), b.Err())
			}
			if !bytes.Equal(a.session, b.session) || c.controllers == nil && (a.session == nil) != (c.group == Null) {
				t.Error("the shared secrets differ")
			}
		})
	}
}

// TestReflected verifies that a host that answers a challenge with the same challenge gets no proof for it.
func TestReflected(t *testing.T) {
	k := Keys{key(t), key(t)}
	c := NewController(k, names, rand.Reader)
	c.Receive(offer{hashes: []Hash{SHA256}, groups: []Group{Null}}.append())
	x, ok := decodeChallenge(c.Send())
	if !ok {
		t.Fatal("no challenge")
	}
	p := proof{hash: SHA256}
	c.Receive(reply{response: p.ofHost(k.Host, names, x.value, x.sequence), asks: true, sequence: 1,
		value: x.value}.append(0))
	if b := c.Send(); b[1] != idFailure1 || !errors.Is(c.Err(), Failed) {
		t.Errorf("%x, %v", b, c.Err())
	}
}

// TestWeakSecrets verifies that public values by which others would know the secret are refused.
func TestWeakSecrets(t *testing.T) {
	e, err := newExponent(FFDHE2048, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := FFDHE2048.prime()
	for _, y := range []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1)), p} {
		if _, ok := e.shared(y.FillBytes(make([]byte, 256))); ok {
			t.Errorf("%x is accepted", y)
		}
	}
	if _, ok := e.shared(make([]byte, 255)); ok {
		t.Error("a short value is accepted")
	}
}

// TestAltered changes a byte, or the length, of each message of an exchange in turn: no side is content with a proof
// that was altered, and no input makes one panic.
func TestAltered(t *testing.T) {
	k := Keys{key(t), key(t)}
	for at := range 5 {
		for position := range 160 {
			for _, cut := range []bool{false, true} {
				a := NewController(k, names, rand.Reader)
				b := NewHost(k, names, 1, rand.Reader)
				b.Groups = []Group{Null}
				n, altered := 0, false
				exchange(a, b, func(_ bool, m []byte) []byte {
					if n++; n-1 != at || position >= len(m) {
						return m
					}
					altered = true
					if cut {
						return m[:position]
					}
					m = bytes.Clone(m)
					m[position] ^= 0x80
					return m
				})
				proofs := at == 2 && position >= fixedSize && position < fixedSize+32 ||
					at == 3 && position >= fixedSize && position < fixedSize+32
				if altered && proofs && a.Done() && b.Done() {
					t.Errorf("message %d, byte %d, cut %v: both are content", at, position, cut)
				}
			}
		}
	}
}

// FuzzReceive verifies that no messages make either side panic, or the controller content.
func FuzzReceive(f *testing.F) {
	f.Add(offer{hashes: []Hash{SHA256}, groups: []Group{Null}}.append(), []byte{})
	f.Add(offer{hashes: []Hash{SHA256}, groups: []Group{Null}}.append(),
		reply{response: make([]byte, 32), value: make([]byte, 32)}.append(0))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		defer patience.Limit()()
		k, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		c := NewController(Keys{Host: k}, names, rand.Reader)
		h := NewHost(Keys{Host: k}, names, 0, rand.Reader)
		h.Send()
		for _, b := range [][]byte{one, two} {
			c.Receive(b)
			if c.challenge.group <= FFDHE2048 { // the others take long
				c.Send()
			}
			h.Receive(b)
			h.Send()
		}
		if c.Done() {
			t.Error("a proof was guessed")
		}
	})
}

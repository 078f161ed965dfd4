package chap

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"testing/iotest"
)

// TestBytes verifies the messages byte by byte, as the specification lays them out (Base 8.13.5).
func TestBytes(t *testing.T) {
	o := offer{transaction: 0x0201, secure: 3, hashes: []Hash{SHA256, SHA512}, groups: []Group{Null, FFDHE4096}}
	want := make([]byte, 72)
	copy(want, []byte{0, 0, 0, 0, 1, 2, 3, 1, 1, 0, 2, 2, 1, 3})
	copy(want[42:], []byte{0, 3})
	if got := o.append(); !bytes.Equal(got, want) {
		t.Errorf("an offer is %x, want %x", got, want)
	}
	if got, r := decodeOffer(want); r != 0 || !slices.Equal(got.hashes, o.hashes) ||
		!slices.Equal(got.groups, o.groups) ||
		got.transaction != o.transaction || got.secure != 3 {
		t.Errorf("%+v, %v", got, r)
	}
	value, public := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 256)
	c := challenge{hash: SHA256, group: FFDHE2048, sequence: 0x0a0b0c0d, value: value, public: public}
	want = append(append([]byte{1, 1, 0, 0, 5, 0, 32, 0, 1, 1, 0, 1, 0x0d, 0x0c, 0x0b, 0x0a}, value...), public...)
	if got := c.append(5); !bytes.Equal(got, want) {
		t.Errorf("a challenge is %x, want %x", got, want)
	}
	r := reply{response: bytes.Repeat([]byte{6}, 32), asks: true, sequence: 9, value: value, public: public}
	want = append([]byte{1, 2, 0, 0, 5, 0, 32, 0, 1, 0, 0, 1, 9, 0, 0, 0}, slices.Concat(r.response, value, public)...)
	if got := r.append(5); !bytes.Equal(got, want) {
		t.Errorf("a reply is %x, want %x", got, want)
	}
	for n := range len(want) {
		if _, ok := decodeReply(want[:n], 32, 256); ok {
			t.Fatalf("%d bytes of a reply are one", n)
		}
	}
	for _, wrong := range [][2]int{{48, 256}, {32, 0}, {32, 255}} {
		if _, ok := decodeReply(want, wrong[0], wrong[1]); ok {
			t.Errorf("a reply with hashes of %d bytes and a value of %d", wrong[0], wrong[1])
		}
	}
	if got := success1(5, 32, value); !bytes.Equal(got, append([]byte{1, 3, 0, 0, 5, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		value...)) {
		t.Errorf("a success is %x", got)
	}
	if got := failure(idFailure1, 5, NoHash); !bytes.Equal(got, []byte{0, 0xf1, 0, 0, 5, 0, 1, 4}) {
		t.Errorf("a failure is %x", got)
	}
}

// TestFresh verifies that challenges and exponents of either side are never those of an earlier exchange.
func TestFresh(t *testing.T) {
	k := Keys{key(t), key(t)}
	seen := map[string]string{}
	for range 3 {
		c, h := NewController(k, names, rand.Reader), NewHost(k, names, 1, rand.Reader)
		h.Groups = []Group{FFDHE2048}
		exchange(c, h, same)
		if !c.Done() || !h.Done() {
			t.Fatal(c.Err(), h.Err())
		}
		for what, b := range map[string][]byte{"the controller's challenge": c.challenge.value, "the host's": h.value,
			"the controller's value": c.challenge.public, "the session": c.session} {
			if len(b) < 32 || bytes.Equal(b, make([]byte, len(b))) || seen[string(b)] != "" {
				t.Errorf("%s is %x, as %q was", what, b, seen[string(b)])
			}
			seen[string(b)] = what
		}
		if c.exponent.x.BitLen() != 8*exponentBytes {
			t.Errorf("an exponent of %d bits", c.exponent.x.BitLen())
		}
	}
}

// TestOutOfStep sends each message at each step at which it is not expected.
func TestOutOfStep(t *testing.T) {
	k := Keys{key(t), key(t)}
	var said [][]byte // by both sides, in turns
	c, h := NewController(k, names, rand.Reader), NewHost(k, names, 1, rand.Reader)
	h.Groups = []Group{Null}
	exchange(c, h, func(_ bool, b []byte) []byte { said = append(said, b); return b })
	if len(said) != 5 {
		t.Fatalf("%d messages", len(said))
	}
	for steps := range 3 { // of the controller's messages that it has received
		for i, b := range said {
			if i == 2*steps {
				continue // the one that is due
			}
			c := NewController(k, names, rand.Reader)
			for n := range steps {
				c.Receive(said[2*n])
				if c.step == toAnswer { // the recorded proof is for another challenge
					c.step = toConclude
					continue
				}
				c.Send()
			}
			c.Receive(b)
			if want := error(WrongMessage); !errors.Is(c.Err(), want) && !errors.Is(c.Err(), WrongPayload) {
				t.Errorf("after %d messages, message %d: %v", steps, i, c.Err())
			}
			if got := c.Send(); got[1] != idFailure1 || c.Done() {
				t.Errorf("after %d messages, message %d is answered with %x", steps, i, got)
			}
		}
	}
	for steps, due := range map[int]int{0: 1, 1: 3} {
		for i, b := range said {
			if i == due {
				continue
			}
			h := NewHost(k, names, 1, rand.Reader)
			h.Groups = []Group{Null}
			h.Send()
			if steps == 1 {
				h.Receive(said[1])
				h.Send()
			}
			h.Receive(b)
			if !errors.Is(h.Err(), WrongMessage) || !h.Says() || h.Send()[1] != idFailure2 || h.Done() {
				t.Errorf("a host after %d messages, message %d: %v", steps, i, h.Err())
			}
		}
	}
	// An unsolicited answer.
	c = NewController(k, names, rand.Reader)
	if got := c.Send(); got[1] != idFailure1 || !errors.Is(c.Err(), WrongMessage) {
		t.Errorf("%x, %v", got, c.Err())
	}
}

// TestOffers verifies why offers are refused.
func TestOffers(t *testing.T) {
	good := offer{hashes: []Hash{SHA256}, groups: []Group{Null}}
	for _, x := range []struct {
		b    []byte
		want Reason
	}{
		{good.append()[:71], WrongPayload}, {make([]byte, 8), NoProtocol}, {make([]byte, 3), WrongPayload},
		{offer{secure: 1, hashes: good.hashes, groups: good.groups}.append(), NoConcat},
		{offer{groups: good.groups}.append(), NoHash}, {offer{hashes: good.hashes}.append(), NoGroup},
		{func() []byte { b := good.append(); b[10] = mostHashes + 1; return b }(), WrongPayload},
		{func() []byte { b := good.append(); b[11] = mostGroups + 1; return b }(), WrongPayload},
		{func() []byte { b := good.append(); b[8] = 2; return b }(), NoProtocol},
	} {
		c := NewController(Keys{Host: key(t)}, names, rand.Reader)
		c.Receive(x.b)
		if got := c.Send(); !errors.Is(c.Err(), x.want) || got[1] != idFailure1 || Reason(got[7]) != x.want {
			t.Errorf("%x: %v, %x; want %v", x.b, c.Err(), got, x.want)
		}
	}
	// The hash of the key goes first.
	for h, n := range map[Hash]int{SHA384: 48, SHA512: 64} {
		c := NewController(Keys{Host: Key{make([]byte, n), h}}, names, rand.Reader)
		c.Receive(offer{hashes: []Hash{SHA256, SHA384, SHA512}, groups: []Group{Null}}.append())
		if c.hash != h {
			t.Errorf("hash %d for a key of hash %d", c.hash, h)
		}
	}
	// The protocol may be the second that a host offers.
	b := good.append()
	b[7] = 2
	b = append(b[:8:8], slices.Concat(make([]byte, descriptorSize), b[8:])...)
	c := NewController(Keys{Host: key(t)}, names, rand.Reader)
	if c.Receive(b); c.Err() != nil || c.step != toChallenge {
		t.Errorf("%v", c.Err())
	}
}

// TestChallenges verifies why a host refuses a challenge, and a success without a proof that it has asked for.
func TestChallenges(t *testing.T) {
	k := Keys{key(t), key(t)}
	value := make([]byte, 32)
	begin := func() *Host {
		h := NewHost(k, names, 1, rand.Reader)
		h.Hashes, h.Groups = []Hash{SHA256}, []Group{Null}
		h.Send()
		return h
	}
	for _, x := range []struct {
		c    challenge
		want Reason
	}{
		{challenge{hash: SHA384, value: make([]byte, 48)}, NoHash},
		{challenge{hash: SHA256, group: FFDHE2048, value: value, public: make([]byte, 256)}, NoGroup},
		{challenge{hash: 9, value: value}, WrongPayload},
		{challenge{hash: SHA256, group: groups, value: value}, WrongPayload},
		{challenge{hash: SHA256, value: value[:31]}, WrongPayload},
		{challenge{hash: SHA256, value: value, public: value}, WrongPayload},
	} {
		h := begin()
		if h.Receive(x.c.append(1)); !errors.Is(h.Err(), x.want) || Reason(h.Send()[7]) != x.want {
			t.Errorf("%+v: %v, want %v", x.c, h.Err(), x.want)
		}
	}
	h := begin()
	h.Groups = []Group{FFDHE2048}
	if h.Receive(challenge{hash: SHA256, group: FFDHE2048, value: value,
		public: make([]byte, 256)}.append(1)); !errors.Is(
		h.Err(), WrongPayload) {
		t.Errorf("a controller whose secret is known: %v", h.Err())
	}
	for name, change := range map[string]func(b []byte) []byte{
		"unmarked":          func(b []byte) []byte { b[8] = 0; return b },
		"of another length": func(b []byte) []byte { b[6] = 31; return b },
		"cut":               func(b []byte) []byte { return b[:len(b)-1] },
		"wrong":             func(b []byte) []byte { b[20]++; return b },
		"without":           func(b []byte) []byte { return b[:fixedSize] },
	} {
		h := begin()
		h.Receive(challenge{hash: SHA256, value: value, sequence: 1}.append(1))
		h.Send()
		b := success1(1, 32, h.ofController(k.Controller, names, h.value, h.sequence))
		if h.Receive(change(b)); h.Done() || !errors.Is(h.Err(), Failed) {
			t.Errorf("a proof that is %s: %v", name, h.Err())
		}
	}
}

// TestNoRandom verifies that neither side goes on without randomness.
func TestNoRandom(t *testing.T) {
	broken := errors.New("broken")
	k := Keys{key(t), key(t)}
	for _, g := range []Group{Null, FFDHE2048} {
		c := NewController(k, names, iotest.ErrReader(broken))
		c.Receive(offer{hashes: []Hash{SHA256}, groups: []Group{g}}.append())
		if b := c.Send(); !errors.Is(c.Err(), broken) || b[1] != idFailure1 {
			t.Errorf("group %d: %v, %x", g, c.Err(), b)
		}
		good := NewController(k, names, rand.Reader)
		good.Receive(offer{transaction: 1, hashes: []Hash{SHA256}, groups: []Group{g}}.append())
		h := NewHost(k, names, 1, iotest.ErrReader(broken))
		h.Send()
		if h.Receive(good.Send()); !errors.Is(h.Err(), broken) || h.Send()[1] != idFailure2 {
			t.Errorf("group %d: a host goes on: %v", g, h.Err())
		}
	}
	if _, err := NewKey(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a key: %v", err)
	}
	if !(Key{}).Zero() || key(t).Zero() || (Key{secret: []byte{1}}).Zero() {
		t.Error("a key is none, or none is a key")
	}
}

package chap

import (
	"fmt"
	"io"
	"slices"
)

// Steps of an exchange, named by what comes next.
const (
	toNegotiate = iota // the controller expects the host's offer
	toChallenge        // the controller is asked for its challenge
	toReply            // the controller expects the host's proof
	toAnswer           // the controller is asked for the result
	toConclude         // the controller expects the host's verdict on its own proof
	done
	failed
)

// Keys are the secrets of one host and, if it asks a controller to prove itself, of the subsystem.
type Keys struct{ Host, Controller Key }

// Controller is a controller's side of an exchange.
type Controller struct {
	keys   Keys
	names  Names
	random io.Reader
	step   int
	why    error

	proof
	challenge challenge
	exponent  *exponent
	reply     reply
}

// NewController begins an exchange.
func NewController(k Keys, n Names, random io.Reader) *Controller {
	return &Controller{keys: k, names: n, random: random}
}

// Done reports that the host has proved its key, and is content with the controller's proof.
func (c *Controller) Done() bool { return c.step == done }

// Err returns why the exchange has failed, or nil. Send then has the message with the reason.
func (c *Controller) Err() error { return c.why }

func (c *Controller) fail(why error) {
	c.step, c.why = failed, why
}

// Receive takes a message of the host. It computes little: Send does the work.
func (c *Controller) Receive(b []byte) {
	kind, id := uint8(0xff), uint8(0xff)
	if len(b) >= headSize {
		kind, id = b[0], b[1]
	}
	switch {
	case kind == common && id == idNegotiate && c.step == toNegotiate:
		c.negotiate(b)
	case kind == 0xff:
		c.fail(WrongPayload)
	case le.Uint16(b[4:]) != c.transaction:
		c.fail(WrongPayload)
	case kind == common && id == idFailure2 && c.step == toConclude:
		c.fail(fmt.Errorf("the host refuses the proof of the subsystem's key: %w", Reason(b[7])))
	case kind == common && id == idFailure2:
		c.fail(fmt.Errorf("the host gives up: %w", Reason(b[7])))
	case kind == dhchap && id == idReply && c.step == toReply:
		var ok bool
		if c.reply, ok = decodeReply(slices.Clone(b), c.hash.size(), c.challenge.group.size()); !ok {
			c.fail(WrongPayload)
			return
		}
		c.step = toAnswer
	case kind == dhchap && id == idSuccess2 && c.step == toConclude:
		c.step = done
	default:
		c.fail(WrongMessage)
	}
}

// preferred are the groups from the best compromise of strength and time to the worst.
var preferred = []Group{FFDHE3072, FFDHE4096, FFDHE2048, FFDHE6144, FFDHE8192, Null}

func (c *Controller) negotiate(b []byte) {
	o, r := decodeOffer(b)
	c.transaction, c.secure = o.transaction, o.secure
	switch {
	case r != 0:
		c.fail(r)
		return
	case o.secure != 0:
		c.fail(NoConcat)
		return
	}
	hashes := []Hash{SHA256, SHA384, SHA512}
	if h := c.keys.Host.hash; h != 0 { // that of the key first
		hashes = append([]Hash{h}, hashes...)
	}
	i := slices.IndexFunc(hashes, func(h Hash) bool { return slices.Contains(o.hashes, h) })
	if i < 0 {
		c.fail(NoHash)
		return
	}
	j := slices.IndexFunc(preferred, func(g Group) bool { return slices.Contains(o.groups, g) })
	if j < 0 {
		c.fail(NoGroup)
		return
	}
	c.hash, c.challenge.hash, c.challenge.group = hashes[i], hashes[i], preferred[j]
	c.step = toChallenge
}

// Send returns the controller's next message. It can take tens of milliseconds.
func (c *Controller) Send() []byte {
	switch c.step {
	case toChallenge:
		if err := c.challengeHost(); err != nil {
			c.fail(err)
			break
		}
		c.step = toReply
		return c.challenge.append(c.transaction)
	case toAnswer:
		if b := c.answer(); b != nil {
			return b
		}
	case failed:
	default:
		c.fail(WrongMessage)
	}
	r, ok := c.why.(Reason)
	if !ok {
		r = Failed
	}
	return failure(idFailure1, c.transaction, r)
}

func (c *Controller) challengeHost() (err error) {
	if c.exponent, err = newExponent(c.challenge.group, c.random); err != nil {
		return err
	}
	b := make([]byte, c.hash.size()+4)
	if _, err := io.ReadFull(c.random, b); err != nil {
		return fmt.Errorf("chap: %w", err)
	}
	c.challenge.value, c.challenge.sequence = b[4:], max(le.Uint32(b), 1)
	c.challenge.public = c.exponent.public()
	return nil
}

// answer verifies the host's proof, and returns the message that says so, with the controller's proof if the host asked
// for it.
func (c *Controller) answer() []byte {
	if !c.share(c.exponent, c.reply.public) {
		c.fail(WrongPayload)
		return nil
	}
	want := c.ofHost(c.keys.Host, c.names, c.challenge.value, c.challenge.sequence)
	if c.keys.Host.Zero() || !equal(want, c.reply.response) {
		c.fail(Failed)
		return nil
	}
	if !c.reply.asks {
		c.step = done
		return success1(c.transaction, c.hash.size(), nil)
	}
	// The host's own challenge sent back must not make it accept its own response.
	if c.keys.Controller.Zero() || equal(c.reply.value, c.challenge.value) {
		c.fail(Failed)
		return nil
	}
	c.step = toConclude
	return success1(c.transaction, c.hash.size(),
		c.ofController(c.keys.Controller, c.names, c.reply.value, c.reply.sequence))
}

// Host is a host's side of an exchange. With a controller's key, the controller must prove it.
type Host struct {
	keys   Keys
	names  Names
	random io.Reader
	// Hashes and Groups are offered to the controller.
	Hashes []Hash
	Groups []Group

	proof
	step     int
	why      error
	value    []byte
	sequence uint32
	next     []byte
}

// NewHost begins an exchange that offers all hashes and groups. The transaction distinguishes it from others on the
// connection.
func NewHost(k Keys, n Names, transaction uint16, random io.Reader) *Host {
	return &Host{keys: k, names: n, random: random, proof: proof{transaction: transaction},
		Hashes: []Hash{SHA256, SHA384, SHA512},
		Groups: []Group{Null, FFDHE2048, FFDHE3072, FFDHE4096, FFDHE6144, FFDHE8192}}
}

// Send returns the host's next message; nil: there is none.
func (h *Host) Send() []byte {
	if h.step == toNegotiate {
		h.step = toChallenge
		return offer{transaction: h.transaction, hashes: h.Hashes, groups: h.Groups}.append()
	}
	b := h.next
	h.next = nil
	return b
}

// Says reports that Send has a message.
func (h *Host) Says() bool { return h.step == toNegotiate || h.next != nil }

// Done reports that both sides are content.
func (h *Host) Done() bool { return h.step == done }

// Err returns why the exchange has failed, or nil.
func (h *Host) Err() error { return h.why }

// fail ends the exchange. If the controller does not know it yet, it gets a message.
func (h *Host) fail(r Reason, say bool) {
	h.step, h.why = failed, r
	if say {
		h.next = failure(idFailure2, h.transaction, r)
	}
}

// Receive takes a message of the controller.
func (h *Host) Receive(b []byte) {
	switch {
	case len(b) < headSize || le.Uint16(b[4:]) != h.transaction:
		h.fail(WrongPayload, true)
	case b[0] == common && b[1] == idFailure1:
		h.fail(Reason(b[7]), false)
	case b[0] == dhchap && b[1] == idChallenge && h.step == toChallenge:
		h.prove(b)
	case b[0] == dhchap && b[1] == idSuccess1 && h.step == toAnswer:
		h.conclude(b)
	default:
		h.fail(WrongMessage, true)
	}
}

// prove answers the controller's challenge.
func (h *Host) prove(b []byte) {
	c, ok := decodeChallenge(b)
	switch {
	case !ok:
		h.fail(WrongPayload, true)
		return
	case !slices.Contains(h.Hashes, c.hash):
		h.fail(NoHash, true)
		return
	case !slices.Contains(h.Groups, c.group):
		h.fail(NoGroup, true)
		return
	}
	h.hash = c.hash
	e, err := newExponent(c.group, h.random)
	fresh := make([]byte, h.hash.size()+4)
	if err == nil {
		_, err = io.ReadFull(h.random, fresh)
	}
	if err != nil {
		h.fail(Failed, true)
		h.why = err
		return
	}
	if !h.share(e, c.public) {
		h.fail(WrongPayload, true)
		return
	}
	h.value, h.sequence = make([]byte, h.hash.size()), 0
	asks := !h.keys.Controller.Zero()
	if asks {
		h.value, h.sequence = fresh[4:], max(le.Uint32(fresh), 1)
	}
	h.next = reply{response: h.ofHost(h.keys.Host, h.names, c.value, c.sequence), asks: asks, sequence: h.sequence,
		value: h.value, public: e.public()}.append(h.transaction)
	h.step = toAnswer
}

// conclude verifies the controller's proof, if it has to prove its key.
func (h *Host) conclude(b []byte) {
	switch n := h.hash.size(); {
	case h.keys.Controller.Zero():
		h.step = done
	case len(b) < fixedSize+n || int(b[6]) != n || b[8]&1 == 0 ||
		!equal(b[fixedSize:][:n], h.ofController(h.keys.Controller, h.names, h.value, h.sequence)):
		h.fail(Failed, true)
	default:
		h.next = message(dhchap, idSuccess2, h.transaction, fixedSize)
		h.step = done
	}
}

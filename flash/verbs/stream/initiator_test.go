package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// server is a responder written from the RFCs alone, with memory that it exposes under a fixed STag. It answers in
// pieces of any size until it breaks a rule.
type server struct {
	*rawPeer
	memory []byte
	got    []message
	flawed int // number of responses before the violation
	flaw   string
}

const (
	serverSTag = 0xABCDE5
	serverBase = uint64(1) << 63
)

// flaws are the protocol violations; "" is none.
var flaws = []string{"", "", "", "close", "reset", "half a frame", "terminate", "another STag", "an offset too high",
	"last too early", "too long", "not last", "empty, not last",
	"the wrong kind", "twice", "crc", "a queue", "an atomic's name", "a long answer to an atomic", "silence"}

// errs commits the violation and reports whether the connection is over. It returns false if this request cannot be
// answered that way.
func (v *server) errs(e rawSegment) (over bool) {
	q := func(at int) uint32 { return big.Uint32(e.payload[at:]) }
	sink, sinkAt, size := uint32(1), uint64(1), uint32(8)
	read := e.op == rawReadRequest
	if read {
		sink, sinkAt, size = q(0), big.Uint64(e.payload[4:]), q(12)
	}
	data := make([]byte, size)
	switch v.flaw {
	case "close":
	case "reset":
		_ = v.nc.(*net.TCPConn).SetLinger(0)
	case "half a frame":
		v.tagged(rawReadResponse, true, sink, sinkAt, data)
		v.out = v.out[:v.rnd.IntN(len(v.out))]
	case "terminate":
		v.untagged(rawTerminate, 0, []byte{0x01, 0x02, 0, 0}, nil)
	case "another STag":
		v.tagged(rawReadResponse, size < 2, sink^(1<<uint(v.rnd.IntN(32))), sinkAt, append(data[:min(1, size)], 0)[:1])
	case "an offset too high":
		v.tagged(rawReadResponse, size < 2, sink, sinkAt+1<<uint(v.rnd.IntN(63)), append(data[:min(1, size)], 0)[:1])
	case "last too early":
		if size == 0 {
			return false // an empty response cannot end early
		}
		v.tagged(rawReadResponse, true, sink, sinkAt, data[:size/2])
	case "too long":
		v.tagged(rawReadResponse, true, sink, sinkAt, append(data, 0))
	case "not last":
		v.tagged(rawReadResponse, false, sink, sinkAt, data)
	case "empty, not last":
		v.tagged(rawReadResponse, false, sink, sinkAt, nil)
	case "the wrong kind":
		if read {
			v.untagged(rawAtomicResponse, 0, make([]byte, 12), nil)
		} else {
			v.tagged(rawReadResponse, true, sink, sinkAt, data)
		}
	case "twice": // answered correctly, and then a second time without a request
		v.answer(e)
		v.tagged(rawReadResponse, true, sink, ^uint64(0), []byte("again"))
	case "crc":
		v.tagged(rawReadResponse, true, sink, sinkAt, data)
		v.out[len(v.out)-1-v.rnd.IntN(8)] ^= 0x10
	case "a queue":
		v.untaggedAt(rawSend, true, 0, 7, 1, 0, nil)
	case "an atomic's name":
		if read {
			v.untagged(rawAtomicResponse, 0, make([]byte, 12), nil)
		} else {
			v.untagged(rawAtomicResponse, 0, append(big.AppendUint32(nil, q(4)+1), data...), nil)
		}
	case "a long answer to an atomic":
		v.untagged(rawAtomicResponse, 0, make([]byte, 13), nil)
	case "silence":
		return true
	}
	_ = v.flush()
	if v.flaw == "close" || v.flaw == "reset" || v.flaw == "half a frame" {
		_ = v.nc.Close()
	}
	return true
}

// answer responds to a read or an atomic.
func (v *server) answer(e rawSegment) {
	q := func(at int) uint32 { return big.Uint32(e.payload[at:]) }
	if e.op == rawReadRequest {
		sink, sinkAt, size := q(0), big.Uint64(e.payload[4:]), int(q(12))
		if size == 0 {
			v.tagged(rawReadResponse, true, v.rnd.Uint32(), v.rnd.Uint64(), nil)
			return
		}
		from := int(big.Uint64(e.payload[20:]) - serverBase)
		for at := 0; at < size; {
			n := max(1, v.pieces(size-at))
			v.tagged(rawReadResponse, at+n == size, sink, sinkAt+uint64(at), v.memory[from+at:][:n])
			at += n
		}
		return
	}
	at := int(big.Uint64(e.payload[12:]) - serverBase)
	old := little(v.memory[at:])
	data, mask, compare, compareMask := big.Uint64(e.payload[20:]), big.Uint64(e.payload[28:]),
		big.Uint64(e.payload[36:]), big.Uint64(e.payload[44:])
	next := old
	switch {
	case q(0) == 0 && mask == 0:
		next = old + data
	case q(0) == 2 && (old^compare)&compareMask == 0:
		next = old&^mask | data&mask
	}
	for i := range 8 {
		v.memory[at+i] = byte(next >> (8 * i))
	}
	v.untagged(rawAtomicResponse, v.rnd.Uint32(), big.AppendUint64(big.AppendUint32(nil, q(4)), old), nil)
}

// serve executes the initiator's requests until its violation or the end of the connection.
func (v *server) serve() error {
	var part []byte
	for {
		e, err := v.next()
		if err != nil {
			return err
		}
		switch {
		case e.op == rawTerminate:
			return fmt.Errorf("a Terminate of % x", e.payload)
		case e.op == rawWrite:
			if len(e.payload) > 0 {
				if e.stag != serverSTag {
					return fmt.Errorf("a write to %x", e.stag)
				}
				copy(v.memory[e.offset-serverBase:], e.payload)
			}
		case e.op == rawReadRequest || e.op == rawAtomicRequest:
			if v.flaw != "" && v.flawed == 0 {
				if v.errs(e) {
					_, _ = io.Copy(io.Discard, v.in)
					_ = v.nc.Close()
					return nil
				}
			}
			v.flawed--
			v.answer(e)
		default:
			if int(e.mo) != len(part) {
				return fmt.Errorf("a segment of a message comes at %d, and %d bytes have come", e.mo, len(part))
			}
			if part = append(part, e.payload...); e.last {
				m := message{op: e.op, payload: part, invalidated: e.reserved}
				part = nil
				v.got = append(v.got, m)
			}
		}
		if v.in.Buffered() == 0 || v.rnd.IntN(3) == 0 {
			if err := v.flush(); err != nil {
				return err
			}
		}
	}
}

// TestInitiatorAgainstModel runs all operations of our initiator against a responder that was written from the RFCs
// alone and may violate them at some point. Each work request completes once, in order; successful ones match the
// model, and a violation ends the connection and fails everything after it.
func TestInitiatorAgainstModel(t *testing.T) { ways(t, testInitiatorAgainstModel) }

func testInitiatorAgainstModel(t *testing.T) { drawn(t, initiatorRound) }

// posted is a work request with its expected outcome.
type posted struct {
	work     verbs.Work
	want     []byte // data of a read
	original uint64 // result of an atomic
}

func initiatorRound(t *testing.T, cfg stream.Config, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 78))
	label := fmt.Sprint("seed ", seed)
	cfg.Progress, cfg.Linger, cfg.Settle = 5*time.Second, 2*time.Second, 0
	c := &cfg.Verbs
	c.Revision = uint8(1 + rnd.IntN(2))
	c.CRC, c.Markers = rnd.IntN(3) > 0, rnd.IntN(3) == 0
	c.ORD, c.IRD = 1+rnd.IntN(9), rnd.IntN(5)
	c.Sends, c.Receives = 200, 0
	c.MaxSegment = []int{128, 1000, 9000, 65535}[rnd.IntN(4)]
	c.Private = make([]byte, rnd.IntN(500))
	if c.Revision == 2 && rnd.IntN(2) == 0 {
		c.PeerToPeer, c.RTR = true, wire.RTR(1+rnd.IntN(7))
	}
	if cfg.Loops == nil && rnd.IntN(3) == 0 {
		cfg.Polled = true
	}
	a, b := sockets(t, false)
	v := &server{rawPeer: newRawPeer(b, rnd), memory: make([]byte, 30000), flawed: rnd.IntN(20),
		flaw: flaws[rnd.IntN(len(flaws))]}
	for i := range v.memory {
		v.memory[i] = byte(rnd.Uint32())
	}
	model := bytes.Clone(v.memory)
	label += ", " + v.flaw

	// The script is drawn before anything is sent, because the responder draws from the same source.
	var all []posted
	var sent []message
	for id := range uint64(20 + rnd.IntN(150)) {
		w := verbs.Work{ID: id, STag: serverSTag, Fence: true}
		p := posted{}
		size := rnd.IntN([]int{1, 9, 5000, len(model) + 1}[rnd.IntN(4)])
		from := rnd.IntN(len(model) - size + 1)
		w.Offset = serverBase + uint64(from)
		switch k := rnd.IntN(10); {
		case k < 3:
			w.Op, w.Local = wire.Write, make([]byte, size)
			for i := range w.Local {
				w.Local[i] = byte(rnd.Uint32())
			}
			copy(model[from:], w.Local)
		case k < 6:
			w.Op, w.Local, p.want = wire.ReadReq, make([]byte, size), bytes.Clone(model[from:from+size])
			w.Fence = false // the responder answers in order
		case k < 8:
			from = 8 * rnd.IntN(8)
			w.Op, w.Atomic, w.Offset, w.Fence = wire.AtomicReq,
				[]wire.AtomicOp{wire.FetchAdd, wire.CmpSwap}[rnd.IntN(2)], serverBase+uint64(from), false
			old := little(model[from:])
			p.original = old
			next := old
			w.Operand.Data = rnd.Uint64()
			if w.Atomic == wire.FetchAdd {
				next = old + w.Operand.Data
			} else {
				w.Operand.Mask, w.Operand.CompareMask, w.Operand.Compare = rnd.Uint64(), rnd.Uint64(), rnd.Uint64()
				if rnd.IntN(2) == 0 {
					w.Operand.Compare = old
				}
				if (old^w.Operand.Compare)&w.Operand.CompareMask == 0 {
					next = old&^w.Operand.Mask | w.Operand.Data&w.Operand.Mask
				}
			}
			for i := range 8 {
				model[from+i] = byte(next >> (8 * i))
			}
			w.Local = make([]byte, 8*rnd.IntN(2))
		case k < 9:
			w.Op, w.Immediate, w.Offset, w.STag = []wire.Op{wire.Imm, wire.ImmSE}[rnd.IntN(2)], rnd.Uint64(), 0, 0
			sent = append(sent, message{op: byte(w.Op), payload: big.AppendUint64(nil, w.Immediate)})
		default:
			w.Op, w.Local = []wire.Op{wire.Send, wire.SendSE, wire.SendInv, wire.SendSEInv}[rnd.IntN(4)],
				make([]byte, size)
			for i := range w.Local {
				w.Local[i] = byte(rnd.Uint32())
			}
			m := message{op: byte(w.Op), payload: bytes.Clone(w.Local)}
			if w.Op.Invalidates() {
				w.Invalidate = rnd.Uint32()
				m.invalidated = w.Invalidate
			}
			sent = append(sent, m)
		}
		w.Quiet = rnd.IntN(5) == 0
		p.work = w
		all = append(all, p)
	}
	reply := startupFrame{markers: rnd.IntN(3) == 0, crc: rnd.IntN(2) == 0, private: make([]byte, rnd.IntN(500))}
	ird, forgets := 1+rnd.IntN(9), rnd.IntN(4) == 0

	served := make(chan error, 1)
	go func() {
		f, err := v.readStartup(false)
		if err != nil {
			served <- err
			return
		}
		reply.revision, reply.enhanced = f.revision, f.enhanced
		if f.enhanced {
			reply.ird, reply.ord = uint16(ird), uint16(rnd.IntN(int(f.ird)+1))
			if reply.peerToPeer = f.peerToPeer && !forgets; reply.peerToPeer {
				reply.rtr = f.rtr
			}
		}
		v.crc, v.marksOut, v.marksIn = f.crc || reply.crc, f.markers, reply.markers
		v.out = reply.bytes(true)
		if err := v.flush(); err != nil {
			served <- err
			return
		}
		served <- v.serve()
	}()
	conn, err := stream.Client(a, domain(t), cfg)
	if err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	var got []verbs.Completion
	var buf [16]verbs.Completion
	loud := 0
	refused := len(all) // index of the first request that could not be posted
	for i, p := range all {
		if err := conn.Post(p.work); err != nil {
			if !errors.Is(err, verbs.ErrClosed) {
				t.Fatalf("%s: posting %d: %v", label, i, err)
			}
			refused = i
			break
		}
		if !p.work.Quiet {
			loud++
		}
		if rnd2 := i % 7; rnd2 == 0 {
			got = append(got, buf[:conn.Poll(buf[:])]...)
		}
	}
	if v.flaw == "silence" || v.flaw == "crc" {
		// Without CRCs the corruption is invisible, and after silence no more arrives, so the test closes.
		time.Sleep(20 * time.Millisecond)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	// A final read after all requests, with a completion.
	last := verbs.Work{ID: 1 << 40, Op: wire.ReadReq}
	if refused == len(all) {
		if err := conn.Post(last); err == nil {
			loud++
			all = append(all, posted{work: last})
			refused++
		}
	}
	watchdog := time.AfterFunc(20*time.Second, func() { panic(label + ": the connection neither ends nor goes on") })
	for len(got) == 0 || got[len(got)-1].ID != last.ID {
		n := conn.Wait(buf[:])
		if n == 0 {
			break
		}
		got = append(got, buf[:n]...)
	}
	watchdog.Stop()
	failed := conn.Err() != nil
	if err := conn.Close(); err != nil {
		t.Errorf("%s: %v", label, err)
	}
	for n := conn.Poll(buf[:]); n > 0; n = conn.Poll(buf[:]) {
		got = append(got, buf[:n]...)
	}
	_ = a.Close()
	_ = b.Close()
	trouble := <-served

	at := 0
	broken := false
	for i, p := range all[:refused] {
		w := p.work
		if at == len(got) || got[at].ID != w.ID {
			if !w.Quiet || broken {
				t.Fatalf("%s: request %d (%v) has no completion after %d", label, i, w.Op, at)
			}
			continue
		}
		x := got[at]
		at++
		if x.Err != nil {
			broken = true
			continue
		}
		if broken {
			t.Errorf("%s: request %d completes well after one that did not", label, i)
		}
		if w.Quiet {
			t.Errorf("%s: request %d was to be quiet", label, i)
		}
		if x.Op != w.Op || int(x.Length) != len(w.Local) || x.Original != p.original {
			t.Errorf("%s: request %d (%+v) completes as %+v", label, i, w, x)
		}
		if w.Op == wire.ReadReq && !bytes.Equal(w.Local, p.want) && (v.flaw != "crc" || v.crc) {
			t.Errorf("%s: request %d reads what was not there", label, i)
		}
		if w.Op == wire.AtomicReq && len(w.Local) == 8 && big.Uint64(w.Local) != p.original {
			t.Errorf("%s: request %d leaves % x, and found %x", label, i, w.Local, p.original)
		}
	}
	if at != len(got) {
		t.Errorf("%s: %d completions for %d requests", label, len(got), loud)
	}
	switch {
	case v.flaw == "" && (failed || broken):
		t.Errorf("%s: the connection ends: %v; the responder: %v", label, conn.Err(), trouble)
	case v.flaw == "":
		if !bytes.Equal(v.memory, model) {
			t.Errorf("%s: memory is not as the model", label)
		}
		if len(v.got) < len(sent) {
			t.Fatalf("%s: %d of %d messages have come", label, len(v.got), len(sent))
		}
		extra := v.got[:len(v.got)-len(sent)] // the RTR message
		if len(extra) > 1 || len(extra) == 1 && (!c.PeerToPeer || len(extra[0].payload) > 0) {
			t.Errorf("%s: %d messages have come, %d were sent", label, len(v.got), len(sent))
		}
		for i, m := range v.got[len(extra):] {
			if m.op != sent[i].op || !bytes.Equal(m.payload, sent[i].payload) || m.invalidated != sent[i].invalidated {
				t.Errorf("%s: message %d is not what was sent", label, i)
			}
		}
	}
}

package verbs_test

import (
	"bytes"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
	"farflash/internal/patience"
)

// frames splits fuzzed bytes into segments, each a length byte followed by that many bytes, and frames them with valid
// CRCs, so that the fuzzer reaches the code behind the CRC check.
func frames(b []byte) []byte {
	f := wire.Framer{CRC: true}
	var out []byte
	for len(b) > 1 {
		n := min(int(b[0]), len(b)-1)
		seg := make([]byte, 0, n+f.Overhead(n))
		seg = f.Begin(seg, n)
		copy(seg[2:], b[1:1+n])
		out = append(out, f.End(seg)...)
		b = b[1+n:]
	}
	return out
}

// FuzzResponder feeds a responder arbitrary bytes, framed or raw. It must not crash, move a byte outside its regions,
// send secret bytes, or leak resources.
func FuzzResponder(f *testing.F) {
	seed := func(segments ...[]byte) {
		var b []byte
		for _, s := range segments {
			b = append(append(b, byte(len(s))), s...)
		}
		f.Add(b, true)
	}
	seed(tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: 1, Offset: base}, []byte("abc")),
		readRequest(1, wire.ReadRequestFields{Size: 4, SourceSTag: 2, SourceOffset: base}))
	seed(atomicRequest(1, wire.AtomicRequestFields{STag: 1, Offset: base}),
		untagged(wire.UntaggedFields{Op: wire.SendInv, Last: true, Sequence: 1, Invalidate: 1}, []byte("x")))
	seed(untagged(wire.UntaggedFields{Op: wire.Imm, Last: true, Sequence: 1}, make([]byte, 8)),
		untagged(wire.UntaggedFields{Op: wire.Term, Last: true, Queue: 2, Sequence: 1}, []byte{0x10, 0, 7, 0}))
	seed(tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: 3 | 0x100, Offset: base}, []byte("abc")))
	f.Add([]byte{0, 1, 2, 3}, false)
	f.Fuzz(func(t *testing.T, b []byte, framed bool) {
		defer patience.Limit()()
		cfg := verbs.DefaultConfig()
		cfg.IRD, cfg.Receives, cfg.Sends = 2, 2, 2
		s := newSide(t, 2, cfg)
		memory := bytes.Repeat([]byte("secret!!"), 24)
		pages := verbstest.NewPages(16384, 4096, 3)
		copy(pages.Bytes(), bytes.Repeat([]byte("secret!!"), 2048))
		a, err := s.domain.Register(verbs.RegionConfig{Memory: memory[64:128], Base: base,
			Rights: verbs.RemoteWrite | verbs.RemoteAtomic | verbs.RemoteInvalidate})
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.domain.Register(verbs.RegionConfig{Store: pages, Offset: 4096, Length: 8192, Base: base,
			Rights: verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.qp.PostReceive(verbs.Receive{Local: make([]byte, 16)}); err != nil {
				t.Fatal(err)
			}
		}
		request := make([]byte, 20)
		wire.StartupFields{CRC: true, Revision: 1}.Put(request)
		s.qp.Input(request)
		if err := s.qp.Accept(nil); err != nil {
			t.Fatal(err)
		}
		// Small numbers at the position of an STag are replaced by valid STags, so that the fuzzer finds them.
		if framed {
			for i := 0; i+16 < len(b); i += 1 + int(b[i]) {
				for _, at := range []int{3, 19 + 16, 19 + 8} {
					if i+at+4 > len(b) {
						continue
					}
					v := uint32(b[i+at])<<24 | uint32(b[i+at+1])<<16 | uint32(b[i+at+2])<<8 | uint32(b[i+at+3])
					switch v &^ 0x107 {
					case 0:
						tag := a.STag()
						if v&0x100 != 0 {
							tag = g.STag()
						}
						tag |= v & 7
						b[i+at], b[i+at+1], b[i+at+2], b[i+at+3] = byte(tag>>24), byte(tag>>16), byte(tag>>8), byte(tag)
					}
				}
			}
			b = frames(b)
		}
		var sent []byte
		for len(b) > 0 {
			n := s.qp.Input(b)
			out := s.qp.Fill(make([]byte, 0, 2*wire.MaxFPDU))
			s.qp.Sent()
			sent = append(sent, out...)
			if n == 0 && len(out) == 0 {
				break
			}
			b = b[n:]
		}
		if bytes.Contains(sent, []byte("secret")) {
			t.Error("what may not be read was sent")
		}
		if !bytes.Equal(memory[:64], bytes.Repeat([]byte("secret!!"), 8)) ||
			!bytes.Equal(memory[128:], bytes.Repeat([]byte("secret!!"), 8)) ||
			!bytes.Equal(pages.Bytes()[:4096], bytes.Repeat([]byte("secret!!"), 512)) ||
			!bytes.Equal(pages.Bytes()[12288:], bytes.Repeat([]byte("secret!!"), 512)) {
			t.Error("bytes outside of the regions have changed")
		}
		s.qp.Close()
		if !s.qp.Settled() || pages.Out() != 0 {
			t.Error("pages are left")
		}
		c := make([]verbs.Completion, 8)
		if n := s.cq.Poll(c); n != 2 {
			t.Errorf("%d of two receives have completed", n)
		}
	})
}

// FuzzInitiator feeds an initiator an arbitrary reply and arbitrary bytes after it.
func FuzzInitiator(f *testing.F) {
	f.Add([]byte{0x50, 2, 0, 4, 0, 1, 0, 1}, []byte{15, 0xC1, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'x'})
	f.Add([]byte{0x40, 1, 0, 0},
		[]byte{30, 0x41, 0x4B, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, reply, b []byte) {
		defer patience.Limit()()
		cfg := verbs.DefaultConfig()
		cfg.Initiator, cfg.PeerToPeer, cfg.Sends, cfg.Receives, cfg.ORD = true, len(b)%2 == 0, 4, 1, 2
		s := newSide(t, 1, cfg)
		memory := bytes.Repeat([]byte("m"), 48)
		post := func(w verbs.Work) {
			if err := s.qp.Post(w); err != nil {
				t.Fatal(err)
			}
		}
		post(verbs.Work{Op: wire.ReadReq, Local: memory[16:32], STag: 99})
		post(verbs.Work{Op: wire.AtomicReq, STag: 99})
		post(verbs.Work{Op: wire.ReadReq})
		post(verbs.Work{Op: wire.Send, Local: []byte("x"), Fence: true})
		in := append([]byte(wire.ReplyKey), reply...)
		in = append(in, frames(b)...)
		for {
			out := s.qp.Fill(make([]byte, 0, wire.MaxFPDU))
			s.qp.Sent()
			n := s.qp.Input(in)
			if in = in[n:]; n == 0 && len(out) == 0 {
				break
			}
		}
		s.qp.Close()
		c := make([]verbs.Completion, 8)
		if n := s.cq.Poll(c); n != 4 {
			t.Errorf("%d of four requests have completed", n)
		}
		if string(memory[:16]) != "mmmmmmmmmmmmmmmm" || string(memory[32:]) != "mmmmmmmmmmmmmmmm" {
			t.Error("memory around the buffer has changed")
		}
	})
}

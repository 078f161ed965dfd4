package wire_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"farflash/flash/nvme/wire"
)

// TestBody sends PDUs with data, in pieces of every size, and looks at what arrives where.
func TestBody(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, digests := range []wire.Digests{{}, {Header: true}, {Data: true}, {Header: true, Data: true}} {
		for range 200 {
			data := make([]byte, 4*(1+random.IntN(300)))
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			pdu := wire.AppendData(nil, wire.C2HData, digests, 0, uint8(random.IntN(4)),
				wire.Transfer{Length: uint32(len(data))})
			head := wire.DataSize
			if digests.Header {
				head += wire.DigestSize
			}
			pdu = append(pdu, data...)
			damaged := false
			if digests.Data {
				pdu = binary.LittleEndian.AppendUint32(pdu, wire.Digest(0, data))
				if damaged = random.IntN(3) == 0; damaged {
					pdu[len(pdu)-1-random.IntN(wire.DigestSize)] ^= 1
				}
			}
			var d wire.Body
			for short := wire.CommonSize; short < head; short++ {
				if _, n, bad, _ := d.Begin(pdu[:short], false, digests, len(data)); n != 0 || bad != nil {
					t.Fatalf("%d of %d bytes of a header: %d taken, %x is wrong", short, head, n, bad)
				}
			}
			h, n, bad, f := d.Begin(pdu, false, digests, len(data))
			if bad != nil || h.Type != wire.C2HData || n != head || d.Pending() != len(pdu)-head ||
				d.Data() != len(data) {
				t.Fatalf("%v: %d bytes of a header of %d, %d pending, %d of data: %v", h, n, head, d.Pending(),
					d.Data(), f)
			}
			memory := bytes.Repeat([]byte{0xaa}, len(data)+8)
			want := append(bytes.Clone(data), memory[:8]...)
			d.Into(memory)
			if random.IntN(4) == 0 {
				d.Into(nil)
				want = bytes.Clone(memory)
			}
			rest := pdu[head:]
			for ended := false; !ended; {
				if d.Pending() != len(rest) {
					t.Fatalf("%d bytes pending of %d", d.Pending(), len(rest))
				}
				sound := true
				if sink := d.Sink(); sink != nil && random.IntN(2) == 0 {
					if len(sink) != d.Data() || d.Sunk(0) {
						t.Fatalf("memory for %d bytes of %d", len(sink), d.Data())
					}
					n = copy(sink, rest[:1+random.IntN(len(sink))])
					ended = d.Sunk(n)
				} else {
					n, ended, sound = d.Take(rest[:random.IntN(len(rest)+1)])
				}
				rest = rest[n:]
				if ended != (len(rest) == 0) || ended && sound == damaged {
					t.Fatalf("%d bytes remain: ended %v, sound %v, damaged %v", len(rest), ended, sound, damaged)
				}
			}
			if d.Pending() != 0 || d.Sink() != nil {
				t.Fatal("after the PDU something is pending")
			}
			if !bytes.Equal(memory, want) {
				t.Fatalf("received\n%x, not\n%x", memory, want)
			}
		}
	}
}

// TestBodyFaults verifies that a fault quotes an invalid common header, or the whole header if its digest is wrong.
func TestBodyFaults(t *testing.T) {
	digests := wire.Digests{Header: true}
	pdu := wire.AppendData(nil, wire.C2HData, digests, 0, 0, wire.Transfer{Length: 8})
	wrong := bytes.Clone(pdu)
	wrong[wire.DataSize-1] ^= 1
	for _, c := range []struct {
		pdu    []byte
		host   bool
		most   int
		quoted int
		status uint16
	}{
		{pdu, true, 8, wire.CommonSize, uint16(wire.FaultHeader)},
		{pdu, false, 7, wire.CommonSize, uint16(wire.FaultHeader)},
		{wrong, false, 8, wire.DataSize, uint16(wire.FaultDigest)},
	} {
		var d wire.Body
		_, n, bad, f := d.Begin(c.pdu, c.host, digests, c.most)
		if n != 0 || !bytes.Equal(bad, c.pdu[:c.quoted]) || f.Status != c.status || d.Pending() != 0 {
			t.Errorf("%d taken, %x quoted, %v; want %d bytes quoted, status %d", n, bad, f, c.quoted, c.status)
		}
	}
}

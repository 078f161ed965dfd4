package nvme_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/wire"
)

// ioCommand is an I/O command of blocks of 512 bytes, whose data are not in the capsule.
func ioCommand(k wire.Opcode, cid uint16, blocks int) []byte {
	return capsule(wire.Digests{}, wire.Request{Opcode: k, CID: cid, NSID: 1,
		SGL:   wire.SGL{Length: uint32(blocks) * 512, Type: wire.Transport},
		Words: [6]uint32{2: uint32(blocks - 1)}}, nil)
}

// TestFollow verifies that tasks know their host, and how long their command waited for memory.
func TestFollow(t *testing.T) {
	now := int64(100)
	target, m := newTarget(t, func(c *nvme.Config) { c.Clock = func() int64 { now++; return now } })
	_, r := associate(target, m, wire.Digests{}, 0)
	defer r.end(t)
	r.late = true
	const whole = nvme.Window / 512
	r.input(slices.Concat(ioCommand(wire.Read, 1, whole), ioCommand(wire.Read, 2, whole), ioCommand(wire.Read, 3, 8)))
	first := r.done
	if len(first) != 1 || first[0].Stalled != 0 || first[0].Resumed != 0 || first[0].Peer.String() != "the host" {
		t.Fatalf("%+v", first)
	}
	r.settle()
	r.output(1 << 30)
	r.work()
	second := r.done
	if len(second) != 1 || second[0].Stalled != 101 || second[0].Resumed != 103 {
		t.Fatalf("waited from %d to %d", second[0].Stalled, second[0].Resumed)
	}
	r.settle()
	r.output(1 << 30)
	r.work()
	if third := r.done; len(third) != 1 || third[0].Stalled != 102 || third[0].Resumed != 104 {
		t.Errorf("%+v", third)
	}
	r.settle()
	r.input(ioCommand(wire.Read, 4, 8)) // there is memory
	if fourth := r.done; len(fourth) != 1 || fourth[0].Stalled != 0 || fourth[0].Resumed != 0 {
		t.Errorf("%+v", fourth)
	}
}

// watched records the reports on the tasks of a volume.
type watched struct {
	nbd.Volume
	told *[]string
}

func (w watched) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		name := fmt.Sprint(t.Kind, t.Offset)
		t.Sent = func(sent bool) { *w.told = append(*w.told, fmt.Sprint(name, " ", sent)) }
	}
	w.Volume.Start(tasks)
}

// TestSentOnce verifies that the end of a task is reported once: when its answer is sent, at once if a later one has
// the answer, and with false if the connection ends before.
func TestSentOnce(t *testing.T) {
	for _, cut := range []bool{false, true} {
		var told []string
		target, m := newTarget(t, func(c *nvme.Config) { c.Limits.Memory = 8 * nvme.Window })
		if err := target.Set(nvme.Subsystem{Name: login.Subsystem,
			Namespaces: []nvme.Namespace{{ID: 1, UUID: [16]byte{1}, Size: volumeSize,
				Open: func(string) (nbd.Export, error) {
					return nbd.Export{Volume: watched{m, &told}}, nil
				}}}}); err != nil {
			t.Fatal(err)
		}
		_, r := associate(target, m, wire.Digests{}, 0)
		r.late = true
		// A deallocation of two ranges, one after the other, and a read.
		r.input(slices.Concat(capsule(wire.Digests{}, wire.Request{Opcode: wire.Dataset, CID: 1, NSID: 1,
			SGL: wire.SGL{Length: 2 * wire.RangeSize, Type: wire.InCapsule}, Words: [6]uint32{1, wire.DatasetDiscard}},
			slices.Concat(wire.Range{Start: 8, Blocks: 8}.Append(nil), wire.Range{Start: 16, Blocks: 8}.Append(nil))),
			ioCommand(wire.Read, 2, 8)))
		r.settle()
		r.work()
		if want := []string{fmt.Sprint(nbd.Trim, 4096, " true")}; !slices.Equal(told, want) {
			t.Errorf("before anything is sent: %q, not %q", told, want)
		}
		if cut {
			r.end(t)
		} else {
			r.settle()
			r.output(1 << 30)
			r.end(t)
		}
		want := []string{fmt.Sprint(nbd.Trim, 4096, " true"), fmt.Sprint(nbd.Read, 0, " ", !cut),
			fmt.Sprint(nbd.Trim, 8192, " ", !cut)}
		if slices.Sort(told[1:]); !slices.Equal(told, want) {
			t.Errorf("cut %t: %q, not %q", cut, told, want)
		}
	}
}

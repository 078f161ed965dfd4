package nvme_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
)

// TestLinux replays what a kernel has sent, recorded once, and prints its commands and our answers. The files are in
// testdata/linux, by the kernel's version.
func TestLinux(t *testing.T) {
	datadriven.Walk(t, "testdata/linux", func(t *testing.T, path string) {
		var target *nvme.Target
		m := nvmetest.NewMemory(32 << 20)
		subsystem := nvme.Subsystem{Name: "nqn.2026-01.test:ff", Serial: "FF1"}
		size := func(n uint64) {
			x := nvmetest.Space(1, m)
			x.Size = n
			subsystem.Namespaces = []nvme.Namespace{x}
		}
		rigs := map[string]*rig{}
		answers := func() string {
			var out strings.Builder
			for k := range len(rigs) {
				name := fmt.Sprint(k)
				if r := rigs[name]; r != nil && !r.ended {
					r.work()
					for _, line := range strings.SplitAfter(r.print(), "\n") {
						if line != "" {
							fmt.Fprintf(&out, "%s: %s", name, line)
						}
					}
				}
			}
			return out.String()
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				cfg := nvme.DefaultConfig()
				cfg.Ports = []nvme.Port{{ID: 1, Address: "10.0.2.2", Service: "14420"}}
				var first uint64
				d.ScanArgs(t, "first", &first)
				cfg.First = uint16(first)
				size(16 << 20)
				cfg.Subsystems = []nvme.Subsystem{subsystem}
				var err error
				if target, err = nvme.New(cfg); err != nil {
					t.Fatal(err)
				}
				return ""
			case "grow": // and another namespace
				size(32 << 20)
				subsystem.Namespaces = append(subsystem.Namespaces, nvmetest.Space(2, nvmetest.NewMemory(64<<20)))
				if err := target.Set(subsystem); err != nil {
					t.Fatal(err)
				}
				return answers()
			case "end":
				rigs[d.CmdArgs[0].Key].end(t)
				return answers()
			case "host":
				name := d.CmdArgs[0].Key
				r := rigs[name]
				if r == nil {
					r = newRig(target, m)
					rigs[name] = r
				}
				b, err := nvmetest.Hex(d.Input)
				if err != nil {
					t.Fatal(err)
				}
				r.input(b)
				return commands(b) + answers()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
		if alive, dying := target.Associations(); alive+dying+m.Borrowed() != 0 {
			t.Errorf("%d associations are alive, %d dying; %d reads are lent", alive, dying, m.Borrowed())
		}
	})
}

// commands describes the commands in the bytes of a host.
func commands(b []byte) string {
	var out strings.Builder
	for len(b) >= wire.CommonSize {
		h := wire.Common(b)
		if int(h.Length) > len(b) || h.Length < wire.CommonSize {
			return out.String() + "incomplete\n"
		}
		if h.Type == wire.CapsuleCmd {
			s := wire.SQE(b[wire.CommonSize:])
			fmt.Fprintf(&out, "command %#02x cid=%d nsid=%#x sgl=%#x,%d words=%#x,%#x,%#x\n", uint8(s.Opcode()), s.CID(),
				s.NSID(), s.SGL().Type, s.SGL().Length, s.Word(10), s.Word(11), s.Word(12))
		}
		b = b[h.Length:]
	}
	return out.String()
}

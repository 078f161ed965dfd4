package nvmf_test

import (
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
)

// TestUnits verifies what NVMe/TCP sends for a command, byte by byte: headers of 72 for a command and 24 for all
// others, 4 for each digest.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     block.Op
		size   int64
		change func(*nvmf.TCP)
		want   map[nvmf.Kind]units.Bytes
	}{
		{"a read, SPDK's", block.Read, 8192, nil, map[nvmf.Kind]units.Bytes{nvmf.Capsule: 72, nvmf.Data: 24 + 8192}},
		{"a read, Linux'", block.Read, 8192, func(c *nvmf.TCP) { c.SuccessFlag = false },
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 72, nvmf.Data: 24 + 8192 + 24}},
		{"a read that is refused", block.Read, 512, nil,
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 72, nvmf.Response: 24}},
		{"a read with digests", block.Read, 8192, func(c *nvmf.TCP) { c.HeaderDigest, c.DataDigest = true, true },
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 76, nvmf.Data: 28 + 8192 + 4}},
		{"a write in its capsule", block.Write, 4096, func(c *nvmf.TCP) { c.DataDigest = true },
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 72 + 4096 + 4, nvmf.Response: 24}},
		{"a write after an R2T", block.Write, 300 << 10, nil,
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 72, nvmf.Pull: 24, nvmf.Pulled: 3*24 + 300<<10, nvmf.Response: 24}},
		{"a write after an R2T with digests", block.Write, 256 << 10,
			func(c *nvmf.TCP) { c.HeaderDigest, c.DataDigest = true, true },
			map[nvmf.Kind]units.Bytes{nvmf.Capsule: 76, nvmf.Pull: 28, nvmf.Pulled: 2*32 + 256<<10, nvmf.Response: 28}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := defaultLayout()
			l.protocol, l.network = nvmf.NVMeTCP, fabric.TCP(fabric.DefaultConfig())
			l.device.Refuse = func(q block.Request) block.Status {
				if q.Length == 512 {
					return block.OutOfRange
				}
				return block.OK
			}
			if c.change != nil {
				c.change(&l.cfg.TCP)
			}
			r := newRig(t, l)
			got := map[nvmf.Kind]units.Bytes{}
			r.sys.OnMessage = func(m nvmf.Message) { got[m.Kind] += r.net.Messages()[m.Number].Size }
			r.ask(ask{req: block.Request{Op: c.op, Length: c.size}})
			r.run(t)
			if len(got) != len(c.want) {
				t.Fatalf("%v were sent, want %v", got, c.want)
			}
			for k, size := range c.want {
				if got[k] != size {
					t.Errorf("%v: %d bytes, want %d", k, got[k], size)
				}
			}
		})
	}
}

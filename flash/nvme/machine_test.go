package nvme_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/internal/hostile"
	"farflash/internal/patience"
)

// rig drives one queue without I/O: a driver that is called step by step.
type rig struct {
	target *nvme.Target
	volume *nvmetest.Memory
	queue  *nvme.Queue
	done   []*nvme.Task
	late   bool // completed tasks wait for settle
	woken  bool
	in     []byte
	ended  bool
	gone   bool   // the host has closed its side
	tag    uint16 // of the latest R2T
}

// Wake implements nvme.Peer.
func (r *rig) Wake() { r.woken = true }

// Gone implements nvme.Peer.
func (r *rig) Gone() bool { return r.ended || r.gone }

// String implements Peer.
func (r *rig) String() string { return "the host" }

const volumeSize = 4 << 20

func newTarget(t testing.TB, change func(*nvme.Config)) (*nvme.Target, *nvmetest.Memory) {
	m := nvmetest.NewMemory(volumeSize)
	cfg := nvme.DefaultConfig()
	cfg.Ports = []nvme.Port{{ID: 1, Address: "127.0.0.1", Service: "4420"}}
	cfg.Limits.Memory = nvme.Window
	if change != nil {
		change(&cfg)
	}
	return nvmetest.Target(t, cfg, nvmetest.Space(1, m)), m
}

func newRig(target *nvme.Target, m *nvmetest.Memory) *rig {
	r := &rig{target: target, volume: m}
	r.queue = target.NewQueue(1, r, func(t *nvme.Task) { r.done = append(r.done, t) })
	return r
}

// input passes bytes to the queue, and does the work that follows.
func (r *rig) input(b []byte) {
	r.in = append(r.in, b...)
	for !r.ended {
		n := r.queue.Input(r.in)
		r.in = append(r.in[:0], r.in[n:]...)
		r.work()
		if n == 0 {
			return
		}
	}
}

// work starts tasks and takes back those that are done.
func (r *rig) work() {
	for !r.ended {
		if r.woken {
			r.woken = false
			r.queue.Turn()
		}
		tasks := r.queue.Starts(nil)
		r.queue.Start(tasks, 0)
		if r.late || len(tasks) == 0 && len(r.done) == 0 && !r.woken {
			return
		}
		r.settle()
	}
}

// settle passes completed tasks to the queue.
func (r *rig) settle() {
	done := r.done
	r.done = nil
	for i := range done { // in another order than they were started
		r.queue.Finish(done[len(done)-1-i])
	}
}

// output takes up to n bytes of the output.
func (r *rig) output(n int) []byte {
	var out []byte
	for _, v := range r.queue.Vectors(nil, 1<<20) {
		out = append(out, v...)
	}
	out = out[:min(n, len(out))]
	r.queue.Sent(len(out))
	return out
}

// end ends the connection, and verifies that nothing is left.
func (r *rig) end(t testing.TB) {
	if r.ended {
		return
	}
	r.queue.Fail(fmt.Errorf("the end"))
	r.settle()
	r.ended = true
	r.queue.Close()
	if commands, held := r.queue.Held(); commands != 0 {
		t.Errorf("%d commands with %d bytes are left", commands, held)
	}
}

// login is the identity of the tests' host.
var login = wire.Identity{HostID: [16]byte{1}, Controller: wire.AnyController, Subsystem: nvmetest.Subsystem,
	Host: nvmetest.HostName}

// capsule encodes a command with data in its capsule.
func capsule(d wire.Digests, q wire.Request, data []byte) []byte {
	b := append(wire.AppendCommand(nil, d, q.Append(nil), len(data)), data...)
	if d.Data && len(data) > 0 {
		x := wire.Digest(0, data)
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}

func connect(d wire.Digests, x wire.Connection, i wire.Identity) []byte {
	return capsule(d, wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect, Words: x.Words(),
		SGL: wire.SGL{Length: wire.ConnectSize, Type: wire.InCapsule}}, i.Append(nil))
}

func property(p wire.Property) []byte {
	return capsule(wire.Digests{}, wire.Request{Opcode: wire.Fabrics, Fabrics: wire.PropertySet, Words: p.Words()}, nil)
}

// associate makes an association with an I/O queue.
func associate(target *nvme.Target, m *nvmetest.Memory, d wire.Digests, attribs uint8) (admin, io *rig) {
	admin, io = newRig(target, m), newRig(target, m)
	admin.input(wire.IC{}.Append(nil, wire.ICReq))
	admin.input(connect(wire.Digests{}, wire.Connection{Size: 31}, login))
	out := admin.output(1 << 20)
	i := login
	if len(out) >= wire.ICSize+wire.DataSize {
		i.Controller = uint16(wire.DecodeCQE(out[wire.ICSize+wire.CommonSize:]).Result)
	}
	admin.input(property(wire.Property{Offset: wire.PropCC, Value: 0x460001}))
	admin.output(1 << 20)
	io.input(wire.IC{Digests: d}.Append(nil, wire.ICReq))
	io.input(connect(d, wire.Connection{Queue: 1, Size: 7, Attribs: attribs}, i))
	io.output(1 << 20)
	return admin, io
}

// TestMachine runs the files in testdata/machine. Each case sends bytes on one of three connections, admin, io and
// again, and prints what the queue answers.
func TestMachine(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		target, m := newTarget(t, nil)
		rigs := map[string]*rig{}
		var d wire.Digests
		datadriven.RunTest(t, path, func(t *testing.T, x *datadriven.TestData) string {
			switch x.Cmd {
			case "new": // connections from here on; after the ICReq
				d = wire.Digests{Header: x.HasArg("hdgst"), Data: x.HasArg("ddgst")}
				for _, name := range x.CmdArgs {
					if name.Key == "admin" || name.Key == "io" || name.Key == "again" {
						r := newRig(target, m)
						r.input(wire.IC{Digests: d}.Append(nil, wire.ICReq))
						r.output(1 << 20)
						rigs[name.Key] = r
					}
				}
				return ""
			case "admin", "io", "again":
				r := rigs[x.Cmd]
				r.late = x.HasArg("late")
				var out strings.Builder
				for _, line := range strings.Split(x.Input, "\n") {
					if r.queue.Err() == nil {
						r.input(sentence(t, d, r.tag, line))
						out.WriteString(r.print())
					}
				}
				return out.String()
			case "settle":
				r := rigs["io"]
				r.late = false
				r.settle()
				r.work()
				return r.print()
			case "tick":
				var now int64
				x.ScanArgs(t, "ms", &now)
				target.Tick(now * 1e6)
				return printAll(rigs)
			case "gone": // the host closes these connections; the driver does not know it yet
				for _, name := range x.CmdArgs {
					rigs[name.Key].gone = true
				}
				return ""
			case "close":
				for _, name := range x.CmdArgs {
					rigs[name.Key].end(t)
					delete(rigs, name.Key)
				}
				return printAll(rigs)
			case "end":
				for _, name := range []string{"io", "admin", "again"} {
					if r := rigs[name]; r != nil {
						r.end(t)
						delete(rigs, name)
					}
				}
				alive, dying := target.Associations()
				return fmt.Sprintf("%d alive, %d dying, %d lent\n", alive, dying, m.Borrowed())
			}
			x.Fatalf(t, "unknown command %s", x.Cmd)
			return ""
		})
	})
}

// printAll lets the connections work, and prints their answers.
func printAll(rigs map[string]*rig) string {
	var out strings.Builder
	for _, name := range []string{"admin", "io", "again"} {
		if r := rigs[name]; r != nil {
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

// sentence encodes a line: a command's name with its fields. The tag of data is that of the latest R2T if none is
// given.
func sentence(t *testing.T, d wire.Digests, tag uint16, line string) []byte {
	t.Helper()
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	v := map[string]uint64{"tag": uint64(tag)}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		n := uint64(1)
		if ok {
			if _, err := fmt.Sscanf(value, "%v", &n); err != nil {
				t.Fatalf("%s: %v", w, err)
			}
		}
		v[name] = n
	}
	q := wire.Request{CID: uint16(v["cid"]), NSID: uint32(v["nsid"]),
		SGL: wire.SGL{Length: uint32(v["sgl"]), Type: wire.Transport}, Words: [6]uint32{uint32(v["d10"]),
			uint32(v["d11"]), uint32(v["d12"])}}
	var data []byte
	if n := v["capsule"]; n > 0 {
		data = bytes.Repeat([]byte{byte(v["fill"])}, int(n))
		q.SGL = wire.SGL{Length: uint32(n), Type: wire.InCapsule}
	}
	if op, ok := map[string]wire.Opcode{"flush": wire.Flush, "write": wire.Write, "read": wire.Read,
		"compare": wire.Compare, "zeroes": wire.WriteZeroes, "verify": wire.Verify, "identify": wire.Identify,
		"log": wire.GetLogPage, "set": wire.SetFeatures, "get": wire.GetFeatures, "event": wire.AsyncEvent,
		"alive": wire.KeepAlive, "abort": wire.Abort, "op": wire.Opcode(v["op"])}[words[0]]; ok {
		q.Opcode = op
		return capsule(d, q, data)
	}
	switch words[0] {
	case "connect":
		i := login
		if c, ok := v["controller"]; ok {
			i.Controller = uint16(c)
		}
		x := wire.Connection{Queue: uint16(v["queue"]), Size: 31, KeepAlive: uint32(v["kato"])}
		if s, ok := v["size"]; ok {
			x.Size = uint16(s)
		}
		if v["noflow"] != 0 {
			x.Attribs = wire.NoFlowControl
		}
		return connect(d, x, i)
	case "property-set", "property-get":
		q.Opcode, q.Fabrics = wire.Fabrics, wire.PropertySet
		if words[0] == "property-get" {
			q.Fabrics = wire.PropertyGet
		}
		q.Words = wire.Property{Wide: v["wide"] != 0, Offset: uint32(v["at"]), Value: v["value"]}.Words()
		return capsule(d, q, nil)
	case "disconnect":
		q.Opcode, q.Fabrics = wire.Fabrics, wire.Disconnect
		return capsule(d, q, nil)
	case "h2c":
		flags := uint8(0)
		if v["last"] != 0 {
			flags = wire.FlagLast
		}
		data = bytes.Repeat([]byte{byte(v["fill"])}, int(v["n"]))
		b := append(wire.AppendData(nil, wire.H2CData, d, flags, 0, wire.Transfer{Command: q.CID, Tag: uint16(v["tag"]),
			Offset: uint32(v["offset"]), Length: uint32(v["n"])}), data...)
		if d.Data {
			x := wire.Digest(0, data)
			b = append(b, byte(x)^byte(v["spoil"]), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return b
	case "hex":
		b, err := hex.DecodeString(strings.Join(words[1:], ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatalf("unknown sentence %q", line)
	return nil
}

// print takes the output and describes it, and the state that follows.
func (r *rig) print() string {
	var out strings.Builder
	for b := r.output(1 << 30); len(b) > 0; {
		h := wire.Common(b)
		head, pad, n := h.Parts()
		data := b[head+pad:][:n]
		switch h.Type {
		case wire.CapsuleResp:
			c := wire.DecodeCQE(b[wire.CommonSize:])
			fmt.Fprintf(&out, "response cid=%d sqhd=%d result=%#x: %v\n", c.CID, c.Head, c.Result, c.Status.Error())
		case wire.C2HData:
			x := wire.DecodeTransfer(b)
			fmt.Fprintf(&out, "data cid=%d offset=%d length=%d last=%v success=%v digest=%08x\n", x.Command, x.Offset,
				x.Length, h.Flags&wire.FlagLast != 0, h.Flags&wire.FlagSuccess != 0, wire.Digest(0, data))
		case wire.R2T:
			x := wire.DecodeTransfer(b)
			r.tag = x.Tag
			fmt.Fprintf(&out, "r2t cid=%d tag=%d offset=%d length=%d\n", x.Command, x.Tag, x.Offset, x.Length)
		default:
			fmt.Fprintf(&out, "type %d\n", h.Type)
		}
		if b = b[h.Length:]; len(b) == 0 {
			r.work()
			b = r.output(1 << 30)
		}
	}
	if err := r.queue.Err(); err != nil {
		fmt.Fprintf(&out, "ends: %v\n", err)
		if last := r.queue.Last(); len(last) > 0 {
			fmt.Fprintf(&out, "last words: %v\n", wire.Term(last))
		}
	}
	return out.String()
}

// FuzzQueue sends commands, valid ones and ones with changed bytes, in pieces, while tasks finish late and output is
// taken in pieces. Whatever arrives, nothing panics, memory stays within its limit, and after the end nothing is left.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add(bytes.Repeat([]byte{9, 200, 31, 7, 77, 3}, 40))
	f.Add(bytes.Repeat([]byte{1, 0, 16, 2, 0, 0, 3, 255, 0}, 30))
	f.Fuzz(func(t *testing.T, program []byte) {
		defer patience.Limit()()
		code := hostile.Code(program)
		k := code.Byte()
		d := wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
		target, m := newTarget(t, func(c *nvme.Config) { c.Terminate = k&8 != 0 })
		admin, io := associate(target, m, d, k&4)
		var answers []byte
		for code.More() {
			r, digests := io, d
			if code.Below(4) == 0 {
				r, digests = admin, wire.Digests{}
			}
			b := draw(&code, digests, answers)
			if code.Below(4) == 0 && len(b) > 0 { // hostile
				for range 1 + code.Below(3) {
					b[int(code.Word()%uint64(len(b)))] = code.Byte()
				}
			}
			if code.Below(8) == 0 {
				b = b[:code.Below(len(b)+1)]
			}
			r.late = code.Below(3) == 0
			for len(b) > 0 && r.queue.Err() == nil {
				n := min(len(b), 1+int(code.Word()%4096))
				if sink := r.queue.Sink(); len(r.in) == 0 && len(sink) > 0 && code.Below(2) == 0 {
					n = copy(sink, b[:n])
					r.queue.Sunk(n)
					r.work()
				} else {
					r.input(b[:n])
				}
				b = b[n:]
			}
			if _, held := r.queue.Held(); held < 0 || held > nvme.Window {
				t.Fatalf("%d bytes are charged", held)
			}
			switch code.Below(4) {
			case 0:
				r.queue.Detach()
			case 1:
				answers = r.output(int(code.Word() % 8192))
			case 2:
				answers = r.output(1 << 20)
			case 3:
				r.settle()
				r.work()
			}
		}
		io.end(t)
		admin.end(t)
		if alive, dying := target.Associations(); alive+dying+m.Borrowed() != 0 {
			t.Errorf("%d associations are alive, %d dying; %d reads are lent", alive, dying, m.Borrowed())
		}
	})
}

// draw draws the bytes of a PDU; data answer an R2T among the latest answers.
func draw(code *hostile.Code, d wire.Digests, answers []byte) []byte {
	kinds := []wire.Opcode{wire.Read, wire.Write, wire.Compare, wire.WriteZeroes, wire.Flush, wire.Dataset, wire.Verify,
		wire.Identify, wire.GetLogPage, wire.SetFeatures, wire.GetFeatures, wire.AsyncEvent, wire.KeepAlive,
		wire.Fabrics}
	if code.Below(3) == 0 {
		for len(answers) >= wire.CommonSize {
			h := wire.Common(answers)
			if int(h.Length) > len(answers) || h.Length < wire.CommonSize {
				break
			}
			if h.Type == wire.R2T {
				x := wire.DecodeTransfer(answers)
				data := make([]byte, x.Length)
				b := append(wire.AppendData(nil, wire.H2CData, d, wire.FlagLast, 0, x), data...)
				if d.Data {
					s := wire.Digest(0, data)
					b = append(b, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
				}
				return b
			}
			answers = answers[h.Length:]
		}
	}
	blocks := uint32(1 + code.Below(16))
	if code.Below(4) == 0 {
		blocks = uint32(1 + code.Below(16)*128)
	}
	q := wire.Request{Opcode: kinds[code.Below(len(kinds))], Fabrics: wire.FabricsType(code.Below(9)),
		CID: uint16(code.Byte()), NSID: uint32(code.Below(3)),
		SGL:   wire.SGL{Length: blocks * 512, Type: wire.Transport},
		Words: [6]uint32{uint32(code.Byte()), 0, blocks - 1}}
	var data []byte
	if code.Below(3) == 0 {
		data = make([]byte, min(blocks*512, 8192))
		q.SGL = wire.SGL{Length: uint32(len(data)), Type: wire.InCapsule}
	}
	switch q.Opcode {
	case wire.GetLogPage:
		q.Words = wire.LogRequest{Log: wire.Log(code.Byte()), Length: uint64(q.SGL.Length),
			Offset: uint64(code.Below(3) * 4096)}.Words()
	case wire.Identify:
		q.Words[0] = uint32(code.Below(9))
	case wire.Dataset:
		q.Words[1] = wire.DatasetDiscard
	}
	return capsule(d, q, data)
}

// TestCommandsDoNotAllocate verifies that reads and writes allocate nothing once a queue has warmed up.
func TestCommandsDoNotAllocate(t *testing.T) {
	target, _ := newTarget(t, nil)
	cfg := nvme.Subsystem{Name: nvmetest.Subsystem, Namespaces: []nvme.Namespace{nvmetest.Space(1, still{})}}
	if err := target.Set(cfg); err != nil {
		t.Fatal(err)
	}
	_, io := associate(target, nil, wire.Digests{}, 0)
	var in []byte
	for _, q := range []wire.Request{
		{Opcode: wire.Read, CID: 1, NSID: 1, SGL: wire.SGL{Length: 4096, Type: wire.Transport}, Words: [6]uint32{2: 7}},
		{Opcode: wire.Flush, CID: 2, NSID: 1},
	} {
		in = append(in, capsule(wire.Digests{}, q, nil)...)
	}
	in = append(in, capsule(wire.Digests{}, wire.Request{Opcode: wire.Write, CID: 3, NSID: 1,
		SGL: wire.SGL{Length: 4096, Type: wire.InCapsule}, Words: [6]uint32{2: 7}}, make([]byte, 4096))...)
	var tasks []*nvme.Task
	var vec [][]byte
	if n := testing.AllocsPerRun(100, func() {
		if io.queue.Input(in) != len(in) {
			t.Fatal(io.queue.Err())
		}
		tasks = io.queue.Starts(tasks[:0])
		io.queue.Start(tasks, 0)
		for _, x := range io.done {
			io.queue.Finish(x)
		}
		io.done = io.done[:0]
		vec = io.queue.Vectors(vec[:0], 100)
		sum := 0
		for _, v := range vec {
			sum += len(v)
		}
		io.queue.Sent(sum)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// still is a volume of zeros.
type still struct{}

func (still) Size() uint64 { return volumeSize }
func (still) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		if t.Kind == nbd.Read {
			t.Pieces = append(t.Pieces, nbd.Piece{Zeros: int(t.Length)})
		}
		t.Done(t)
	}
}
func (still) Release(*nbd.Task)                        {}
func (still) Extent(_, n uint64) (uint64, bool, error) { return n, false, nil }

package verbs_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
)

// TestSteps runs scripted connections: testdata/steps lists every frame and completion that each step causes, derived
// from the RFCs by hand.
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		var r *rig
		var out strings.Builder
		var store *verbstest.Pages
		regions := map[string]*verbs.Region{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out.Reset()
			num := func(key string, def uint64) uint64 {
				if !d.HasArg(key) {
					return def
				}
				var s string
				d.ScanArgs(t, key, &s)
				v, err := strconv.ParseUint(s, 0, 64)
				if err != nil {
					d.Fatalf(t, "%s: %v", key, err)
				}
				return v
			}
			text := func(key string) string {
				var s string
				if d.HasArg(key) {
					d.ScanArgs(t, key, &s)
				}
				return s
			}
			stag := func(key string) uint32 {
				name, flags, _ := strings.Cut(text(key), "|")
				g := regions[name]
				if g == nil {
					return uint32(num(key, 0))
				}
				v := g.STag()
				for i, f := range []string{"sync", "async", "prefetch"} {
					if slices.Contains(strings.Split(flags, "|"), f) {
						v |= 1 << i
					}
				}
				return v
			}
			data := func() []byte {
				if d.HasArg("length") {
					return make([]byte, num("length", 0))
				}
				return []byte(text("data"))
			}
			ends := map[string]int{"a": 0, "b": 1}
			who := func() int { return ends[d.CmdArgs[0].Key] }
			op := func() wire.Op {
				for o := wire.Op(0); o.Valid(); o++ {
					if strings.EqualFold(o.String(), text("op")) {
						return o
					}
				}
				return wire.Op(num("op", 0))
			}
			config := func(side string) verbs.Config {
				c := verbs.DefaultConfig()
				c.Initiator = side == "a"
				c.CRC, c.Markers = !d.HasArg(side+".nocrc"), d.HasArg(side+".markers")
				c.Revision = uint8(num(side+".rev", 2))
				c.PeerToPeer = d.HasArg(side + ".peer")
				c.RTR = wire.RTR(num(side+".rtr", 7))
				c.IRD, c.ORD = int(num(side+".ird", 16)), int(num(side+".ord", 16))
				c.MaxSegment, c.Window = int(num(side+".segment", wire.MaxULPDU)), int(num(side+".window", 262144))
				c.Private = []byte(text(side + ".private"))
				c.Notice = func(err error) { fmt.Fprintf(&out, "%s is told: %v\n", side, err) }
				return c
			}
			log := func(line string) { fmt.Fprintln(&out, line) }
			switch d.Cmd {
			case "connect":
				r = newRig(t, newSide(t, 1, config("a")), newSide(t, 2, config("b")))
				r.log, r.manual, r.private = log, d.HasArg("manual"), []byte(text("b.reply"))
				r.pump()
			case "attack":
				s := wire.StartupFields{CRC: !d.HasArg("a.nocrc"), Revision: uint8(num("a.rev", 1)),
					Enhanced: d.HasArg("a.enhanced"), PeerToPeer: d.HasArg("a.peer"), RTR: wire.RTR(num("a.rtr", 0)),
					IRD: uint16(num("a.ird", 0)), ORD: uint16(num("a.ord", 0))}
				r = attacker(t, func(c *verbs.Config) { *c = config("b") }, s)
				r.log = log
			case "reject":
				if err := r.sides[1].qp.Reject([]byte(text("private"))); err != nil {
					fmt.Fprintln(&out, err)
				}
				r.pump()
			case "accept":
				if err := r.sides[1].qp.Accept(nil); err != nil {
					fmt.Fprintln(&out, err)
				}
				r.pump()
			case "store":
				store = verbstest.NewPages(int(num("size", 65536)), int(num("page", 4096)), 0)
			case "set":
				store.Hold, store.HoldPuts = d.HasArg("hold"), d.HasArg("holdputs")
				if d.HasArg("failget") {
					store.FailGet = verbstest.ErrMedium
				}
				if d.HasArg("failput") {
					store.FailPut = errors.New("the flush has failed")
				}
			case "region":
				c := verbs.RegionConfig{Base: num("base", 0), Allowed: verbs.AllSemantics}
				for i, l := range "rwai" {
					if strings.ContainsRune(text("rights"), l) {
						c.Rights |= 1 << i
					}
				}
				if d.HasArg("memory") {
					c.Memory = make([]byte, num("memory", 0))
					copy(c.Memory, d.Input)
				} else {
					c.Store, c.Offset, c.Length = store, num("offset", 0), num("length", 0)
				}
				g := r.region(who(), c)
				name := d.CmdArgs[1].Key
				regions[name] = g
				r.names[g.STag()>>8] = name
			case "deregister":
				regions[d.CmdArgs[0].Key].Deregister()
				r.pump()
			case "receive":
				if err := r.sides[who()].qp.PostReceive(verbs.Receive{ID: num("id", 0),
					Local: make([]byte, num("length", 64))}); err != nil {
					fmt.Fprintln(&out, err)
				}
				r.pump()
			case "post":
				w := verbs.Work{ID: num("id", 0), Op: op(), Local: data(), STag: stag("stag"),
					Offset: num("offset", 0), Fence: d.HasArg("fence"), Quiet: d.HasArg("quiet"),
					Atomic: wire.AtomicOp(num("atomic", 0)), Immediate: num("immediate", 0),
					Invalidate: stag("invalidate")}
				w.Operand = wire.Operand{Data: num("add", 0), Mask: num("mask", 0), Compare: num("compare", 0),
					CompareMask: num("comparemask", 0)}
				if err := r.sides[who()].qp.Post(w); err != nil {
					fmt.Fprintln(&out, err)
				}
				if !d.HasArg("later") {
					r.pump()
				}
			case "inject":
				switch d.CmdArgs[0].Key {
				case "tagged":
					r.inject(tagged(wire.TaggedFields{Op: op(), Last: !d.HasArg("more"), STag: stag("stag"),
						Offset: num("offset", 0)}, data()))
				case "untagged":
					r.inject(untagged(wire.UntaggedFields{Op: op(), Last: !d.HasArg("more"),
						Invalidate: stag("invalidate"), Queue: uint32(num("queue", 0)),
						Sequence: uint32(num("sequence", 1)), Offset: uint32(num("offset", 0))}, data()))
				case "read":
					r.inject(readRequest(uint32(num("sequence", 1)),
						wire.ReadRequestFields{Size: uint32(num("size", 0)), SourceSTag: stag("stag"),
							SourceOffset: num("offset", 0)}))
				}
			case "release":
				i := -1
				if d.HasArg("at") {
					i = int(num("at", 0))
				}
				store.Release(i)
				r.step()
			case "lost":
				r.sides[who()].qp.Lost(errors.New("reset by peer"))
				r.pump()
			case "close":
				r.sides[who()].qp.Close()
				r.pump()
			case "limits":
				for i, s := range r.sides {
					ird, ord := s.qp.Limits()
					fmt.Fprintf(&out, "%s: ird=%d ord=%d\n", r.name(i), ird, ord)
				}
			default:
				d.Fatalf(t, "unknown command")
			}
			for i, s := range r.sidesIfAny() {
				if s.raw {
					continue
				}
				for _, c := range r.poll(i) {
					what := "completes"
					if c.Receive {
						what = "receives"
					}
					fmt.Fprintf(&out, "%s %s %d: %v length=%d", r.name(i), what, c.ID, c.Op, c.Length)
					if c.Op == wire.AtomicReq {
						fmt.Fprintf(&out, " original=%d", c.Original)
					}
					if c.Immediate != 0 {
						fmt.Fprintf(&out, " immediate=%#x", c.Immediate)
					}
					if c.Invalidated != 0 {
						fmt.Fprintf(&out, " invalidated=%s", r.stag(c.Invalidated))
					}
					if c.Err != nil {
						fmt.Fprintf(&out, " error: %v", c.Err)
					}
					fmt.Fprintln(&out)
				}
				if st := s.qp.State(); st >= verbs.Terminating && !s.told {
					s.told = true
					fmt.Fprintf(&out, "%s is %v: %v\n", r.name(i), st, s.qp.Err())
				}
				if s.qp.Stalled() {
					fmt.Fprintf(&out, "%s waits for its store\n", r.name(i))
				}
			}
			if store != nil {
				for _, l := range store.Log() {
					fmt.Fprintf(&out, "store: %s\n", l)
				}
			}
			return out.String()
		})
	})
}

func (r *rig) sidesIfAny() []*side {
	if r == nil {
		return nil
	}
	return r.sides[:]
}

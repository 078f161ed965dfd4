package fabric

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestForget verifies that results do not depend on whether messages are forgotten or kept, on persistent queue pairs
// and on per-message ones, with losses too; and that the indices of forgotten messages are reused.
func TestForget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.QueuePairs.Life = rapid.SampledFrom([]setting.Life{Persistent, PerMessage}).Draw(t, "life")
		cfg.PFC.Enabled = rapid.Bool().Draw(t, "pfc")
		if !cfg.PFC.Enabled {
			cfg.Buffer = 30 * units.KiB
		}
		cfg.Recovery.Kind = rapid.SampledFrom([]setting.RecoveryKind{GoBackN, SelectiveRepeat}).Draw(t, "recovery")
		const hosts = 4
		n := rapid.IntRange(1, 300).Draw(t, "messages")
		posts := make([]post, n)
		at := sim.Time(0)
		for i := range posts {
			src := int32(rapid.IntRange(0, hosts-1).Draw(t, "src"))
			dst := (src + 1 + int32(rapid.IntRange(0, hosts-2).Draw(t, "dst"))) % hosts
			posts[i] = post{at: at, src: src, dst: dst, class: 3,
				size: units.Bytes(rapid.SampledFrom([]int{1, 1000, 5000, 40000}).Draw(t, "size"))}
			at += sim.Time(rapid.IntRange(0, 20_000_000).Draw(t, "gap"))
		}
		run := func(forget bool) (delivered []sim.Time, r *rig) {
			g := star(t, hosts, 10*units.Gbps, units.Microsecond)
			r = newRig(t, cfg, g, 1)
			var at []int32
			for i, nd := range g.Nodes {
				if nd.Kind == topo.Host {
					at = append(at, int32(i))
				}
			}
			r.onDelivered = func(int32) { delivered = append(delivered, r.eng.Now()) }
			r.onAcked = func(m int32) {
				if forget {
					r.net.Forget(m)
				}
			}
			for _, p := range posts {
				p.src, p.dst = at[p.src], at[p.dst]
				r.send(p)
			}
			r.eng.Run(sim.Forever)
			if err := r.net.Check(); err != nil {
				t.Fatal(err)
			}
			return delivered, r
		}
		kept, _ := run(false)
		got, r := run(true)
		if !slices.Equal(kept, got) || len(got) != n {
			t.Fatalf("%d of %d messages arrive, and at other times when they are forgotten", len(got), n)
		}
		known := 0
		for m := range r.net.Messages() {
			if r.net.Known(int32(m)) {
				known++
			}
		}
		if known != 0 {
			t.Fatalf("%d messages are known although all were forgotten", known)
		}
		if pairs := hosts * (hosts - 1); len(r.net.Messages())-len(r.net.spare) > pairs {
			t.Fatalf("%d of %d messages still have places, for %d queue pairs",
				len(r.net.Messages())-len(r.net.spare), n, pairs)
		}
	})
}

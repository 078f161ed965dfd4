package fabric

import (
	"fmt"
	"testing"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// hops reports packet-hops per second.
func hops(b *testing.B, sum uint64) {
	b.ReportMetric(float64(sum)/b.Elapsed().Seconds(), "hops/s")
}

func BenchmarkIncast(b *testing.B) {
	sum := uint64(0)
	for b.Loop() {
		r := newRig(b, DefaultConfig(), star(b, 17, 40*units.Gbps, units.Microsecond), 1)
		for i := range int32(16) {
			r.mustSend(b, i+1, 0, 1, units.MB)
		}
		r.eng.Run(sim.Forever)
		sum += r.net.packetHops()
	}
	hops(b, sum)
}

// BenchmarkClos runs about a million packet-hops whatever the number of hosts.
func BenchmarkClos(b *testing.B) {
	for _, hosts := range []int{16, 64, 256, 1024, 4096} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			leaves := max(2, hosts/32)
			g := build(b, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: leaves, Spines: 4,
				HostsPerLeaf: hosts / leaves}}, 25*units.Gbps, 100*units.Gbps, units.Microsecond)
			c := DefaultConfig()
			c.Buffer = 64 * units.MiB
			sum := uint64(0)
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				r := newRig(b, c, g, 1)
				each := units.Bytes(1e6 / 8 / hosts * 1024)
				for i := range int32(hosts) {
					r.mustSend(b, i, (i+int32(hosts)/2+1)%int32(hosts), 1, each)
				}
				b.StartTimer()
				r.eng.Run(sim.Forever)
				sum += r.net.packetHops()
			}
			hops(b, sum)
		})
	}
}

// BenchmarkFatTree runs a permutation on a fat tree with all hosts at full load, in one piece and in parts of a pod
// each.
func BenchmarkFatTree(b *testing.B) {
	for _, k := range []int{8, 16, 24} {
		for _, parts := range []int{1, k} {
			b.Run(fmt.Sprintf("%d/%d", k*k*k/4, parts), func(b *testing.B) {
				g := build(b, topo.Config{FatTree: &topo.FatTree{K: k}}, 100*units.Gbps, 100*units.Gbps,
					units.Microsecond)
				hosts := int32(k * k * k / 4)
				sum := uint64(0)
				b.ResetTimer()
				for b.Loop() {
					b.StopTimer()
					n := newRig(b, DefaultConfig(), g, 1).net
					var flows []Flow
					for i := range hosts {
						// No host is mapped to itself, and most flows leave their pod.
						flows = append(flows,
							Flow{Src: i, Dst: (i + hosts/2 + i%7 + 1) % hosts, Class: 3, Size: 64 * units.KB})
					}
					b.StartTimer()
					if parts == 1 {
						for _, f := range flows {
							if _, err := n.Send(f.Src, f.Dst, f.Class, f.Size); err != nil {
								b.Fatal(err)
							}
						}
						n.eng.Run(sim.Forever)
					} else {
						runParts(b, n, g.Partition(parts), false, flows)
					}
					sum += n.packetHops()
				}
				hops(b, sum)
			})
		}
	}
}

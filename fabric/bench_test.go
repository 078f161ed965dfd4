package fabric

import (
	"fmt"
	"testing"

	"farflash/fabric/topo"
	"farflash/sim"
	"farflash/units"
)

// hops reports packet-hops a second.
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
		sum += r.net.PacketHops()
	}
	hops(b, sum)
}

// BenchmarkClos has about a million packet-hops whatever the number of hosts.
func BenchmarkClos(b *testing.B) {
	for _, hosts := range []int{16, 64, 256, 1024, 4096} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			leaves := max(2, hosts/32)
			g := build(b, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: leaves, Spines: 4, HostsPerLeaf: hosts / leaves}}, 25*units.Gbps, 100*units.Gbps, units.Microsecond)
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
				sum += r.net.PacketHops()
			}
			hops(b, sum)
		})
	}
}

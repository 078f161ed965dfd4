package system

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"farflash/experiment"
	"farflash/experiment/drive"
	"farflash/experiment/network"
	"farflash/model/nvmf"
	"farflash/result"
	"farflash/sim"
)

// clusterOf is a system of the given number of hosts, half of them initiators, on a network with ample capacity: 32 KiB
// on average, drives 14 % and links 25 % busy.
func clusterOf(hosts, requests int) string {
	half := hosts / 2
	return fmt.Sprintf(`initiators: %d
targets: [{count: %d, ssds: 4, ssd: tlc-enterprise}]
place: {initiators: spread, targets: spread}
fabric: {topology: {leaf_spine: {leaves: %d, spines: 8, hosts_per_leaf: 8}}, host_link: 40Gbps, up_link: 40Gbps}
workload:
  - synthetic:
      reads:  {size: {mean: 32KiB, scv: 1, granule: 4KiB}, interarrival: %dns}
      writes: {size: {mean: 32KiB, scv: 1, granule: 4KiB}, interarrival: %dns}
      requests: %d
`, half, half, hosts/8, 22857/half, 53333/half, requests)
}

// BenchmarkCoupling compares one event loop with its components: the drives alone with the same commands at the same
// times, and the network alone with the same messages, all on one processor.
func BenchmarkCoupling(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const requests = 60000
	for _, hosts := range []int{16, 64} {
		text := clusterOf(hosts, requests)
		s, err := parsed(text, "protocol=flows", "coupling.mode=iterative")
		if err != nil {
			b.Fatal(err)
		}
		images, err := prepareDrives(s, 1, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d hosts/one loop", hosts), func(b *testing.B) {
			for range b.N {
				x, err := couple(s, &experiment.Options{Seed: 1}, nvmf.Flows, images, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := new(experiment.Loop).Run(context.Background(), x); err != nil {
					b.Fatal(err)
				}
				if err := x.Fill(context.Background(),
					&experiment.Outcome{Result: result.New(result.NewVocabulary(drive.Words(), network.Words(),
						Words(), Iterations(), experiment.Words()), "", 1, "")}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/requests, "ns/request")
		})
		b.Run(fmt.Sprintf("%d hosts/drives and network alone", hosts), func(b *testing.B) {
			var drives, net sim.Time
			for range b.N {
				t := &turns{s: s, o: &experiment.Options{}, seed: 1, images: images}
				t.group, t.target = groupOf(s)
				if err := t.prepare(); err != nil {
					b.Fatal(err)
				}
				from := b.Elapsed()
				if _, err := t.storage(context.Background()); err != nil {
					b.Fatal(err)
				}
				between := b.Elapsed()
				if err := t.it.Network(t.ends, s.NVMf.Class, t.network(context.Background(), new(*part))); err != nil {
					b.Fatal(err)
				}
				drives += sim.Time(between - from)
				net += sim.Time(b.Elapsed() - between)
			}
			b.ReportMetric(float64(drives)/float64(b.N)/requests, "drives-ns/request")
			b.ReportMetric(float64(net)/float64(b.N)/requests, "network-ns/request")
			b.ReportMetric(float64(drives+net)/float64(b.N)/requests, "ns/request")
		})
	}
}

package tables

import (
	"fmt"
	"strings"
)

const putRate = "cluster.put.iops"

// putting returns runs of a cluster of the size in the Replicast paper.
func putting(n int, protocol, chunk, disk string, more ...string) []run {
	return seeds(1, n, "replicast",
		with([]string{"object_cluster.protocol=" + protocol, "object_cluster.chunk=" + chunk,
			"object_cluster.disk.rate=" + disk + "MiB/s"}, more)...)
}

var (
	putChunks = []string{"16KiB", "128KiB", "1MiB"}
	putDisks  = []string{"400", "1000"} // MiB/s
)

// surgeLast holds the results of the model code of SURGE's last build, run event by event with one seed, in thousands
// of chunks per second, measured outside this repository; by disks and chunks as above, for uch-ccp, replicast-m, -h,
// -h-double and -proxy.
var surgeLast = [][5]float64{
	{710, 780, 744, 748, 764}, {63.8, 88.2, 82.7, 85.2, 90.7}, {7.7, 10.7, 10.4, 10.4, 11.1},
	{1050, 1094, 852, 857, 1192}, {116, 198, 174, 179, 173}, {14.2, 23.8, 22.6, 23.0, 22.0},
}

// replicast returns the tables that docs/validation/replicast.md rests on and that are computed from runs.
func replicast() []table {
	last := table{name: "replicast-surge-last", made: "seeds 1 to 5", gate: []int{1},
		head: []string{"disks MiB/s", "chunk"}}
	protocols := []string{"uch-ccp", "replicast-m", "replicast-h", "replicast-h-double", "replicast-proxy"}
	last.head = append(last.head, columns(protocols, "SURGE thousand chunks/s", "thousand chunks/s", "off by %")...)
	beyond := table{name: "replicast-others", made: "seed 1",
		head: append([]string{"disks MiB/s", "chunk"}, columns([]string{"uch-aimd", "replicast-h, choosy",
			"replicast-h-double", "replicast-proxy"}, "thousand chunks/s", "disks busy %")...)}
	for d, disk := range putDisks {
		for c, chunk := range putChunks {
			name := []cell{words(disk), words(chunk)}
			line := name
			until := "measure.until=10ms"
			if chunk == "1MiB" {
				until = "measure.until=30ms"
			}
			for k, p := range protocols {
				line = append(line, cell{putting(5, p, chunk, disk, "object_cluster.compat=surge-9872498", until,
					"measure.warm_up=none"), func(x []found) string {
					theirs, ours := surgeLast[d*len(putChunks)+c][k], 1e-3*meanOf(x, putRate)
					return fmt.Sprintf("%.4g|%.4g|%+.1f", theirs, ours, 100*(ours/theirs-1))
				}})
			}
			last.rows = append(last.rows, line)
			line = name[:2:2]
			long := map[string]string{"16KiB": "30ms", "128KiB": "150ms", "1MiB": "800ms"}[chunk]
			third := map[string]string{"16KiB": "10ms", "128KiB": "50ms", "1MiB": "266ms"}[chunk]
			for _, p := range []string{"uch-aimd", "replicast-h", "replicast-h-double", "replicast-proxy"} {
				set := []string{"measure.until=" + long, "measure.warm_up=" + third}
				if strings.HasPrefix(p, "replicast-h") {
					set = append(set, "object_cluster.choosy=true")
				}
				line = append(line, cell{putting(1, p, chunk, disk, set...), func(x []found) string {
					return fmt.Sprintf("%.4g|%.0f", 1e-3*x[0].value(putRate),
						100*x[0].value("cluster.disk.utilisation"))
				}})
			}
			beyond.rows = append(beyond.rows, line)
		}
	}
	return []table{last, beyond, putFew(), pullParts()}
}

// putFew has 30 gateways, as in figures 12 and 13.
func putFew() table {
	t := table{name: "replicast-few", made: "seeds 1 to 5", head: []string{"chunk", "disks MiB/s"}}
	protocols := []string{"uch-ccp", "replicast-m", "replicast-h"}
	t.head = append(t.head, columns(protocols, "as SURGE chunks/s", "steady chunks/s")...)
	for _, c := range []struct{ chunk, surge, steady string }{{"128KiB", "10ms", "200ms"}, {"1MiB", "40ms", "500ms"}} {
		for _, disk := range putDisks {
			line := []cell{words(c.chunk), words(disk)}
			for _, p := range protocols {
				few := []string{"object_cluster.gateways=30"}
				needs := append(putting(5, p, c.chunk, disk,
					with(few, []string{"object_cluster.compat=surge-d92018f", "measure.until=" + c.surge,
						"measure.warm_up=none"})...),
					putting(5, p, c.chunk, disk, with(few, []string{"measure.until=" + c.steady})...)...)
				line = append(line, cell{needs, func(x []found) string {
					return fmt.Sprintf("%.0f|%.0f", meanOf(x[:5], putRate), meanOf(x[5:], putRate))
				}})
			}
			t.rows = append(t.rows, line)
		}
	}
	return t
}

// pullParts is an ablation of pull, one part at a time.
func pullParts() table {
	t := table{page: "replicast", name: "pull-parts", made: "seed 1", gate: []int{1},
		head: []string{"", ">16 KiB, 400 MiB/s", ">128 KiB, 1000 MiB/s"}}
	share := func(protocol, chunk, disk string, set ...string) cell {
		return cell{putting(1, protocol, chunk, disk,
			with(set, []string{"measure.until=20ms", "measure.warm_up=10ms"})...), func(x []found) string {
			return fmt.Sprintf("%.1f %%", 100*x[0].value("cluster.disk.utilisation"))
		}}
	}
	for _, x := range []struct {
		name, protocol string
		set            []string
	}{
		{"pull", "pull", nil},
		{"one group of nine", "pull", []string{"object_cluster.groups=1"}},
		{"one group of 18", "pull",
			[]string{"object_cluster.groups=1", "object_cluster.group=18"}},
		{"every target offers itself to all at once", "pull",
			[]string{"object_cluster.ahead=1s"}},
		{"no chain: the gateway sends all three replicas", "pull",
			[]string{"object_cluster.code={data: 1, parity: 2}"}},
		{"messages of 300 B", "pull", []string{"object_cluster.control.unicast=300B"}},
		{"Replicast-M with a group of 18", "replicast-m", []string{"object_cluster.group=18"}},
	} {
		t.rows = append(t.rows,
			[]cell{words(x.name), share(x.protocol, "16KiB", "400", x.set...),
				share(x.protocol, "128KiB", "1000", x.set...)})
	}
	return t
}

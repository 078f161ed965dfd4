package network_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/internal/golden"
	"farflash/numeric/units"
)

// rerouteConfig is HPCC's configuration at 100 Gbit/s in that simulator's language; a case changes parts of it and adds
// the failing link.
var rerouteConfig = []string{
	"USE_DYNAMIC_PFC_THRESHOLD 1", "PACKET_PAYLOAD_SIZE 1000", "TOPOLOGY_FILE topology.txt", "FLOW_FILE flow.txt",
	"SIMULATOR_STOP_TIME 2.1",
	"MIN_RATE 100Mb/s", "RATE_AI 40Mb/s", "DCTCP_RATE_AI 1000Mb/s", "ERROR_RATE_PER_LINK 0", "L2_CHUNK_SIZE 4000",
	"L2_ACK_INTERVAL 1", "L2_BACK_TO_ZERO 0",
	"GLOBAL_T 1", "U_TARGET 0.95", "MI_THRESH 0", "INT_MULTI 4", "SAMPLE_FEEDBACK 0", "RATE_BOUND 1",
	"ACK_HIGH_PRIO 0", "BUFFER_SIZE 32",
}

// rerouteSchemes are the settings for each congestion control.
var rerouteSchemes = map[string]string{
	"hpcc": "CC_MODE 3, ENABLE_QCN 1, HAS_WIN 1, VAR_WIN 1, FAST_REACT 1, MULTI_RATE 0, KMAX_MAP 1 100000000000 " +
		"1600, KMIN_MAP 1 100000000000 400, PMAX_MAP 1 100000000000 0.2",
	"dctcp": "CC_MODE 8, ENABLE_QCN 1, EWMA_GAIN 0.00390625, HAS_WIN 1, VAR_WIN 1, FAST_REACT 0, MULTI_RATE 0, " +
		"KMAX_MAP 1 100000000000 300, KMIN_MAP 1 100000000000 300, PMAX_MAP 1 100000000000 1",
	"pfc": "CC_MODE 0, ENABLE_QCN 0, HAS_WIN 0, VAR_WIN 0, FAST_REACT 0, MULTI_RATE 0, KMAX_MAP 1 100000000000 1600, " +
		"KMIN_MAP 1 100000000000 400, PMAX_MAP 1 100000000000 0.2",
}

// TestNS3Reroute compares flows between the hosts of two leaves, over spines, with results of HPCC's ns-3 (commit
// 9f4be2a): with all links up, and with one from the first leaf to a spine that fails after 150 us. A path id would not
// make them equal: the reference has none, and subtracts the counts of other ports. Equality requires that an ACK is
// processed before the packet that leaves in the same nanosecond, as in the reference.
func TestNS3Reroute(t *testing.T) {
	lines := golden.Head("", "flows", "spines", "ns-3, us", "off by")
	for _, c := range []struct {
		scheme        string
		spines, pairs int
		size          int
		down          string // the spine whose link to the first leaf fails; empty: none does
		share, most   float64
		want          []float64 // completion times by sender in ns
	}{
		{"hpcc", 2, 1, 2_000_000, "", 0, 0, []float64{191542}},
		{"hpcc", 2, 1, 8_000_000, "", 0, 0, []float64{741985}},
		{"hpcc", 2, 1, 2_000_000, "1", 0, 1, []float64{291449}},
		{"hpcc", 2, 2, 2_000_000, "1", 0.002, 0, []float64{485249, 488200}},
		{"hpcc", 3, 4, 3_000_000, "", 0.005, 0, []float64{838243, 837808, 800446, 283251}},
		{"hpcc", 3, 4, 3_000_000, "0", 0.013, 0, []float64{413929, 594239, 640780, 782004}},
		{"dctcp", 2, 2, 2_000_000, "1", 0, 83, []float64{349574, 349657}},
		{"dctcp", 3, 4, 3_000_000, "0", 0, 4, []float64{373469, 661724, 661807, 467836}},
		{"pfc", 2, 2, 2_000_000, "1", 0, 0, []float64{358027, 358193}},
		{"pfc", 3, 4, 3_000_000, "0", 0, 79, []float64{444932, 755099, 755182, 755265}},
	} {
		t.Run(fmt.Sprintf("%s-%d-%d-%d-%s", c.scheme, c.spines, c.pairs, c.size, c.down), func(t *testing.T) {
			dir := t.TempDir()
			hosts := max(2, c.pairs)
			leaf, spine := 2*hosts, 2*hosts+2
			var topology, flows strings.Builder
			fmt.Fprintf(&topology, "%d %d %d\n%d %d", spine+c.spines, 2+c.spines, 2*hosts+2*c.spines, leaf, leaf+1)
			for s := range c.spines {
				fmt.Fprint(&topology, " ", spine+s)
			}
			topology.WriteByte('\n')
			for h := range 2 * hosts {
				fmt.Fprintf(&topology, "%d %d 100Gbps 1us 0\n", h, leaf+h/hosts)
			}
			for l := range 2 {
				for s := range c.spines {
					fmt.Fprintf(&topology, "%d %d 100Gbps 1us 0\n", leaf+l, spine+s)
				}
			}
			fmt.Fprintln(&flows, c.pairs)
			for i := range c.pairs {
				fmt.Fprintf(&flows, "%d %d 3 100 %d 2.0\n", i, hosts+i, c.size)
			}
			config := append(strings.Split(rerouteSchemes[c.scheme], ", "), rerouteConfig...)
			if c.down != "" {
				config = append(config, fmt.Sprintf("LINK_DOWN 150 %d %d", leaf, spine+int(c.down[0]-'0')))
			}
			for name, text := range map[string]string{"config.txt": strings.Join(config, "\n") + "\n",
				"topology.txt": topology.String(), "flow.txt": flows.String()} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]float64, c.pairs)
			runCase(t, dir, caseOptions{flow: func(f experiment.Flow) error {
				got[f.Src] = float64(f.FCT / units.Nanosecond)
				return nil
			}})
			what, times, off := map[string]string{"hpcc": "HPCC", "dctcp": "DCTCP", "pfc": "PFC alone"}[c.scheme]+
				", no link fails", []string{}, []string{}
			if c.down != "" {
				what = strings.Replace(what, "no link", "one", 1)
			}
			for i, want := range c.want {
				times = append(times, fmt.Sprintf("%.3f", want/1000))
				off = append(off, fmt.Sprintf("%+.0f ns", got[i]-want))
			}
			lines = append(lines,
				golden.Row(what, fmt.Sprintf("%d of %d MB", c.pairs, c.size/1_000_000), fmt.Sprint(c.spines),
					strings.Join(times, ", "), strings.Join(off, ", ")))
			for i, want := range c.want {
				within(t, fmt.Sprintf("host %d's completion time in ns", i), got[i], want, c.share, c.most)
			}
		})
	}
	golden.Table(t, ns3Page, "ns3-reroute", "seed 1", lines, *update)
}

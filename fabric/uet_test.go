package fabric

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"farflash/fabric/cc"
	"farflash/fabric/spread"
	"farflash/fabric/topo"
	"farflash/units"
)

// TestUltraEthernetAnswers holds NSCC with trimming and spraying to what Ultra Ethernet's simulator answers, which testdata/uet.txt has: completions within 5 %, trimmed packets within 15 %, on the mean of four seeds as
// there. The two differ in which packet of a full queue is trimmed (its half of the cases is the last in the queue), in who chooses a way (its hosts, among 64 entropies), and in an ACK for each packet.
func TestUltraEthernetAnswers(t *testing.T) {
	f, err := os.Open("testdata/uet.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		var what string
		var n int32
		var last, mean, cuts float64
		if _, err := fmt.Sscan(s.Text(), &what, &n, &last, &mean, &cuts); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		var gotLast, gotMean, gotCuts float64
		const seeds = 4
		for seed := range uint64(seeds) {
			c := trimming(1)
			c.Payload, c.Header, c.Acks.Size = 4096, 64, 64
			c.Trimming.Queue = 178880
			c.ECN.Enabled, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax, c.ECN.Rate = true, 37440, 145600, 1, 100*units.Gbps
			c.CongestionControl.Algorithm = cc.SchemeNSCC
			c.CongestionControl.NSCC.TargetDelay = 10520640
			c.LoadBalancing.Choice = spread.Random
			g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
			r := newRig(t, c, g, seed)
			const size = 489 * 4096 // whole packets
			if what == "incast" {
				for i := range n {
					r.mustSend(t, i+1, 0, 1, size)
				}
			} else {
				for i := range int32(16) {
					r.mustSend(t, i, (i+n)%16, 1, size)
				}
			}
			r.run(t, 1e7)
			r.drained(t)
			latest := 0.0
			for _, m := range r.net.Messages() {
				latest = max(latest, m.Acked.Microseconds())
				gotMean += m.Acked.Microseconds() / float64(len(r.net.Messages())*seeds)
			}
			gotLast += latest / seeds
			gotCuts += float64(r.net.Counters.Trimmed) / seeds
			if r.net.Counters.Timeouts > 0 {
				t.Errorf("%s: %d timeouts", s.Text(), r.net.Counters.Timeouts)
			}
		}
		t.Logf("%s: %.1f us (%+.1f %%), mean %.1f (%+.1f %%), %.0f trimmed", s.Text(), gotLast, 100*(gotLast/last-1), gotMean, 100*(gotMean/mean-1), gotCuts)
		if math.Abs(gotLast/last-1) > 0.05 || math.Abs(gotMean/mean-1) > 0.05 || math.Abs(gotCuts-cuts) > 0.15*cuts+2 {
			t.Errorf("%s: ours %.1f us, mean %.1f us, %.1f trimmed", s.Text(), gotLast, gotMean, gotCuts)
		}
	}
}

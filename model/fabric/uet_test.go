package fabric

import (
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/spread"
	"farflash/numeric/units"
)

// TestUltraEthernetAnswers compares NSCC with trimming and spraying with the results of Ultra Ethernet's simulator in
// testdata/uet.txt: completions within 5 %, trimmed packets within 15 %, on the mean of four seeds, as there. The
// simulators differ in which packet of a full queue is trimmed (in half of its cases, the last in the queue), in who
// chooses a path (its hosts, among 64 entropies), and in that it sends an ACK for each packet.
func TestUltraEthernetAnswers(t *testing.T) {
	trimmedAnswers(t, "testdata/uet.txt", 0.05, 2, 489, func() Config {
		c := trimming(1)
		c.Payload, c.Header, c.Acks.Size = 4096, 64, 64
		c.Trimming.Queue = 178880
		c.ECN.Enabled, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax, c.ECN.Rate = true, 37440, 145600, 1, 100*units.Gbps
		c.CongestionControl.Algorithm = cc.SchemeNSCC
		c.CongestionControl.NSCC.TargetDelay = 10520640
		c.LoadBalancing.Choice = spread.Random
		return c
	})
}

package convert_test

import (
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/scenario/convert"
)

// TestNS3RDMAAnswers compares the conversion of an ns3-rdma configuration, two hosts that send to one over 40 Gbit/s
// for 100 ms, with ns3-rdma's results (bobzhuyb's, seeds 1 to 3): 227, 216 and 225 CNPs, 731, 744 and 755 marked
// packets, 918,383, 917,866 and 917,733 packets transmitted on links, no pause; in the last 50 ms 39.12, 39.05 and
// 39.04 Gbit/s of payload. Farflash's must lie within 10 % of the means of the three for counts in the hundreds, and
// within 1 % for counts in the thousands.
func TestNS3RDMAAnswers(t *testing.T) {
	file := ns3Files(t, strings.Replace(rdmaText, "SIMULATOR_STOP_TIME 2.01", "SIMULATOR_STOP_TIME 2.1", 1), starText,
		"2\n2 1 3 10000000 2.0 9.5\n3 1 3 10000000 2.0 9.5\n", "0\n")
	c, err := convert.FromNS3(file, "")
	if err != nil {
		t.Fatal(err)
	}
	o := trialtest.Run(t, c.Text(), 1)
	late := trialtest.Run(t, c.Text(), 1, "measure.warm_up=50ms")
	for _, x := range []struct {
		what         string
		got          float64
		want, within float64
	}{
		{"CNPs", trialtest.Metric(t, o, "fabric.cnp.count"), (227 + 216 + 225) / 3., .1},
		{"marks", trialtest.Metric(t, o, "fabric.ecn.marks"), (731 + 744 + 755) / 3., .1},
		{"packet-hops", trialtest.Metric(t, o, "fabric.packet_hops"), (918383 + 917866 + 917733) / 3., .01},
		{"Gbit/s", trialtest.Metric(t, late, "fabric.goodput") / 1e9, (39.120 + 39.053 + 39.038) / 3, .01},
		{"pauses", trialtest.Metric(t, o, "fabric.pause.count"), 0, 0},
	} {
		if math.Abs(x.got-x.want) > x.within*x.want {
			t.Errorf("%.6g %s, ns3-rdma has %.6g", x.got, x.what, x.want)
		}
		t.Logf("%.6g %s, ns3-rdma has %.6g", x.got, x.what, x.want)
	}
}

package convert_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"farflash/convert"
	"farflash/peer/peertest"
	"farflash/scenario"
	"farflash/trial/trialtest"
)

// TestMQSimAnswers holds the drive to what MQSim answers to the cases of testdata/mqsim, which every clone has.
func TestMQSimAnswers(t *testing.T) {
	for i, m := range peertest.MQSim(t, "testdata/mqsim") {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			into := t.TempDir()
			for name, text := range map[string]string{"ssdconfig.xml": m.Device, "workload.xml": m.Workload} {
				if err := os.WriteFile(filepath.Join(into, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := convert.FromMQSim(filepath.Join(into, "ssdconfig.xml"), filepath.Join(into, "workload.xml"), 1, scenario.CompatMQSim)
			if err != nil {
				t.Fatal(err)
			}
			o := trialtest.Run(t, c.Text(), 1)
			// A run ends with its last request. What MQSim does behind it, up to a hundredth of all, package ssd's test of the same name plays too.
			for what, want := range map[string]float64{m.Op + ".count": float64(m.Requests), "ssd.flash.reads": m.Reads, "ssd.flash.programs": m.Programs} {
				if got := trialtest.Metric(t, o, what); got > want || got < .99*want {
					t.Errorf("%s is %v, MQSim's is %v", what, got, want)
				}
			}
			if got := trialtest.Metric(t, o, m.Op+".latency.mean") * 1000; math.Abs(got-m.Mean) > m.Off {
				t.Errorf("the mean is %.4f ns, MQSim's is %.4f, within %v", got, m.Mean, m.Off)
			}
		})
	}
}

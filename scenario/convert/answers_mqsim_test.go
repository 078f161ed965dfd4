package convert_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/scenario/peer/peertest"
)

// TestMQSimAnswers compares the drive with MQSim's results for the cases of testdata/mqsim, which every clone contains.
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
			c, err := convert.FromMQSim(filepath.Join(into, "ssdconfig.xml"), filepath.Join(into, "workload.xml"), 1,
				scenario.CompatMQSim)
			if err != nil {
				t.Fatal(err)
			}
			o := trialtest.Run(t, c.Text(), 1)
			wanted := map[string]float64{m.Op + ".count": float64(m.Requests), "ssd.flash.reads": m.Reads,
				"ssd.flash.programs": m.Programs}
			if m.Later { // package ssd's test of the same name runs on and compares all of them
				delete(wanted, "ssd.flash.reads")
				delete(wanted, "ssd.flash.programs")
			}
			for what, want := range wanted {
				if got := trialtest.Metric(t, o, what); got != want && !math.IsNaN(want) {
					t.Errorf("%s is %v, MQSim's is %v", what, got, want)
				}
			}
			if got := trialtest.Metric(t, o, m.Op+".latency.mean") * 1000; math.Abs(got-m.Mean) > m.Off {
				t.Errorf("the mean is %.4f ns, MQSim's is %.4f, within %v", got, m.Mean, m.Off)
			}
		})
	}
}

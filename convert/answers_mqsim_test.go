package convert_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"farflash/convert"
	"farflash/scenario"
	"farflash/trial/trialtest"
)

// TestMQSimAnswers holds the drive to what MQSim answers to the cases of testdata/mqsim, which every clone has.
func TestMQSimAnswers(t *testing.T) {
	const dir = "testdata/mqsim"
	device, err := os.ReadFile(filepath.Join(dir, "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	workload, err := os.ReadFile(filepath.Join(dir, "workload.xml"))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := os.Open(filepath.Join(dir, "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	rows := 0
	for s := bufio.NewScanner(answers); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		changes, answer, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		rows++
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			t.Parallel()
			var op string
			var n, mean, reads, programs, off float64
			if _, err := fmt.Sscanf(answer, "%s %f %f pages %f %f within %f", &op, &n, &mean, &reads, &programs, &off); err != nil {
				t.Fatal(err)
			}
			xml, loads := changedMQSim(t, string(device), string(workload), strings.Fields(changes))
			into := t.TempDir()
			for name, text := range map[string]string{"ssdconfig.xml": xml, "workload.xml": loads} {
				if err := os.WriteFile(filepath.Join(into, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := convert.FromMQSim(filepath.Join(into, "ssdconfig.xml"), filepath.Join(into, "workload.xml"), 1, scenario.CompatMQSim)
			if err != nil {
				t.Fatal(err)
			}
			o := trialtest.Run(t, c.Text(), 1)
			for what, want := range map[string]float64{op + ".count": n, "ssd.flash.reads": reads, "ssd.flash.programs": programs} {
				if got := trialtest.Metric(t, o, what); got != want && !math.IsNaN(want) {
					t.Errorf("%s is %v, MQSim's is %v", what, got, want)
				}
			}
			if got := trialtest.Metric(t, o, op+".latency.mean") * 1000; math.Abs(got-mean) > off {
				t.Errorf("the mean is %.4f ns, MQSim's is %.4f, within %v", got, mean, off)
			}
		})
	}
	if rows < 6 {
		t.Errorf("only %d cases", rows)
	}
}

// changedMQSim gives elements of MQSim's files other values. What follows flow2 is for a second flow, a copy of the first one as it was.
func changedMQSim(t *testing.T, device, workload string, changes []string) (string, string) {
	t.Helper()
	head, rest, _ := strings.Cut(workload, "<IO_Flow_Parameter_Set_Synthetic>")
	flow, tail, _ := strings.Cut(rest, "</IO_Flow_Parameter_Set_Synthetic>")
	flows := []string{flow}
	for _, c := range changes {
		if c == "flow2" {
			flows = append(flows, flow)
			continue
		}
		tag, value, _ := strings.Cut(c, "=")
		element := regexp.MustCompile(`(<` + tag + `>)[^<]*(</` + tag + `>)`)
		last := &flows[len(flows)-1]
		into := &device
		if element.MatchString(*last) {
			into = last
		} else if !element.MatchString(device) {
			t.Fatalf("neither file has %s", tag)
		}
		*into = element.ReplaceAllString(*into, "${1}"+value+"${2}")
	}
	var all strings.Builder
	for _, f := range flows {
		all.WriteString("<IO_Flow_Parameter_Set_Synthetic>" + f + "</IO_Flow_Parameter_Set_Synthetic>")
	}
	return device, head + all.String() + tail
}

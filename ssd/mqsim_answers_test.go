package ssd_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"farflash/block"
	"farflash/cosim"
	"farflash/peer"
	"farflash/sim"
	"farflash/ssd"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// TestMQSimAnswers holds the drive with MQSim's deviations to what MQSim answers to the cases that every clone has, as convert does with what it makes of the same files:
// MQSim's own requests are made again and played.
func TestMQSimAnswers(t *testing.T) {
	const dir = "../convert/testdata/mqsim/"
	read := func(name string) string {
		text, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	device, loads := read("ssdconfig.xml"), read("workload.xml")
	rows := 0
	for s := bufio.NewScanner(strings.NewReader(read("answers.txt"))); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		changes, answer, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		rows++
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			t.Parallel()
			var name string
			var n int64
			var mean, reads, programs, off float64
			if _, err := fmt.Sscanf(answer, "%s %d %f pages %f %f within %f", &name, &n, &mean, &reads, &programs, &off); err != nil {
				t.Fatal(err)
			}
			op := map[string]block.Op{"read": block.Read, "write": block.Write}[name]
			d, m := playMQSim(t, device, loads, strings.Fields(changes), op)
			if got := m.Latency.Mean() / 1e3; m.Latency.Count() != n || math.Abs(got-mean) > off {
				t.Errorf("%d %ss of %.4f ns, MQSim has %d of %.4f", m.Latency.Count(), name, got, n, mean)
			}
			if s := d.Stats(); float64(s.Reads) != reads || float64(s.Programs) != programs && !math.IsNaN(programs) {
				t.Errorf("%d pages read and %d programmed, MQSim has %v and %v", s.Reads, s.Programs, reads, programs)
			}
			if err := d.Books(); err != nil {
				t.Error(err)
			}
		})
	}
	if rows < 6 {
		t.Errorf("only %d cases", rows)
	}
}

// playMQSim plays the flows of MQSim's files, in which some elements have other values, the last of them first, as MQSim starts them. What follows flow2 is for a second
// flow, a copy of the first one as it was.
func playMQSim(t *testing.T, device, loads string, changes []string, op block.Op) (*ssd.Drive, *cosim.Measure) {
	t.Helper()
	head, rest, _ := strings.Cut(loads, "<IO_Flow_Parameter_Set_Synthetic>")
	flow, tail, _ := strings.Cut(rest, "</IO_Flow_Parameter_Set_Synthetic>")
	parts := []string{flow}
	for _, c := range changes {
		if c == "flow2" {
			parts = append(parts, flow)
			continue
		}
		tag, value, _ := strings.Cut(c, "=")
		element := regexp.MustCompile(`(<` + tag + `>)[^<]*(</` + tag + `>)`)
		into := &parts[len(parts)-1]
		if !element.MatchString(*into) {
			into = &device
		}
		*into = element.ReplaceAllString(*into, "${1}"+value+"${2}")
	}
	for _, p := range parts {
		head += "<IO_Flow_Parameter_Set_Synthetic>" + p + "</IO_Flow_Parameter_Set_Synthetic>"
	}
	cfg, flows := mqsimDrive(t, strings.NewReader(device), strings.NewReader(head+tail))
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]int64, len(flows)+1)
	for i := range flows {
		first[i+1] = first[i] + d.Capacity(i)/512
	}
	var all []cosim.Flow
	for i := len(flows) - 1; i >= 0; i-- {
		all = append(all, mqsimFlow(t, flows[i], i, first[i], first[i+1]))
	}
	if err := h.Attach(d, all); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	eng.Run(sim.Forever)
	if h.Err() != nil {
		t.Fatal(h.Err())
	}
	return d, h.Measured(op)
}

// mqsimFlow is the i-th flow, whose sectors are from a first one on.
func mqsimFlow(t *testing.T, f *peer.MQSimFlow, i int, first, end int64) cosim.Flow {
	t.Helper()
	c := mqsimgen.Config{
		ReadFraction: float64(f.Read_Percentage) / 100, WorkingSet: float64(f.Working_Set_Percentage) / 100, Aligned: true, Alignment: f.Address_Alignment_Unit,
		MeanSize: f.Average_Request_Size, Seed: int32(f.Seed), Requests: f.Total_Requests_To_Generate, Range: mqsimgen.Range{First: first, Last: end - 1},
	}
	if f.Address_Distribution == "STREAMING" {
		c.Addresses = mqsimgen.Streaming
	}
	g, err := mqsimgen.New(c)
	if err != nil {
		t.Fatal(err)
	}
	out := cosim.Flow{Name: fmt.Sprint("flow", i), Source: &moved{g, first * 512}, Namespace: uint8(i), FromSubmission: true, Outstanding: f.Average_No_of_Reqs_in_Queue, Start: units.Nanosecond}
	if err := out.Queue.Class.UnmarshalText([]byte(strings.ToLower(f.Priority_Class))); err != nil {
		t.Fatal(err)
	}
	return out
}

// moved has addresses count from a namespace's start.
type moved struct {
	workload.Source
	start int64
}

// Next implements workload.Source.
func (m *moved) Next(r *workload.Record) error {
	err := m.Source.Next(r)
	r.Offset -= m.start
	return err
}

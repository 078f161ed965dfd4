// Package peertest reads the cases of the peers that are held in this repository: the values given to the elements of
// their configurations, and what they answered. It is for tests alone, of the reading of a configuration and of the
// models that it ends in, which play the same cases by different ways.
package peertest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// MQSimCase is one case of MQSim's and its answer, the operations of one kind.
type MQSimCase struct {
	Device, Workload string // the texts of its two files
	Op               string // read or write

	Requests        int64
	Mean            float64 // latency, ns
	Reads, Programs float64 // pages; NaN programs where MQSim has no say
	Off             float64 // what the mean may be off, ns
	// it reads and programs some of these pages after the last request has ended, where a run ends
	Later bool
}

// MQSim reads the cases of a folder: ssdconfig.xml, workload.xml, and answers.txt, whose lines have the elements of
// these that a case gives other values, and what MQSim answered.
func MQSim(t *testing.T, folder string) []MQSimCase {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	device, workload := read("ssdconfig.xml"), read("workload.xml")
	var all []MQSimCase
	for s := bufio.NewScanner(strings.NewReader(read("answers.txt"))); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		changes, answer, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		var c MQSimCase
		if _, err := fmt.Sscanf(answer, "%s %d %f pages %f %f within %f", &c.Op, &c.Requests, &c.Mean, &c.Reads,
			&c.Programs, &c.Off); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		c.Later = strings.HasSuffix(strings.TrimSpace(answer), " later")
		c.Device, c.Workload = changed(t, device, workload, strings.Fields(changes))
		all = append(all, c)
	}
	if len(all) < 6 {
		t.Fatalf("only %d cases in %s", len(all), folder)
	}
	return all
}

// changed gives elements other values. What follows flow2 is for a second flow, a copy of the first one as it was.
func changed(t *testing.T, device, workload string, changes []string) (string, string) {
	t.Helper()
	const begin, end = "<IO_Flow_Parameter_Set_Synthetic>", "</IO_Flow_Parameter_Set_Synthetic>"
	head, rest, _ := strings.Cut(workload, begin)
	flow, tail, _ := strings.Cut(rest, end)
	flows := []string{flow}
	for _, c := range changes {
		if c == "flow2" {
			flows = append(flows, flow)
			continue
		}
		tag, value, _ := strings.Cut(c, "=")
		element := regexp.MustCompile(`(<` + tag + `>)[^<]*(</` + tag + `>)`)
		into := &flows[len(flows)-1]
		if !element.MatchString(*into) {
			into = &device
		}
		if !element.MatchString(*into) {
			t.Fatalf("neither file has %s", tag)
		}
		*into = element.ReplaceAllString(*into, "${1}"+value+"${2}")
	}
	for _, f := range flows {
		head += begin + f + end
	}
	return device, head + tail
}

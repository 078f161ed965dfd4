// Package peertest reads the peers' cases in this repository: the values of their configurations' elements, and the
// peers' results. It serves tests only, both of parsing configurations and of the models, which run the same cases in
// different ways.
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

// MQSimCase is one MQSim case with its results for operations of one kind.
type MQSimCase struct {
	Device, Workload string // the texts of its two files
	Op               string // read or write

	Requests        int64
	Mean            float64 // latency, ns
	Reads, Programs float64 // pages; NaN programs where MQSim gives none
	Off             float64 // tolerance of the mean, ns
	// reads and programs some of these pages after the last request, when a run has already ended
	Later bool
}

// MQSim reads the cases of a directory: ssdconfig.xml, workload.xml, and answers.txt, whose lines list the elements
// that a case changes, and MQSim's results.
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

// changed sets elements to other values. Changes after flow2 apply to a second flow, a copy of the original first one.
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

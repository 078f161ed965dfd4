package ssd_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/scenario/peer"
	"farflash/scenario/peer/peertest"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// TestMQSimAnswers compares the drive with MQSim's quirks with MQSim's results for the cases included in every
// checkout, as convert's tests do with the scenarios made from the same files: MQSim's own requests are regenerated and
// played.
func TestMQSimAnswers(t *testing.T) {
	for i, c := range peertest.MQSim(t, "../../scenario/convert/testdata/mqsim") {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			cfg, flows := mqsimDrive(t, strings.NewReader(c.Device), strings.NewReader(c.Workload))
			d, h, _ := playFlows(t, cfg, flows,
				func(i int, first, end int64) cosim.Flow { return mqsimFlow(t, flows[i], i, first, end) })
			m := h.Measured(map[string]block.Op{"read": block.Read, "write": block.Write}[c.Op])
			if got := m.Latency.Mean() / 1e3; m.Latency.Count() != c.Requests || math.Abs(got-c.Mean) > c.Off {
				t.Errorf("%d %ss of %.4f ns, MQSim has %d of %.4f", m.Latency.Count(), c.Op, got, c.Requests, c.Mean)
			}
			if s := d.Stats(); float64(s.Reads) != c.Reads ||
				float64(s.Programs) != c.Programs && !math.IsNaN(c.Programs) {
				t.Errorf("%d pages read and %d programmed, MQSim has %v and %v", s.Reads, s.Programs, c.Reads,
					c.Programs)
			}
			if err := d.Books(); err != nil {
				t.Error(err)
			}
		})
	}
}

// mqsimFlow returns the i-th flow, whose sectors start at first.
func mqsimFlow(t *testing.T, f *peer.MQSimFlow, i int, first, end int64) cosim.Flow {
	t.Helper()
	c := mqsimgen.Config{
		ReadFraction: float64(f.Read_Percentage) / 100, WorkingSet: float64(f.Working_Set_Percentage) / 100,
		Aligned: true, Alignment: f.Address_Alignment_Unit,
		MeanSize: f.Average_Request_Size, Seed: int32(f.Seed), Requests: f.Total_Requests_To_Generate,
		Range: mqsimgen.Range{First: first, Last: end - 1},
	}
	if f.Address_Distribution == "STREAMING" {
		c.Addresses = mqsimgen.Streaming
	}
	g, err := mqsimgen.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return cosim.Flow{Name: fmt.Sprint("flow", i), Source: &moved{g, first * 512}, Namespace: uint8(i),
		FromSubmission: true, Loose: true, Last: g.Last() - first, Outstanding: f.Average_No_of_Reqs_in_Queue,
		Start: units.Nanosecond}
}

// moved makes addresses relative to a namespace's start.
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

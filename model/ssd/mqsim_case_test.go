package ssd_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/scenario/peer"
	"farflash/sim"
	"farflash/workload"
)

const cases = "../../../shared/cases/mqsim/"

func mqsimConfig(t testing.TB, c string) (ssd.Config, []*peer.MQSimFlow) {
	f, err := os.Open(cases + c + "/ssdconfig.xml")
	if err != nil {
		t.Skip("../shared/cases is not there")
	}
	defer f.Close()
	w, err := os.Open(cases + c + "/workload.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return mqsimDrive(t, f, w)
}

// mqsimDrive returns the drive and the flows of MQSim's files.
func mqsimDrive(t testing.TB, device, workloads io.Reader) (ssd.Config, []*peer.MQSimFlow) {
	t.Helper()
	d, err := peer.ReadMQSimDevice("ssdconfig.xml", device)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := peer.ReadMQSimWorkload("workload.xml", workloads)
	if err != nil {
		t.Fatal(err)
	}
	ns := units.Nanosecond
	cfg := ofPages()
	g := &cfg.Geometry
	g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie = d.Flash_Channel_Count, d.Chip_No_Per_Channel,
		d.Die_No_Per_Chip, d.Plane_No_Per_Die
	g.BlocksPerPlane, g.PagesPerBlock, g.PageSize = d.Block_No_Per_Plane, d.Page_No_Per_Block,
		units.Bytes(d.Page_Capacity)
	tm := &cfg.Timing
	tm.Read = [4]units.Duration{units.Duration(d.Page_Read_Latency_LSB) * ns,
		units.Duration(d.Page_Read_Latency_MSB) * ns}
	tm.Program = [4]units.Duration{units.Duration(d.Page_Program_Latency_LSB) * ns,
		units.Duration(d.Page_Program_Latency_MSB) * ns}
	tm.Erase = units.Duration(d.Block_Erase_Latency) * ns
	tm.TransferRate = units.TransferRate(d.Channel_Transfer_Rate * 1e6)
	cfg.OverProvisioning = units.Fraction(d.Overprovisioning_Ratio)
	cfg.Host.FetchSize = d.Queue_Fetch_Size
	cfg.Host.SubmissionDepth = d.IO_Queue_Depth
	cfg.DRAM.DataRate = units.TransferRate(d.Data_Cache_DRAM_Data_Rate * 1e6)
	cfg.DRAM.BurstSize = units.Bytes(d.Data_Cache_DRAM_Data_Busrt_Size)
	cfg.Cache.Capacity = units.Bytes(d.Data_Cache_Capacity)
	cfg.Cache.Partitioned = d.Data_Cache_Sharing_Mode == "EQUAL_PARTITIONING"
	cfg.Mapping.Ideal = d.Ideal_Mapping_Table
	cfg.Mapping.CMTCapacity = units.Bytes(d.CMT_Capacity) * units.Bytes(len(flows[0]))
	cfg.Mapping.CMTShared = false
	cfg.Collection.Start = units.Fraction(d.GC_Exec_Threshold)
	cfg.Collection.Preemptible = d.Preemptible_GC_Enabled
	cfg.Collection.Victim = ftl.DChoices
	if d.GC_Block_Selection_Policy == "GREEDY" {
		cfg.Collection.Victim = ftl.Greedy
	}
	for _, f := range flows[0] {
		m := ssd.CacheOff
		if f.Device_Level_Data_Caching_Mode == "WRITE_CACHE" {
			m = ssd.CacheWrite
		}
		n := ssd.Namespace{Cache: &m}
		if len(f.Channel_IDs) < g.Channels {
			n.Channels = f.Channel_IDs
		}
		cfg.Namespaces = append(cfg.Namespaces, n)
	}
	return ssd.MQSim(cfg), flows[0]
}

type lines struct {
	s     *bufio.Scanner
	flow  int
	start int64
}

func (l *lines) Next(r *workload.Record) error {
	for l.s.Scan() {
		f := strings.Split(l.s.Text(), ",")
		if flow, _ := strconv.Atoi(f[0]); flow != l.flow {
			continue
		}
		at, _ := strconv.ParseInt(f[1], 10, 64)
		lba, _ := strconv.ParseInt(f[3], 10, 64)
		n, _ := strconv.ParseInt(f[4], 10, 64)
		*r = workload.Record{Time: units.Duration(at) * units.Nanosecond, Offset: (lba - l.start) * 512,
			Size: n * 512, Op: block.Write}
		if f[2] == "1" {
			r.Op = block.Read
		}
		return nil
	}
	return io.EOF
}

// expected is the part of MQSim's results that is compared.
type expected struct {
	Programs uint64 `json:"page_programs"`
	Erases   uint64 `json:"block_erases"`
	Moves    uint64 `json:"gc_page_moves"`
	Reads    uint64 `json:"page_reads"`
	Flows    []map[string]struct {
		N    int64
		Mean float64 // ns
	}
}

// TestMQSimCases plays MQSim's own requests to a drive with its quirks. In deterministic cases the mean latencies agree
// to less than a nanosecond; docs/validation/mqsim.md explains the remaining differences. The tolerances here are far
// tighter than those that the cases come with, so that any change that moves a result is noticed.
func TestMQSimCases(t *testing.T) {
	text, err := os.ReadFile(cases + "expected.json")
	if err != nil {
		t.Skip("../shared/cases is not there")
	}
	var all map[string]expected
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	// A10: one tie of two events in the same nanosecond is resolved the other way. A12: MQSim loses 46 requests, so
	// latencies cannot be compared.
	means := map[string]float64{"A10": .002, "A12": math.Inf(1)}
	counts := map[string]float64{"A10": .001, "A12": .0005}
	for c, want := range all {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			d, h, names := playCase(t, c)
			for i, name := range names {
				flow := want.Flows[name]
				for op, key := range []string{"dev_read", "dev_write"} {
					w, m := flow[key], h.FlowMeasured(i, block.Op(op))
					if c[:3] != "A12" && m.Latency.Count() != w.N {
						t.Errorf("flow %d %s: %d requests, MQSim has %d", name, key, m.Latency.Count(), w.N)
					}
					if got := m.Latency.Mean() / 1e3; w.N > 0 && math.Abs(got-w.Mean) > max(.01, means[c[:3]]*w.Mean) {
						t.Errorf("flow %d %s: mean %.3f ns, MQSim has %.3f", name, key, got, w.Mean)
					}
				}
			}
			s := d.Stats()
			for _, x := range []struct {
				what      string
				got, want uint64
			}{{"page reads", s.Reads, want.Reads}, {"page programs", s.Programs, want.Programs},
				{"erases", s.Erases, want.Erases}, {"moves", s.MovePrograms, want.Moves}} {
				if math.Abs(float64(x.got)-float64(x.want)) > counts[c[:3]]*float64(x.want) {
					t.Errorf("%d %s, MQSim has %d", x.got, x.what, x.want)
				}
			}
		})
	}
}

// playCase plays a case's own requests.
func playCase(t *testing.T, c string) (*ssd.Drive, *cosim.Host, []int) {
	cfg, flows := mqsimConfig(t, c)
	return playFlows(t, cfg, flows, func(i int, first, _ int64) cosim.Flow {
		z, err := os.Open(cases + c + "/requests.csv.gz")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		gz, err := gzip.NewReader(z)
		if err != nil {
			t.Fatal(err)
		}
		x := cosim.Flow{Name: fmt.Sprint("flow", i), Source: &lines{s: bufio.NewScanner(gz), flow: i, start: first},
			Namespace: uint8(i), Fold: true, Loose: true, FromSubmission: true}
		if f := flows[i]; f.Synthetic {
			x.Outstanding, x.Start = f.Average_No_of_Reqs_in_Queue, units.Nanosecond
		}
		return x
	})
}

// playFlows plays flows, each with its range of sectors, to a drive until they are drained, and returns the index of
// MQSim's flow for each of the host's: MQSim starts them in its own order.
func playFlows(t *testing.T, cfg ssd.Config, flows []*peer.MQSimFlow,
	flow func(i int, first, end int64) cosim.Flow) (*ssd.Drive, *cosim.Host, []int) {
	t.Helper()
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := ssd.New(cfg, eng, h, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	starts := make([]int64, len(flows)+1)
	for i := range flows {
		starts[i+1] = starts[i] + d.Capacity(i)/512
	}
	var all []cosim.Flow
	var names []int
	var made []string
	for i := range flows {
		made = append(made, fmt.Sprintf("Host.IO_Flow.Synth.No_%d", i))
	}
	g := cfg.Geometry
	for _, i := range ssd.MQSimOrder(g.Channels, g.ChipsPerChannel, made) {
		x := flow(i, starts[i], starts[i+1])
		if err := x.Queue.Class.UnmarshalText([]byte(strings.ToLower(flows[i].Priority_Class))); err != nil {
			t.Fatal(err)
		}
		all, names = append(all, x), append(names, i)
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
	for _, k := range d.Checks() {
		if !k.OK {
			t.Errorf("%s: %s", k.Name, k.Detail)
		}
	}
	return d, h, names
}

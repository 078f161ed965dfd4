package ssd_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"farflash/block"
	"farflash/cosim"
	"farflash/ftl"
	"farflash/peer"
	"farflash/sim"
	"farflash/ssd"
	"farflash/units"
	"farflash/workload"
)

const cases = "../../shared/cases/mqsim/"

func mqsimConfig(t testing.TB, c string) (ssd.Config, []*peer.MQSimFlow) {
	f, err := os.Open(cases + c + "/ssdconfig.xml")
	if err != nil {
		t.Skip("../shared/cases is not there")
	}
	defer f.Close()
	d, err := peer.ReadMQSimDevice("ssdconfig.xml", f)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.Open(cases + c + "/workload.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	flows, err := peer.ReadMQSimWorkload("workload.xml", w)
	if err != nil {
		t.Fatal(err)
	}
	ns := units.Nanosecond
	cfg := ssd.DefaultConfig()
	g := &cfg.Geometry
	g.Channels, g.ChipsPerChannel, g.DiesPerChip, g.PlanesPerDie = d.Flash_Channel_Count, d.Chip_No_Per_Channel, d.Die_No_Per_Chip, d.Plane_No_Per_Die
	g.BlocksPerPlane, g.PagesPerBlock, g.PageSize = d.Block_No_Per_Plane, d.Page_No_Per_Block, units.Bytes(d.Page_Capacity)
	tm := &cfg.Timing
	tm.Read = [4]units.Duration{units.Duration(d.Page_Read_Latency_LSB) * ns, units.Duration(d.Page_Read_Latency_MSB) * ns}
	tm.Program = [4]units.Duration{units.Duration(d.Page_Program_Latency_LSB) * ns, units.Duration(d.Page_Program_Latency_MSB) * ns}
	tm.Erase = units.Duration(d.Block_Erase_Latency) * ns
	tm.TransferRate = units.TransferRate(d.Channel_Transfer_Rate * 1e6)
	cfg.OverProvisioning = units.Fraction(d.Overprovisioning_Ratio)
	cfg.Host.FetchSize = d.Queue_Fetch_Size
	cfg.DRAM.DataRate = units.TransferRate(d.Data_Cache_DRAM_Data_Rate * 1e6)
	cfg.DRAM.BurstSize = units.Bytes(d.Data_Cache_DRAM_Data_Busrt_Size)
	cfg.Cache.Capacity = units.Bytes(d.Data_Cache_Capacity)
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
		cfg.Namespaces = append(cfg.Namespaces, ssd.Namespace{Cache: &m})
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
		*r = workload.Record{Time: units.Duration(at) * units.Nanosecond, Offset: (lba - l.start) * 512, Size: n * 512, Op: block.Write}
		if f[2] == "1" {
			r.Op = block.Read
		}
		return nil
	}
	return io.EOF
}

func TestMQSimCases(t *testing.T) {
	for _, c := range []string{"A01_lat_read_ideal_qd1", "A02_lat_read_cmtmiss_qd1", "A03_rr4k_qd64_ideal", "A04_cached_write_open_loop", "A06_rmw4k_nocache_qd16", "A07_snisP_sr64k_qd16", "A09_two_flows_prio_qfs16", "A10_tpcc_small_default", "A12_gc_greedy_waf"} {
		t.Run(c, func(t *testing.T) {
			cfg, flows := mqsimConfig(t, c)
			eng := sim.New()
			h := cosim.NewHost(eng)
			d, err := ssd.New(cfg, eng, h, 1, "ssd")
			if err != nil {
				t.Fatal(err)
			}
			var fl []cosim.Flow
			start := int64(0)
			for i, f := range flows {
				z, err := os.Open(cases + c + "/requests.csv.gz")
				if err != nil {
					t.Fatal(err)
				}
				gz, err := gzip.NewReader(z)
				if err != nil {
					t.Fatal(err)
				}
				x := cosim.Flow{Name: fmt.Sprint("flow", i), Source: &lines{s: bufio.NewScanner(gz), flow: i, start: start}, Namespace: uint8(i), Fold: true, FromSubmission: true}
				start += d.Capacity(i) / 512
				if f.Synthetic {
					x.Outstanding = f.Average_No_of_Reqs_in_Queue
					x.Start = units.Nanosecond
				}
				x.Queue.Class = map[string]block.Class{"URGENT": block.Urgent, "HIGH": block.High, "MEDIUM": block.Medium, "LOW": block.Low}[f.Priority_Class]
				fl = append(fl, x)
			}
			if os.Getenv("SWAP") != "" && len(fl) == 2 {
				fl[0], fl[1] = fl[1], fl[0]
			}
			if err := h.Attach(d, fl); err != nil {
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
			s := d.Stats()
			for op := block.Read; op <= block.Write; op++ {
				m := h.Measured(op)
				if n := m.Latency.Count(); n > 0 {
					t.Logf("%v n %d mean %.1f min %v p50 %v p99 %v max %v", op, n, m.Latency.Mean()/1e3, m.Latency.Min(), m.Latency.Quantile(.5), m.Latency.Quantile(.99), m.Latency.Max())
				}
			}
			for i := range fl {
				m := h.FlowMeasured(i, block.Read)
				t.Logf("flow %d read n %d mean %.1f", i, m.Latency.Count(), m.Latency.Mean()/1e3)
			}
			t.Logf("iops %.1f issued %d ended %d events %d", float64(h.Ended())/eng.Now().Seconds(), h.Issued(), h.Ended(), eng.Events())
			t.Logf("reads %d programs %d erases %d moved %d hit %d miss %d mapreads %d cmds %v waf %.3f", s.Reads, s.Programs, s.Erases, s.MovePrograms, s.MapHits, s.MapMisses, s.MappingReads, s.Commands, s.FTL.WAF())
		})
	}
}

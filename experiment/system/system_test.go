package system_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/sim"
)

// delaysOf runs a scenario and returns the latency of each request, by number.
func delaysOf(t *testing.T, text string, set ...string) []sim.Time {
	t.Helper()
	s, err := trialtest.Parse(text, set...)
	if err != nil {
		t.Fatal(err)
	}
	var out []sim.Time
	_, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
		for uint64(len(out)) <= x.ID {
			out = append(out, 0)
		}
		out[x.ID] = x.Finished - x.Arrival
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstantNetwork verifies that behind a network without delay a drive behaves as without a network, for each
// request and to the picosecond.
func TestInstantNetwork(t *testing.T) {
	const load = `
workload:
  - synthetic:
      reads: {size: {mean: 12KiB, scv: 2}, interarrival: {mean: 60us, scv: 4}}
      writes: {size: 8KiB, interarrival: {mean: 200us, scv: 2}, addresses: {align: 8KiB}}
      requests: 30000
`
	// Without preconditioning, whose random stream has another name in a system.
	alone := delaysOf(t, "ssd: "+trialtest.TinyDrive+load, "workload[0].queue.depth=65535",
		"workload[0].queue.class=medium")
	for _, c := range []struct{ protocol, more string }{
		{"flows", "fabric: {queue_pairs: {life: per-message}, "},
		{"nvmeof", "nvmf: {initiator: {command: 0s}, target: {command: 0s}, queue_depth: 65536}\nfabric: {"},
	} {
		text := "targets: [{count: 1, ssds: 1, ssd: " + trialtest.TinyDrive +
			"}]\nroute: {target: volume}\nprotocol: " + c.protocol + load + c.more +
			"topology: {star: {hosts: 2}}, host_link: 1000000Tbps, up_link: 1000000Tbps, delay: 0s, " +
			"congestion_control: none, pfc: {enabled: false}}\n"
		if got := delaysOf(t, text, "nvmf.drive_depth=65534", "nvmf.max_transfer=1GiB"); !slices.Equal(got, alone) {
			n := 0
			for i := range alone {
				if got[i] != alone[i] {
					if n++; n < 4 {
						t.Logf("%s: request %d took %v, without a network %v", c.protocol, i, got[i], alone[i])
					}
				}
			}
			t.Errorf("%s: %d of %d requests took another time", c.protocol, n, len(alone))
		}
	}
}

// TestOneAtATime verifies that a single request takes the drive's time without a network plus a constant path time,
// which is the same for all requests of a size.
func TestOneAtATime(t *testing.T) {
	const load = `
workload: [{synthetic: {reads: {size: 16KiB, interarrival: 5ms}, requests: 300}, start: 1ms}]
`
	local := delaysOf(t, "ssd: mqsim-default"+load, "workload[0].queue.class=medium")
	for _, protocol := range []string{"nvmeof", "flows"} {
		remote := delaysOf(t,
			"targets: [{count: 1, ssds: 1, ssd: mqsim-default}]\nroute: {target: volume}\nprotocol: "+protocol+load)
		way := remote[0] - local[0]
		for i := range local {
			if remote[i]-local[i] != way {
				t.Fatalf("%s: request %d took %v on its way, the first %v", protocol, i, remote[i]-local[i], way)
			}
		}
		// 16 packets of 1106 B at 40 Gbps over two links, 1 us each: 17 x 221.2 ns + 2 us and, with capsules, one of
		// 146 B out (2 x 29.2 ns + 2 us), one of 98 B back behind the data (19.6 ns) and 2 x 0.73 us of software.
		want := sim.Time(5_760_400)
		if protocol == "nvmeof" {
			want += 2_058_400 + 19_600 + 1_460_000
		}
		if way != want {
			t.Errorf("%s: the way takes %v, want %v", protocol, way, want)
		}
	}
}

// TestTurnsEqualCoupled verifies that converged iterations have exactly the result of one event loop with the same
// flows.
func TestTurnsEqualCoupled(t *testing.T) {
	for _, c := range []struct{ name, more string }{
		{"light", "coupling: {mode: both, iterative: {iterations: 30, full: true}}\n"},
		{"unloaded first", "coupling: {mode: both, iterative: {iterations: 30, full: true, first_write_arrival: " +
			"unloaded}}\n"},
		{"no writes first", "coupling: {mode: both, iterative: {iterations: 30, full: true, first_write_arrival: " +
			"absent}}\n"},
		{"to departure", "coupling: {mode: both, iterative: {iterations: 30, full: true, write_delay: departure}}\n"},
		{"small switches", "coupling: {mode: both, iterative: {iterations: 60, full: true}}\nfabric: {buffer: " +
			"600KiB, congestion_control: none}\n"},
		{"anderson", "coupling: {mode: both, iterative: {iterations: 60, full: true, acceleration: anderson}}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := trialtest.Run(t, `initiators: 4
targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]
`+c.more+`workload:
  - synthetic:
      reads: {size: {mean: 44KB, scv: 1.2, granule: 512B}, interarrival: {mean: 20us, scv: 4}}
      writes: {size: 16KiB, interarrival: {mean: 40us, scv: 2}, addresses: {align: 4KiB}}
      requests: 500
`, 1)
			if _, ok := o.Result.Metric("snis.fixed_at"); !ok {
				t.Fatal("the iterations go on changing")
			}
			if e := trialtest.Metric(t, o, "snis.error.request.max"); e != 0 {
				t.Errorf("a request differs by %g us", e)
			}
			m, _ := o.Result.Matrix("snis.error")
			for i, row := range m.V {
				if row[0] != row[1] || row[2] != 0 {
					t.Errorf("%s: %v", m.Rows[i], row)
				}
			}
			if m, ok := o.Result.Matrix("snis.protocol"); !ok || !(m.V[0][1] > m.V[0][0]) {
				t.Errorf("capsules and software take no time: %v", m.V)
			}
		})
	}
}

// TestLostTail verifies that without retransmission an iteration ends despite a request that never arrived; timers of
// congestion control would continue forever.
func TestLostTail(t *testing.T) {
	for _, parts := range []string{"1", "2"} {
		s, err := trialtest.Parse(`initiators: 6
targets: [{count: 1, ssds: 1, ssd: tlc-enterprise}]
protocol: flows
coupling: {mode: iterative}
fabric:
  compat: ns3-rdma
  topology: {clos: {pods: 2, leaves: 1, tors: 1, hosts_per_pod: 6, spines: 1}}
  host_link: 10Gbps
  buffer: 50KB
  pfc: {enabled: false}
  parts: ` + parts + `
workload:
  - synthetic:
      writes: {size: 64KiB, interarrival: {mean: 20us, scv: 4}}
      requests: 200
`)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), "never arrived: its data were lost") {
			t.Errorf("%s parts: %v", parts, err)
		}
	}
}

// TestStorms verifies that no packet is lost and every law holds while drives collect garbage, switches pause each
// other and queues are full.
func TestStorms(t *testing.T) {
	o := trialtest.Run(t, `initiators: 8
targets: [{count: 2, ssds: 2, ssd: `+trialtest.TinyDrive+`}]
route: {target: {stripe: 16KiB}}
nvmf: {queue_depth: 16, txq: 64KiB, drive_depth: 8}
fabric: {pfc: {threshold: 20KB}, congestion_control: none, host_link: 10Gbps}
workload:
  - synthetic:
      reads: {size: {mean: 48KiB, scv: 3}, interarrival: {mean: 15us, scv: 9}}
      writes: {size: {mean: 64KiB, scv: 2}, interarrival: {mean: 60us, scv: 9}}
      requests: 6000
`, 1, "targets[0].ssd.preconditioning.fill=steady")
	for _, name := range []string{"ssd.gc.count", "fabric.pause.count", "nvmf.held.initiator", "nvmf.held.target",
		"nvmf.held.txq"} {
		if trialtest.Metric(t, o, name) == 0 {
			t.Errorf("%s is 0: this is not a storm", name)
		}
	}
	if n := trialtest.Metric(t, o, "all.count"); n != 6000 {
		t.Errorf("%g of 6000 requests ended", n)
	}
	if n, ok := o.Result.Metric("flow.count"); ok {
		t.Errorf("%g flows in a system that has requests alone", n.Value)
	}
}

// TestSystemSameBytes verifies that the result depends only on scenario and seed, parallel or not.
func TestSystemSameBytes(t *testing.T) {
	const load = `
workload:
  - synthetic: {reads: {size: 32KiB, interarrival: {mean: 4us, scv: 3}}, writes: {size: 16KiB, interarrival: 8us}, requests: 800}
fabric: {topology: {clos: {pods: 2, leaves: 2, tors: 2, hosts_per_pod: 8, spines: 2}}, host_link: 10Gbps, up_link: 40Gbps}
initiators: 6
targets: [{count: 3, ssds: 2, ssd: tlc-enterprise}]
`
	encode := func(procs int, text string, set ...string) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		if strings.Contains(text, "nvme-tcp") {
			set = append(set, "fabric.transport=tcp")
		}
		o := trialtest.Run(t, text+load, 5, set...)
		// The number of parts belongs to the scenario, and so to its digest.
		o.Result.Digest = ""
		b, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, mode := range []string{"coupling: {mode: coupled}", "coupling: {mode: coupled}\nprotocol: nvme-tcp",
		"coupling: {mode: iterative}\nprotocol: flows\nmeasure: {warm_up: 100us}", "coupling: {mode: both}"} {
		want := encode(1, mode)
		if !bytes.Equal(want, encode(4, mode)) {
			t.Errorf("%s: another result with 4 processors", mode)
		}
		if strings.Contains(mode, "iterative") {
			for _, parts := range []string{"2", "3"} {
				if !bytes.Equal(want, encode(2, mode, "fabric.parts="+parts)) {
					t.Errorf("%s: another result in %s parts", mode, parts)
				}
			}
		}
	}
}

// TestRoutes verifies that each request follows its route.
func TestRoutes(t *testing.T) {
	const load = "workload: [{synthetic: {reads: {size: 4KiB, interarrival: 20us}, requests: 600}}]\ninitiators: " +
		"3\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\n"
	for _, c := range []struct {
		route      string
		initiators []int // requests of each; nil: any, as long as each has some
		drives     []int
	}{
		{"{initiator: round-robin, target: {stripe: 4KiB}}", []int{200, 200, 200}, nil},
		{"{initiator: hash, target: hash}", nil, nil},
		{"{initiator: each, target: {stripe: 64KiB}}", []int{600, 600, 600}, nil},
		{"{initiator: trace, target: trace}", []int{600, 0, 0}, []int{600, 0, 0, 0}},
		{"{initiator: trace, target: volume}", []int{600, 0, 0}, []int{600, 0, 0, 0}},
	} {
		s, err := trialtest.Parse(load + "route: " + c.route)
		if err != nil {
			t.Fatal(err)
		}
		initiators, drives := make([]int, 3), make([]int, 4)
		if _, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
			initiators[x.Trip.Initiator]++
			drives[x.Trip.Drive]++
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		if c.initiators != nil && !slices.Equal(initiators, c.initiators) ||
			c.initiators == nil && slices.Contains(initiators, 0) {
			t.Errorf("%s: initiators %v", c.route, initiators)
		}
		if c.drives != nil && !slices.Equal(drives, c.drives) || c.drives == nil && slices.Contains(drives, 0) {
			t.Errorf("%s: drives %v", c.route, drives)
		}
	}
}

// TestBound verifies that an item's own initiator issues all of its requests, and the others take turns, in each mode.
func TestBound(t *testing.T) {
	const item = "\n- {synthetic: {reads: {size: 4KiB, interarrival: 20us}, requests: 60}"
	for _, mode := range []string{"coupled", "iterative"} {
		s, err := trialtest.Parse("initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\nprotocol: flows\n" +
			"coupling: {mode: " + mode + "}\nworkload:" + item + ", initiator: 2}" + item + "}" + item + ", initiator: 0}")
		if err != nil {
			t.Fatal(err)
		}
		got := [3][3]int{} // by item and initiator
		if _, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
			got[x.Flow][x.Trip.Initiator]++
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		want := [3][3]int{{0, 0, 60}, {20, 20, 20}, {60, 0, 0}}
		if mode == "iterative" { // whose samples do not name the item
			want = [3][3]int{{80, 20, 80}}
		}
		if got != want {
			t.Errorf("%s: %v requests by item and initiator, want %v", mode, got, want)
		}
	}
}

// TestEachDrive verifies that figures by drive exclude the warm-up like those of all drives together.
func TestEachDrive(t *testing.T) {
	o := trialtest.Run(t, `initiators: 2
targets: [{count: 1, ssds: 3, ssd: `+trialtest.TinyDrive+`}]
workload: [{synthetic: {writes: {size: 8KiB, interarrival: {mean: 60us}, addresses: {align: 8KiB}}, requests: 4000}}]
measure: {warm_up: 100ms}
`, 1, "targets[0].ssd.preconditioning.fill=steady")
	low, high, busy, count := math.Inf(1), 0.0, 0.0, 0.0
	for i := range 3 {
		name := func(n string) string { return fmt.Sprintf("ssd[%d].%s", i, n) }
		low, high = min(low, trialtest.Metric(t, o, name("waf"))), max(high, trialtest.Metric(t, o, name("waf")))
		busy += trialtest.Metric(t, o, name("utilisation.die")) / 3
		count += trialtest.Metric(t, o, name("write.count"))
	}
	if w := trialtest.Metric(t, o, "ssd.waf"); w < low || w > high {
		t.Errorf("write amplification %g of all, %g to %g of each", w, low, high)
	}
	if u := trialtest.Metric(t, o, "ssd.utilisation.die"); math.Abs(busy-u) > 1e-6*u {
		t.Errorf("dies of all are busy for %g, of each for %g on average", u, busy)
	}
	// A command completes at its drive before it completes at its initiator, so a few are in flight at either end.
	if n := trialtest.Metric(t, o, "write.count"); math.Abs(count-n) > 3 {
		t.Errorf("%g writes, %g over the drives", n, count)
	}
}

// TestCutShort verifies that laws hold at any moment, also for requests of several commands.
func TestCutShort(t *testing.T) {
	for _, until := range []string{"50us", "777us", "2ms"} {
		o := trialtest.Run(t,
			"initiators: 2\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\nroute: {target: {stripe: 8KiB}}\n"+
				"workload: [{synthetic: {reads: {size: 64KiB, interarrival: 10us}, writes: {size: 20KiB, "+
				"interarrival: 10us}, requests: 1000}}]\nmeasure: {until: "+until+"}\n", 1)
		if n := trialtest.Metric(t, o, "all.count"); n == 0 || n == 1000 {
			t.Errorf("%g requests have ended by %s", n, until)
		}
	}
}

// TestFlowsBeside verifies that background flows are counted without the requests' messages.
func TestFlowsBeside(t *testing.T) {
	o := trialtest.Run(t, trialtest.SmallSystem+"flows: [{incast: {fan: 3, size: 20KB, rounds: 4, every: 50us}}]\n", 1)
	if n := trialtest.Metric(t, o, "flow.count"); n != 12 {
		t.Errorf("%g flows, not 12", n)
	}
	if n := trialtest.Metric(t, o, "all.count"); n != 100 {
		t.Errorf("%g requests, not 100", n)
	}
}

// TestStagesSum verifies that the stages' means add up to that of the latency.
func TestStagesSum(t *testing.T) {
	o := trialtest.Run(t, trialtest.SmallSystem, 1)
	sum := 0.0
	for k := range nvmf.Stages {
		sum += trialtest.Metric(t, o, fmt.Sprintf("read.stage.%v.mean", k))
	}
	if got := trialtest.Metric(t, o, "read.latency.mean"); sum < got*(1-1e-9) || sum > got*(1+1e-9) {
		t.Errorf("stages of %g us, a latency of %g us", sum, got)
	}
}

// TestBeyond verifies that addresses beyond every drive are rejected with a remedy, and that striping is one.
func TestBeyond(t *testing.T) {
	const text = "targets: [{count: 2, ssds: 2, ssd: " + trialtest.TinyDrive +
		"}]\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us, addresses: {start: 40MiB, space: " +
		"20MiB}}, requests: 100}}]\n"
	s, err := trialtest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1}); err == nil ||
		!strings.HasSuffix(err.Error(),
			"; use less, addresses: fold, or a larger drive, or route.target: stripe, which spreads the addresses "+
				"over all drives") {
		t.Errorf("%v", err)
	}
	trialtest.Run(t, text+"route: {target: stripe}\n", 1)
}

// TestNeighbours verifies that the times recorded by targets and initiators agree with the network's and the drives',
// for every protocol and any end of the run.
func TestNeighbours(t *testing.T) {
	for _, more := range []string{"protocol: nvmeof\n", "protocol: flows\n",
		"protocol: nvme-tcp\nfabric: {transport: tcp}\n",
		"nvmf: {txq: 64KiB, drive_depth: 2}\nfabric: {congestion_control: none, pfc: {threshold: 20KB}}\n",
		"nvmf: {write_buffers: 40KiB, reads: {target: 1, initiator: 1}}\n",
		"fabric: {compat: ns3-rdma, host_link: 10Gbps}\n"} {
		for _, until := range []string{"1111us", "2345us", "1s"} {
			o := trialtest.Run(t,
				more+"initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: "+trialtest.TinyDrive+
					"}]\nroute: {target: {stripe: 8KiB}}\n"+
					"workload: [{synthetic: {reads: {size: 64KiB, interarrival: 20us}, writes: {size: 20KiB, "+
					"interarrival: 40us}, requests: 300}}]\nmeasure: {until: "+until+"}\n", 1)
			held := []string{"time in the network is its messages'", "time in drives is what they say",
				"time before answers is between drives and network"}
			if !strings.Contains(more, "flows") {
				held = append(held, "time at targets is between network and drives")
			}
			seen := 0
			for _, c := range o.Result.Checks {
				if slices.Contains(held, c.Name) {
					if seen++; !c.OK || strings.Contains(c.Detail, " 0s") {
						t.Errorf("%s until %s: %s: %s", more, until, c.Name, c.Detail)
					}
				}
			}
			if seen != len(held) {
				t.Errorf("%s: %d of %d checks", more, seen, len(held))
			}
		}
	}
}

// TestResponseOvertakes verifies that with a queue pair per message, where responses overtake data that have not been
// sent, the stage times still match the network's, for any end of the run.
func TestResponseOvertakes(t *testing.T) {
	for _, until := range []string{"4700ms", "14s", "end"} {
		trialtest.Run(t, `initiators: 3
targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]
fabric: {topology: {star: {hosts: 5}}, host_link: 1Mbps, queue_pairs: {life: per-message}}
workload: [{synthetic: {reads: {size: 16KiB, interarrival: 5us}, writes: {size: 16KiB, interarrival: 10us}, requests: 300}}]
measure: {until: `+until+"}\n", 1)
	}
}

// TestSteadyFailures verifies that a single scheduled link failure is not a steady state, and is not waited for
// repeatedly.
func TestSteadyFailures(t *testing.T) {
	const text = trialtest.SmallSystem +
		"measure: {until: steady}\nfabric: {topology: {star: {hosts: 5}}, host_link: 40Gbps}\n"
	for _, fails := range []bool{false, true} {
		set := []string{"workload[0].synthetic.requests=40000"}
		if fails {
			set = append(set, "fabric.failures=[{a: h0, b: s0, at: 100us, until: 200us}]")
		}
		o := trialtest.Run(t, text, 1, set...)
		warned := strings.Contains(strings.Join(o.Result.Warnings, "\n"), "failures of links: only 1 in ")
		if o.Result.Steady.Reached == fails || warned != fails || trialtest.Metric(t, o, "read.count") > 30000 {
			t.Errorf("fails %v: %+v, %q", fails, o.Result.Steady, o.Result.Warnings)
		}
	}
}

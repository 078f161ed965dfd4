package tables

import (
	"fmt"
	"math"
	"strings"

	"farflash/reproduce"
	"farflash/stats"
)

// gbps makes bytes a second Gbit/s.
const gbps = 8e-9

// controllers are who divides drives between reads and writes.
var controllers = []string{"none", "src", "reserve"}

// Of SRC's figures, in Gbit/s: what the paper calls aggregate, and its parts.
const (
	srcAll    = "aggregate.bandwidth"
	srcReads  = "initiator.read.bandwidth"
	srcWrites = "target.write.bandwidth"
)

func controlled(kind string, first uint64, n int, set ...string) []run {
	return seeds(first, n, "src-system", with(set, []string{"rate_control.kind=" + kind})...)
}

// load makes a preset that of a figure.
func load(name string) []string {
	changes, err := reproduce.Load(name)
	if err != nil {
		panic(err)
	}
	var set []string
	for _, c := range changes {
		set = append(set, c.Path+"="+c.Value)
	}
	return set
}

// src are the tables of docs/validation/src.md.
func src() []table {
	return []table{srcAgainst(), srcInitiators(), srcOpen(), srcWeights(), srcFollow(), srcExample()}
}

// srcAgainst are controllers against each other on seeds that nothing was tuned on.
func srcAgainst() table {
	const first, n = 101, 10
	t := table{page: "src", name: "src-against", made: "seeds 101 to 110",
		head: []string{"network, TXQ", ">`none`", ">`src`", ">`reserve`", ">`src` over `none`", ">`reserve` over `src`", ">its reads over those of `src`", ">its p99 of reads", ">of writes"}}
	for _, c := range []struct{ name, cc, txq string }{
		{"DCQCN, 512 KiB", "dcqcn", "512KiB"}, {"HPCC, 512 KiB", "hpcc", "512KiB"}, {"Swift, 512 KiB", "swift", "512KiB"},
		{"DCTCP, 512 KiB", "dctcp", "512KiB"}, {"TIMELY, 512 KiB", "timely", "512KiB"}, {"DCQCN, 32 MiB", "dcqcn", "32MiB"},
	} {
		set := []string{"fabric.congestion_control=" + c.cc, "nvmf.txq=" + c.txq}
		line := []cell{words(c.name)}
		for _, k := range controllers {
			line = append(line, mean("%.1f", srcAll, gbps, controlled(k, first, n, set...)))
		}
		ratio := func(a, b, metric string) cell {
			return cell{append(controlled(a, first, n, set...), controlled(b, first, n, set...)...), func(x []found) string { return percent(over(x, metric)) }}
		}
		t.rows = append(t.rows, append(line, ratio("src", "none", srcAll), ratio("reserve", "src", srcAll), ratio("reserve", "src", srcReads),
			ratio("reserve", "src", "read.latency.p99"), ratio("reserve", "src", "write.latency.p99")))
	}
	return t
}

// percent is how much a ratio is over 1, and its 95 % interval.
func percent(x stats.Interval) string {
	return fmt.Sprintf("%+.1f %% (± %.1f)", 100*(x.Mean-1), 100*x.Half)
}

// srcInitiators are four targets with as many requests as two drives are asked for elsewhere, read by two or four.
func srcInitiators() table {
	t := table{page: "src", name: "src-initiators", made: "seeds 101 to 103",
		head: []string{"initiators", "controller", ">aggregate", ">reads", ">writes", ">p99 of reads, ms", ">of writes, ms", ">span"}}
	for _, n := range []int{2, 4} {
		for _, k := range controllers {
			needs := controlled(k, 101, 3, fmt.Sprintf("initiators=%d", n), "targets[0].count=4",
				"workload[0].synthetic.reads.interarrival.mean=2500ns", "workload[0].synthetic.writes.interarrival.mean=2500ns", "workload[0].synthetic.requests=40000")
			t.rows = append(t.rows, []cell{words(fmt.Sprint(n)), words("`" + k + "`"), mean("%.1f", srcAll, gbps, needs), mean("%.1f", srcReads, gbps, needs),
				mean("%.1f", srcWrites, gbps, needs), mean("%.1f", "read.latency.p99", 1e-3, needs), mean("%.1f", "write.latency.p99", 1e-3, needs), {needs, span(n)}})
		}
	}
	return t
}

// span is the most that one of n initiators receives over the least, on average.
func span(n int) func([]found) string {
	return func(list []found) string {
		sum := 0.0
		for i := range list {
			low, high := math.Inf(1), 0.0
			for k := range n {
				v := list[i].value(fmt.Sprintf("initiator[%d].read.bandwidth", k))
				low, high = min(low, v), max(high, v)
			}
			sum += high / low / float64(len(list))
		}
		return fmt.Sprintf("%.2f", sum)
	}
}

// srcOpen is what the paper leaves open, one thing at a time.
func srcOpen() table {
	t := table{page: "src", name: "src-open", made: "seed 1", head: []string{"", ">`none`", ">`src`", ">`reserve`"}}
	const at = "workload[0].synthetic."
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"the preset", nil},
		{"TXQ of 128 KiB", []string{"nvmf.txq=128KiB"}},
		{"of 4 MiB", []string{"nvmf.txq=4MiB"}},
		{"of 32 MiB", []string{"nvmf.txq=32MiB"}},
		{"64 RDMA Reads a queue pair, not 16", []string{"nvmf.reads.target=64", "nvmf.reads.initiator=64"}},
		{"a read and a write every 10 us in all, not at each target", []string{at + "reads.interarrival.mean=10us", at + "writes.interarrival.mean=10us", at + "requests=10000"}},
		{"1 drive a target, not 2", []string{"targets[0].ssds=1"}},
		{"4 drives", []string{"targets[0].ssds=4"}},
		{"exponential inter-arrival times", []string{at + "reads.interarrival.kind=exponential", at + "reads.interarrival.scv=1", at + "reads.interarrival.skewness=2", at + "reads.interarrival.acf1=0",
			at + "writes.interarrival.kind=exponential", at + "writes.interarrival.scv=1", at + "writes.interarrival.skewness=2", at + "writes.interarrival.acf1=0"}},
		{"queue pairs of 128 commands", []string{"nvmf.queue_depth=128"}},
		{"volumes striped over the drives, not hashed", []string{"route.target=stripe"}},
		{"window of 1 ms, not 10", []string{"rate_control.window=1ms"}},
		{"of 50 ms", []string{"rate_control.window=50ms"}},
		{"a decision every 100 us at most, not every ms", []string{"rate_control.interval=100us"}},
		{"weight ratios up to 8, not 32", []string{"rate_control.max_ratio=8"}},
		{"Algorithm 1 as printed", []string{"rate_control.mode=paper"}},
		{"predictions corrected by what was read", []string{"rate_control.mode=corrected"}},
	} {
		line := []cell{words(c.name)}
		for _, k := range controllers {
			set := c.set
			if k != "src" && len(set) > 0 && strings.HasPrefix(set[0], "rate_control.") {
				set = nil // of which it has nothing
			}
			line = append(line, cell{controlled(k, 1, 1, set...), func(x []found) string {
				return fmt.Sprintf("%.1f (%.1f, %.1f)", gbps*x[0].value(srcAll), gbps*x[0].value(srcReads), gbps*x[0].value(srcWrites))
			}})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

// srcWeights is what a weight ratio that stays makes of SSD-B's reads in figure 9.
func srcWeights() table {
	ratios := []string{"1", "2", "4", "8", "16"}
	t := table{page: "src", name: "src-weights", made: "seed 1", head: []string{"weight ratio"}}
	for _, r := range ratios {
		t.head = append(t.head, ">"+r)
	}
	for _, s := range []struct{ from, to float64 }{{20, 60}, {80, 100}} {
		line := []cell{words(fmt.Sprintf("%g to %g ms", s.from, s.to))}
		for _, r := range ratios {
			needs := seeds(1, 1, "src-system", with(load("src-fig9"), []string{"measure.until=100ms", "rate_control={kind: static, weight_ratio: " + r + "}"})...)
			line = append(line, cell{needs, func(x []found) string { return fmt.Sprintf("%.1f", 1e-9*within(&x[0], "rate.read", s.from, s.to)) }})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

// srcFollow is figure 9 with drives as MQSim has them and with fewer commands in them than the paper says, in which weights act.
func srcFollow() table {
	t := table{page: "src", name: "src-follow", made: "seeds 1 to 3", head: []string{"commands in the drive", "weight ratio by"}}
	demands := []struct{ at, rate float64 }{{60, 6}, {100, 3}, {140, 6}, {180, 10}, {220, 0}}
	var list []string
	for _, x := range demands[:4] {
		t.head = append(t.head, fmt.Sprintf(">%g Gbit/s", x.rate))
		list = append(list, fmt.Sprintf("{at: %gms, rate: %gGbps}", x.at, x.rate))
	}
	for _, depth := range []int{32, 64, 128, 512} {
		for _, c := range []struct{ name, control string }{
			{"1", "kind: static, weight_ratio: 1"}, {"8", "kind: static, weight_ratio: 8"}, {"32", "kind: static, weight_ratio: 32"},
			{"`scan`", "kind: src"}, {"`corrected`", "kind: src, mode: corrected"},
		} {
			needs := seeds(1, 3, "src-system", with(load("src-fig9"), []string{"targets[0].ssd={preset: src-ssd-b, compat: mqsim}", fmt.Sprintf("nvmf.drive_depth=%d", depth),
				"measure.until=220ms", "rate_control={" + c.control + ", demands: [" + strings.Join(list, ", ") + "]}"})...)
			line := []cell{words(fmt.Sprint(depth)), words(c.name)}
			for i, x := range demands[:4] {
				line = append(line, cell{needs, func(all []found) string {
					sum := 0.0
					for k := range all {
						sum += within(&all[k], "rate.read", x.at+20, demands[i+1].at)
					}
					return fmt.Sprintf("%.1f", 1e-9*sum/float64(len(all)))
				}})
			}
			t.rows = append(t.rows, line)
		}
	}
	return t
}

// within is a series' mean between two times in ms.
func within(f *found, name string, from, to float64) float64 {
	s, _ := f.SeriesOf(name)
	sum, n := 0.0, 0
	for i, t := range s.T {
		if 1e3*t >= from && 1e3*t < to {
			sum += s.V[i]
			n++
		}
	}
	return sum / float64(n)
}

// srcExample is figure 2's congestion under controllers that need no demand: requests that the first target's drive ends in a time unit, in which it alone ends nine.
func srcExample() table {
	t := table{page: "src", name: "src-example", made: "seed 1", head: []string{"", ">reads", ">writes", ">both"}}
	congested := load("src-fig2-congested")
	for _, c := range []struct {
		name string
		set  []string
	}{{"DCQCN", nil}, {"SRC", []string{"rate_control.kind=src"}}, {"`static`, weight ratio 4", []string{"rate_control={kind: static, weight_ratio: 4}"}}, {"`reserve`", []string{"rate_control.kind=reserve"}}} {
		needs := append(seeds(1, 1, "src-system", with(congested, c.set)...), seeds(1, 1, "src-system", with(load("src-fig2"), []string{"fabric.host_link=400Gbps"})...)...)
		line := []cell{words(c.name)}
		for _, ops := range [][]string{{"read"}, {"write"}, {"read", "write"}} {
			line = append(line, cell{needs, func(x []found) string {
				done := func(f *found, ops ...string) float64 { // by the first drive, a second
					sum := 0.0
					for _, op := range ops {
						sum += f.value("ssd[0]." + op + ".count")
					}
					return sum * f.value("all.iops") / f.value("all.count")
				}
				return fmt.Sprintf("%.1f", 9*done(&x[0], ops...)/done(&x[1], "read", "write"))
			}})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

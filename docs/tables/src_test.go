package tables

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/numeric/stats"
	"farflash/study/reproduce"
)

// gbps converts bytes per second to Gbit/s.
const gbps = 8e-9

// controllers are the rate controllers, which divide drives between reads and writes.
var controllers = []string{"none", "src", "reserve"}

// Metrics of SRC's figures, shown in Gbit/s: the paper's aggregate throughput, and its parts.
const (
	srcAll    = "aggregate.bandwidth"
	srcReads  = "initiator.read.bandwidth"
	srcWrites = "target.write.bandwidth"
)

func controlled(kind string, first uint64, n int, set ...string) []run {
	return seeds(first, n, "src-system", with(set, []string{"rate_control.kind=" + kind})...)
}

// load returns the changes that turn a preset into that of a figure.
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

// src returns the tables that docs/validation/src.md rests on.
func src() []table {
	return []table{srcAgainst(), srcLadder(), srcUnits(), srcFrontier(), srcInitiators(), srcOpen(),
		srcWeights(), srcFollow(), srcDelay(),
		srcExample()}
}

// srcAgainst compares controllers on seeds that were not used for tuning.
func srcAgainst() table {
	t := table{name: "src-against", made: "seeds 201 to 210",
		head: append([]string{"network, TXQ", "ours", "none Gbit/s", "src Gbit/s", "ours Gbit/s"},
			columns([]string{"src over none", "ours over src", "its reads over those of src", "its p99 of reads",
				"its p99 of writes"}, "%", "% either way")...)}
	for _, c := range []struct{ name, cc, txq string }{
		{"DCQCN, 512 KiB", "dcqcn", "512KiB"}, {"HPCC, 512 KiB", "hpcc", "512KiB"},
		{"Swift, 512 KiB", "swift", "512KiB"},
		{"DCTCP, 512 KiB", "dctcp", "512KiB"}, {"TIMELY, 512 KiB", "timely", "512KiB"},
		{"DCQCN, 32 MiB", "dcqcn", "32MiB"},
	} {
		set := []string{"fabric.congestion_control=" + c.cc, "nvmf.txq=" + c.txq}
		for _, ours := range []string{"reserve", "pace"} {
			line := []cell{words(c.name), words(ours)}
			for _, k := range []string{"none", "src", ours} {
				line = append(line, mean("%.1f", srcAll, gbps, controlled(k, fresh, freshSeeds, set...)))
			}
			t.rows = append(t.rows,
				append(line, ratioOf("src", "none", srcAll, set), ratioOf(ours, "src", srcAll, set),
					ratioOf(ours, "src", srcReads, set),
					ratioOf(ours, "src", "read.latency.p99", set), ratioOf(ours, "src", "write.latency.p99", set)))
		}
	}
	return t
}

// Seeds that were not used for tuning.
const fresh, freshSeeds = 201, 10

// ratioOf returns the ratio of a metric under controller a to that under b. Both have the settings set; a also has own.
func ratioOf(a, b, metric string, set []string, own ...string) cell {
	return cell{append(controlled(a, fresh, freshSeeds, with(set, own)...),
		controlled(b, fresh, freshSeeds, set...)...), func(x []found) string { return percent(over(x, metric)) }}
}

// srcLadder compares the parts of the controllers: separate queues alone, constant weights, predicted ones, and limits;
// those with weights under both partitions of the depth.
func srcLadder() table {
	t := table{name: "src-ladder", made: "seeds 201 to 210",
		head: append([]string{"control", "partition", "aggregate Gbit/s", "reads Gbit/s", "writes Gbit/s"},
			columns([]string{"aggregate over none", "aggregate over src, always", "reads over those of none"}, "%",
				"% either way")...)}
	runsOf := func(control, partition string) []run {
		set := []string{"rate_control={" + control + "}"}
		if partition != "" {
			set = []string{"rate_control={" + control + ", partition: " + partition + "}"}
		}
		return seeds(fresh, freshSeeds, "src-system", set...)
	}
	none, src := runsOf("kind: none", ""), runsOf("kind: src", "always")
	for _, c := range []struct{ name, control, partition string }{
		{"none", "kind: none", ""},
		{"static, weight ratio 1", "kind: static", "waiting"}, {"static, weight ratio 1", "kind: static", "always"},
		{"static, weight ratio 3", "kind: static, weight_ratio: 3", "waiting"},
		{"static, weight ratio 3", "kind: static, weight_ratio: 3", "always"},
		{"aimd", "kind: aimd", "waiting"}, {"aimd", "kind: aimd", "always"},
		{"src", "kind: src", "waiting"}, {"src", "kind: src", "always"},
		{"reserve", "kind: reserve", ""}, {"pace", "kind: pace", ""},
	} {
		own := runsOf(c.control, c.partition)
		against := func(base []run, metric string) cell {
			return cell{slices.Concat(own, base), func(x []found) string { return percent(over(x, metric)) }}
		}
		t.rows = append(t.rows,
			[]cell{words(c.name), words(c.partition), mean("%.1f", srcAll, gbps, own), mean("%.1f", srcReads, gbps, own),
				mean("%.1f", srcWrites, gbps, own), against(none, srcAll), against(src, srcAll), against(none, srcReads)})
	}
	return t
}

// srcUnits has the loads as the paper prints them, for the whole network, and the throughput of figure 7 and table IV
// in the unit that its drives would need, GB/s: a hypothesis, because the paper prints "Gbps".
func srcUnits() table {
	const at = "workload[0].synthetic."
	loads := []struct {
		name, paper         string
		targets, initiators int
		set                 []string
	}{
		{"figure 7", "2.5, 7", 2, 1, []string{at + "reads.interarrival.mean=10us", at + "writes.interarrival.mean=10us"}},
		{"2:1", "2.4, 3.2", 2, 1, nil}, {"3:1", "4.6, 5.4", 3, 1, nil}, {"4:1", "7.8, 8.2", 4, 1, nil},
		{"4:4", "9.2, 9.5", 4, 4, nil},
	}
	t := table{page: "src", name: "src-units", made: "seeds 1 and 2", gate: []int{0},
		head: []string{"two drives of table II a target or one with MQSim's rules, TXQ, partition"}}
	paper := []cell{words("the paper")}
	for i := range loads {
		l := &loads[i]
		if l.set == nil { // "around 38 Gbps"
			l.set = []string{at + "reads.interarrival.mean=9264ns", at + "writes.interarrival.mean=9264ns",
				at + "writes.size.mean=44KB"}
		}
		t.head = append(t.head, ">"+l.name)
		paper = append(paper, words(l.paper))
	}
	t.rows = append(t.rows, paper)
	for _, d := range []struct{ name, ssds, ssd string }{
		{"two", "2", "src-ssd-a"}, {"one", "1", "{preset: src-ssd-a, compat: mqsim}"},
	} {
		for _, txq := range []string{"512KiB", "4MiB"} {
			for _, partition := range []string{"waiting", "always"} {
				line := []cell{words(d.name + ", " + txq + ", " + partition)}
				for _, l := range loads {
					set := with([]string{"targets[0].ssds=" + d.ssds, "targets[0].ssd=" + d.ssd,
						"nvmf.txq=" + txq, fmt.Sprintf("targets[0].count=%d", l.targets),
						fmt.Sprintf("initiators=%d", l.initiators), "rate_control.partition=" + partition,
						"measure.until=25ms"}, l.set)
					line = append(line, cell{append(controlled("none", 1, 2, set...), controlled("src", 1, 2, set...)...),
						func(x []found) string {
							return fmt.Sprintf("%.1f, %.1f", 1e-9*meanOf(x[:2], srcAll), 1e-9*meanOf(x[2:], srcAll))
						}})
				}
				t.rows = append(t.rows, line)
			}
		}
	}
	return t
}

// srcFrontier shows the trade-off between reads and writes as the yield of reserve varies, under HPCC: with DCQCN the
// data of writes has no acknowledgements, and a yield no effect.
func srcFrontier() table {
	t := table{name: "src-frontier", made: "seeds 201 to 210",
		head: append([]string{"TXQ", "yield", "reads Gbit/s", "writes Gbit/s"},
			columns([]string{"aggregate over src", "reads over those of src", "p99 of reads", "p99 of writes"}, "%",
				"% either way")...)}
	for _, txq := range []string{"512 KiB", "32 MiB"} {
		set := []string{"fabric.congestion_control=hpcc", "nvmf.txq=" + strings.ReplaceAll(txq, " ", "")}
		for _, y := range []string{"1%", "1.5%", "2%", "4%", "6%", "100%"} {
			own := "rate_control.yield=" + y
			needs := controlled("reserve", fresh, freshSeeds, with(set, []string{own})...)
			t.rows = append(t.rows,
				[]cell{words(txq), words(y), mean("%.1f", srcReads, gbps, needs), mean("%.1f", srcWrites, gbps, needs),
					ratioOf("reserve", "src", srcAll, set, own), ratioOf("reserve", "src", srcReads, set, own),
					ratioOf("reserve", "src", "read.latency.p99", set, own),
					ratioOf("reserve", "src", "write.latency.p99", set, own)})
		}
	}
	return t
}

// percent formats the excess of a ratio over 1 and half its 95 % interval, as two columns.
func percent(x stats.Interval) string {
	return fmt.Sprintf("%+.1f|%.1f", 100*(x.Mean-1), 100*x.Half)
}

// srcInitiators has four targets with twice the request rate of the other tables, read by two or four initiators.
func srcInitiators() table {
	t := table{name: "src-initiators", made: "seeds 101 to 103",
		head: []string{"initiators", "controller", "aggregate Gbit/s", "reads Gbit/s", "writes Gbit/s",
			"p99 of reads ms", "p99 of writes ms", "most over least"}}
	for _, n := range []int{2, 4} {
		for _, k := range controllers {
			needs := controlled(k, 101, 3, fmt.Sprintf("initiators=%d", n), "targets[0].count=4",
				"workload[0].synthetic.reads.interarrival.mean=2500ns",
				"workload[0].synthetic.writes.interarrival.mean=2500ns", "workload[0].synthetic.requests=40000")
			t.rows = append(t.rows,
				[]cell{words(fmt.Sprint(n)), words(k), mean("%.1f", srcAll, gbps, needs),
					mean("%.1f", srcReads, gbps, needs),
					mean("%.1f", srcWrites, gbps, needs), mean("%.1f", "read.latency.p99", 1e-3, needs),
					mean("%.1f", "write.latency.p99", 1e-3, needs), {needs, span(n)}})
		}
	}
	return t
}

// span returns the ratio of the largest to the smallest bandwidth that n initiators receive, averaged over runs.
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

// srcOpen varies the parameters that the paper leaves open, one at a time.
func srcOpen() table {
	t := table{name: "src-open", made: "seed 1", head: append([]string{"changed"}, columns(controllers,
		"aggregate Gbit/s", "reads Gbit/s", "writes Gbit/s")...)}
	const at = "workload[0].synthetic."
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"the preset", nil},
		{"TXQ of 128 KiB", []string{"nvmf.txq=128KiB"}},
		{"TXQ of 4 MiB", []string{"nvmf.txq=4MiB"}},
		{"TXQ of 32 MiB", []string{"nvmf.txq=32MiB"}},
		{"64 RDMA Reads a queue pair, not 16", []string{"nvmf.reads.target=64", "nvmf.reads.initiator=64"}},
		{"a read and a write every 10 us in all, not at each target",
			[]string{at + "reads.interarrival.mean=10us", at + "writes.interarrival.mean=10us", at + "requests=10000"}},
		{"1 drive a target, not 2", []string{"targets[0].ssds=1"}},
		{"4 drives a target", []string{"targets[0].ssds=4"}},
		{"exponential inter-arrival times",
			[]string{at + "reads.interarrival.kind=exponential", at + "reads.interarrival.scv=1",
				at + "reads.interarrival.skewness=2", at + "reads.interarrival.acf1=0",
				at + "writes.interarrival.kind=exponential", at + "writes.interarrival.scv=1",
				at + "writes.interarrival.skewness=2", at + "writes.interarrival.acf1=0"}},
		{"queue pairs of 128 commands", []string{"nvmf.queue_depth=128"}},
		{"volumes striped over the drives, not hashed", []string{"route.target=stripe"}},
		{"drives that have been filled, not empty ones",
			[]string{"targets[0].ssd={preset: src-ssd-a, preconditioning: {fill: sequential}}"}},
		{"software that takes no time, not 0.73 us a command and side",
			[]string{"nvmf.initiator.command=0s", "nvmf.target.command=0s"}},
		{"initiator and targets at one ToR, not spread", []string{"place.initiators=first", "place.targets=first"}},
		{"2 spines, not 4", []string{"fabric.topology.clos.spines=2"}},
		{"marks from 5 to 200 KB, 1 % of them, not from 160 to 640 KB, 20 %",
			[]string{"fabric.ecn={kmin: 5KB, kmax: 200KB, pmax: 1%, rate: 40Gbps}"}},
		{"DCQCN's steps of 5 and 50 Mbit/s, not 40 and 200",
			[]string{"fabric.congestion_control.dcqcn.rate_ai=5Mbps",
				"fabric.congestion_control.dcqcn.rate_hai=50Mbps"}},
		{"packets of 4 KiB, not 1", []string{"fabric.payload=4KiB"}},
		{"an acknowledgement for 4 packets, not for each", []string{"fabric.acks.every=4"}},
		{"shares of the depth that bind only while both queues wait", []string{"rate_control.partition=waiting"}},
		{"measured from 0 to 50 ms, not from 5 to 45", []string{"measure.warm_up=none", "measure.until=50ms"}},
		{"window of 1 ms, not 10", []string{"rate_control.window=1ms"}},
		{"window of 50 ms", []string{"rate_control.window=50ms"}},
		{"a decision every 100 us at most, not every ms", []string{"rate_control.interval=100us"}},
		{"weight ratios up to 8, not 32", []string{"rate_control.max_ratio=8"}},
		{"Algorithm 1 as printed", []string{"rate_control.mode=paper"}},
		{"Algorithm 1 as printed, with a tau of 1 %, not 10", []string{"rate_control.mode=paper", "rate_control.tolerance=1%"}},
		{"predictions corrected by what was read", []string{"rate_control.mode=corrected"}},
	} {
		line := []cell{words(c.name)}
		for _, k := range controllers {
			set := c.set
			if k != "src" && len(set) > 0 && strings.HasPrefix(set[0], "rate_control.") {
				set = nil // only src has these settings
			}
			line = append(line, cell{controlled(k, 1, 1, set...), func(x []found) string {
				return fmt.Sprintf("%.1f|%.1f|%.1f", gbps*x[0].value(srcAll), gbps*x[0].value(srcReads),
					gbps*x[0].value(srcWrites))
			}})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

// srcWeights shows the effect of a constant weight ratio on the reads of figure 9's load, under both partitions.
func srcWeights() table {
	ratios := []string{"1", "3", "8", "32"}
	t := table{name: "src-weights", made: "seed 1", head: []string{"drive", "partition", "from ms", "to ms"}}
	for _, r := range ratios {
		t.head = append(t.head, "weight ratio "+r+" Gbit/s")
	}
	for _, d := range []string{"src-ssd-a", "src-ssd-b"} {
		for _, partition := range []string{"waiting", "always"} {
			for _, s := range []struct{ from, to float64 }{{20, 60}, {80, 100}} {
				line := []cell{words(d), words(partition), words(fmt.Sprint(s.from)), words(fmt.Sprint(s.to))}
				for _, r := range ratios {
					needs := seeds(1, 1, "src-system",
						with(load("src-fig9"), []string{"targets[0].ssd=" + d, "measure.until=100ms",
							"rate_control={kind: static, weight_ratio: " + r + ", partition: " + partition + "}"})...)
					line = append(line, cell{needs, func(x []found) string {
						return fmt.Sprintf("%.1f", 1e-9*within(&x[0], "rate.read", s.from, s.to))
					}})
				}
				t.rows = append(t.rows, line)
			}
		}
	}
	return t
}

// srcFollow is figure 9 with the drive as it is, and with MQSim's rules and fewer commands in it too.
func srcFollow() table {
	t := table{name: "src-follow", made: "seeds 1 to 3",
		head: []string{"drive", "commands in it", "weight ratio by"}}
	demands := []struct{ at, rate float64 }{{60, 6}, {100, 3}, {140, 6}, {180, 10}, {220, 0}}
	var list []string
	for _, x := range demands[:4] {
		t.head = append(t.head, fmt.Sprintf("%g Gbit/s demanded at %g ms", x.rate, x.at))
		list = append(list, fmt.Sprintf("{at: %gms, rate: %gGbps}", x.at, x.rate))
	}
	for _, d := range []struct{ name, ssd, depth string }{
		{"as it is", "src-ssd-b", "512"}, {"with MQSim's rules", "{preset: src-ssd-b, compat: mqsim}", "512"},
		{"with MQSim's rules", "{preset: src-ssd-b, compat: mqsim}", "64"},
	} {
		for _, c := range []struct{ name, control string }{
			{"1", "kind: static, weight_ratio: 1"}, {"8", "kind: static, weight_ratio: 8"},
			{"32", "kind: static, weight_ratio: 32"},
			{"scan", "kind: src"}, {"corrected", "kind: src, mode: corrected"},
		} {
			needs := seeds(1, 3, "src-system",
				with(load("src-fig9"),
					[]string{"targets[0].ssd=" + d.ssd, "nvmf.drive_depth=" + d.depth, "measure.until=220ms",
						"rate_control={" + c.control + ", partition: always, demands: [" + strings.Join(list, ", ") + "]}"})...)
			line := []cell{words(d.name), words(d.depth), words(c.name)}
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

// srcDelay measures how soon reads follow sixty random demands, those of figure 9's long trace, with weights and with
// pace. The goal of weights is the closest rate that any weight ratio yields.
func srcDelay() table {
	const first, n = 1, 3
	t := table{name: "src-delay", made: "seeds 1 to 3",
		head: append([]string{"drive", "commands in it", "control", "goal"},
			columns([]string{"of what drives read:", "of what initiators receive:"}, "ms", "missed", "of")...)}
	own := []string{"targets[0].ssd=src-ssd-b", "nvmf.drive_depth=512"}
	row := func(drive, commands, name, goal string, set []string, goals func(demand float64, x []found) float64,
		ratios []run) {
		needs := append(seeds(first, n, "src-system", with(load("src-fig9-long"), set)...), ratios...)
		line := []cell{words(drive), words(commands), words(name), words(goal)}
		for _, series := range []string{"rate.read", "rate.received"} {
			line = append(line, cell{needs, func(x []found) string {
				return delays(x[:n], series, func(demand float64) float64 { return goals(demand, x[n:]) })
			}})
		}
		t.rows = append(t.rows, line)
	}
	demanded := func(demand float64, _ []found) float64 { return demand }
	row("as it is", "512", "src", "demand", with(own, []string{"rate_control.kind=src"}), demanded, nil)
	row("as it is", "512", "pace", "demand", with(own, []string{"rate_control.kind=pace"}), demanded, nil)
	for _, size := range []string{"64KiB", "32KiB"} {
		row("as it is", "512", "pace, commands of "+strings.Replace(size, "K", " K", 1)+" at most", "demand",
			with(own, []string{"rate_control.kind=pace", "nvmf.max_transfer=" + size}), demanded, nil)
	}
	for _, depth := range []string{"64"} {
		drive := []string{"targets[0].ssd={preset: src-ssd-b, compat: mqsim}", "nvmf.drive_depth=" + depth}
		var ratios []run
		for _, w := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32} {
			ratios = append(ratios,
				seeds(first, 1, "src-system",
					with(load("src-fig9"), drive,
						[]string{"measure.until=120ms",
							fmt.Sprintf("rate_control={kind: static, weight_ratio: %d, partition: always}", w)})...)...)
		}
		closest := func(demand float64, x []found) float64 {
			best := math.Inf(1)
			for i := range x {
				if a := 1e-9 * within(&x[i], "rate.read", 20, 120); math.Abs(a-demand) < math.Abs(best-demand) {
					best = a
				}
			}
			return best
		}
		row("with MQSim's rules", depth, "src", "closest ratio", with(drive, []string{"rate_control.kind=src"}),
			closest, ratios)
		row("with MQSim's rules", depth, "src, mode: corrected", "closest ratio",
			with(drive, []string{"rate_control.kind=src", "rate_control.mode=corrected"}), closest, ratios)
		row("with MQSim's rules", depth, "pace", "demand", with(drive, []string{"rate_control.kind=pace"}),
			demanded, nil)
	}
	return t
}

// delays returns the mean time, in ms, after which a series stays within 10 % of a goal for 5 ms, and the number of
// demands for which it never does; these count with the whole time until the next demand.
func delays(x []found, series string, goal func(demand float64) float64) string {
	const settled = 5
	sum, n, missed := 0, 0, 0
	for i := range x {
		s, _ := x[i].SeriesOf(series)
		d, _ := x[i].SeriesOf("rate.demanded")
		for at := 20; at+20 <= len(s.V); at += 20 {
			want, stays, took := goal(1e-9*d.V[at]), 0, 20
			for k := range 20 {
				if math.Abs(1e-9*s.V[at+k]-want) > 0.1*want {
					stays = 0
				} else if stays++; stays == settled {
					took = k + 1 - settled
					break
				}
			}
			if stays < settled {
				missed++
			}
			sum += took
			n++
		}
	}
	return fmt.Sprintf("%.1f|%d|%d", float64(sum)/float64(n), missed, n)
}

// within returns the mean of a series between two times in ms.
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

// srcExample is figure 2's congestion under controllers that need no demand: the requests that the first target's drive
// completes per time unit, in which it completes nine without congestion.
func srcExample() table {
	t := table{name: "src-example", made: "seed 1", head: []string{"control", "reads a unit", "writes a unit", "both a unit"}}
	congested := load("src-fig2-congested")
	for _, c := range []struct {
		name string
		set  []string
	}{{"DCQCN", nil}, {"SRC", []string{"rate_control.kind=src"}},
		{"static, weight ratio 4", []string{"rate_control={kind: static, weight_ratio: 4, partition: always}"}},
		{"reserve", []string{"rate_control.kind=reserve"}}} {
		needs := append(seeds(1, 1, "src-system", with(congested, c.set)...),
			seeds(1, 1, "src-system", with(load("src-fig2"), []string{"fabric.host_link=400Gbps"})...)...)
		line := []cell{words(c.name)}
		for _, ops := range [][]string{{"read"}, {"write"}, {"read", "write"}} {
			line = append(line, cell{needs, func(x []found) string {
				done := func(f *found, ops ...string) float64 { // by the first drive, per second
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

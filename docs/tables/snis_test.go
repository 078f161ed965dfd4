package tables

import (
	"fmt"
	"strings"
)

// snisRow is a row of table II: sizes in KB of 1000 B, gaps in us, and the printed loads in Gbit/s and iterations.
type snisRow struct {
	tag                                    string
	readSize, writeSize, readGap, writeGap float64
	loads                                  string
	iterations                             int
}

var snisRows = []snisRow{
	{"F_t_l", 28, 11, 57, 54, "3.93|1.63", 2}, {"F_t_m", 27, 12, 17, 17, "12.71|5.65", 7},
	{"F_t_h", 28, 11, 12, 10, "18.67|8.80", 3},
	{"F_s_m", 80, 34, 60, 53, "10.67|5.06", 5}, {"F_s_h", 110, 46, 60, 52, "14.67|7.08", 3},
}

const snisWorkload = "workload[0].synthetic."

// set returns the changes that turn the preset into the row, with the given number of iterations.
func (r *snisRow) set(iterations int) []string {
	return []string{
		fmt.Sprintf(snisWorkload+"reads.size.mean=%gKB", r.readSize),
		fmt.Sprintf(snisWorkload+"reads.interarrival.mean=%gus", r.readGap),
		fmt.Sprintf(snisWorkload+"writes.size.mean=%gKB", r.writeSize),
		fmt.Sprintf(snisWorkload+"writes.interarrival.mean=%gus", r.writeGap),
		fmt.Sprintf("coupling.iterative.iterations=%d", iterations),
	}
}

// needs returns one run of the row.
func (r *snisRow) needs(iterations int, seed uint64, more ...string) []run {
	return seeds(seed, 1, "snis-system", with(r.set(iterations), more)...)
}

// converged formats the iteration at which a run converged.
func converged(f *found) string {
	if f.value("snis.converged") != 1 {
		return "none"
	}
	return fmt.Sprintf("%.0f", f.value("snis.iterations"))
}

// distances returns a run's first n relative distances, in per cent.
func distances(f *found, series string, n int) []float64 {
	var v []float64
	for _, x := range f.series(series) {
		v = append(v, 100*x)
	}
	return v[:min(n, len(v))]
}

// snisFig2 is the slowdown of 4 KiB reads and of 4 KiB writes by each other on a drive.
func snisFig2(ssd string, gap float64) cell {
	point := func(what string) run {
		flow := fmt.Sprintf("{size: 4KiB, interarrival: {mean: %gus, kind: exponential}, addresses: {align: 4KiB}}",
			gap)
		kinds := map[string]string{"both": "reads: " + flow + ", writes: " + flow, "reads": "reads: " + flow,
			"writes": "writes: " + flow}
		return run{text: fmt.Sprintf("workload: [{synthetic: {%s, duration: %gus}}]\nssd: {preset: %s, compat: mqsim}\n", kinds[what], 10_000*gap, ssd), seed: 1}
	}
	return cell{[]run{point("both"), point("reads"), point("writes")}, func(x []found) string {
		return fmt.Sprintf("%.3g|%.3g", x[0].value("read.latency.mean")/x[1].value("read.latency.mean"),
			x[0].value("write.latency.mean")/x[2].value("write.latency.mean"))
	}}
}

// snis returns the tables that docs/validation/snis.md rests on.
func snis() []table {
	open := table{name: "snis-fig2-open", made: "seed 1", gate: []int{3},
		head: append([]string{"inter-arrival time us"}, columns([]string{"table I drive, of the trace:",
			"table I drive, of each direction:", "MQSim's distributed drive, of each direction:"}, "reads", "writes")...)}
	for _, gap := range []float64{1, 2, 5, 10, 20, 50, 100, 1000} {
		open.rows = append(open.rows,
			[]cell{words(fmt.Sprint(gap)), snisFig2("snis-table1", 2*gap), snisFig2("snis-table1", gap),
				snisFig2("mqsim-default", gap)})
	}
	counts := table{name: "snis-counts", made: "seed 1", gate: []int{0},
		head: []string{"row", "paper read Gbit/s", "paper write Gbit/s", "read Gbit/s", "write Gbit/s",
			"paper iterations", "iterations", "Conv_C of iterations 1 to 10 %"}}
	rows := []string{"F_t_l", "F_t_m", "F_t_h", "F_s_m", "F_s_h"}
	for i := range snisRows {
		r := &snisRows[i]
		run := r.needs(11, 1)
		counts.rows = append(counts.rows, []cell{words(r.tag), words(r.loads), {run, func(x []found) string {
			load := func(op string, gap float64) float64 {
				return 8e-3 * x[0].value(op+".bytes") / x[0].value(op+".count") / gap
			}
			return fmt.Sprintf("%.2f|%.2f", load("read", r.readGap), load("write", r.writeGap))
		}}, words(fmt.Sprint(r.iterations)), {run, func(x []found) string { return converged(&x[0]) }},
			{run, func(x []found) string { return list("%.2g", distances(&x[0], "snis.conv_c", 10)) }}})
	}
	readings := table{name: "snis-readings", made: "seed 1", head: append(
		[]string{"first_write_arrival", "write_delay"}, columns(rows, "Conv_C of iterations 1 to 3 %", "iterations")...)}
	paper := []cell{words("paper|paper")}
	for i := range snisRows {
		paper = append(paper, words(fmt.Sprint("|", snisRows[i].iterations)))
	}
	readings.rows = append(readings.rows, paper)
	first := func(x []found, n int) string {
		return list("%.1f", distances(&x[0], "snis.conv_c", n)) + "|" + converged(&x[0])
	}
	for _, a := range []string{"arrival", "absent", "unloaded"} {
		for _, d := range []string{"stages", "departure"} {
			line := []cell{words(a + "|" + d)}
			for i := range snisRows {
				line = append(line, cell{snisRows[i].needs(4, 1, "coupling.iterative.first_write_arrival="+a,
					"coupling.iterative.write_delay="+d), func(x []found) string { return first(x, 3) }})
			}
			readings.rows = append(readings.rows, line)
		}
	}
	order := table{name: "snis-order", made: "seed 1",
		head: append([]string{"first_write_arrival", "write_delay"}, columns([]string{"F_t_m", "F_t_h"}, "mean %",
			"median %", "90th percentile %")...)}
	for _, d := range []string{"stages", "departure"} {
		line := []cell{words("arrival|" + d)}
		for _, i := range []int{1, 2} {
			line = append(line, cell{snisRows[i].needs(4, 1, "coupling.iterative.first_write_arrival=arrival",
				"coupling.iterative.write_delay="+d), func(x []found) string {
				v := distances(&x[0], "snis.rd_mean", 1)
				return strings.ReplaceAll(list("%.2g", append(append(v, distances(&x[0], "snis.rd_median", 1)...),
					distances(&x[0], "snis.rd_p90", 1)...)), " ", "|")
			}})
		}
		order.rows = append(order.rows, line)
	}
	return []table{open, counts, readings, order, snisChoices(rows), snisLosses(rows), snisLength(), snisExact(),
		snisProtocol(), snisRedraw(), snisAccelerated()}
}

// snisOutcome formats a run's iterations and first distances, or the reason why it failed.
func snisOutcome(x []found, n int) string {
	if err := x[0].err; err != nil {
		if strings.Contains(err.Error(), "its data were lost") {
			return "a request is lost|"
		}
		return err.Error() + "|"
	}
	return converged(&x[0]) + "|" + list("%.1f", distances(&x[0], "snis.conv_c", n))
}

func snisChoices(rows []string) table {
	t := table{name: "snis-choices", made: "seed 1", head: append([]string{"choice"}, columns(rows,
		"iterations", "Conv_C of iterations 1 and 2 %")...)}
	const reads, writes = snisWorkload + "reads.interarrival.", snisWorkload + "writes.interarrival."
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"the preset", nil},
		{"each iteration draws its own random numbers (redraw)", []string{"coupling.iterative.redraw=true"}},
		{"the dynamic PFC threshold of ns3-rdma's sample", []string{"fabric.pfc.threshold=dynamic"}},
		{"PFC at a fixed 100 KB", []string{"fabric.pfc.threshold=100KB"}},
		{"exponential arrivals",
			[]string{reads + "kind=exponential", reads + "scv=1", reads + "skewness=2", reads + "acf1=0",
				writes + "kind=exponential", writes + "scv=1", writes + "skewness=2", writes + "acf1=0"}},
		{"the drive without MQSim's deviations", []string{"targets[0].ssd.compat=none"}},
		{"no congestion control", []string{"fabric.congestion_control=none"}},
		{"a write every 5 us", []string{writes + "mean=5us"}},
		{"two spines", []string{"fabric.topology.clos.spines=2"}},
		{"1,000 requests", []string{snisWorkload + "requests=1000"}},
		{"5,000 requests", []string{snisWorkload + "requests=5000"}},
		{"20,000 requests", []string{snisWorkload + "requests=20000"}},
	} {
		line := []cell{words(c.name)}
		for i := range snisRows {
			line = append(line, cell{snisRows[i].needs(4, 1, c.set...),
				func(x []found) string { return snisOutcome(x, 2) }})
		}
		t.rows = append(t.rows, line)
	}
	line := []cell{words("seeds 1 to 10, and how many of them")}
	for i := range snisRows {
		var needs []run
		for seed := range uint64(10) {
			needs = append(needs, snisRows[i].needs(4, 1+seed)...)
		}
		line = append(line, cell{needs, func(x []found) string {
			times := map[string]int{}
			for k := range x {
				times[converged(&x[k])]++
			}
			var words []string
			for _, n := range []string{"1", "2", "3", "none"} {
				if times[n] > 0 {
					words = append(words, fmt.Sprintf("%s (%d)", n, times[n]))
				}
			}
			return strings.Join(words, ", ") + "|"
		}})
	}
	t.rows = append(t.rows, line)
	return t
}

// snisLosses has runs without PFC.
func snisLosses(rows []string) table {
	t := table{name: "snis-losses", made: "seed 1", fails: true,
		head: append([]string{"without PFC"}, columns(rows, "iterations", "Conv_C of iterations 1 to 10 %")...)}
	for _, c := range []struct {
		name string
		rows int // the first rows only; the others would take hours
		set  []string
	}{
		{"ns3-rdma's buffer of 9 MB", 5, []string{"fabric.buffer=9MB"}},
		{"buffers of 1 MB", 5, []string{"fabric.buffer=1MB"}},
		{"buffers of 1 MB, and what is lost is sent again after 100 ms", 4,
			[]string{"fabric.buffer=1MB", "fabric.recovery.timeout=100ms"}},
		{"buffers of 300 KB, and what is lost is sent again after 100 ms", 3, []string{"fabric.buffer=300KB", "fabric.recovery.timeout=100ms"}},
	} {
		line := []cell{words(c.name)}
		for i := range snisRows {
			if i >= c.rows {
				line = append(line, words("not run|"))
				continue
			}
			line = append(line, cell{snisRows[i].needs(11, 1, with(c.set, []string{"fabric.pfc.enabled=false"})...),
				func(x []found) string { return snisOutcome(x, 10) }})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

func snisLength() table {
	t := table{name: "snis-length", made: "seed 1",
		head: []string{"requests", "mean delay of F_t_h ms"}}
	for _, n := range []string{"1000", "5000", "10000", "20000"} {
		set := []string{snisWorkload + "requests=" + n}
		if n == "10000" {
			set = nil
		}
		t.rows = append(t.rows,
			[]cell{words(n), mean("%.1f", "all.latency.mean", 1e-3, snisRows[2].needs(4, 1, set...))})
	}
	return t
}

// snisExact compares the iterative result with the exact one.
func snisExact() table {
	t := table{name: "snis-exact", made: "seed 1",
		head: []string{"row", "stops at", "mean %", "p50 %", "p90 %", "p99 %", "a request, mean us", "worst us",
			"mean delay us", "exact at iteration"}}
	for i := range snisRows {
		r := &snisRows[i]
		needs := r.needs(11, 1, "coupling.mode=both", "coupling.iterative.full=false")
		line := []cell{words(r.tag), {needs, func(x []found) string { return converged(&x[0]) }}}
		for k := range 4 {
			line = append(line, cell{needs,
				func(x []found) string { return fmt.Sprintf("%.2f", 100*entry(&x[0], "snis.error", k, 2)) }})
		}
		line = append(line, mean("%.3g", "snis.error.request.mean", 1, needs),
			mean("%.0f", "snis.error.request.max", 1, needs),
			cell{needs, func(x []found) string { return fmt.Sprintf("%.0f", entry(&x[0], "snis.error", 0, 1)) }},
			cell{r.needs(60, 1, "coupling.mode=both"), func(x []found) string {
				at := x[0].value("snis.fixed_at")
				if !(at >= 0) {
					return "not within 60"
				}
				if off := x[0].value("snis.error.request.max"); off != 0 {
					return fmt.Sprintf("fixed at %.0f, %g us off", at, off)
				}
				return fmt.Sprintf("%.0f", at)
			}})
		t.rows = append(t.rows, line)
	}
	return t
}

// entry returns an element of a matrix.
func entry(f *found, name string, row, column int) float64 {
	m, _ := f.Matrix(name)
	return m.V[row][column]
}

// snisProtocol compares NVMe over Fabrics with one flow per request, both in one event loop.
func snisProtocol() table {
	t := table{name: "snis-protocol", made: "seed 1",
		head: []string{"row", "mean %", "p50 %", "p90 %", "p99 %", "flows: writes' mean us",
			"protocol: writes' mean us", "flows: reads' p99 us", "protocol: reads' p99 us"}}
	for i := range snisRows {
		r := &snisRows[i]
		both := r.needs(2, 1, "coupling.mode=both", "coupling.iterative.full=false", "protocol=nvmeof")
		line := []cell{words(r.tag)}
		for k := range 4 {
			line = append(line, cell{both,
				func(x []found) string { return fmt.Sprintf("%+.3g", 100*entry(&x[0], "snis.protocol", k, 2)) }})
		}
		each := append(r.needs(2, 1, "coupling.mode=coupled"),
			r.needs(2, 1, "coupling.mode=coupled", "protocol=nvmeof")...)
		for _, m := range []string{"write.latency.mean", "read.latency.p99"} {
			line = append(line, cell{each,
				func(x []found) string { return fmt.Sprintf("%.0f|%.0f", x[0].value(m), x[1].value(m)) }})
		}
		t.rows = append(t.rows, line)
	}
	return t
}

// snisRedraw shows the distances if each iteration draws its own random numbers.
func snisRedraw() table {
	return table{name: "snis-redraw", made: "seed 1",
		head: []string{"run", "Conv_C of iterations 2 to 10 %"}, rows: [][]cell{
			{words("F_t_m, as the preset"),
				{snisRows[1].needs(11, 1),
					func(x []found) string { return list("%.1f", distances(&x[0], "snis.conv_c", 10)[1:]) }}},
			{words("F_t_m, redraw"),
				{snisRows[1].needs(11, 1, "coupling.iterative.redraw=true"),
					func(x []found) string { return list("%.1f", distances(&x[0], "snis.conv_c", 10)[1:]) }}},
		}}
}

// snisAccelerated counts the iterations until Conv_C is below 1 %, and until the fixed point.
func snisAccelerated() table {
	const most = 60
	t := table{name: "snis-accelerated", made: "seed 1",
		head: []string{"row", "until", "none", "relaxation 50 %", "Aitken", "Anderson"}}
	for i := range snisRows {
		below, fixed := []cell{words(snisRows[i].tag), words("Conv_C below 1 %")},
			[]cell{words(snisRows[i].tag), words("nothing changes")}
		for _, a := range []string{"none", "relaxation", "aitken", "anderson"} {
			needs := snisRows[i].needs(most, 1, "coupling.iterative.first_write_arrival=unloaded",
				"fabric.pfc.threshold=dynamic", "coupling.iterative.acceleration="+a)
			below = append(below, cell{needs, func(x []found) string {
				for k, v := range x[0].series("snis.conv_c") {
					if v < 0.01 {
						return fmt.Sprint(k + 1)
					}
				}
				return "not within 60"
			}})
			fixed = append(fixed, cell{needs, func(x []found) string {
				if at := x[0].value("snis.fixed_at"); at >= 0 {
					return fmt.Sprintf("%.0f", at)
				}
				return "not within 60"
			}})
		}
		t.rows = append(t.rows, below, fixed)
	}
	return t
}

package tables

import (
	"fmt"
	"math"
)

// sheets holds data-sheet figures of drives in the class of each preset.
var sheets = []struct {
	preset, drive string
	figures       [7]float64 // in the order of sheetLoads; 0: unknown
}{
	{"slc-enterprise", "Solidigm D7-P5810 800 GB", [7]float64{6400, 4000, 865e3, 495e3, 53, 15, 0}},
	{"tlc-enterprise", "Micron 9550 MAX 3.2 TB", [7]float64{14000, 10000, 3e6, 540e3, 60, 15, 640e3}},
	{"tlc-mainstream", "Micron 7600 MAX 6.4 TB", [7]float64{12000, 7000, 2.1e6, 675e3, 0, 0, 0}},
}

// sheetLoads are the loads that data sheets specify: the drive was filled sequentially once and, for random writes,
// overwritten at random until steady state.
var sheetLoads = []struct {
	name, metric string
	factor       float64
	set          []string
}{
	{"reads of 128 KiB in order, MB/s", "read.bandwidth", 1e-6,
		[]string{"workload=[{synthetic: {reads: {size: 128KiB, addresses: {pattern: sequential}}, requests: 40000}, " +
			"closed: 64}]", "ssd.preconditioning.fill=sequential"}},
	{"writes of 128 KiB in order, MB/s", "write.bandwidth", 1e-6,
		[]string{"workload=[{synthetic: {writes: {size: 128KiB, addresses: {pattern: sequential}}, requests: " +
			"100000}, closed: 64}]", "ssd.preconditioning.fill=sequential"}},
	{"random reads of 4 KiB, a second", "read.iops", 1,
		[]string{"workload=[{synthetic: {reads: {size: 4KiB, addresses: {align: 4KiB}}, requests: 400000}, closed: " +
			"256}]", "ssd.preconditioning.fill=sequential"}},
	{"random writes of 4 KiB, a second", "write.iops", 1,
		[]string{"workload=[{synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 12000000}, " +
			"closed: 256}]",
			"ssd.preconditioning={fill: steady, small_writes: true}", "measure.warm_up=60%"}},
	{"a random read of 4 KiB alone, us", "read.latency.mean", 1,
		[]string{"workload=[{synthetic: {reads: {size: 4KiB, addresses: {align: 4KiB}}, requests: 5000}, closed: 1}]",
			"ssd.preconditioning.fill=sequential"}},
	{"a write of 4 KiB alone, us", "write.latency.mean", 1,
		[]string{"workload=[{synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 20000}, closed: 1}]", "ssd.preconditioning.fill=sequential"}},
	{"random reads and writes of 4 KiB, 70 to 30, a second", "all.iops", 1,
		[]string{"workload=[{synthetic: {read_fraction: 70%, reads: {size: 4KiB, addresses: {align: 4KiB}}, " +
			"writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 12000000}, closed: 256}]",
			"ssd.preconditioning={fill: steady, small_writes: true}", "measure.warm_up=60%"}},
}

// drives compares presets with data sheets.
func drives() []table {
	t := table{page: "drives", name: "drives-sheets", made: "seed 1",
		head: []string{"preset", "figure", ">data sheet", ">simulated", ">difference", ""}}
	for _, d := range sheets {
		for i, l := range sheetLoads {
			said := d.figures[i]
			if said == 0 {
				continue
			}
			if i == 0 || i == 4 || i == 5 {
				t.gate = append(t.gate, len(t.rows))
			}
			needs := seeds(1, 1, d.preset, with([]string{"measure.warm_up=20%"}, l.set)...)
			off := func(x []found) float64 { return l.factor*x[0].value(l.metric)/said - 1 }
			t.rows = append(t.rows, []cell{
				words("`" + d.preset + "`"), words(l.name), words(fmt.Sprintf("%.0f", said)),
				mean("%.0f", l.metric, l.factor, needs),
				{needs, func(x []found) string { return fmt.Sprintf("%+.1f %%", 100*off(x)) }},
				{needs, func(x []found) string {
					if math.Abs(off(x)) <= 0.1 {
						return "ok"
					}
					return "not met"
				}},
			})
		}
	}
	return []table{t}
}

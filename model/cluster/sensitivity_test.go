package cluster_test

import (
	"flag"
	"fmt"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

var update = flag.Bool("update", false, "write the tables of docs/validation/data and docs/models/cluster.md anew")

// long enables the full tables, for nightly runs.
var long = patience.LongNamed("TestSensitivity")

// form is a protocol and the number of candidates it asks, or its group size.
type form struct {
	protocol cluster.Scheme
	choices  int
	group    int
}

func (f form) String() string {
	switch {
	case f.group > 0:
		return fmt.Sprintf("%v, groups of %d", f.protocol, f.group)
	case f.choices > 0:
		return fmt.Sprintf("%v, %d", f.protocol, f.choices)
	}
	return f.protocol.String()
}

// sensitivity verifies a table of docs/validation/data: throughput in thousands of chunks per second and mean
// latency in us of protocols under each of several changes, with disks of 1000 MiB/s and four chunks outstanding. With
// FARFLASH_LONG it runs the whole table, otherwise the rows of pull, of its comparison, and of a group's proxy. last
// computes an additional column, if not nil.
func sensitivity(t *testing.T, name string, columns []string, until sim.Time,
	change func(cfg *cluster.Config, column int), head string, last func(c *cluster.Cluster, column int) string) {
	if testing.Short() {
		t.Skip("slow")
	}
	titles := []string{"protocol"}
	for _, x := range columns {
		titles = append(titles, x+" thousand chunks/s", x+" mean us")
	}
	if last != nil {
		titles = append(titles, head)
	}
	lines := []string{golden.Record(titles...)}
	rows := []form{{protocol: cluster.Pull}, {protocol: cluster.Chain, choices: 1},
		{protocol: cluster.Chain, choices: 2}, {protocol: cluster.DCTCP, choices: 2},
		{protocol: cluster.Grants, choices: 2}, {protocol: cluster.ReplicastM},
		{protocol: cluster.ReplicastProxy, group: 9}, {protocol: cluster.ReplicastProxy, group: 45}}
	if !long {
		rows = []form{rows[0], rows[2], rows[6]}
	}
	for _, r := range rows {
		row, more := []string{r.String()}, ""
		for k := range columns {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Choices, cfg.Outstanding, cfg.Disk.Rate = r.protocol, max(r.choices, 1), 4,
				1000*units.ByteRate(units.MiB)
			if r.group > 0 {
				cfg.Group = r.group
			}
			change(&cfg, k)
			c, done := run(t, cfg, 1, until)
			n, sum := 0, 0.0
			for _, d := range done {
				if d.Done > until/2 {
					n++
					sum += (d.Done - d.Begun).Seconds() * 1e6
				}
			}
			row = append(row, fmt.Sprintf("%.0f", float64(n)/(until/2).Seconds()/1000),
				fmt.Sprintf("%.0f", sum/float64(max(n, 1))))
			if last != nil {
				more += last(c, k)
			}
		}
		if last != nil {
			row = append(row, more)
		}
		lines = append(lines, golden.Record(row...))
	}
	file := "../../docs/validation/data/" + name + ".csv"
	if !long {
		golden.Rows(t, file, name, lines)
		return
	}
	golden.Table(t, file, name, "seed 1", lines, *update)
}

// TestProcessorTable verifies the throughput of protocols when messages cost processing time.
func TestProcessorTable(t *testing.T) {
	costs := []units.Duration{0, 200 * units.Nanosecond, 500 * units.Nanosecond, units.Microsecond,
		2 * units.Microsecond, 5 * units.Microsecond}
	var columns []string
	for _, x := range costs {
		columns = append(columns, x.String())
	}
	const until = 4 * units.Millisecond
	sensitivity(t, "pull-processors", columns, until,
		func(cfg *cluster.Config, k int) {
			cfg.Chunk, cfg.Processor.Message = 16*units.KiB,
				costs[k]
		}, "targets' processors busy at 1us %",
		func(c *cluster.Cluster, k int) string {
			if costs[k] != units.Microsecond {
				return ""
			}
			_, targets := c.ProcessorTime(until)
			return fmt.Sprintf("%.0f", 100*targets.Seconds()/until.Seconds()/90)
		})
}

// TestMemoryTable verifies the throughput of protocols when a target's memory is limited.
func TestMemoryTable(t *testing.T) {
	sizes := []units.Bytes{0, 16, 8, 4, 2, 1}
	columns := []string{"no limit"}
	for _, x := range sizes[1:] {
		columns = append(columns, (x * 128 * units.KiB).String())
	}
	sensitivity(t, "pull-memory", columns, 16*units.Millisecond,
		func(cfg *cluster.Config, k int) { cfg.Memory = sizes[k] * cfg.Chunk }, "", nil)
}

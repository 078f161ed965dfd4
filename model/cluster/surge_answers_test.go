package cluster_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// TestSURGEAnswers compares clusters with the results of SURGE's own model code, in testdata/surge.txt.
func TestSURGEAnswers(t *testing.T) {
	f, err := os.Open("testdata/surge.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		rows++
		var protocol cluster.Scheme
		var build cluster.Compat
		var disk units.ByteRate
		var chunk units.Bytes
		var until units.Duration
		for i, x := range []interface{ UnmarshalText([]byte) error }{&protocol, &build, &disk, &chunk, &until} {
			if err := x.UnmarshalText([]byte(fields[i])); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		var gateways, seeds int
		var want, within float64
		if _, err := fmt.Sscan(strings.Join(fields[5:], " "), &gateways, &seeds, &want, &within); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		t.Run(strings.Join(fields[:4], "-")+"-"+fields[5], func(t *testing.T) {
			t.Parallel()
			done := 0
			for seed := range uint64(seeds) {
				cfg := cluster.DefaultConfig()
				cfg.Protocol, cfg.Compat, cfg.Chunk, cfg.Gateways = protocol, build, chunk, gateways
				cfg.Disk.Rate, cfg.Control.Queued = disk, false
				if build == cluster.CompatSURGEHead {
					cfg.Acknowledge = cluster.WriteBack // SURGE's default
					cfg.Choosy = strings.HasPrefix(protocol.String(), "replicast-h")
				}
				_, chunks := run(t, cfg, seed+1, until)
				done += len(chunks)
			}
			got := float64(done) / float64(seeds) / (float64(until) / float64(units.Second))
			if off := 100 * (got/want - 1); math.Abs(off) > within {
				t.Errorf("%.0f chunks a second, SURGE has %.0f: %+.1f %%, and %v %% is allowed", got, want, off, within)
			} else {
				t.Logf("%.0f chunks a second, SURGE has %.0f: %+.1f %%", got, want, off)
			}
		})
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

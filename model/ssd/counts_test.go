package ssd

import (
	"fmt"
	"strings"
	"testing"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/sim"

	"github.com/cockroachdb/datadriven"
)

// TestCounts verifies a drive's counters after a few requests, each computed by hand in testdata/counts.
func TestCounts(t *testing.T) {
	var a *asker
	var q block.QueueID
	datadriven.RunTest(t, "testdata/counts", func(t *testing.T, td *datadriven.TestData) string {
		if td.Cmd == "drive" {
			cfg := round()
			cfg.Geometry.DiesPerChip, cfg.Geometry.PlanesPerDie = count(t, td, "dies", 1), count(t, td, "planes", 1)
			for _, arg := range td.CmdArgs {
				switch arg.Key {
				case "cache":
					cfg.Cache.Capacity = 8 * 8192
					if err := cfg.Cache.Mode.UnmarshalText([]byte(arg.Vals[0])); err != nil {
						t.Fatal(err)
					}
				case "first-touch":
					cfg.Cache.Destage = DestageFirstTouch
				case "formula":
					cfg.Initial = InitialFormula
				case "grain":
					cfg.Mapping.Grain = Grain(count(t, td, "grain", 0))
				}
			}
			a = newAsker(t, cfg)
			q = a.open(t, block.QueueConfig{Depth: 64, Weight: 1, Class: block.High})
			return ""
		}
		was := a.d.Stats()
		var ends []string
		for _, line := range strings.Split(strings.TrimSpace(td.Input), "\n") {
			var op string
			r := block.Request{}
			if n, err := fmt.Sscan(line, &op, &r.Offset, &r.Length); err != nil && n != 1 {
				t.Fatalf("%q: %v", line, err)
			}
			r.Offset, r.Length = r.Offset*nand.SectorSize, r.Length*nand.SectorSize
			r.Op = map[string]block.Op{"read": block.Read, "write": block.Write, "trim": block.Trim,
				"flush": block.Flush}[op]
			a.d.Submit(q, r)
			if td.Cmd == "one-by-one" {
				a.eng.Run(sim.Forever)
			}
		}
		a.eng.Run(sim.Forever)
		if err := a.d.Books(); err != nil {
			t.Error(err)
		}
		return strings.Join(append(ends, counted(a.d.Stats(), &was)...), "")
	})
}

// counted describes the counters that increased, one line a subject.
func counted(now Stats, was *Stats) (out []string) {
	s := now.Since(was)
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format+"\n", args...)) }
	if s.CacheHits+s.CacheMisses+s.ZeroReads > 0 {
		line("cache: %d hits, %d misses; %d reads of nothing", s.CacheHits, s.CacheMisses, s.ZeroReads)
	}
	if now.Cached > 0 || was.Cached > 0 {
		line("cached: %d of %d", now.Cached, now.CacheRoom)
	}
	if s.Reads+s.Programs+s.Erases > 0 {
		line("flash: %d reads, %d programs, %d erases; %d bytes", s.Reads, s.Programs, s.Erases, s.Programmed)
	}
	for dir, name := range []string{"reads", "programs"} {
		if n := s.Transactions[dir]; n > 0 {
			line("host's %s: %d, array %v, transfer %v, wait %v", name, n, s.Array[dir], s.Transfer[dir], s.Wait[dir])
		}
	}
	for _, x := range now.Queues {
		for _, y := range was.Queues {
			if y.Name == x.Name {
				x.Entered, x.Left, x.Wait = x.Entered-y.Entered, x.Left-y.Left, x.Wait.Minus(y.Wait)
			}
		}
		if x.Entered > 0 {
			line("%s: %d, wait %v, at most %v and %d", x.Name, x.Entered, x.Wait, x.MaxWait, x.MaxLength)
		}
	}
	for _, op := range []string{"read", "program"} {
		if c := s.Commands[op]; c != [nand.MaxPlanesPerDie]uint64{} {
			line("%s commands by planes: %v", op, c)
		}
	}
	if now.ValidPages != was.ValidPages {
		line("pages with data: %d", now.ValidPages)
	}
	return out
}

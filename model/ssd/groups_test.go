package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// grouped returns placedDrive with the given number of channels of 120 blocks, each a reclaim group, and no data before
// time 0.
func grouped(channels int) ssd.Config {
	cfg := placedDrive(ssd.InitiallyIsolated)
	cfg.Geometry.Channels, cfg.Geometry.BlocksPerPlane = channels, 120
	cfg.OverProvisioning = .2
	cfg.Preconditioning.Fill = ssd.FillNone
	cfg.FDP.Groups = channels
	return cfg
}

// runGroups runs a drive under flows until their requests have completed.
func runGroups(t *testing.T, cfg ssd.Config, watch func(*ssd.Drive), flows ...cosim.Flow) *ssd.Drive {
	t.Helper()
	for i := range flows {
		flows[i].Name = "load"
	}
	var all []func(*ssd.Drive)
	if watch != nil {
		all = append(all, watch)
	}
	d, _, _ := runFlows(t, cfg, flows, all...)
	return d
}

// pagesFrom returns n writes of a page each, from the first page on.
func pagesFrom(first, pages, n int64) *placedWrites {
	return &placedWrites{placed: placed{first: first, pages: pages, inOrder: true}, left: n}
}

// TestWritesGoToTheirGroup verifies that a page is stored in the group it was last written through, that each group has
// its own handles, and that writes that name no group go to the first, past the cache and out of it, and also if the
// address chooses among the planes of a group.
func TestWritesGoToTheirGroup(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ssd.Config){
		"through": func(*ssd.Config) {},
		"cached":  func(c *ssd.Config) { c.Cache.Mode, c.Cache.Capacity = ssd.CacheWrite, 16*8192 },
		"static":  func(c *ssd.Config) { c.Mapping.Allocation, c.Geometry.PlanesPerDie = ssd.AllocateStatic, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := grouped(4)
			cfg.Namespaces = []ssd.Namespace{{Handles: []int{1, 0}}}
			change(&cfg)
			if got := cfg.ReclaimUnit(); got != 64*8192 {
				t.Errorf("a reclaim unit holds %v", got)
			}
			write := func(first, pages int64, placement uint8, start units.Duration) cosim.Flow {
				return cosim.Flow{Placement: placement, Outstanding: 1, Start: start,
					Source: pagesFrom(first, pages, pages)}
			}
			d := runGroups(t, cfg, nil, write(0, 100, 0, 0), write(100, 100, 3, 0), write(200, 100, 6, 0),
				write(300, 100, 99, 0), write(50, 100, 5, 2*units.Second))
			for page := range int64(450) {
				want := -1
				switch {
				case page < 50, page >= 300 && page < 400:
					want = 0
				case page < 150:
					want = 2
				case page < 200:
					want = 1
				case page < 300:
					want = 3
				}
				if got := d.GroupOf(page); got != want {
					t.Fatalf("page %d lies in group %d, not %d", page, got, want)
				}
			}
			// Placements 0, 6 and 99 are the first of the namespace's list, handle 1.
			if p := d.Stats().FTL.Programs; p[1] != 300 || p[0] != 200 {
				t.Errorf("%v pages went through the handles", p[:2])
			}
			if g := d.Stats().Groups; g[0].Written != 200 || g[1].Written != 100 || g[2].Written != 100 ||
				g[3].Written != 100 || g[2].Strayed != 0 {
				t.Errorf("%+v", g)
			}
		})
	}
}

// TestFullGroup verifies that a group holds its share of all addresses and one superblock more. Further writes to it go
// to the group with the most space, and none fails. A page in the full group can be rewritten there.
func TestFullGroup(t *testing.T) {
	t.Parallel()
	cfg := grouped(3)
	const each = 120 * 64 * 8 / 10 // pages, of a group
	all := int64(3 * each)
	d := runGroups(t, cfg, nil, cosim.Flow{Placement: 2, Outstanding: 8, Source: pagesFrom(0, all, all)})
	if got := d.Capacity(0) / 8192; got != all {
		t.Fatalf("the drive has %d pages", got)
	}
	held := [3]int64{}
	for page := range all {
		held[d.GroupOf(page)]++
	}
	const most = each + 64
	rest := all - most
	if held[1] != most || held[0] != (rest+1)/2 || held[2] != rest/2 {
		t.Errorf("the groups hold %v, the second may hold %d", held, most)
	}
	g := d.Stats().Groups
	if strayed := g[0].Strayed + g[2].Strayed; int64(strayed) != rest || g[1].Strayed != 0 ||
		int64(g[0].Written+g[1].Written+g[2].Written) != all {
		t.Errorf("%+v", g)
	}
	// A page of the full group that is rewritten stays in it, although no other page is admitted.
	d = runGroups(t, cfg, nil,
		cosim.Flow{Placement: 2, Outstanding: 8, Source: pagesFrom(0, most, 3*most)},
		cosim.Flow{Placement: 2, Outstanding: 8, Start: 20 * units.Second, Source: pagesFrom(most, 10, 10)})
	for page := range int64(most + 10) {
		if got := d.GroupOf(page); (got == 1) != (page < most) {
			t.Fatalf("page %d lies in group %d", page, got)
		}
	}
}

// TestGroupIsADriveOfItsOwn verifies that writes through a reclaim group have the write amplification of a drive that
// consists of that group alone, to the page, whatever is written through the other.
func TestGroupIsADriveOfItsOwn(t *testing.T) {
	t.Parallel()
	const pages = 120 * 64 * 8 / 10
	load := func(first int64, seed uint64, gap units.Duration, placement uint8, n int64) []cosim.Flow {
		return []cosim.Flow{
			{Placement: placement,
				Source: &placedWrites{placed: placed{first: first, pages: pages, inOrder: true}, left: pages,
					gap: gap, now: gap / 2}},
			{Placement: placement, Start: pages * gap,
				Source: &placedWrites{placed: placed{first: first, pages: pages}, left: n, gap: gap,
					random: rng.NewStream(seed, "writes")}},
		}
	}
	// Requests of the two never meet on the link.
	const fast, slow = 200 * units.Microsecond, 800 * units.Microsecond
	one, other := load(0, 1, fast, 0, 12*pages), load(pages, 2, slow, 2, 3*pages)
	other[0].Start, other[1].Start = 37*units.Microsecond, other[1].Start+37*units.Microsecond
	both := runGroups(t, grouped(2), nil, append(one, other...)...).Stats().Groups
	a := runGroups(t, grouped(1), nil, load(0, 1, fast, 0, 12*pages)...).Stats().FTL
	alone := load(0, 2, slow, 0, 3*pages)
	alone[0].Start, alone[1].Start = other[0].Start, other[1].Start
	b := runGroups(t, grouped(1), nil, alone...).Stats().FTL
	for i, s := range []struct{ written, moved int64 }{{a.HostPrograms, a.GCPrograms}, {b.HostPrograms, b.GCPrograms}} {
		if g := both[i]; int64(g.Written) != s.written || int64(g.Moved) != s.moved || g.Moved == 0 {
			t.Errorf("group %d: %d pages were written and %d moved, in a drive of its own %d and %d", i, g.Written,
				g.Moved, s.written, s.moved)
		}
	}
}

// reading turns writes into reads.
type reading struct{ placedWrites }

func (r *reading) Next(x *workload.Record) error {
	err := r.placedWrites.Next(x)
	x.Op = block.Read
	return err
}

// TestReadsOfAGroup verifies that reads of a group find its dies and channel idle while another group is written, and
// collected, at full speed. Within one group they wait for programs.
func TestReadsOfAGroup(t *testing.T) {
	t.Parallel()
	const table, pages = 1000, 5000
	waits := func(placement uint8, writes int64) (longest sim.Time, programs uint64) {
		var reads int
		d := runGroups(t, grouped(2), func(d *ssd.Drive) {
			d.OnAccount = func(a *ssd.Account) {
				if a.Op != block.Read {
					return
				}
				reads++
				longest = max(longest, a.Mapping+a.Backlog+a.Wait+a.Array+a.Transfer)
			}
		},
			cosim.Flow{Outstanding: 1, Source: pagesFrom(0, table, table)},
			cosim.Flow{Placement: placement, Outstanding: 16, Start: units.Second / 2,
				Source: &placedWrites{placed: placed{first: table, pages: pages}, left: writes,
					random: rng.NewStream(1, "writes")}},
			cosim.Flow{Outstanding: 1, Start: units.Second,
				Source: &reading{placedWrites{placed: placed{pages: table}, left: 3000,
					random: rng.NewStream(1, "reads")}}})
		if reads != 3000 {
			t.Fatalf("%d reads", reads)
		}
		return longest, d.Stats().HostPrograms + d.Stats().MovePrograms
	}
	idle, _ := waits(2, 1)
	apart, programs := waits(2, 30*pages)
	if apart != idle || programs < 35*pages {
		t.Errorf("reads take %v at most while another group is written, %v in an idle drive; %d programs", apart,
			idle, programs)
	}
	if together, _ := waits(0, 30*pages); together < 2*idle {
		t.Errorf("reads take %v at most while their own group is written, %v in an idle drive", together, idle)
	}
}

// TestGroupsOfAFullDrive verifies that data spread evenly over all groups, as a filling leaves them, move between
// groups as they are rewritten, although the drive is full.
func TestGroupsOfAFullDrive(t *testing.T) {
	t.Parallel()
	for _, fill := range []ssd.Fill{ssd.FillSequential, ssd.FillSteady, ssd.FillReplay} {
		cfg := grouped(2)
		cfg.Preconditioning.Fill, cfg.Preconditioning.Passes = fill, 1
		const half = 120 * 64 * 8 / 10
		at := func(page int64) int64 { // which half of the addresses
			return page / half
		}
		moved := func(d *ssd.Drive) (n [2][2]int) {
			for page := range int64(2 * half) {
				n[at(page)][d.GroupOf(page)]++
			}
			return n
		}
		d := runGroups(t, cfg, nil, cosim.Flow{Outstanding: 1, Source: pagesFrom(0, 1, 1)})
		if n := moved(d); n != [2][2]int{{half / 2, half / 2}, {half / 2, half / 2}} {
			t.Errorf("%v: the halves lie in the groups as %v", fill, n)
		}
		write := func(k uint8) cosim.Flow {
			return cosim.Flow{Placement: 2 * k, Outstanding: 4,
				Source: &placedWrites{placed: placed{first: int64(k) * half, pages: half}, left: 8 * half,
					random: rng.NewStream(uint64(k), "writes")}}
		}
		if n := moved(runGroups(t, cfg, nil, write(0), write(1))); n[0][1] > half/50 || n[1][0] > half/50 {
			t.Errorf("%v: once all was written again they lie as %v", fill, n)
		}
	}
}

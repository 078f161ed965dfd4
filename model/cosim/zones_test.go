package cosim_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"

	"pgregory.net/rapid"
)

// zonedConfig is a drive of 24 zones of 128 blocks of 4 KiB, whose starts are further apart than their capacity.
func zonedConfig() ssd.Config {
	c := ssd.DefaultConfig()
	c.Geometry.Channels, c.Geometry.ChipsPerChannel, c.Geometry.DiesPerChip, c.Geometry.PlanesPerDie = 2, 1, 1, 2
	c.Geometry.BlocksPerPlane, c.Geometry.PagesPerBlock = 32, 16
	c.OverProvisioning = .25
	c.Mapping.Ideal, c.Mapping.Grain = true, ssd.Grain(4*units.KiB)
	c.Cache.Mode, c.Cache.Capacity = ssd.CacheWrite, 4*units.MiB
	c.Preconditioning.Fill = ssd.FillNone
	c.Zones = &ssd.Zones{Size: units.Bytes(c.Geometry.PagesPerBlock)*4*c.Geometry.PageSize + 64*units.KiB}
	return c
}

// zonedDoor is a zoned drive that records the commands it receives.
type zonedDoor struct {
	*ssd.Drive
	came func(block.Request)
}

func (w zonedDoor) Submit(q block.QueueID, r block.Request) bool {
	if !w.Drive.Submit(q, r) {
		return false
	}
	w.came(r)
	return true
}

// zonesRig is hosts and zoned drives over a network in memory.
type zonesRig struct {
	eng   *sim.Engine
	host  *cosim.Host
	array *cosim.Array
	last  block.Completion
	alone bool // completions do not go to the host
}

// newZonesRig returns a rig with a number of initiators and drives; change may make drives differ, and came is called
// for each command that they receive.
func newZonesRig(initiators, drives int, route cosim.Route, change func(drive int, c *ssd.Config),
	came func(drive int, r block.Request)) (*zonesRig, error) {
	x := &zonesRig{eng: sim.New()}
	x.host = cosim.NewHost(x.eng)
	sys, err := nvmf.New(nvmf.DefaultConfig(), nvmf.NVMeoF, true, x.eng)
	if err != nil {
		return nil, err
	}
	for i := range initiators {
		sys.AddInitiator(int32(i))
	}
	target := sys.AddTarget(int32(initiators))
	for i := range drives {
		c := zonedConfig()
		change(i, &c)
		d, err := ssd.New(c, x.eng, sys, 1, fmt.Sprintf("ssd[%d]", i))
		if err != nil {
			return nil, err
		}
		if _, err := sys.AddDrive(target, zonedDoor{d, func(r block.Request) { came(i, r) }}); err != nil {
			return nil, err
		}
	}
	x.array, err = cosim.NewArray(x.eng, sys, route, func(c block.Completion) {
		if x.last = c; !x.alone {
			x.host.Complete(c)
		}
	})
	if err != nil {
		return nil, err
	}
	sys.Connect(nvmftest.New(nvmftest.DefaultConfig(), x.eng, sys), x.array)
	return x, nil
}

// TestZonesOfArray verifies, for every route, that each zone is written in order in one drive, and by one initiator
// unless its writes are appends; that an append's completion reports where its data is; and that the zones' contents
// match the completed writes.
func TestZonesOfArray(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const grain = 4096
		spread := func(label string,
			list ...cosim.Spread) cosim.Spread {
			return rapid.SampledFrom(list).Draw(rt, label)
		}
		number := func(label string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, label) }
		appends, initiators, drives := rapid.Bool().Draw(rt, "appends"), number("initiators", 1, 4),
			number("drives", 1, 3)
		size := int64(zonedConfig().Zones.Size)
		route := cosim.Route{Initiator: spread("initiator", cosim.ByTurn, cosim.ByHash, cosim.ByVolume),
			Drive: spread("drive", cosim.ByStripe, cosim.ByHash, cosim.ByVolume),
			Unit:  units.Bytes(size) * units.Bytes(number("unit", 1, 2)), MaxTransfer: units.MiB}
		type place struct {
			drive int
			zone  int64
		}
		came := map[place]int64{} // end of the data of a drive's zone, from the commands that it received
		x, err := newZonesRig(initiators, drives, route, func(int, *ssd.Config) {}, func(drive int, r block.Request) {
			k := place{drive, r.Offset / size}
			switch {
			case r.Op == block.Reset:
				came[k] = 0
			case r.Op == block.Write && !r.Append && r.Offset%size != came[k]:
				rt.Fatalf("a write to byte %d of zone %d of drive %d, whose data end at %d", r.Offset%size, k.zone,
					drive, came[k])
			case r.Op == block.Write:
				came[k] += r.Length
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
		z := x.array.Zones(0)
		if want := map[bool]int{false: 24, true: 24 * drives}[route.Drive == cosim.ByStripe]; z.Size != size ||
			z.Count != want {
			rt.Fatalf("zones are %+v, and should be %d of %d", z, want, size)
		}
		// extents written in each zone of the array since its last reset
		ended := map[int64][][2]int64{}
		owner := map[int64]int32{}
		x.host.OnSample = func(s *cosim.Sample) {
			k, by := s.Offset/size, x.array.Trip().Initiator
			switch at := s.Offset; s.Op {
			case block.Reset:
				ended[k] = nil
			case block.Write:
				if appends {
					at = x.last.Offset
				}
				ended[k] = append(ended[k], [2]int64{at - k*size, at - k*size + s.Size})
			}
			if was, known := owner[k]; !appends && known && was != by {
				rt.Fatalf("zone %d is written by initiators %d and %d", k, was, by)
			}
			owner[k] = by
		}
		var list []workload.Record
		for range number("writes", 1, 200) {
			list = append(list, workload.Record{Op: block.Write,
				Size: grain * rapid.Int64Range(1, 60).Draw(rt, "blocks")})
		}
		atOnce := number("at once", 1, 3)
		src := workload.Zoned(workload.Slice(list), z, number("first", 0, 5), number("count", atOnce, 15), atOnce,
			appends)
		if err := x.host.Attach(x.array,
			[]cosim.Flow{{Name: "log", Source: src, Outstanding: number("outstanding", 1, 12)}}); err != nil {
			rt.Fatal(err)
		}
		if err := x.host.Start(); err != nil {
			rt.Fatal(err)
		}
		x.eng.Run(sim.Forever)
		if n := x.host.Measured(block.Write).Latency.Count(); x.host.Err() != nil || n != int64(len(list)) {
			rt.Fatalf("%d of %d writes, %v", n, len(list), x.host.Err())
		}
		// A further append reports where a zone's data ends, unless the zone is full or finished.
		left := int64(0)
		for _, n := range came {
			left += n
		}
		x.alone = true
		for k := range int64(z.Count) {
			end := int64(0)
			slices.SortFunc(ended[k], func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
			for _, w := range ended[k] {
				if w[0] != end {
					rt.Fatalf("zone %d has a write from %d on, and one before it to %d", k, w[0], end)
				}
				end = w[1]
			}
			left -= end
			x.array.Submit(0, block.Request{Op: block.Write, Append: true, Offset: k * size, Length: grain})
			x.eng.Run(sim.Forever)
			if x.last.Status != block.ZoneFull && (x.last.Status != block.OK || x.last.Offset != k*size+end) {
				rt.Fatalf("zone %d has %d bytes; one more goes to %d: %v", k, end, x.last.Offset-k*size, x.last.Status)
			}
		}
		if left != 0 {
			rt.Fatalf("zones have %d bytes more than what has ended", left)
		}
	})
}

// TestZonesRefused verifies the reasons for which an array cannot be created.
func TestZonesRefused(t *testing.T) {
	size := zonedConfig().Zones.Size
	for _, c := range []struct {
		unit   units.Bytes
		change func(drive int, c *ssd.Config)
		want   string
	}{
		{size / 2, func(int, *ssd.Config) {},
			"units of 288KiB are not whole zones of 576KiB, each stored on one drive"},
		{size, func(drive int, c *ssd.Config) {
			if drive == 1 {
				c.Zones = nil
			}
		}, "drives 0 and 1 are not divided into the same zones"},
		{size, func(drive int, c *ssd.Config) { c.Zones.MaxOpen = drive },
			"drives 0 and 1 are not divided into the same zones"},
	} {
		_, err := newZonesRig(2, 2, cosim.Route{Drive: cosim.ByStripe, Unit: c.unit, MaxTransfer: units.MiB},
			c.change, func(int, block.Request) {})
		if err == nil || err.Error() != c.want {
			t.Errorf("%v\nnot\n%s", err, c.want)
		}
	}
}

package system

import (
	"testing"

	"farflash/experiment"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/result"
	"farflash/sim"
)

// TestTapNotices verifies that each time recorded by targets, and each recorded by network and drives, fails its own
// check when it is off by a picosecond.
func TestTapNotices(t *testing.T) {
	s, err := parsed(`
targets: [{count: 2, ssds: 1, ssd: {geometry: {channels: 2, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 64, pages_per_block: 64}, over_provisioning: 30%}}]
nvmf: {drive_depth: 2, txq: 64KiB}
workload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, writes: {size: 16KiB, interarrival: 40us}, requests: 60}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	images, err := prepareDrives(s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := build(s, &experiment.Options{Seed: 1}, s.Protocol, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	y.host.OnSample = func(*cosim.Sample) {}
	if err := y.host.Attach(y.array, y.flows.List); err != nil {
		t.Fatal(err)
	}
	if err := y.host.Start(); err != nil {
		t.Fatal(err)
	}
	y.eng.Run(sim.Forever)
	failed := func() (names []string) {
		r := &result.Result{}
		y.tap.check(r, y.drives)
		for _, c := range r.Checks {
			if !c.OK {
				names = append(names, c.Name)
			}
		}
		return names
	}
	if names := failed(); len(names) > 0 || y.tap.target == 0 || y.tap.txq == 0 {
		t.Fatalf("%q fail; %v at targets, %v before answers", names, y.tap.target, y.tap.txq)
	}
	const network, target, txq, sums = "time in the network is its messages'",
		"time at targets is between network and drives", "time before answers is between drives and network",
		"commands conserved, their stages add up"
	k := &y.sys.Counters
	for _, c := range []struct {
		figure *sim.Time
		want   []string
	}{
		{&y.tap.out, []string{network}},
		{&y.tap.back, []string{network}},
		{&y.tap.target, []string{target}},
		{&y.tap.txq, []string{txq}},
		{&k.Time[nvmf.NetworkOut], []string{sums, network}},
		{&k.Time[nvmf.AtTarget], []string{sums, target}},
		{&k.Time[nvmf.TXQ], []string{sums, txq}},
		{&k.Time[nvmf.AtInitiator], []string{sums}},
	} {
		*c.figure++
		names := failed()
		*c.figure--
		if len(names) != len(c.want) || names[0] != c.want[0] || names[len(names)-1] != c.want[len(c.want)-1] {
			t.Errorf("%q fail; it is to be %q", names, c.want)
		}
	}
}

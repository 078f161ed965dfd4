package scenario

import (
	"testing"

	"farflash/model/cluster/durability"
	"farflash/model/cluster/tier"
	"farflash/model/cluster/traffic"
	"farflash/numeric/units"
)

// TestObjectSettings verifies that a scenario's cluster settings reach the models without puts, each value in its
// field.
func TestObjectSettings(t *testing.T) {
	load := func(keys string) *ObjectCluster {
		t.Helper()
		s, err := parse("object_cluster: {" + keys + "}\nmeasure: {until: 1ms}\n")
		if err != nil {
			t.Fatal(err)
		}
		return s.ObjectCluster
	}
	events := load("protocol: ping-pong, gateways: 3, targets: 7, link: {trip: 5us}, control: {unicast: 77B}, " +
		"traffic: {service: 2us}").TrafficConfig()
	want := traffic.Config{Gateways: 3, Targets: 7, Trip: 5 * units.Microsecond, Size: 77}
	// one ping-pong event with each target, which takes up to twice the trip
	want.Pattern = traffic.Pattern{Choices: 1, Hops: 2, Outstanding: 7, Apart: true, Jitter: 5 * units.Microsecond,
		Service: 2 * units.Microsecond}
	if events != want {
		t.Errorf("%+v, not %+v", events, want)
	}
	tiers := load("protocol: tiering, targets: 4, chunk: 64KiB, link: {rate: 40Gbps, overhead: 10%, trip: 3us}, " +
		"control: {unicast: 55B}, tier: {cycle: 6}").TierConfig()
	x := tier.DefaultConfig()
	x.HDDs, x.Chunk, x.Link, x.Trip, x.Control, x.Cycle = 3, 64*units.KiB, 36*units.Gbps, 3*units.Microsecond, 55, 6
	if tiers != x {
		t.Errorf("%+v, not %+v", tiers, x)
	}
}

// TestFleet verifies the drives among which a chunk's pieces are placed, and the number of chunks that fit.
func TestFleet(t *testing.T) {
	for _, x := range []struct {
		keys   string
		want   durability.Fleet
		fleets int
	}{
		// Nine targets of 1 GiB keep three copies of 128 KiB of each chunk: 8192 x 9 / 3.
		{"targets: 36", durability.Fleet{Scheme: durability.Replicas(3), Nodes: 9, Chunks: 24576}, 4},
		// Forty keep pieces of 32 KiB, six of a chunk: 32768 x 40 / 6, spread over 4 x 5 others.
		{"targets: 40, protocol: chain, placement: copysets, code: {data: 4, parity: 2}",
			durability.Fleet{Scheme: durability.Scheme{Data: 4, Parity: 2}, Nodes: 40, Chunks: 32768 * 40 / 6.0,
				Spread: durability.Copysets, Scatter: 20}, 1},
	} {
		s, err := parse("object_cluster: {" + x.keys +
			", durability: {afr: 2%, capacity: 1GiB, bandwidth: 10MB/s, detect: 3s}}\nmeasure: {until: 1ms}\n")
		if err != nil {
			t.Fatal(err)
		}
		x.want.AFR = 0.02
		x.want.Rebuild = durability.Rebuild{Capacity: units.GiB, Bandwidth: 10 * units.ByteRate(units.MB),
			Detection: 3 * units.Second}
		if got, n := s.ObjectCluster.Fleet(); got != x.want || n != x.fleets {
			t.Errorf("%s: %d of %+v, not %d of %+v", x.keys, n, got, x.fleets, x.want)
		}
	}
}

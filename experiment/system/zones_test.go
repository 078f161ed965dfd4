package system_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/draws"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/sim"

	"pgregory.net/rapid"
)

// zonedDrive is a drive of 26 zones of 1 MiB, as the value of a key, with settings of its zones.
func zonedDrive(zones, more string) string {
	return "{preset: tlc-enterprise, geometry: {channels: 2, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 2, " +
		"blocks_per_plane: 40, pages_per_block: 16}, over_provisioning: 35%, cache: {capacity: 2MiB}, zones: " +
		zones + more + "}"
}

// TestZonesUnloaded verifies that a single access to a zone takes the time of a local drive plus that of its path.
func TestZonesUnloaded(t *testing.T) {
	drive := zonedDrive("{}", "")
	// Packets of at most 1024 B and 82 B of headers at 40 Gbps, over two links of 1 us each: the last full one takes
	// the second link after all have passed the first, and a shorter one follows.
	way := func(bytes int) sim.Time {
		full, rest := bytes/1024, bytes%1024
		wire := (full + 1) * (1024 + 82)
		switch {
		case full == 0:
			wire = 2 * (rest + 82)
		case rest > 0:
			wire += rest + 82
		}
		return sim.Time(wire)*200 + 2*units.Microsecond
	}
	const capsule, response, pull, software = 64, 16, 16, 2 * 730_000
	for _, c := range []struct {
		name, zones string
		size        int
		want        sim.Time
	}{
		{"append in its capsule", "{append: true}", 4096, way(capsule+4096) + way(response) + software},
		{"write in its capsule", "{append: false}", 4096, way(capsule+4096) + way(response) + software},
		{"append that is fetched", "{append: true}", 16384,
			way(capsule) + way(pull) + way(16384) + way(response) + software},
	} {
		load := fmt.Sprintf(
			"\nworkload: [{synthetic: {writes: {size: %dB, interarrival: 20ms, addresses: {space: 1MiB}}, requests: "+
				"40}, zones: %s}]\n", c.size, c.zones)
		local := delaysOf(t, "ssd: "+drive+load, "workload[0].queue.class=medium")
		remote := delaysOf(t, "targets: [{count: 1, ssds: 1, ssd: "+drive+"}]\nroute: {target: volume}\n"+load)
		if len(local) != 41 || len(remote) != 41 {
			t.Fatalf("%d and %d requests, not 40 and the reset of a zone", len(local), len(remote))
		}
		if got, want := remote[0]-local[0], way(capsule)+way(response)+software; got != want {
			t.Errorf("a reset is %v on its way, and should be %v", got, want)
		}
		for i := 2; i < len(local); i++ { // the first write waits for the reset
			if got := remote[i] - local[i]; got != c.want {
				t.Fatalf("%s %d is %v on its way, and should be %v", c.name, i, got, c.want)
			}
		}
	}
}

// TestZonesBehind verifies for any route, drives and load that a scenario accepted by check runs without a zone error,
// such as for a write out of order, that every law holds, and that all writes arrive.
func TestZonesBehind(t *testing.T) {
	ran := 0
	draws.Until(t, func() bool { return ran > 0 }, func(rt *rapid.T) {
		one := func(label string, list ...string) string { return rapid.SampledFrom(list).Draw(rt, label) }
		appends := rapid.Bool().Draw(rt, "append")
		initiators := rapid.IntRange(1, 4).Draw(rt, "initiators")
		requests := rapid.IntRange(1, 300).Draw(rt, "requests")
		arrivals := one("arrivals", "closed: 1", "closed: 3", "closed: 8", "closed: 0")
		route := one("initiator", "round-robin", "hash", "trace", "each")
		zone := rapid.SampledFrom([]struct {
			kib   int
			zones string
		}{{1024, "{}"}, {1024, "{max_append: 32KiB, max_active: 0}"}, {1028, "{size: 1028KiB, max_open: 3}"},
			{2048, "{capacity: 2MiB}"}}).Draw(rt, "zone")
		synthetic := fmt.Sprintf("writes: {size: %s, addresses: {space: %dKiB}}",
			one("size", "4KiB", "16KiB", "32KiB", "{mean: 12KiB, scv: 0.5, granule: 4KiB, max: 32KiB}"),
			rapid.IntRange(1, 12).Draw(rt, "zones")*zone.kib)
		if rapid.Bool().Draw(rt, "reads") {
			synthetic += ", reads: {size: 24KiB}, read_fraction: 30%"
		}
		if arrivals == "closed: 0" {
			synthetic += ", interarrival: {mean: 150us, scv: 3}"
		}
		text := fmt.Sprintf(
			"initiators: %d\ntargets: [{count: %s, ssds: %s, ssd: %s}]\nroute: {initiator: %s, target: %s}\n%s%s",
			initiators, one("targets", "1", "2"), one("ssds", "1", "2"),
			zonedDrive(zone.zones, one("fill", "", ", preconditioning: {fill: sequential}")),
			route, one("target", "hash", "volume", "trace",
				fmt.Sprintf("{stripe: %dKiB}", zone.kib*rapid.IntRange(1, 3).Draw(rt, "stripe"))),
			one("protocol", "", "protocol: nvme-tcp\nfabric: {transport: tcp}\n",
				"rate_control: {kind: static, weight_ratio: 2}\n",
				"nvmf: {queue_depth: 2, queue_pairs: 2, txq: 4KiB, write_buffers: 16KiB}\n"),
			one("network", "", "fabric: {host_link: 10Gbps, congestion_control: none, pfc: {threshold: 20KB}}\n"))
		if strings.Count(text, "fabric:") > 1 {
			rt.Skip("two networks")
		}
		text += fmt.Sprintf(
			"workload: [{synthetic: {%s, requests: %d}, %s, zones: {append: %v, at_once: %s}}]\nmeasure: {warm_up: "+
				"0%%}\n", synthetic, requests, arrivals, appends, one("at once", "1", "2", "3"))
		s, err := trialtest.Parse(text)
		if err != nil {
			var wrong shape.Errors
			if !errors.As(err, &wrong) || wrong[0].At.Line == 0 {
				rt.Fatalf("%v\n%s", err, text)
			}
			return
		}
		o, err := trial.Run(context.Background(), s,
			experiment.Options{Seed: rapid.Uint64().Draw(rt, "seed"), Version: "test"})
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		ran++
		for _, c := range o.Result.Checks {
			if !c.OK {
				rt.Errorf("%s: %s\n%s", c.Name, c.Detail, text)
			}
		}
		count := func(name string) float64 {
			m, _ := o.Result.Metric(name)
			return m.Value
		}
		if route == "each" {
			requests *= initiators
		}
		writes := count("write.count")
		if writes+count("read.count") != float64(requests) {
			rt.Errorf("%v writes and %v reads of %d requests\n%s", writes, count("read.count"), requests, text)
		}
		if n := count("ssd.zones.appends"); appends && n != writes || !appends && n != 0 {
			rt.Errorf("%v appends of %v writes\n%s", n, writes, text)
		}
		stages := 0.0
		for k := range nvmf.Stages {
			stages += count(fmt.Sprintf("write.stage.%v.mean", k))
		}
		if mean := count("write.latency.mean"); math.Abs(stages-mean) > 1e-9*mean {
			rt.Errorf("writes take %v us, and their stages %v\n%s", mean, stages, text)
		}
		if n := count("ssd.zones.resets"); n != count("reset.count") ||
			writes > 0 && (n == 0 || count("reset.latency.min") < 5) {
			rt.Errorf("%v resets in drives, %v at hosts, of at least %v us\n%s", n, count("reset.count"),
				count("reset.latency.min"), text)
		}
	})
}

package scenario

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const smallCluster = `object_cluster: {gateways: 18, targets: 18}
measure: {until: 5ms}
`

func TestClusterMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"misspelt section", "object_cluster", "object_clusters", `a.yaml:1:1: unknown key "object_clusters" in the scenario; did you mean "object_cluster"?`},
		{"misspelt key", "gateways", "gateway", `a.yaml:1:18: unknown key "gateway" in object_cluster; did you mean "gateways"?`},
		{"misspelt protocol", "gateways: 18", "protocol: replicast", `a.yaml:1:28: object_cluster.protocol: "replicast" is not possible; use uch-ccp, uch-ccp-inverse, replicast-m, replicast-h, pull, chain, grants or dctcp (did you mean replicast-m?)`},
		{"few targets", "targets: 18", "targets: 2", "a.yaml:1:41: object_cluster.targets: 2 are one group; Replicast needs at least two, 18 targets"},
		{"odd groups", "targets: 18", "targets: 20", "a.yaml:1:17: object_cluster.group: 9 does not divide the 20 targets; the nearest number of targets that it divides is 18"},
		{"no chunk", "gateways: 18", "chunk: 0B", "a.yaml:1:25: object_cluster.chunk: 0B is not possible; use 1B to 1GiB"},
		{"without an end", "until: 5ms", "warm_up: auto", "a.yaml:2:10: measure.until: gateways put chunks for ever; give a time such as 10ms"},
		{"with a drive", "measure", "ssd: tlc-enterprise\nmeasure", "a.yaml:2:6: ssd: an object cluster has none; leave it out, or leave out object_cluster"},
		{"requests", "until: 5ms", "until: 5ms, requests: true", "a.yaml:2:33: measure.requests: an object cluster has none"},
		{"a code for multicast", "gateways: 18", "code: {data: 4, parity: 2}", "a.yaml:1:24: object_cluster.code: replicast-m sends the same to all targets, and the pieces of a code differ; use replicast-h or pull"},
		{"two loads", "gateways: 18", "load: {rate: 100, share: 50%}", "a.yaml:1:43: object_cluster.load.share: the load is given twice; leave rate or share out"},
		{"placement of groups", "gateways: 18", "placement: hrw", "a.yaml:1:29: object_cluster.placement: hrw decides nothing: the group of a chunk bids for it; leave it out, or use another protocol"},
		{"shares of disks", "gateways: 18", "disk: {kinds: [{share: 60%}, {share: 50%}]}", "a.yaml:1:32: object_cluster.disk.kinds: the shares add up to 110%; use at most 100%"},
		{"hedging alone", "gateways: 18", "reads: 50%, read: hedged, replicas: 1", `a.yaml:1:36: object_cluster.read: hedged needs another target to ask, and a chunk is read from all 1 that have it`},
		{"SURGE that queues", "gateways: 18", "compat: surge-d92018f, control: {queued: true}", "a.yaml:1:59: object_cluster.control.queued: SURGE's control messages never wait for each other; use false, or compat: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(smallCluster, c.old, c.new, 1)
			_, err := parse(text)
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %v is not located", err)
			}
			found := false
			for _, line := range strings.Split(err.Error(), "\n") {
				found = found || strings.HasPrefix(line, c.want)
			}
			if !found {
				t.Errorf("got\n%v\nwant\n%v", err, c.want)
			}
		})
	}
}

// TestClusterMix: reads and writes of an open loop, on unequal disks and under a code: all checks hold, each kind has its figures, and what comes is done.
func TestClusterMix(t *testing.T) {
	o := run(t, smallCluster, 3, "object_cluster.protocol=pull", "object_cluster.reads=60%", "object_cluster.load.share=50%", "object_cluster.outstanding=64",
		"object_cluster.code={data: 4, parity: 2}", "object_cluster.disk.kinds=[{share: 50%, rate: 200MiB/s}]", "object_cluster.objects=500", "measure.until=60ms", "measure.warm_up=20%")
	put, get := metric(t, o, "cluster.put.iops"), metric(t, o, "cluster.get.iops")
	if share := get / (put + get); share < 0.55 || share > 0.65 {
		t.Errorf("%.3f of chunks are read, not 60 %%", share)
	}
	if reached := metric(t, o, "cluster.bound.reached"); reached < 0.45 || reached > 0.55 {
		t.Errorf("%.3f of the bound, not the half that comes", reached)
	}
	for _, c := range o.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestClusterRun: the same bytes twice, every check holds, figures agree with each other, and the scenario by SURGE's names.
func TestClusterRun(t *testing.T) {
	for _, protocol := range []string{"uch-ccp", "7", "replicast-h", "pull", "chain", "grants", "dctcp"} {
		o := run(t, smallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		again := run(t, smallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		a, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Result.Encode(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two runs differ (%v)", protocol, err)
		}
		if rate, bound := metric(t, o, "cluster.put.rate"), metric(t, o, "cluster.bound.rate"); rate <= 0 || rate > 1.03*bound { // chunks that are done had part of their work in the warm-up
			t.Errorf("%s: %g of %g B/s", protocol, rate, bound)
		}
		// Little's law: a gateway has one chunk outstanding, but for those that have not begun or ended in the measured time.
		if n := metric(t, o, "cluster.put.iops") * metric(t, o, "cluster.put.latency.mean") / 1e6; n < 14 || n > 20 {
			t.Errorf("%s: %g chunks outstanding, not about 18", protocol, n)
		}
		s, err := parse(smallCluster, "object_cluster.compat=surge-d92018f")
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, s)
		if s.ObjectCluster.Control.Queued {
			t.Error("SURGE's control messages queue")
		}
	}
}

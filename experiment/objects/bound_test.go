package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/experiment/trial/trialtest"
)

// TestNetworkBounds verifies over packet networks, of several shapes and planes, that no protocol exceeds a bound: in a
// closed loop without warm-up, throughput is at most the least bound.
func TestNetworkBounds(t *testing.T) {
	shapes := []string{"star: {hosts: 24}", "star: {hosts: 24}, planes: 4",
		"leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 12}",
		"leaf_spine: {leaves: 8, spines: 2, hosts_per_leaf: 3}, planes: 2", "fat_tree: {k: 6}"}
	rapid.Check(t, func(r *rapid.T) {
		protocol := rapid.SampledFrom([]string{"uch-ccp", "uch-ccp-inverse", "replicast-m", "replicast-h",
			"replicast-h-double", "replicast-proxy", "pull", "chain", "grants", "dctcp"}).Draw(r, "protocol")
		replicas := rapid.IntRange(1, 3).Draw(r, "replicas")
		group := ""
		if strings.HasPrefix(protocol, "replicast") || protocol == "pull" {
			group = "group: 8, "
		}
		text := fmt.Sprintf(`object_cluster: {gateways: %d, targets: 16, %sprotocol: %s, replicas: %d, outstanding: %d, chunk: %s, disk: {rate: %s}, core: packet}
fabric: {topology: {%s}, host_link: %s, congestion_control: %s, payload: %s, buffer: 32MiB}
measure: {until: 1500us, warm_up: none}
`, rapid.IntRange(1, 8).Draw(r, "gateways"), group, protocol, replicas, rapid.SampledFrom([]int{1, 1, 2, 8}).Draw(r, "outstanding"), rapid.SampledFrom([]string{"4KiB", "16KiB", "128KiB"}).Draw(r, "chunk"),
			rapid.SampledFrom([]string{"400MiB/s", "20GB/s"}).Draw(r, "disk"),
			rapid.SampledFrom(shapes).Draw(r, "shape"),
			rapid.SampledFrom([]string{"10Gbps", "100Gbps"}).Draw(r, "link"),
			rapid.SampledFrom([]string{"none", "dcqcn"}).Draw(r, "control"),
			rapid.SampledFrom([]string{"1024B", "9000B"}).Draw(r, "payload"))
		o := trialtest.Run(t, text, rapid.Uint64Range(1, 100).Draw(r, "seed"))
		if reached := trialtest.Metric(t, o, "cluster.bound.reached"); reached > 1+1e-9 {
			r.Fatalf("%s%.4f of the bound", text, reached)
		}
	})
}

// TestPlanesBound verifies that four links of a gateway carry the traffic of four links.
func TestPlanesBound(t *testing.T) {
	o := trialtest.Run(t, `object_cluster: {gateways: 2, targets: 16, protocol: chain, disk: {rate: 4GB/s}, chunk: 1MiB, outstanding: 16, core: packet}
fabric: {topology: {star: {hosts: 18}, planes: 4}, congestion_control: none, host_link: 10Gbps, buffer: 32MiB}
measure: {until: 20ms, warm_up: 5ms}
`, 1)
	if reached := trialtest.Metric(t, o, "cluster.bound.reached"); reached < 0.6 || reached > 1 {
		t.Errorf("%.3f of the bound", reached)
	}
	// 1024 B of payload per packet of 1106 B.
	if rate, want := trialtest.Metric(t, o, "cluster.bound.rate"), 2*4*10e9/8*1024/1106; rate < 0.999*want ||
		rate > 1.001*want {
		t.Errorf("the bound is %.4g B/s, not %.4g", rate, want)
	}
}

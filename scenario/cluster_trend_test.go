package scenario

import (
	"testing"

	"farflash/cluster"
	"farflash/units"
)

// TestClusterTrend: an open loop that does not keep up shows it, and a closed loop says nothing of it.
func TestClusterTrend(t *testing.T) {
	for _, c := range []struct {
		share  string
		growth [2]float64
		drift  [2]float64
	}{
		{"50%", [2]float64{-0.05, 0.05}, [2]float64{-0.2, 0.2}},
		{"150%", [2]float64{0.25, 0.45}, [2]float64{0.5, 5}},
	} {
		o := run(t, smallCluster, 3, "object_cluster.protocol=pull", "object_cluster.load.share="+c.share, "object_cluster.outstanding=64", "measure.until=100ms", "measure.warm_up=20%")
		growth, _ := o.Result.Metric("cluster.backlog.growth")
		drift, _ := o.Result.Metric("cluster.drift")
		if growth.Value < c.growth[0] || growth.Value > c.growth[1] || drift.Value < c.drift[0] || drift.Value > c.drift[1] {
			t.Errorf("at %s the backlog grows by %v and times by %v", c.share, growth.Value, drift.Value)
		}
	}
	if _, there := run(t, smallCluster, 3).Result.Metric("cluster.drift"); there {
		t.Error("a closed loop has a drift")
	}
}

// TestForCluster: a scenario that is made of a configuration is the one that a file of it would be.
func TestForCluster(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Gateways, cfg.Targets, cfg.Protocol = 18, 18, cluster.Pull
	s, err := ForCluster("small", cfg, 5*units.Millisecond, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parse(smallCluster, "name=small", "object_cluster.protocol=pull", "measure.warm_up=20%")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := s.Digest()
	if b, _ := want.Digest(); a != b {
		t.Errorf("%s\nis not\n%s", s.Resolved(), want.Resolved())
	}
	cfg.Targets = 17
	if _, err := ForCluster("small", cfg, 5*units.Millisecond, 0.2); err == nil {
		t.Error("17 targets are no groups of 9")
	}
}

package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// TestKeeping verifies that a chunk's pieces are within one group for protocols that ask one, among all targets for
// those that ask several groups or none, and among few other targets with copysets.
func TestKeeping(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*cluster.Config)
		want   cluster.Keeping
	}{
		"a group of nine of ninety": {func(*cluster.Config) {},
			cluster.Keeping{Data: 1, Parity: 2, Piece: 128 * units.KiB, Nodes: 9, Groups: 10}},
		"two groups: any targets": {func(c *cluster.Config) { c.Protocol = cluster.Pull },
			cluster.Keeping{Data: 1, Parity: 2, Piece: 128 * units.KiB, Nodes: 90}},
		"no groups": {func(c *cluster.Config) { c.Protocol = cluster.Chain },
			cluster.Keeping{Data: 1, Parity: 2, Piece: 128 * units.KiB, Nodes: 90}},
		"copysets: four times the two others": {func(c *cluster.Config) {
			c.Protocol, c.Placement = cluster.Chain,
				cluster.PlaceCopysets
		}, cluster.Keeping{Data: 1, Parity: 2, Piece: 128 * units.KiB, Nodes: 90, Scatter: 8}},
		"a code of 3+2: pieces of a third, rounded up": {func(c *cluster.Config) {
			c.Protocol,
				c.Code = cluster.ReplicastH, cluster.Code{Data: 3, Parity: 2}
		},
			cluster.Keeping{Data: 3, Parity: 2, Piece: 43691, Nodes: 9, Groups: 10}}, // 131072/3 = 43690.7
		"groups of nothing, which Validate refuses": {func(c *cluster.Config) { c.Group = 0 },
			cluster.Keeping{Data: 1, Parity: 2, Piece: 128 * units.KiB, Groups: 90}},
	} {
		cfg := cluster.DefaultConfig()
		x.change(&cfg)
		if got := cfg.Keeping(); got != x.want {
			t.Errorf("%s: %+v, not %+v", name, got, x.want)
		}
	}
}

package trial_test

import (
	"context"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
)

// TestCheckSaysWhatRunSays verifies that check finds invalid requests of MQSim's generator, with the same error and
// position as run.
func TestCheckSaysWhatRunSays(t *testing.T) {
	const drive = "ssd: {preset: mqsim-default, geometry: {channels: 2, chips_per_channel: 2, blocks_per_plane: 38, " +
		"pages_per_block: 12}, over_provisioning: 35%, collection: {victim: greedy}, namespaces: [{channels: [0]}, " +
		"{channels: [1]}]}\n"
	for _, c := range []struct{ item, want string }{
		{"{mqsim: {reads: 40%, sizes: normal, size_deviation: 4KiB, requests: 758, seed: 899, bandwidth: 10MB/s}}",
			"has a normal size of -"},
		{"{mqsim: {sizes: normal, size: 16KiB, size_deviation: 1KiB, requests: 758}, closed: 4}", ""},
		{"{mqsim: {sizes: normal, size_deviation: 4KiB, requests: 758, seed: 899, bandwidth: 10MB/s}, limit: 2}", ""},
		{"{mqsim: {sizes: normal, size_deviation: 4KiB, requests: 758, seed: 899, bandwidth: 10MB/s}, until: 500us}",
			""},
		{"{mqsim: {reads: 100%, addresses: hot-cold, hot_region: 10%, size: 2MiB, requests: 500}, closed: 2}",
			"but the namespace ends at"},
		{"{mqsim: {reads: 100%, addresses: hot-cold, hot_region: 10%, size: 2MiB, requests: 500}, closed: 2, " +
			"addresses: fold}", ""},
	} {
		s, err := trialtest.Parse(drive + "workload:\n  - {mqsim: {requests: 10}, closed: 1}\n  - " + c.item + "\n")
		if err != nil {
			t.Errorf("%s: %v", c.item, err)
			continue
		}
		checked := trial.Check(context.Background(), s, 1)
		_, ran := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
		if (checked == nil) != (ran == nil) || checked != nil && checked.Error() != ran.Error() {
			t.Errorf("%s: check says %v, run %v", c.item, checked, ran)
		}
		if c.want == "" && checked != nil ||
			c.want != "" && (checked == nil || !strings.Contains(checked.Error(), c.want) ||
				!strings.Contains(checked.Error(), "a.yaml:4:")) {
			t.Errorf("%s: %v; want %q", c.item, checked, c.want)
		}
	}
}

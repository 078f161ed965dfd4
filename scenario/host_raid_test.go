package scenario_test

import (
	"strings"
	"testing"

	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestHostRAID verifies the valid volumes of several drives, and the errors for the invalid ones.
func TestHostRAID(t *testing.T) {
	const local = "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 5}, closed: 1}]\n"
	const remote = local + "targets: [{count: 2, ssds: 2}]\n"
	for _, c := range []struct{ text, want string }{
		{local + "host_raid: {level: 5, drives: 4}", ""},
		{remote + "host_raid: {level: 1}", ""},
		{remote + "host_raid: {level: 6, failed: [0, 3], rebuild: 200MB/s}", ""},
		{local + "host_raid: {level: 5}", "x.yaml:3:12: host_raid.drives: 0 is not possible; use 1 to 255, such as 4"},
		{local + "host_raid: {level: 5, drives: 2}",
			"host_raid.level: 2 members are not possible with level 5; use 3 to 255"},
		{local + "host_raid: {level: 7, drives: 2}",
			"x.yaml:3:20: host_raid.level: 7 is not possible; use 0, 1, 5 or 6"},
		{local + "host_raid: {drives: 4, rebuild: 1GB/s}", "host_raid.rebuild: no member has failed"},
		{local + "host_raid: {drives: 4}\nmeasure: {anatomy: true}",
			"measure.anatomy: it describes one drive; leave it out with host_raid"},
		{local + "host_raid: {drives: 4}\nrate_control: static", "rate_control: it divides one local drive"},
		{remote + "host_raid: {drives: 4}",
			"host_raid.drives: the members are all drives of the targets; leave it out"},
		{remote + "initiators: 3\nhost_raid: {level: 5}", "x.yaml:5:12: host_raid: one host must order all writes"},
		{remote + "route: {target: {stripe: 4KiB}}\nhost_raid: {level: 5}",
			"route.target: host_raid determines where data are stored; leave it out"},
		{"object_cluster: {}\nhost_raid: {level: 5}\nmeasure: {until: 1ms}", "host_raid: "},
	} {
		s, err := scenario.Parse(shape.Source{File: "x.yaml", Text: []byte(c.text)}, nil)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, wanted %s", c.text, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.text, err)
		default:
			if _, err := scenario.Parse(shape.Source{File: "again.yaml", Text: []byte(s.Resolved())}, nil); err != nil {
				t.Errorf("%s resolves to what is refused: %v", c.text, err)
			}
		}
	}
}

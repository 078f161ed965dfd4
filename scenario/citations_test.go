package scenario

import (
	"slices"
	"strings"
	"testing"

	"farflash/scenario/shape"
)

// TestCite verifies that a scenario can cite only known papers, that each is printed once, and that no two entries
// share a key.
func TestCite(t *testing.T) {
	parse := func(cite string) (*Scenario, error) {
		return Parse(shape.Source{File: "a.yaml",
			Text: []byte("ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, " +
				"requests: 100}}]\ncite: " + cite + "\n")}, nil)
	}
	s, err := parse("[lee2017understanding, tavakkol2018mqsim]")
	if err != nil {
		t.Fatal(err)
	}
	text := s.Citations()
	for _, key := range []string{"farflash", "tavakkol2018mqsim", "lee2017understanding"} {
		if strings.Count(text, "{"+key+",") != 1 {
			t.Errorf("%s is not there once:\n%s", key, text)
		}
	}
	_, err = parse("[lee2017understandin]")
	if err == nil || !strings.Contains(err.Error(),
		`a.yaml:3:8: cite[0]: there is no entry "lee2017understandin"; did you mean "lee2017understanding"?`) {
		t.Error(err)
	}
	var keys []string
	for i := range citations {
		k := citations[i].key()
		if k == "" || slices.Contains(keys, k) {
			t.Errorf("two entries have the key %q, or one has none", k)
		}
		keys = append(keys, k)
	}
}

// TestCitesOfPresets verifies that a preset of a paper cites the paper.
func TestCitesOfPresets(t *testing.T) {
	for _, c := range [][2]string{{"snis-system", "lee2017understanding"}, {"snis-system", "zhu2016ecn"},
		{"snis-fabric", "jia2022snis"}, {"src-ssd-b", "jiasrc"}, {"replicast", "aizman2016replicast"},
		{"quickstart", "tavakkol2018mqsim"}} {
		text, err := PresetText(c[0])
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(shape.Source{File: c[0], Text: []byte(text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Citations(), "{"+c[1]+",") {
			t.Errorf("%s does not cite %s", c[0], c[1])
		}
	}
}

// TestCitesOfSwitches verifies that every placement, congestion control and cluster protocol with a paper of its own
// cites it, and that a scenario without them does not.
func TestCitesOfSwitches(t *testing.T) {
	const network = "fabric: {topology: {star: {hosts: 3}}, %s}\nflows: [{incast: {fan: 2, size: 64KiB}}]\n"
	const clusters = "object_cluster: {%s}\nmeasure: {until: 10ms}\n"
	const objects = "object_cluster: {protocol: uch-ccp, %s}\nmeasure: {until: 10ms}\n"
	for _, c := range [][3]string{
		{network, "congestion_control: dcqcn", "zhu2015dcqcn"},
		{network, "congestion_control: dctcp", "alizadeh2010dctcp"},
		{network, "congestion_control: timely", "mittal2015timely"},
		{network, "congestion_control: swift", "kumar2020swift"},
		{network, "congestion_control: hpcc-pint", "benbasat2020pint"},
		{network, "transport: tcp", "rfc9438"},
		{network, "transport: tcp, congestion_control: {tcp: {growth: newreno}}", "rfc6582"},
		{network, "transport: tcp, congestion_control: {tcp: {growth: dctcp}}", "alizadeh2010dctcp"},
		{network, "compat: ns3-rdma", "zhu2016ecn"},
		{objects, "placement: ring", "karger1997consistent"}, {objects, "placement: hrw", "thaler1998names"},
		{objects, "placement: jump", "lamping2014jump"},
		{objects, "placement: maglev", "eisenbud2016maglev"}, {objects, "placement: straw2", "weil2006crush"},
		{objects, "placement: bounded-load", "mirrokni2018bounded"},
		{objects, "placement: copysets", "cidon2013copysets"}, {clusters, "protocol: chain", "vanrenesse2004chain"},
		{clusters, "protocol: grants", "montazeri2018homa"},
		{clusters, "protocol: dctcp", "alizadeh2010dctcp"}, {clusters, "compat: surge-9872498", "surge"},
	} {
		for _, with := range []string{c[1], "%"} {
			text := strings.Replace(c[0], "%s", c[1], 1)
			if with == "%" {
				text = "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, " +
					"requests: 100}}]\n"
			}
			s, err := Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, nil)
			if err != nil {
				t.Errorf("%s: %v", c[1], err)
				break
			}
			if strings.Contains(s.Citations(), "{"+c[2]+",") != (with == c[1]) {
				t.Errorf("%s: what it cites is wrong of %s", text, c[2])
			}
		}
	}
}

package scenario

import (
	"slices"
	"strings"
	"testing"

	"farflash/shape"
)

// TestCite holds that a scenario names papers that there are, that those are printed once, and that no two entries have one key.
func TestCite(t *testing.T) {
	parse := func(cite string) (*Scenario, error) {
		return Parse(shape.Source{File: "a.yaml", Text: []byte("ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]\ncite: " + cite + "\n")}, nil)
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
	if err == nil || !strings.Contains(err.Error(), `a.yaml:3:8: cite[0]: there is no entry "lee2017understandin"; did you mean "lee2017understanding"?`) {
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

// TestCitesOfPresets: a preset that is a paper's cites it.
func TestCitesOfPresets(t *testing.T) {
	for _, c := range [][2]string{{"snis-system", "lee2017understanding"}, {"snis-system", "zhu2016ecn"}, {"snis-fabric", "jia2022snis"}, {"src-ssd-b", "jiasrc"}, {"replicast", "aizman2016replicast"}, {"quickstart", "tavakkol2018mqsim"}} {
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

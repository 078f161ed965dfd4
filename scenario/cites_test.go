package scenario

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCitesExactly verifies the complete list of citations for scenarios of several kinds, and thus also which works
// each of them does not cite.
func TestCitesExactly(t *testing.T) {
	key := regexp.MustCompile(`@[a-z]+\{([^,]+),`)
	system := func(more string) string {
		return "protocol: flows\n" + more +
			"initiators: 1\ntargets: [{count: 2, ssds: 1, ssd: mqsim-default}]\nworkload: [{synthetic: {reads: " +
			"{size: 4KiB, interarrival: 50us}, requests: 9}}]\n"
	}
	for text, want := range map[string]string{
		small: "farflash gupta2009dftl tavakkol2018mqsim vanhoudt2013mean",
		strings.Replace(small, "mqsim-default", "{preset: mqsim-default, compat: mqsim}",
			1): "farflash gupta2009dftl tavakkol2018mqsim vanhoudt2013mean",
		"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: {mean: 9us, acf1: 0.2, scv: " +
			"3}}, requests: 9}}]\n": "farflash gupta2009dftl heffes1986markov tavakkol2018mqsim vanhoudt2013mean",
		strings.Replace(small, "mqsim-default", "{preset: mqsim-default, mapping: {ideal: true}}",
			1): "farflash tavakkol2018mqsim vanhoudt2013mean",
		small + "measure: {warm_up: auto}\n": "farflash gupta2009dftl tavakkol2018mqsim vanhoudt2013mean " +
			"white2000comparison",
		small + "measure: {until: steady}\n": "farflash gupta2009dftl tafazzoli2011skart tavakkol2018mqsim " +
			"vanhoudt2013mean white2000comparison",
		system(""): "farflash gupta2009dftl li2019hpcc tavakkol2018mqsim " +
			"vanhoudt2013mean zhu2015dcqcn",
		system("coupling: {mode: iterative}\n"): "farflash gupta2009dftl jia2022snis li2019hpcc tavakkol2018mqsim " +
			"vanhoudt2013mean zhu2015dcqcn",
		system("coupling: {mode: iterative, iterative: {acceleration: aitken}}\n"): "farflash gupta2009dftl " +
			"irons1969aitken jia2022snis li2019hpcc tavakkol2018mqsim vanhoudt2013mean zhu2015dcqcn",
		system("coupling: {mode: both, iterative: {acceleration: anderson}}\n"): "anderson1965iterative " +
			"farflash gupta2009dftl jia2022snis li2019hpcc tavakkol2018mqsim vanhoudt2013mean zhu2015dcqcn",
		system("coupling: {mode: coupled, iterative: {acceleration: anderson}}\n"): "farflash gupta2009dftl " +
			"li2019hpcc tavakkol2018mqsim vanhoudt2013mean zhu2015dcqcn",
		"object_cluster: {gateways: 18, targets: 18}\nmeasure: {until: 10ms}\n": "aizman2016replicast " +
			"farflash",
		"fabric: {topology: {star: {hosts: 3}}}\nflows: [{incast: {fan: 2, size: 64KiB}}]\n": "farflash li2019hpcc " +
			"zhu2015dcqcn",
	} {
		s, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, m := range key.FindAllStringSubmatch(s.Citations(), -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s\ncites %s\nnot   %s", text, g, want)
		}
	}
}

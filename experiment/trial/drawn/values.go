package drawn

import (
	"regexp"
	"strings"
)

// valuesOf lists typical and boundary values of a key, by its description; needed: its section is pointless without it.
func valuesOf(path, wanted string) (usual, edges []string, needed bool) {
	for _, x := range small {
		if x.path.MatchString(same(path)) {
			return x.values, nil, x.needed
		}
	}
	if strings.HasPrefix(wanted, "a list") {
		return listsOf(wanted), nil, false
	}
	for _, x := range hints {
		if strings.Contains(wanted, x.hint) {
			usual, edges = append(usual, x.usual...), append(edges, x.edges...)
		}
	}
	if wanted == "true or false" || wanted == "text" {
		return usual, nil, false
	}
	for _, w := range strings.FieldsFunc(strings.ReplaceAll(wanted, " or ", ", "),
		func(r rune) bool { return r == ',' }) {
		if w = strings.TrimSpace(w); !strings.Contains(w, " ") && w != "" {
			usual = append(usual, w)
		}
	}
	return usual, edges, false
}

// hints are typical and boundary values, by the wording of a key's description.
var hints = []struct {
	hint         string
	usual, edges []string
}{
	{"a time such as", []string{"0s", "1ns", "100ns", "1us", "10us", "100us", "1ms"},
		[]string{"1ps", "999ps", "1s", "1000000s", "106d"}},
	{"a time above zero", []string{"1us", "50us", "1ms"}, []string{"1ps"}},
	{"a span of time", []string{"0d", "12h", "30d", "1y"}, []string{"100y"}},
	{"a size such as", []string{"0B", "512B", "1KiB", "4KiB", "16KiB", "64KiB", "1MiB"},
		[]string{"1B", "511B", "4097B", "1GiB", "7EiB"}},
	{"40Gbps", []string{"1Gbps", "10Gbps", "25Gbps", "100Gbps"},
		[]string{"0bps", "1bps", "1Mbps", "400Gbps", "9e18bps"}},
	{"1GB/s", []string{"10MB/s", "200MB/s", "1GB/s", "8GB/s"}, []string{"0B/s", "1B/s", "1e9GB/s"}},
	{"333MT/s", []string{"100MT/s", "800MT/s"}, []string{"1T/s", "1e9MT/s"}},
	{"a share such as", []string{"0%", "1%", "10%", "33%", "50%", "90%", "100%"},
		[]string{"1e-15%", "0.1%", "99.9999999%"}},
	{"an energy such as", []string{"0uJ", "5uJ"}, []string{"1e-300J", "1e300J"}},
	{"true or false", []string{"true", "false"}, nil},
	{"a whole number", []string{"0", "1", "2", "3", "4", "8", "16"}, []string{"33", "255", "65536", "2147483647"}},
	{"a number", []string{"0", "0.5", "1", "2", "10"}, []string{"-0.0", "1e-300", "1e300"}},
	{"an order of the letters", []string{"CWDP", "PDWC", "DPCW", "WCPD"}, nil},
}

// listsOf are values for a list of scalars: empty, one, several, duplicates.
func listsOf(wanted string) []string {
	switch {
	case strings.HasPrefix(wanted, "a list of 3: a whole number"):
		return []string{"[4, 2, 1]", "[1, 1, 1]", "[1, 0, 7]"}
	case strings.HasPrefix(wanted, "a list of 3: a share"):
		return []string{"[100%, 0%, 0%]", "[20%, 30%, 50%]"}
	case strings.Contains(wanted, "a whole number"):
		return []string{"[]", "[0]", "[1]", "[0, 1]", "[1, 0, 2]", "[0, 0]"}
	}
	return nil
}

// small overrides hints to keep scenarios small, complete and meaningful, by path (of a local drive).
var small = func() []limit {
	var out []limit
	for _, x := range []struct {
		path   string
		values []string
		needed bool
	}{
		{`name|description|.*\.source`, []string{"x"}, false},
		{`cite`, []string{"[]"}, false},
		{`workload\.(name|tenant)`, []string{"a", "b"}, false},
		{`workload\.after`, []string{"a", "b"}, false},
		{`flows\.(name|list\.name)`, []string{"f", "g"}, false},
		{`flows\.list\.after`, []string{"[f]", "[g]", "[]"}, false},
		{`workload\.trace\.file`, []string{"random.csv", "random.csv", "columns.csv"}, true},
		{`workload\.trace\.columns\.(time|op|offset|size)`, []string{"t", "kind", "at", "bytes"}, true},
		{`workload\.trace\.columns\..*`, []string{"at", "bytes"}, false},
		{`workload\.trace\.volume`, []string{"0", "1"}, false},
		{`workload\.trace\.loop`, []string{"1", "2", "3"}, false},
		{`workload\.fio\.file`, []string{"j.fio"}, true},
		{`workload\.fio\.job`, []string{"a", "b", "c"}, false},
		{`.*\.size\.mix`, []string{"4KiB:50% 16KiB:50%", "512B:100%"}, false},
		{`workload\.synthetic\.requests`, []string{"1", "7", "60", "120", "200"}, true},
		{`workload\.synthetic\.duration`, []string{"1us", "300us", "2ms", "5ms"}, false},
		{`workload\.synthetic\.(reads\.|writes\.|)interarrival\.mean`, []string{"1us", "10us", "50us", "300us"}, true},
		{`workload\.mqsim\.requests`, []string{"1", "50", "150"}, true},
		{`workload\.mqsim\.bandwidth`, []string{"0B/s", "50MB/s", "500MB/s"}, false},
		{`workload\.closed`, []string{"0", "1", "2", "16", "64"}, false},
		{`workload\.initiator`, []string{"any", "0", "1"}, false},
		{`workload\.copies\.count`, []string{"1", "2", "3"}, true},
		{`workload\.(start|until)`, []string{"0s", "10us", "1ms"}, false},
		{`workload\.namespace|workload\.group|workload\.placement`, []string{"0", "0", "1", "2"}, false},
		{`workload\.limit`, []string{"0", "1", "50"}, false},
		{`ssd\.preset`, []string{"tlc-enterprise", "qlc-enterprise", "mqsim-default", "src-ssd-a", "src-ssd-b"}, false},
		{`ssd\.geometry\.channels`, []string{"1", "2", "3"}, true},
		{`ssd\.geometry\.chips_per_channel|ssd\.geometry\.dies_per_chip`, []string{"1", "2"}, true},
		{`ssd\.geometry\.planes_per_die`, []string{"1", "2", "4", "6"}, true},
		{`ssd\.geometry\.blocks_per_plane`, []string{"20", "32", "40", "64"}, true},
		{`ssd\.geometry\.pages_per_block`, []string{"4", "8", "12", "16", "32"}, true},
		{`ssd\.geometry\.page_size`, []string{"4KiB", "8KiB", "16KiB"}, false},
		{`ssd\.timing\.(read|program)_latency`, []string{"1us", "20us", "300us", "[20us, 40us]"}, false},
		{`ssd\.timing\.erase_latency`, []string{"10us", "1ms", "5ms"}, false},
		{`ssd\.collection\.moves_per_plane`, []string{"0.001", "0.5", "4"}, false},
		{`ssd\.over_provisioning`, []string{"7%", "25%", "35%", "50%", "100%"}, false},
		{`ssd\.cache\.capacity`, []string{"0B", "64KiB", "256KiB", "1MiB"}, false},
		{`ssd\.preconditioning\.passes`, []string{"0", "0.5", "1", "2"}, false},
		{`ssd\.preconditioning\.occupancy`, []string{"1%", "33%", "50%", "80%", "100%"}, false},
		{`ssd\.slc_cache\.capacity`, []string{"1MiB", "24MiB"}, true},
		{`ssd\.zones\.(capacity|size)`, []string{"256KiB", "1MiB", "1028KiB"}, true},
		{`ssd\.power_limit\.watts`, []string{"3", "4", "10"}, true},
		{`ssd\.energy\.(read|program)`, []string{"10uJ", "100uJ"}, true},
		{`ssd\.power_states\.(after|exit)`, []string{"100us", "1ms", "5ms"}, true},
		{`ssd\.reliability\.(fit\.base)`, []string{"0.001", "0.012", "0.1"}, true},
		{`ssd\.reliability\.cycles`, []string{"0", "1000", "3000"}, false},
		{`ssd\.fdp\.(handles|groups)`, []string{"1", "2", "3"}, false},
		{`host_raid\.drives`, []string{"2", "3", "4", "5"}, true},
		{`host_raid\.level`, []string{"0", "1", "5", "6", "10"}, true},
		{`initiators`, []string{"1", "2", "3"}, false},
		{`targets\.(count|ssds)`, []string{"1", "2"}, false},
		{`nvmf\.queue_(depth|pairs)|nvmf\.drive_depth`, []string{"1", "2", "16", "128"}, false},
		{`nvmf\.buffers(\.count)?`, []string{"0", "1", "4", "4095"}, false},
		{`nvmf\.receives\.shared`, []string{"0", "1", "3", "100"}, false},
		{`nvmf\.receives\.rnr_timer`, []string{"10us", "80us", "1280us", "655360us"}, false},
		{`place\.(initiator|target)_nics`, []string{"1", "2"}, false},
		{`nvmf\.multipath\.paths`, []string{"0", "1", "2", "4"}, false},
		{`nvmf\.multipath\.throughput`, []string{"[]", "[3]", "[4, 1]"}, false},
		{`nvmf\.multipath\.ana\.(path|at)`, []string{"0", "1", "0s", "100us", "1ms"}, true},
		{`rate_control\.model`, []string{"auto"}, false},
		{`rate_control\.demands\.(at|rate)`, []string{"0s", "100us", "1ms", "1Gbps", "10Gbps"}, true},
		{`coupling\.iterative\.iterations`, []string{"1", "2", "4"}, false},
		{`fabric\.topology\.file`, []string{"net.txt"}, false},
		{`fabric\.topology\.star\.hosts`, []string{"2", "4", "9"}, true},
		{`fabric\.topology\..*\.(hosts_per_leaf|hosts_per_pod|left|right)`, []string{"1", "2", "4"}, true},
		{`fabric\.topology\.fat_tree\.k`, []string{"2", "4"}, true},
		{`fabric\.topology\.[a-z_]*\.[a-z_]*`, []string{"1", "2", "3"}, true},
		{`fabric\.topology\.planes`, []string{"0", "1", "2"}, false},
		{`fabric\.topology\.links\.(a|b)|fabric\.failures\.(a|b)`,
			[]string{"h0", "h1", "h2", "h3", "leaf0", "spine0", "s0", "s1", "tor0"}, true},
		{`fabric\.topology\.links\.loss|fabric\.loss`, []string{"0%", "0.1%", "1%", "10%"}, false},
		{`fabric\.failures\.at`, []string{"0s", "5us", "30us", "200us"}, true},
		{`fabric\.failures\.until`, []string{"20us", "100us", "1ms", "0s"}, false},
		{`fabric\.parts`, []string{"0", "1", "2", "3"}, false},
		{`fabric\.threads`, []string{"1", "2"}, false},
		{`fabric\.(host_link|up_link|topology\.links\.rate)`,
			[]string{"10Mbps", "1Gbps", "10Gbps", "25Gbps", "100Gbps", "400Gbps"}, false},
		{`fabric\.payload`, []string{"256B", "1000B", "1KiB", "4KiB", "9000B"}, false},
		{`fabric\.recovery\.first_timeout`, []string{"0s", "1s", "3ms"}, false},
		{`flows\.file`, []string{"flows.txt"}, false},
		{`flows\.list\.(src|dst)|flows\.incast\.target`, []string{"0", "1", "2", "3"}, true},
		{`flows\.poisson\.sizes\.(fixed|points\.size)`, []string{"1KB", "10KB", "100KB"}, true},
		{`flows\..*\.size`, []string{"1B", "1KB", "10KB", "100KB"}, true},
		{`flows\.poisson\.load`, []string{"1%", "30%", "80%"}, true},
		{`flows\.poisson\.duration`, []string{"10us", "100us"}, true},
		{`flows\.poisson\.flows`, []string{"0", "5", "50"}, false},
		{`flows\.poisson\.sizes\.name`, []string{"websearch", "alistorage-2019"}, false},
		{`flows\.incast\.fan`, []string{"1", "2", "3", "8"}, true},
		{`flows\..*\.rounds`, []string{"0", "1", "3"}, false},
		{`object_cluster\.gateways`, []string{"1", "3", "6"}, true},
		{`object_cluster\.targets`, []string{"6", "9", "18"}, true},
		{`object_cluster\.(group|groups|replicas)`, []string{"1", "2", "3", "6"}, false},
		{`object_cluster\.load\.rate`, []string{"0", "100", "3000"}, true},
		{`object_cluster\.code\.(data|parity)`, []string{"1", "2", "4"}, true},
		{`object_cluster\.failures\.target`, []string{"0", "1", "5"}, true},
		{`object_cluster\.(failures\.(at|back)|repair\.detect)`, []string{"0s", "100us", "1ms", "3ms"}, true},
		{`object_cluster\.disk\.(count|depth)`, []string{"1", "2", "8"}, false},
		{`object_cluster\.objects`, []string{"1", "100", "20000"}, false},
		{`measure\.until`, []string{"end", "100us", "1ms", "3ms"}, false},
		{`measure\.warm_up`, []string{"none", "none", "auto", "10us", "10%", "50%"}, false},
	} {
		out = append(out, limit{regexp.MustCompile("^(" + x.path + ")$"), x.values, x.needed})
	}
	return out
}()

// limit has the values for keys whose path matches.
type limit struct {
	path   *regexp.Regexp
	values []string
	needed bool
}

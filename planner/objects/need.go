package objects

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// Need is the load that a cluster must serve, and the parts that it may be built from.
type Need struct {
	// Name is used in reports; by default it is the file's name.
	Name string
	// Description describes the cluster. It has no effect.
	Description string
	// Rate is the number of chunks per second that arrive over the whole cluster, as a Poisson process.
	Rate float64
	// Chunk is the size of a chunk.
	Chunk units.Bytes
	// Reads is the share of chunks that are read.
	Reads units.Fraction
	// PutP99 is the limit on the 99th percentile of the time of a put, which must stay below it.
	PutP99 units.Duration
	// GetP99 is the same for a get; 0 means no limit.
	GetP99 units.Duration
	// Capacity is the amount of data that the cluster must hold, before replication; 0 means that it does not matter.
	Capacity units.Bytes
	// Replicas is the number of nodes that hold each chunk.
	Replicas int
	// Code is an erasure code instead of replicas.
	Code cluster.Code
	// Survive is the number of nodes that may be down while the need is still met.
	Survive int
	// Drives are the drives to choose from for a node.
	Drives []Drive
	// NICs are the NICs to choose from for nodes and gateways.
	NICs []NIC `yaml:"nics"`
	// Node is a node without drive and NIC.
	Node Node
	// Gateways are the machines that put and get chunks.
	Gateways Gateways
	// Power is the cost of electricity.
	Power Power
	// Protocols are the protocols to choose from; none means all.
	Protocols []cluster.Scheme
	// GroupSizes are the group sizes to choose from, for protocols with groups; none means twice, three times and four
	// times the replicas.
	GroupSizes []int
	// Search is the effort of the search.
	Search Effort
	// Cluster holds all other settings of the cluster, with the keys of a scenario's object_cluster.
	Cluster cluster.Config
}

// Drive is a drive to choose from.
type Drive struct {
	// Name is used in reports.
	Name string
	// Rate is its rate of reading and writing chunks. Several drives in a node count as one with the sum of their
	// rates.
	Rate units.ByteRate
	// Price of one drive.
	Price units.Money
	// Capacity is the amount of data it holds, for the need's capacity.
	Capacity units.Bytes
	// Watts is its power.
	Watts float64
}

// NIC is a NIC to choose from, with its switch port.
type NIC struct {
	// Name is used in reports.
	Name string
	// Rate of its link.
	Rate units.BitRate
	// Price of one NIC.
	Price units.Money
	// Watts is its power.
	Watts float64
}

// Node is a node without its drive and its NIC.
type Node struct {
	// Price of one node.
	Price units.Money
	// Watts is its power.
	Watts float64
}

// Gateways are the machines that put and get chunks.
type Gateways struct {
	// Count is the number of gateways; 0 means as many as nodes.
	Count int
	// Price of one gateway, with its NIC; 0 if they already exist.
	Price units.Money
}

// Power is the cost of electricity.
type Power struct {
	// Price of a kWh.
	Price units.Money
	// PUE is the site's power over the power of its machines.
	PUE float64 `yaml:"pue"`
	// Years is the period for which electricity is paid.
	Years float64
}

// Effort is the effort of the search.
type Effort struct {
	// Chunks is the minimum number of chunks that arrive in a run, including its warm-up. A run also lasts at least a
	// hundred times the longest limit, so that a queue that grows by one per cent of the arrivals exceeds the limit.
	Chunks int
	// WarmUp is the share of each run that is not measured.
	WarmUp units.Fraction
	// Most is the largest number of nodes that is tried.
	Most int
	// Others finds the cheapest design for each protocol; false finds only the cheapest overall, which takes less time.
	Others bool
}

// DefaultNeed returns the defaults, without drives and NICs.
func DefaultNeed() Need {
	n := Need{Chunk: 128 * units.KiB, Replicas: 3, Power: Power{PUE: 1, Years: 5},
		Search:  Effort{Chunks: 20_000, WarmUp: 0.2, Most: 4096, Others: true},
		Cluster: cluster.DefaultConfig()}
	n.Cluster.Outstanding = 64
	return n
}

// Word is the name for a file of a need in messages.
func (n *Need) Word() string { return "the need" }

// decided lists the keys of the section cluster that must not be set, and why.
var decided = []struct{ key, why string }{
	{"gateways", "gateways.count sets it"}, {"targets", "it is what the search finds"},
	{"protocol", "protocols sets it"}, {"chunk", "chunk sets it"}, {"replicas", "replicas sets it"},
	{"group", "group_sizes sets it"}, {"code", "code sets it"}, {"load", "rate sets it"}, {"reads", "reads sets it"},
	{"disk.rate", "drives sets it"},
	{"disk.model", "drives have constant rates here"}, {"disk.depth", "drives have constant rates here"},
	{"disk.latency", "drives have constant rates here"}, {"disk.kinds", "all nodes are equal here"},
	{"core", "the network's core never blocks here"}, {"link.rate", "nics sets it"},
	{"choosy", "it is the protocol's own"}, {"failures", "survive sets it"},
	{"repair.detect", "nodes are down from the beginning"}, {"compat", "no cluster has a simulator's deviations"},
}

// decidedKeys returns the keys of the section cluster that must not be set.
func decidedKeys() []string {
	var out []string
	for _, d := range decided {
		out = append(out, "cluster."+d.key)
	}
	return out
}

// Validate reports invalid settings, each with its key. written reports whether the user set a key.
func (n *Need) Validate(written func(key string) bool) error {
	var f units.Faults
	f.Hold(n.Rate > 0 && n.Rate <= 1e9, "rate",
		"%v is not possible; give the rate in chunks per second, such as 50000", n.Rate)
	f.Hold(n.Chunk >= 1 && n.Chunk <= units.GiB, "chunk", "%v is not possible; use 1B to 1GiB", n.Chunk)
	f.Hold(n.Reads <= 1, "reads", "%v is not possible; use 0%% to 100%%", n.Reads)
	f.Hold(n.copies() >= 1 && n.copies() <= mostCopies, "replicas", "%d are not possible; use 1 to %d", n.copies(),
		mostCopies)
	f.Hold(n.PutP99 > 0 || n.Reads >= 1, "put_p99",
		"%v is not possible; give the limit of the 99th percentile of puts, such as 2ms", n.PutP99)
	f.Hold(n.GetP99 >= 0, "get_p99", "%v is not possible; give the limit of the 99th percentile of gets, such as 2ms",
		n.GetP99)
	f.Hold(n.Reads == 0 || n.Reads < 1 || n.GetP99 > 0, "get_p99",
		"all chunks are read; give the limit of the 99th percentile of gets, such as 2ms")
	f.Hold(n.GetP99 == 0 || n.Reads > 0, "get_p99", "no chunks are read; give reads, such as 50%%, or leave the "+
		"limit out")
	f.Hold(n.Capacity >= 0, "capacity", "%v is not possible; use a size such as 500TB", n.Capacity)
	f.Hold(n.Survive >= 0, "survive", "%d is not possible; give the number of nodes that may be down, such as 1", n.Survive)
	f.Hold(n.Survive < max(n.copies(), 1), "survive",
		"with %d nodes down, chunks kept on %s are lost; use at most %d", n.Survive, plural(n.copies(), "node"),
		n.copies()-1)
	f.Hold(n.Code.Data == 0 || n.Survive <= n.Code.Parity, "survive",
		"a code of %d+%d pieces survives at most %d nodes down", n.Code.Data, n.Code.Parity, n.Code.Parity)
	n.checkParts(&f)
	f.Hold(n.Gateways.Count >= 0, "gateways.count", "%d is not possible; use 0 (as many as nodes) or more",
		n.Gateways.Count)
	f.Hold(n.Power.PUE >= 1 && n.Power.PUE <= 10, "power.pue", "%v is not possible; use 1 to 10", n.Power.PUE)
	f.Hold(n.Power.Years >= 0 && n.Power.Years <= 100, "power.years", "%v is not possible; use 0 to 100", n.Power.Years)
	for i, g := range n.GroupSizes {
		f.Hold(g >= min(n.copies(), mostCopies), fmt.Sprintf("group_sizes[%d]", i),
			"a group of %d cannot keep %s of a chunk", g, plural(n.copies(), "part"))
		f.Hold(!slices.Contains(n.GroupSizes[:i], g), fmt.Sprintf("group_sizes[%d]", i), "%d is listed twice", g)
	}
	for i, p := range n.Protocols {
		f.Hold(slices.Contains(cluster.SharedSchemes(), p), fmt.Sprintf("protocols[%d]", i),
			"with %v, gateways do not put chunks on every target; use some of %s", p, names(cluster.SharedSchemes()))
		f.Hold(!slices.Contains(n.Protocols[:i], p), fmt.Sprintf("protocols[%d]", i), "%v is listed twice", p)
	}
	f.Hold(n.Search.Chunks >= 100 && n.Search.Chunks <= 1e9, "search.chunks",
		"%d is not possible; use 100 or more, since the slowest hundredth decides", n.Search.Chunks)
	f.Hold(n.Search.WarmUp <= 0.9, "search.warm_up", "%v leaves too little to measure; use at most 90%%",
		n.Search.WarmUp)
	f.Hold(n.Search.Most >= 1 && n.Search.Most <= 1<<20, "search.most", "%d is not possible; use 1 to %d nodes",
		n.Search.Most, 1<<20)
	f.Hold(n.Survive > 0 || n.Cluster.Repair == cluster.DefaultConfig().Repair, "cluster.repair",
		"no node is down, so nothing is rebuilt; set survive, or leave it out")
	for _, d := range decided {
		f.Hold(!written("cluster."+d.key), "cluster."+d.key, "%s; leave it out", d.why)
	}
	if f.Err() == nil {
		n.checkUnused(&f)
		n.checkCluster(&f)
	}
	return f.Err()
}

// checkParts validates drives and NICs.
func (n *Need) checkParts(f *units.Faults) {
	names := map[string]bool{}
	f.Hold(len(n.Drives) > 0, "drives",
		"no drives; write for example drives: [{name: sata, rate: 400MiB/s, price: $150}]")
	for i := range n.Drives {
		d, key := &n.Drives[i], fmt.Sprintf("drives[%d]", i)
		if d.Name == "" {
			d.Name = d.Rate.String()
		}
		f.Hold(!names[d.Name], key+".name", "%q is used twice; give each its own name", d.Name)
		names[d.Name] = true
		f.Hold(d.Rate > 0, key+".rate", "%v is not possible; use a rate such as 400MiB/s", d.Rate)
		f.Hold(n.Capacity == 0 || d.Capacity > 0, key+".capacity",
			"the cluster must store %v, so state the capacity of %s, such as 4TB", n.Capacity, d.Name)
		f.Hold(d.Watts >= 0 && d.Watts < 1e6, key+".watts", "%v is not possible; use watts such as 8", d.Watts)
	}
	names = map[string]bool{}
	f.Hold(len(n.NICs) > 0, "nics",
		"no NICs; write for example nics: [{name: 25G, rate: 25Gbps, price: $200}]")
	for i := range n.NICs {
		x, key := &n.NICs[i], fmt.Sprintf("nics[%d]", i)
		if x.Name == "" {
			x.Name = x.Rate.String()
		}
		f.Hold(!names[x.Name], key+".name", "%q is used twice; give each its own name", x.Name)
		names[x.Name] = true
		f.Hold(x.Rate > 0, key+".rate", "%v is not possible; use a rate such as 25Gbps", x.Rate)
		f.Hold(x.Watts >= 0 && x.Watts < 1e6, key+".watts", "%v is not possible; use watts such as 15", x.Watts)
	}
	f.Hold(n.Node.Watts >= 0 && n.Node.Watts < 1e6, "node.watts", "%v is not possible; use watts such as 120",
		n.Node.Watts)
}

// checkCluster validates the settings that apply to every cluster, by means of a design with ample resources.
func (n *Need) checkCluster(f *units.Faults) {
	scheme := n.schemes()[0]
	group := n.groups(scheme)[0]
	d := Design{Option: Option{Protocol: scheme, Group: group}, Nodes: 4 * max(group, n.copies())}
	cfg := n.Config(d, 0)
	for _, e := range units.FieldErrors(cfg.Validate()) {
		switch top, _, _ := strings.Cut(e.Path, "."); top {
		case "replicas", "code", "chunk", "reads":
			f.Hold(false, e.Path, "%s", e.Msg)
		case "group", "groups", "targets", "protocol", "choices", "placement", "racks":
			// It depends on the design, and the search reports it.
		default:
			f.Hold(false, units.JoinPath("cluster", e.Path), "%s", e.Msg)
		}
	}
}

// checkUnused rejects keys that none of the protocols uses.
func (n *Need) checkUnused(f *units.Faults) {
	times := map[string]int{}
	for k, s := range n.schemes() {
		c := n.Cluster
		c.Protocol = s
		for _, u := range c.Unused() {
			if times[u.Key]++; k+1 == len(n.schemes()) && times[u.Key] == k+1 {
				f.Hold(false, units.JoinPath("cluster", u.Key), "%s", u.Why)
			}
		}
	}
}

// copies is the number of nodes that hold a part of each chunk.
func (n *Need) copies() int {
	if n.Code.Data > 0 {
		return n.Code.Data + n.Code.Parity
	}
	return n.Replicas
}

// expansion is the ratio of stored bytes to data.
func (n *Need) expansion() float64 {
	if n.Code.Data > 0 {
		return float64(n.copies()) / float64(n.Code.Data)
	}
	return float64(n.Replicas)
}

// schemes returns the protocols to choose from.
func (n *Need) schemes() []cluster.Scheme {
	if len(n.Protocols) > 0 {
		return n.Protocols
	}
	return cluster.SharedSchemes()
}

// groups returns the group sizes to choose from; a single 0 means no groups.
func (n *Need) groups(s cluster.Scheme) []int {
	switch {
	case !s.Grouped():
		return []int{0}
	case len(n.GroupSizes) > 0:
		return n.GroupSizes
	}
	c := n.copies()
	return []int{2 * c, 3 * c, 4 * c}
}

// names lists protocols in a sentence.
func names(list []cluster.Scheme) string {
	var out []string
	for _, s := range list {
		out = append(out, s.String())
	}
	return strings.Join(out, ", ")
}

// mostCopies is the largest number of nodes per chunk in package cluster.
const mostCopies = 16

// Option is a design without its number of nodes.
type Option struct {
	Drive, NIC int // indices into the need's lists
	Protocol   cluster.Scheme
	Group      int // 0 if there are none
}

// Design is a candidate cluster.
type Design struct {
	Option
	Nodes int
}

// step is the distance between valid numbers of nodes.
func (o Option) step() int { return max(o.Group, 1) }

// Config is the cluster of a design under the needed load, with the given number of nodes down. Those are the first
// nodes, which share a group if there are groups: the worst case.
func (n *Need) Config(d Design, down int) cluster.Config {
	c := n.Cluster
	c.Targets, c.Protocol, c.Gateways = d.Nodes, d.Protocol, n.gateways(d.Nodes)
	c.Chunk, c.Replicas, c.Code, c.Reads = n.Chunk, n.Replicas, n.Code, n.Reads
	c.Load = cluster.Load{Rate: n.Rate}
	if len(n.Drives) > 0 {
		c.Disk.Rate = n.Drives[d.Drive].Rate
	}
	if len(n.NICs) > 0 {
		c.Link.Rate = n.NICs[d.NIC].Rate
	}
	for _, u := range c.Unused() {
		u.Reset() // it applies to other protocols
	}
	if d.Protocol.Grouped() {
		c.Group, c.Placement, c.Choices = d.Group, cluster.PlaceRandom, 1
	}
	c.Failures = nil
	if down == 0 {
		c.Repair = cluster.DefaultConfig().Repair
		return c
	}
	// Their contents are rebuilt during the run: a real drive holds so much more than is put in a run that the rebuild
	// outlasts it, so the cluster is judged while it rebuilds, not before or after.
	c.Repair.Detect = 0
	c.Objects = max(c.Objects, n.rebuilt(&c, down))
	for t := range down {
		c.Failures = append(c.Failures, cluster.Failure{Target: t})
	}
	return c
}

// mostObjects limits the objects stored for a rebuild, and with it time and memory. If a rebuild completes before the
// run ends, percentiles are those of the time before.
const mostObjects = 1 << 18

// rebuilt is the number of chunks to store so that a rebuild lasts as long as a run, at the highest rate that disks and
// streams allow.
func (n *Need) rebuilt(c *cluster.Config, down int) int {
	share := math.Min(float64(c.Repair.Disk), float64(c.Repair.Streams))
	piece := float64(n.Chunk) * n.expansion() / float64(n.copies())
	pieces := float64((c.Targets-down)*int(n.Until()/units.Microsecond)) / 1e6 * share * float64(c.Disk.Rate) /
		(2 * piece)
	return int(math.Min(pieces*float64(c.Targets)/float64(n.copies()*down), mostObjects))
}

// gateways is the number of gateways for the given number of nodes.
func (n *Need) gateways(nodes int) int {
	if n.Gateways.Count > 0 {
		return n.Gateways.Count
	}
	return nodes
}

// hoursAYear is the number of hours in 365 days.
const hoursAYear = 24 * 365

// Cost is the cost of a design: nodes, gateways and electricity.
func (n *Need) Cost(d Design) units.Money {
	drive, nic := &n.Drives[d.Drive], &n.NICs[d.NIC]
	kwh := (n.Node.Watts + drive.Watts + nic.Watts) / 1000 * hoursAYear * n.Power.Years * n.Power.PUE
	each := n.Node.Price + drive.Price + nic.Price + units.Money(kwh*float64(n.Power.Price))
	nodes := units.Money(float64(d.Nodes) * float64(each))
	return nodes + units.Money(float64(n.gateways(d.Nodes))*float64(n.Gateways.Price))
}

// Until is the duration of a run.
func (n *Need) Until() units.Duration {
	arrive := float64(n.Search.Chunks) / n.Rate * float64(units.Second)
	long := 100 * max(n.PutP99, n.GetP99)
	measured := math.Max(arrive, float64(long))
	return units.Duration(math.Ceil(measured/(1-float64(n.Search.WarmUp))/float64(units.Millisecond))) *
		units.Millisecond
}

// Label names a design in reports and runs.
func (n *Need) Label(d Design) string {
	text := fmt.Sprintf("%v, %s, %s, %s", d.Protocol, plural(d.Nodes, "node"), n.Drives[d.Drive].Name,
		n.NICs[d.NIC].Name)
	if d.Group > 0 {
		text += fmt.Sprintf(", groups of %d", d.Group)
	}
	return text
}

func plural(k int, noun string) string {
	if k == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", k, noun)
}

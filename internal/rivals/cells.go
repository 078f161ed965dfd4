package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"farflash/numeric/rng"
)

// The dimensions of the grid.
var (
	chunks     = []string{"16KiB", "128KiB", "1MiB"}
	hardwares  = []hardware{{400, 10}, {1000, 10}, {1000, 25}}
	codes      = []code{{}, {4, 2}, {8, 3}}
	conditions = []string{equal, slow, loss, ssds}
	loads      = []load{{outstanding: 1}, {outstanding: 2}, {outstanding: 4}, {outstanding: 8}, {outstanding: 16},
		{share: 50}, {share: 70}, {share: 90}, {share: 95}, {share: 70, bursts: true}}
)

// Conditions of the disks and the network.
const (
	equal = "equal"
	slow  = "a tenth slow" // a tenth of the disks have a quarter of the rate
	loss  = "0.1 % lost"   // of all frames and messages
	ssds  = "SSDs with GC" // small drives that are full
)

// nodes is the number of gateways, and of targets.
const nodes = 90

// hardware is the rate of disks, in MiB/s, and of links, in Gbit/s.
type hardware struct{ disk, link int }

func (h hardware) String() string { return fmt.Sprintf("%d MiB/s, %dG", h.disk, h.link) }

// code is the redundancy of a chunk; the zero value is three replicas.
type code struct{ data, parity int }

func (c code) String() string {
	if c.data == 0 {
		return "3 replicas"
	}
	return fmt.Sprintf("%d+%d", c.data, c.parity)
}

// copies returns the number of targets that store a part of a chunk.
func (c code) copies() int {
	if c.data == 0 {
		return 3
	}
	return c.data + c.parity
}

// written returns the number of bytes written for each byte put.
func (c code) written() float64 {
	if c.data == 0 {
		return 3
	}
	return float64(c.data+c.parity) / float64(c.data)
}

// load is the load of a gateway: a closed loop with a number of outstanding chunks, or an open loop at a share, in per
// cent, of the rate that the disks allow, with single chunks or bursts.
type load struct {
	outstanding, share int
	bursts             bool
}

// open reports whether chunks arrive in an open loop.
func (l load) open() bool { return l.share > 0 }

func (l load) String() string {
	switch {
	case l.bursts:
		return fmt.Sprintf("bursts %d %%", l.share)
	case l.open():
		return fmt.Sprintf("open %d %%", l.share)
	}
	return fmt.Sprint(l.outstanding, " outstanding")
}

// keepsUp returns the share of the chunks arriving in an open loop that may be incomplete by chance at the end of the
// measured time: bursts vary more. In a closed loop it is zero.
func (l load) keepsUp() float64 {
	switch {
	case l.bursts:
		return 0.03
	case l.open():
		return 0.02
	}
	return 0
}

// cell is a case in which pull and its rivals are compared.
type cell struct {
	chunk     string
	hardware  hardware
	code      code
	condition string
	load      load
}

// String names a cell by the values of its dimensions, which are its key in the table.
func (x cell) String() string { return strings.Join(x.key(), ", ") }

func (x cell) key() []string {
	return []string{x.chunk, x.hardware.String(), x.code.String(), x.condition, x.load.String()}
}

// cells returns all cells. SSDs cost a hundred times as much to simulate as disks of a constant rate, so few cells have
// them.
func cells() []cell {
	var list []cell
	for _, condition := range conditions {
		for _, c := range codes {
			for _, chunk := range chunks {
				for _, h := range hardwares {
					for _, l := range loads {
						if x := (cell{chunk, h, c, condition, l}); condition != ssds || x.withDrives() {
							list = append(list, x)
						}
					}
				}
			}
		}
	}
	return list
}

// withDrives reports whether a cell is among those that have SSDs.
func (x cell) withDrives() bool {
	return x.chunk == "128KiB" && x.hardware.link == 10 && x.code.data <= 4 &&
		slices.Contains([]load{{outstanding: 1}, {outstanding: 4}, {share: 70}, {share: 90},
			{share: 70, bursts: true}}, x.load)
}

// setting returns a cell without its load.
func (x cell) setting() cell {
	x.load = load{}
	return x
}

// settings returns all cells, grouped by setting. The settings are in an order drawn once with a fixed seed, so that
// those run so far are a sample of all; the most expensive are last.
func settings() [][]cell {
	var list [][]cell
	for _, x := range cells() {
		if k := len(list) - 1; k >= 0 && list[k][0].setting() == x.setting() {
			list[k] = append(list[k], x)
		} else {
			list = append(list, []cell{x})
		}
	}
	s := rng.NewStream(1, "rivals")
	for k := len(list) - 1; k > 0; k-- {
		j := int(s.IntN(int64(k + 1)))
		list[k], list[j] = list[j], list[k]
	}
	slices.SortStableFunc(list, func(a, b []cell) int { return cmp.Compare(a[0].cost(), b[0].cost()) })
	return list
}

// cost orders settings by the cost of simulating them: chunks of a mebibyte cost several times as much as smaller ones,
// and SSDs still more.
func (x cell) cost() int {
	switch {
	case x.condition == ssds:
		return 2
	case x.chunk == "1MiB":
		return 1
	}
	return 0
}

// bytes returns a chunk's size.
func (x cell) bytes() float64 {
	return map[string]float64{"16KiB": 16 << 10, "128KiB": 128 << 10, "1MiB": 1 << 20}[x.chunk]
}

// disks returns the number of chunks per second that disks of a constant rate allow.
func (x cell) disks() float64 {
	rate := nodes * float64(x.hardware.disk) * (1 << 20) / (x.bytes() * x.code.written())
	if x.condition == slow {
		rate *= 0.9 + 0.1/4
	}
	return rate
}

// rival is a protocol and its keys.
type rival struct {
	protocol string
	set      []string // keys of object_cluster, in YAML
	says     string
}

func (r rival) String() string {
	if r.says == "" {
		return r.protocol
	}
	return r.protocol + ", " + r.says
}

// smallMessages makes Replicast's control messages as small as those of the other protocols, with 3 % of the links'
// rate.
const smallMessages = "control: {replicast: 100B, share: 3%}"

// rivals returns the forms of the other protocols that are tried in a cell. With coding, of Replicast only replicast-h
// is tried, because the other forms send the same data to all targets; with loss, replicast-proxy is not tried, because
// a group cannot proceed without its proxy. At most 64 targets are asked.
func (x cell) rivals() []rival {
	var list []rival
	for _, p := range []string{"chain", "dctcp", "grants"} {
		for d := 1; d <= 6 && d*x.code.copies() <= 64; d++ {
			list = append(list, rival{p, []string{fmt.Sprintf("choices: %d", d)}, fmt.Sprint(d)})
		}
	}
	windows := func(p, width string) {
		if x.code.copies() <= 9 {
			list = append(list, rival{p, []string{smallMessages, "bid_width: " + width}, "bids of " + width})
		} else {
			list = append(list, rival{p, []string{smallMessages, "bid_width: " + width, "group: 18"},
				"bids of " + width + ", groups of 18"})
		}
	}
	windows("replicast-h", "110%")
	if x.code.data > 0 {
		return list
	}
	for _, width := range []string{"110%", "140%", "200%"} {
		windows("replicast-m", width)
	}
	if x.condition == loss {
		return list
	}
	for _, group := range []int{9, 18, 45} {
		list = append(list, rival{"replicast-proxy", []string{smallMessages, fmt.Sprintf("group: %d", group)},
			fmt.Sprintf("groups of %d", group)})
	}
	return list
}

// usual is pull with its defaults.
var usual = rival{protocol: "pull"}

// pulls returns the forms of pull that are tried: sizes of its two groups, and how far ahead of need targets offer
// themselves, as multiples of the default.
func (x cell) pulls(ahead float64) []rival {
	var list []rival
	for _, group := range []int{5, 9, 18, 30} {
		if 2*group < x.code.copies() {
			continue
		}
		for _, times := range []int{1, 2, 4} {
			r := rival{protocol: "pull"}
			var says []string
			if group != 9 {
				r.set, says = append(r.set, fmt.Sprintf("group: %d", group)),
					append(says, fmt.Sprintf("groups of %d", group))
			}
			if times > 1 {
				r.set, says = append(r.set, fmt.Sprintf("ahead: %.3gus", float64(times)*ahead)),
					append(says, fmt.Sprintf("ahead x %d", times))
			}
			r.says = strings.Join(says, ", ")
			list = append(list, r)
		}
	}
	// The default form is first, so that it wins ties.
	k := slices.IndexFunc(list, func(r rival) bool { return r.says == "" })
	list[0], list[k] = list[k], list[0]
	return list
}

// window returns the duration of a rival's run in seconds, of which the first half is not measured: the time that disks
// take for the given rounds, in chunks per gateway, but at least for a multiple, deep, of the outstanding chunks.
// Bursts run longer because they vary more, and large chunks shorter because they cost more.
func (x cell) window(rounds, deep int) float64 {
	if x.load.bursts {
		rounds *= 2
	}
	switch {
	case x.chunk == "1MiB":
		rounds /= 2
	case x.chunk == "16KiB" && rounds >= finally:
		rounds *= 2
	}
	return nodes * float64(max(rounds, deep*x.load.outstanding)) / x.capacity()
}

// scenario returns the text of the scenario to run.
func (x cell) scenario(r rival, seconds float64) string {
	keys := append([]string{"protocol: " + r.protocol, "chunk: " + x.chunk}, r.set...)
	disk := fmt.Sprintf("rate: %dMiB/s", x.hardware.disk)
	link := fmt.Sprintf("rate: %dGbps", x.hardware.link)
	switch x.condition {
	case slow:
		disk += fmt.Sprintf(", kinds: [{share: 10%%, rate: %dMiB/s}]", x.hardware.disk/4)
	case loss:
		link += ", loss: 0.1%"
	case ssds:
		disk += ", model: ssd"
	}
	keys = append(keys, "disk: {"+disk+"}", "link: {"+link+"}")
	if x.code.data > 0 {
		keys = append(keys, fmt.Sprintf("code: {data: %d, parity: %d}", x.code.data, x.code.parity))
	}
	if x.load.open() {
		of := fmt.Sprintf("rate: %.0f", x.capacity()*float64(x.load.share)/100)
		if x.load.bursts {
			of += ", burst: 64"
		}
		keys = append(keys, "load: {"+of+"}", "outstanding: 256")
	} else {
		keys = append(keys, fmt.Sprintf("outstanding: %d", x.load.outstanding))
	}
	text := "object_cluster: {" + strings.Join(keys, ", ") + "}\n" +
		fmt.Sprintf("measure: {until: %.0fns, warm_up: 50%%}\n", seconds*1e9)
	if x.condition == ssds {
		text += drives[x.hardware.disk]
	}
	return text
}

// drives are the SSDs: small, full, and without a write cache that would absorb writes at first, so that the cost of
// collection shows at once. Their rate for random extents is near that of the disks that they replace.
var drives = map[int]string{
	400: "ssd: {preset: tlc-enterprise, geometry: {channels: 4, chips_per_channel: 2, blocks_per_plane: 24, " +
		"pages_per_block: 32}, cache: {mode: off}, preconditioning: {fill: steady}}\n",
	1000: "ssd: {preset: tlc-enterprise, geometry: {channels: 8, chips_per_channel: 2, blocks_per_plane: 24, " +
		"pages_per_block: 32}, cache: {mode: off}, preconditioning: {fill: steady}}\n",
}

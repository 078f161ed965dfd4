package report

import (
	"fmt"
	"math"
	"math/rand/v2"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

// toy is a small queueing model of a drive with results like those of the real one: dies and channels that serve in
// order, a write cache, and garbage collection that starts when free blocks run low. It exists to test drawing.
type toy struct {
	name     string
	channels int
	dies     int // per channel
	moved    int // pages that a collection moves out of a block
	readUS   float64
	requests int
	gap      float64 // mean us between requests
}

const (
	pagesPerBlock = 64
	toyPage       = 16384
)

func (c toy) run(seed uint64) Run {
	r := result.New(trial.Vocabulary(),
		fmt.Sprintf("sha256:%016x%016x", seed*0x9e3779b97f4a7c15, uint64(c.moved)*0xbf58476d1ce4e5b9), seed, "0.1.0")
	r.Name = c.name
	r.Summary = fmt.Sprintf("%d requests of 16 KiB, 70 %% reads, at random; drive with %d channels x %d dies",
		c.requests, c.channels, c.dies)
	g := rand.New(rand.NewPCG(seed, 99))
	us := units.Microseconds
	n := c.channels * c.dies
	free := make([]units.Duration, n) // when a die becomes idle
	busy, channelBusy := make([]units.Duration, n), make([]units.Duration, c.channels)
	written, blocks := make([]int, n), make([]int, n)
	erases := make([]int, n*40)
	for i := range blocks {
		blocks[i] = 5
	}
	var now units.Duration
	var h [3]stats.Histogram
	config := stats.SeriesConfig{Width: 100 * units.Microsecond, Bins: 160}
	var volume [2]*stats.Series
	var latency [2]*stats.LatencySeries
	for i := range 2 {
		volume[i], latency[i] = stats.NewSeries(config), stats.NewLatencySeries(config)
	}
	// host, gc, mapping
	writes := [3]*stats.Series{stats.NewSeries(config), stats.NewSeries(config), stats.NewSeries(config)}
	freeBlocks := stats.NewSeries(config)
	var count [3]int64
	var phases [2][7]float64
	var bytes [2]int64
	collections, moves := 0, 0
	var end units.Duration
	warm := 250 * units.Millisecond
	serve := func(die int, at, work units.Duration) (start, done units.Duration) {
		start = max(at, free[die])
		done = start + work
		free[die] = done
		busy[die] += work
		return start, done
	}
	for i := range c.requests {
		rate := 1 + 0.35*math.Sin(float64(i)/float64(c.requests)*9)
		now += us(c.gap / rate * g.ExpFloat64())
		die := g.IntN(n)
		if g.Float64() < 0.1 {
			die = g.IntN(1 + n/5) // some dies are more popular
		}
		ch := die / c.dies
		op := 0
		if g.Float64() >= 0.7 {
			op = 1
		}
		sent := now + us(2)
		var done units.Duration
		var parts [7]float64
		if op == 0 {
			mapping := 0.0
			if g.Float64() < 0.12 {
				mapping = c.readUS
			}
			work := us(c.readUS + mapping)
			start, ready := serve(die, sent, work)
			channelBusy[ch] += us(13.7)
			done = ready + us(13.7+4.2)
			parts = [7]float64{6.2, 0, mapping, (start - sent).Microseconds(), c.readUS, 13.7, 0}
		} else {
			// A write completes when the cache has it, unless the die is so far behind that the cache is full.
			full := max(0, free[die]-sent-6*units.Millisecond)
			dram := 7 + 3*g.ExpFloat64()
			done = sent + us(dram) + full
			parts = [7]float64{2, dram, 0, full.Microseconds(), 0, 0, 0}
			serve(die, sent, us(13.7+640))
			channelBusy[ch] += us(13.7)
			writes[0].Add(now, 1)
			count[0]++
			if g.Float64() < 0.03 {
				serve(die, sent, us(640))
				writes[2].Add(now, 1)
				count[2]++
			}
			written[die]++
			if written[die]%pagesPerBlock == 0 {
				blocks[die]--
			}
			for blocks[die] < 4 && now > 0 {
				k := c.moved + g.IntN(9) - 4
				serve(die, free[die], us(float64(k)*(c.readUS+640)+3500))
				writes[1].Add(now, int64(k))
				count[1] += int64(k)
				moves += k
				collections++
				blocks[die]++
				erases[die*40+g.IntN(40)]++
				written[die] += k
			}
		}
		if i%64 == 0 {
			sum := 0
			for _, b := range blocks {
				sum += b
			}
			freeBlocks.Add(now, int64(sum))
		}
		end = max(end, done)
		volume[op].Add(done, toyPage)
		latency[op].Add(done, done-now)
		if now < warm {
			continue
		}
		h[op].Record(done - now)
		h[2].Record(done - now)
		bytes[op] += toyPage
		for k := range parts {
			phases[op][k] += parts[k]
		}
	}
	r.SimulatedS = end.Seconds()
	r.WarmUp = result.WarmUp{UntilS: warm.Seconds(), Explain: "MSER-5 cuts the first 20 of 160 observations (13 %)"}
	measured := (end - warm).Seconds()
	for i, op := range []string{"read", "write", "all"} {
		r.SetLatencies(op, &h[i])
		b := bytes[0] + bytes[1]
		if i < 2 {
			b = bytes[i]
			r.SetSeries(op+".bandwidth", volume[i].Width(), volume[i].Rates(end))
			r.SetSeries(op+".iops", volume[i].Width(), volume[i].CountRates(end))
			r.SetSeries(op+".latency.mean", latency[i].Width(), scale(latency[i].Means(), 1e-6))
			r.SetSeries(op+".latency.p99", latency[i].Width(), scale(latency[i].Quantiles(0.99), 1e-6))
		}
		r.Set(op+".count", float64(h[i].Count()))
		r.Set(op+".bytes", float64(b))
		r.Set(op+".iops", float64(h[i].Count())/measured)
		r.Set(op+".bandwidth", float64(b)/measured)
	}
	for i, name := range []string{"host", "gc", "mapping"} {
		sums := make([]float64, len(writes[i].Slots()))
		for k := range sums {
			sums[k] = writes[i].Slots()[k].Sum()
		}
		for len(sums) < len(writes[0].Slots()) {
			sums = append(sums, 0)
		}
		r.SetSeries("ssd.writes."+name, writes[0].Width(), sums)
		r.Set("ssd.writes."+name, float64(count[i]))
	}
	r.SetSeries("ssd.free_blocks", freeBlocks.Width(), freeBlocks.Means())
	r.Set("ssd.writes.wear", 0)
	r.Set("ssd.waf", float64(count[0]+count[1]+count[2])/float64(count[0]))
	r.Set("ssd.gc.count", float64(collections))
	r.Set("ssd.gc.pages_moved", float64(moves))
	r.Set("ssd.cmt.hit_ratio", 0.88)
	r.Set("ssd.cache.hit_ratio", 0.043)
	c.fill(r, end, busy, channelBusy, erases)
	rows := make([][]float64, 2)
	for i := range rows {
		for k := range phases[i] {
			rows[i] = append(rows[i], phases[i][k]/float64(h[i].Count()))
		}
	}
	r.SetMatrix("ssd.latency.breakdown", []string{"read", "write"},
		[]string{"host_link", "dram", "mapping", "wait", "array", "transfer", "other"}, rows)
	r.Check("requests conserved", true, fmt.Sprintf("issued %d = completed %d", c.requests, c.requests))
	r.Check("bytes conserved", true, fmt.Sprintf("asked for %d = moved %d", c.requests*toyPage, c.requests*toyPage))
	r.Check("pages conserved", true,
		fmt.Sprintf("programs %d = host %d + collection %d + mapping %d", count[0]+count[1]+count[2], count[0],
			count[1], count[2]))
	r.Warn("the trace is shorter than the time that wear levelling needs to show (%d erases in all)", collections)
	r.Limits = []string{"Program and erase failures are not modelled.", "The host's software takes no time."}
	r.Set("sim.events", float64(c.requests*9))
	return Run{Path: "runs/" + c.name, Result: r, Scenario: c.scenario(),
		Command:   "farflash run " + c.name + ".yaml --set ssd.over_provisioning=7% --until steady",
		Timing:    &result.Timing{WallS: 0.412, CPUS: 0.4, EventsPerS: 12.3e6},
		Citations: "@inproceedings{snis,\n  title = {Iterative storage network simulation},\n}\n"}
}

// fill sets the figures per die, channel and block.
func (c toy) fill(r *result.Result, end units.Duration, busy, channelBusy []units.Duration, erases []int) {
	var rows, cols, chans []string
	v := make([][]float64, c.channels)
	sum := 0.0
	for ch := range c.channels {
		rows = append(rows, fmt.Sprint(ch))
		for d := range c.dies {
			share := math.Min(busy[ch*c.dies+d].Seconds()/end.Seconds(), 1)
			v[ch] = append(v[ch], share)
			sum += share / float64(c.channels*c.dies)
		}
	}
	for d := range c.dies {
		cols = append(cols, fmt.Sprintf("%d.%d", d/2, d%2))
	}
	r.SetMatrix("ssd.die.busy", rows, cols, v)
	r.Set("ssd.utilisation.die", sum)
	line := make([]float64, c.channels)
	sum = 0
	for ch := range c.channels {
		chans = append(chans, fmt.Sprint(ch))
		line[ch] = channelBusy[ch].Seconds() / end.Seconds()
		sum += line[ch] / float64(c.channels)
	}
	r.SetMatrix("ssd.channel.busy", []string{"busy"}, chans, [][]float64{line})
	r.Set("ssd.utilisation.channel", sum)
	most, all := 0, 0
	for _, e := range erases {
		most = max(most, e)
		all += e
	}
	wear := make([]float64, most+1)
	for _, e := range erases {
		wear[e]++
	}
	var labels []string
	for i := range wear {
		labels = append(labels, fmt.Sprint(i))
	}
	r.SetMatrix("ssd.wear", []string{"blocks"}, labels, [][]float64{wear})
	r.Set("ssd.wear.max", float64(most))
	r.Set("ssd.wear.mean", float64(all)/float64(len(erases)))
}

func scale(v []float64, by float64) []float64 {
	for i := range v {
		v[i] *= by
	}
	return v
}

func (c toy) scenario() []Line {
	return parseScenario(fmt.Sprintf(`name: %s
workload:
  - synthetic:
      requests: %d
      reads:
        share: 70%%
        size: 16KiB
        interarrival: {mean: %gus, scv: 1}
      writes:
        size: 16KiB                # default
        addresses: uniform         # default
ssd:
  geometry:
    channels: %d
    chips: 2                       # default
    dies: %d
    planes: 4                      # default
    blocks: 40
    pages: %d
    page: 16KiB                    # default
  timing:
    read: %gus
    program: 640us                 # default
    erase: 3500us                  # default
    channel_rate: 1200MT/s         # default
  over_provisioning: %d%%           # set
  cache: {size: 64MiB, mode: write-back}  # default
  gc:
    victim: greedy                 # default
    start: 5%%                      # default
    streams: false                 # default
  mapping:
    cmt: 2MiB                      # default
  wear:
    static: 100                    # default
until: steady                      # set
`, c.name, c.requests, c.gap, c.channels, c.dies/2, pagesPerBlock, c.readUS, 35-c.moved))
}

var (
	toyA = toy{name: "tlc-7pc-op", channels: 8, dies: 4, moved: 28, readUS: 62, requests: 60000, gap: 34}
	toyB = toy{name: "tlc-28pc-op", channels: 8, dies: 4, moved: 9, readUS: 62, requests: 60000, gap: 34}
	toyC = toy{name: "slow-reads", channels: 4, dies: 8, moved: 28, readUS: 95, requests: 60000, gap: 34}
)

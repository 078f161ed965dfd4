package drivemeter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/block"
	"farflash/experiment"
	"farflash/experiment/accounts"
	"farflash/internal/spelling"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// Fill fills a result with the measurements.
func (m *Meter) Fill(out *experiment.Outcome) {
	s, r, interrupted := m.s, out.Result, out.Interrupted
	last := &m.marks[len(m.marks)-1]
	end := last.at
	r.SimulatedS = end.Seconds()
	if r.Summary == "" {
		r.Summary = summary(s, m.drives[0])
		if s.HostRAID != nil {
			r.Summary = fmt.Sprintf("%v, over %s: %s", s.HostRAID, spelling.Plural(len(m.drives), "drive"), r.Summary)
		}
	}
	r.Limits = append(r.Limits, limits(s)...)

	skip, explain, found := m.cut(s.Measure.WarmUp)
	m.skip = skip
	var from mark
	if skip > 0 {
		from = m.marks[skip-1]
		r.WarmUp = result.WarmUp{UntilS: from.at.Seconds(), Explain: explain}
	}
	span := (end - from.at).Seconds()
	m.requests(r, skip, &from, last, span)
	out.Own = m.Book.Own(from.at)
	f := figures{r: r, cfg: m.same, drives: m.drives, now: last.drive.Since(&from.drive), span: end - from.at}
	if m.Inside == nil {
		for op := range f.outside {
			f.outside[op] = last.spent[op].Minus(from.spent[op]).Minus(f.now.Breakdown[op].All)
		}
	}
	f.fill()
	r.Set("sim.events", float64(out.Events))
	m.series(r)

	issued, ended := m.host.Issued(), m.host.Ended()
	if m.Inside == nil {
		inFlight := m.drives[0].InFlight()
		waiting := m.host.Waiting()
		r.Check("host's requests conserved", issued == ended+inFlight+waiting,
			fmt.Sprintf("issued %d = completed %d + in the drive %d + waiting for a queue entry %d", issued, ended,
				inFlight, waiting))
	} else {
		inFlight := m.Inside()
		r.Check("hosts' requests conserved", issued == ended+inFlight,
			fmt.Sprintf("issued %d = completed %d + under way %d", issued, ended, inFlight))
	}
	CheckDrives(r, m.drives)
	m.warn(s, r, found, explain, interrupted)
	if m.steady != nil {
		m.steady.fill(m, r, &last.drive, interrupted)
	}
}

// requests fills in counts, rates and latencies of the requests that completed after the warm-up.
func (m *Meter) requests(r *result.Result, skip int, from, last *mark, span float64) {
	var all stats.Histogram
	var count, bytes int64
	for op := range block.Ops {
		h := &m.host.Measured(op).Latency
		if skip > 0 {
			h = new(stats.Histogram)
			for _, b := range m.bins[skip:] {
				h.Merge(&b[op].h)
			}
		}
		n, b := last.count[op]-from.count[op], last.bytes[op]-from.bytes[op]
		if n == 0 {
			continue
		}
		name := op.String()
		accounts.Rates(r, name, n, b, span)
		r.SetLatencies(name, h)
		count += n
		bytes += b
		all.Merge(h)
	}
	accounts.Rates(r, "all", count, bytes, span)
	if all.Count() > 0 {
		r.SetLatencies("all", &all)
	}
	for _, b := range m.books[min(skip, len(m.books)):] {
		m.Book.Back(b)
	}
	m.Book.Fill(r, span, count)
}

// CheckDrives adds the drives' conservation laws: those of a single drive, or for each law the number of drives that
// satisfy it, with the first violation.
func CheckDrives(r *result.Result, drives []*ssd.Drive) {
	checks := drives[0].Checks()
	if len(drives) == 1 {
		for _, c := range checks {
			r.Check(c.Name, c.OK, c.Detail)
		}
		return
	}
	bad := make([]string, len(checks))
	for i, d := range drives {
		for k, c := range d.Checks() {
			if !c.OK && bad[k] == "" {
				bad[k] = fmt.Sprintf("ssd[%d]: %s", i, c.Detail)
			}
		}
	}
	for k, c := range checks {
		detail := fmt.Sprintf("on each of %d drives", len(drives))
		if bad[k] != "" {
			detail = bad[k]
		}
		r.Check("drives: "+c.Name, bad[k] == "", detail)
	}
}

// FillDrives fills in the statistics of drives over a span: sums over all of them, and means of shares and times. same
// is the drive that all are equal to; nil if they differ.
func FillDrives(r *result.Result, same *scenario.Drive, drives []*ssd.Drive, did ssd.Stats, span units.Duration) {
	f := figures{r: r, cfg: same, drives: drives, now: did, span: span}
	f.fill()
}

type figures struct {
	r      *result.Result
	cfg    *scenario.Drive // that all drives are equal to; nil if they differ
	drives []*ssd.Drive
	now    ssd.Stats
	span   units.Duration
	// For a local drive's reads and writes, the part of their latencies before the drive received them.
	outside [2]units.Total
}

func (f *figures) fill() {
	x, r := &f.now, f.r
	r.Set("ssd.free_blocks.min", float64(x.FewestFree))
	if x.HostPrograms > 0 {
		r.Set("ssd.waf", float64(x.HostPrograms+x.MovePrograms+x.MappingPrograms)/float64(x.HostPrograms))
	}
	if n := x.Bytes[block.Write]; n > 0 {
		r.Set("ssd.waf.bytes", float64(x.Programmed)/float64(n))
	}
	r.Set("ssd.writes.host", float64(x.HostPrograms))
	r.Set("ssd.writes.gc", float64(x.Collected()))
	r.Set("ssd.writes.wear", float64(x.WearPrograms))
	r.Set("ssd.writes.mapping", float64(x.MappingPrograms))
	r.Set("ssd.gc.count", float64(x.FTL.Collections))
	r.Set("ssd.gc.pages_moved", float64(x.Collected()))
	r.Set("ssd.flash.reads", float64(x.Reads))
	r.Set("ssd.flash.programs", float64(x.Programs))
	r.Set("ssd.flash.erases", float64(x.Erases))
	r.Set("ssd.flash.suspensions", float64(x.ProgramsSuspended+x.ErasesSuspended))
	if n := x.MapHits + x.MapMisses; n > 0 {
		r.Set("ssd.cmt.hit_ratio", float64(x.MapHits)/float64(n))
	}
	if n := x.CacheHits + x.CacheMisses; n > 0 {
		r.Set("ssd.cache.hit_ratio", float64(x.CacheHits)/float64(n))
	}
	if f.span > 0 {
		n := float64(len(f.drives))
		if len(x.LaneBusy) > 0 {
			r.Set("ssd.utilisation.die", mean(x.LaneBusy)/float64(f.span)/n)
			r.Set("ssd.utilisation.channel", mean(x.ChannelBusy)/float64(f.span)/n)
		}
		r.Set("ssd.utilisation.link", float64(max(x.LinkBusy[0], x.LinkBusy[1]))/float64(f.span)/n)
		if f.cfg != nil {
			f.busy()
		}
	}
	for i, op := range []string{"read", "write"} {
		if n := float64(x.Transactions[i]); n > 0 {
			r.Set("ssd.transaction.execution."+op+".mean", x.Array[i].Microseconds()/n)
			r.Set("ssd.transaction.transfer."+op+".mean", x.Transfer[i].Microseconds()/n)
			r.Set("ssd.transaction.wait."+op+".mean", x.Wait[i].Microseconds()/n)
		}
	}
	f.breakdown()
	f.queues()
	f.wear()
	f.errors()
	f.slc()
	f.zones()
	f.placement()
	f.limited()
	f.controllers()
	f.namespaces()
	if f.cfg != nil && f.cfg.Energy != nil {
		j := x.Energy + float64(float64(f.cfg.Energy.Idle*f.span.Seconds())*float64(len(f.drives)))
		r.Set("ssd.energy", j)
		if f.span > 0 {
			r.Set("ssd.power", j/f.span.Seconds())
		}
	}
}

// some reports whether a drive's configuration satisfies a condition.
func (f *figures) some(is func(c *ssd.Config) bool) bool {
	for _, d := range f.drives {
		if c := d.Config(); is(&c) {
			return true
		}
	}
	return false
}

// controllers fills in the processors' utilisation, and the time in low-power states, for drives that have them.
func (f *figures) controllers() {
	processors, states := 0, 0
	for _, d := range f.drives {
		c := d.Config()
		if c.Controller != nil {
			processors += c.Controller.Processors
		}
		states = max(states, len(c.PowerStates))
	}
	if processors > 0 && f.span > 0 {
		f.r.Set("ssd.utilisation.controller", float64(f.now.ControllerBusy)/float64(f.span)/float64(processors))
	}
	if states == 0 {
		return
	}
	f.r.Set("ssd.power_states.wakes", float64(f.now.Wakes))
	rested := sim.Time(0)
	for _, t := range f.now.Rested {
		rested += t
	}
	if f.span > 0 && len(f.now.Rested) > 0 {
		f.r.Set("ssd.power_states.rested", float64(rested)/float64(f.span)/float64(len(f.drives)))
	}
}

// namespaces fills in the pages programmed for each namespace, for drives that have several.
func (f *figures) namespaces() {
	for i, n := range f.now.Namespaces {
		f.written("namespace["+strconv.Itoa(i)+"].", n.Written, n.Moved)
	}
}

// written fills in the pages programmed for a part of a drive.
func (f *figures) written(scope string, host, moved uint64) {
	f.r.Set(scope+"writes.host", float64(host))
	f.r.Set(scope+"writes.moved", float64(moved))
	if host > 0 {
		f.r.Set(scope+"waf", float64(host+moved)/float64(host))
	}
}

// errors fills in the handling of bit errors, for drives whose flash has them.
func (f *figures) errors() {
	if !f.some(func(c *ssd.Config) bool { return c.Reliability != nil }) {
		return
	}
	e, r := &f.now.Errors, f.r
	if e.Sensed > 0 {
		r.Set("ssd.errors.rate", e.RateSum/float64(e.Sensed))
		r.Set("ssd.errors.retried", float64(e.Retried)/float64(e.Sensed))
	}
	r.Set("ssd.errors.retries", float64(e.Retries))
	r.Set("ssd.errors.uncorrectable", float64(e.Uncorrectable))
	r.Set("ssd.errors.lost", float64(e.Lost))
	r.Set("ssd.errors.failed", float64(f.now.Failed))
	r.Set("ssd.refresh.count", float64(f.now.FTL.Renewals))
	r.Set("ssd.writes.refresh", float64(f.now.RenewPrograms))
}

// zones fills in the operations on zones, for drives that have them.
func (f *figures) zones() {
	if !f.some(func(c *ssd.Config) bool { return c.Zones != nil }) {
		return
	}
	z, r := &f.now.Zones, f.r
	r.Set("ssd.zones.appends", float64(z.Appends))
	r.Set("ssd.zones.resets", float64(z.Resets))
	r.Set("ssd.zones.finished", float64(z.Finishes))
	r.Set("ssd.zones.opened", float64(z.Opened))
	r.Set("ssd.zones.closed", float64(z.Closed))
	r.Set("ssd.zones.open", float64(f.now.ZoneLevels.Open))
	r.Set("ssd.zones.active", float64(f.now.ZoneLevels.Active))
	r.Set("ssd.zones.full", float64(f.now.ZoneLevels.Full))
}

// placement fills in the statistics of Flexible Data Placement, for drives that have it.
func (f *figures) placement() {
	if !f.some(func(c *ssd.Config) bool { return c.FDP != nil }) {
		return
	}
	x, r := &f.now, f.r
	r.Set("ssd.fdp.hbmw", float64(x.Bytes[block.Write]))
	r.Set("ssd.fdp.mbmw", float64(x.Programmed))
	c := f.drives[0].Config()
	r.Set("ssd.fdp.mbe", float64(x.Erases)*float64(c.Geometry.PagesPerBlock)*float64(c.Geometry.PageSize))
	r.Set("ssd.fdp.reclaim_unit", float64(c.ReclaimUnit()))
	for i, g := range x.Groups {
		scope := "reclaim_group[" + strconv.Itoa(i) + "]."
		r.Set(scope+"writes.strayed", float64(g.Strayed))
		f.written(scope, g.Written, g.Moved)
	}
}

// limited fills in the effect of a power limit.
func (f *figures) limited() {
	if n := f.now.PowerAsked; n > 0 {
		f.r.Set("ssd.power_limit.held", float64(f.now.PowerHeld)/float64(n))
	}
}

// slc fills in the use of an SLC cache, for drives that have one.
func (f *figures) slc() {
	if !f.some(func(c *ssd.Config) bool { return c.SLCCache != nil }) {
		return
	}
	x, r := &f.now, f.r
	if x.HostPrograms > 0 {
		r.Set("ssd.slc.share", float64(x.SLCPrograms)/float64(x.HostPrograms))
	}
	r.Set("ssd.slc.folds", float64(x.FTL.Folds))
	r.Set("ssd.writes.fold", float64(x.FoldPrograms))
	held := 0
	for _, d := range f.drives {
		held += d.SLCBlocks()
	}
	r.Set("ssd.slc.blocks", float64(held))
}

func mean(xs []sim.Time) float64 {
	sum := sim.Time(0)
	for _, x := range xs {
		sum += x
	}
	return float64(sum) / float64(max(len(xs), 1))
}

// busy fills in the matrices of dies and channels.
func (f *figures) busy() {
	g := f.cfg.Geometry
	all := float64(f.span) * float64(len(f.drives))
	dies := len(f.now.LaneBusy) / g.Channels // per channel; chips if the drive works on whole chips
	perChip := dies / g.ChipsPerChannel
	var rows, cols []string
	var v [][]float64
	for c := range g.Channels {
		rows = append(rows, strconv.Itoa(c))
		line := make([]float64, dies)
		for i := range line {
			line[i] = float64(f.now.LaneBusy[c*dies+i]) / all
		}
		v = append(v, line)
	}
	for i := range dies {
		cols = append(cols, fmt.Sprintf("%d.%d", i/perChip, i%perChip))
	}
	f.r.SetMatrix("ssd.die.busy", rows, cols, v)
	line := make([]float64, g.Channels)
	for c, b := range f.now.ChannelBusy {
		line[c] = float64(b) / all
	}
	f.r.SetMatrix("ssd.channel.busy", []string{"busy"}, rows, [][]float64{line})
}

// breakdown fills in the breakdown of requests' time.
func (f *figures) breakdown() {
	cols := []string{"queue", "host_link", "dram", "cache", "mapping", "wait", "array", "transfer", "other",
		"controller"}
	if !f.some(func(c *ssd.Config) bool { return c.Controller != nil }) {
		cols = cols[:len(cols)-1]
	}
	waits := f.outside != [2]units.Total{}
	var v [][]float64
	for i := range 2 {
		b := &f.now.Breakdown[i]
		line := make([]float64, len(cols))
		for k, t := range []units.Total{b.Queue, b.Link, b.DRAM, b.Cache, b.Mapping, b.Wait, b.Array, b.Transfer,
			b.Backlog, b.Controller}[:len(cols)] {
			line[k] = math.NaN()
			if b.Requests > 0 {
				line[k] = t.Microseconds() / float64(b.Requests)
			}
		}
		if waits {
			host := math.NaN()
			if b.Requests > 0 {
				host = f.outside[i].Microseconds() / float64(b.Requests)
			}
			line = append([]float64{host}, line...)
		}
		v = append(v, line)
	}
	if waits {
		cols = append([]string{"host"}, cols...)
	}
	f.r.SetMatrix("ssd.latency.breakdown", []string{"read", "write"}, cols, v)
}

// queueNames maps the drive's scheduler queues to their names in results, and to the group of the classes of one kind.
var queueNames = map[string][2]string{
	"mapping-read": {"mapping_read"}, "mapping-write": {"mapping_write"},
	"read-urgent": {"host_read.urgent", "host_read"}, "read-high": {"host_read.high", "host_read"},
	"read-medium": {"host_read.medium", "host_read"}, "read-low": {"host_read.low", "host_read"},
	"write-urgent": {"host_write.urgent", "host_write"}, "write-high": {"host_write.high", "host_write"},
	"write-medium": {"host_write.medium", "host_write"}, "write-low": {"host_write.low", "host_write"},
	"move-read": {"gc_read"}, "move-write": {"gc_write"}, "copyback": {"gc_write"}, "erase": {"gc_erase"},
}

// lanes is the total number of dies, or chips, of all drives.
func (f *figures) lanes() int {
	sum := 0
	for _, d := range f.drives {
		sum += d.Lanes()
	}
	return sum
}

// queues fills in the waiting times and lengths of transaction queues. The mean length is Little's: time waited over
// time.
func (f *figures) queues() {
	sums := map[string]*ssd.QueueStats{}
	var order []string
	for _, q := range f.now.Queues {
		for _, name := range queueNames[q.Name] {
			if name == "" {
				continue
			}
			x := sums[name]
			if x == nil {
				x = new(ssd.QueueStats)
				sums[name] = x
				order = append(order, name)
			}
			x.Left += q.Left
			x.Wait = x.Wait.Plus(q.Wait)
			x.MaxWait = max(x.MaxWait, q.MaxWait)
			x.MaxLength = max(x.MaxLength, q.MaxLength)
		}
	}
	for _, name := range order {
		q := sums[name]
		wait, length := "ssd.queue.wait."+name, "ssd.queue.length."+name
		if q.Left > 0 {
			f.r.Set(wait+".mean", q.Wait.Microseconds()/float64(q.Left))
			f.r.Set(wait+".max", q.MaxWait.Microseconds())
		}
		if f.span > 0 {
			f.r.Set(length+".mean", q.Wait.Picoseconds()/float64(f.span)/float64(f.lanes()))
		}
		f.r.Set(length+".max", float64(q.MaxLength))
	}
}

// wear fills in the erase counts of blocks over the drive's whole life, including those before the run according to
// ssd.reliability.
func (f *figures) wear() {
	counts := map[int]int64{}
	for _, d := range f.drives {
		before := 0
		if x := d.Config().Reliability; x != nil {
			before = x.Cycles
		}
		for n, b := range d.EraseHistogram() {
			if b > 0 {
				counts[before+n] += b
			}
		}
	}
	if len(counts) == 0 {
		return
	}
	worn := slices.Sorted(maps.Keys(counts))
	least, most := worn[0], worn[len(worn)-1]
	blocks, erases := int64(0), int64(0)
	for _, n := range worn {
		blocks += counts[n]
		erases += int64(n) * counts[n]
	}
	mean := float64(erases) / float64(blocks)
	f.r.Set("ssd.wear.min", float64(least))
	f.r.Set("ssd.wear.mean", mean)
	f.r.Set("ssd.wear.max", float64(most))
	if f.cfg != nil && f.cfg.Wear.Cycles > 0 {
		c := f.cfg.Wear.Cycles
		f.r.Set("ssd.wear.life_used", mean/float64(c))
	}
	// With more columns, erase counts are merged into equal ranges.
	const columns = 64
	step := (most-least)/columns + 1
	var cols []string
	var line []float64
	for n := least; n <= most; n += step {
		label, sum := strconv.Itoa(n), int64(0)
		if step > 1 {
			label = fmt.Sprintf("%d-%d", n, min(n+step-1, most))
		}
		for k := n; k < n+step && k <= most; k++ {
			sum += counts[k]
		}
		cols = append(cols, label)
		line = append(line, float64(sum))
	}
	f.r.SetMatrix("ssd.wear", []string{"blocks"}, cols, [][]float64{line})
}

// series fills in the time series.
func (m *Meter) series(r *result.Result) {
	for i, op := range []string{"read", "write"} {
		l := m.latency[i]
		if len(l.Slots()) == 0 {
			continue
		}
		r.SetSeries(op+".latency.mean", l.Width(), scaled(l.Means()))
		r.SetSeries(op+".latency.p99", l.Width(), scaled(l.Quantiles(0.99)))
	}
	get := func(f func(k *mark) float64) []float64 {
		out := make([]float64, len(m.marks))
		before := 0.0
		for i := range m.marks {
			v := f(&m.marks[i])
			out[i] = v - before
			before = v
		}
		return out
	}
	lengths := get(func(k *mark) float64 { return float64(k.at) })
	perSecond := func(v []float64) []float64 {
		for i := range v {
			if lengths[i] <= 0 {
				v[i] = math.NaN()
			} else {
				v[i] /= units.Duration(lengths[i]).Seconds()
			}
		}
		return v
	}
	for op := block.Read; op <= block.Write; op++ {
		if m.marks[len(m.marks)-1].count[op] == 0 {
			continue
		}
		r.SetSeries(op.String()+".iops", m.width, perSecond(get(func(k *mark) float64 { return float64(k.count[op]) })))
		r.SetSeries(op.String()+".bandwidth", m.width,
			perSecond(get(func(k *mark) float64 { return float64(k.bytes[op]) })))
	}
	r.SetSeries("ssd.writes.host", m.width, get(func(k *mark) float64 { return float64(k.drive.HostPrograms) }))
	r.SetSeries("ssd.writes.gc", m.width, get(func(k *mark) float64 { return float64(k.drive.Collected()) }))
	r.SetSeries("ssd.writes.wear", m.width, get(func(k *mark) float64 { return float64(k.drive.WearPrograms) }))
	r.SetSeries("ssd.writes.mapping", m.width, get(func(k *mark) float64 { return float64(k.drive.MappingPrograms) }))
	if last := &m.marks[len(m.marks)-1].drive; last.RenewPrograms > 0 {
		r.SetSeries("ssd.writes.refresh", m.width, get(func(k *mark) float64 { return float64(k.drive.RenewPrograms) }))
	}
	if last := &m.marks[len(m.marks)-1].drive; last.FoldPrograms > 0 {
		r.SetSeries("ssd.writes.fold", m.width, get(func(k *mark) float64 { return float64(k.drive.FoldPrograms) }))
	}
	free := make([]float64, len(m.marks))
	for i := range m.marks {
		free[i] = float64(m.marks[i].drive.FreeBlocks)
	}
	r.SetSeries("ssd.free_blocks", m.width, free)
}

// scaled converts picoseconds to microseconds.
func scaled(xs []float64) []float64 {
	for i := range xs {
		xs[i] /= float64(units.Microsecond)
	}
	return xs
}

// summary describes the drive in one line.
func summary(s *scenario.Scenario, d *ssd.Drive) string {
	x := s.DriveOf(0)
	g := x.Geometry
	total := int64(0)
	for i := range max(len(x.Namespaces), 1) {
		total += d.Capacity(i)
	}
	text := fmt.Sprintf("%s drive of %s (%s raw), %s x %s x %s x %s", x.Timing.Cell, size(units.Bytes(total)),
		size(g.Capacity()),
		spelling.Plural(g.Channels, "channel"), spelling.Plural(g.ChipsPerChannel, "chip"),
		spelling.Plural(g.DiesPerChip, "die"), spelling.Plural(g.PlanesPerDie, "plane"))
	if x.Compat == scenario.CompatMQSim {
		text += ", compat: mqsim"
	}
	return text
}

// size formats a size in the decimal units in which drives are sold.
func size(b units.Bytes) string {
	for _, u := range []struct {
		name string
		size units.Bytes
	}{{"TB", units.TB}, {"GB", units.GB}, {"MB", units.MB}} {
		if b >= u.size {
			return strconv.FormatFloat(float64(b)/float64(u.size), 'f', 2, 64) + " " + u.name
		}
	}
	return b.String()
}

// warn adds warnings for readers of the figures.
func (m *Meter) warn(s *scenario.Scenario, r *result.Result, found bool, explain string, interrupted bool) {
	last := &m.marks[len(m.marks)-1]
	if interrupted {
		r.Warn("incomplete: the run was interrupted at %v of simulated time, after %d requests", last.at,
			m.host.Ended())
	}
	if !found {
		r.Warn("no warm-up was cut: %s", explain)
	}
	if s.Measure.WarmUp.None() {
		both := m.both()
		if c := stats.WarmUp(both.Means()); c.Found && c.Index*5 > len(m.marks) {
			r.Warn("the figures include the first %v, before the mean latency settles; measure.warm_up: "+
				"auto leaves it out", units.Duration(c.Index)*both.Width())
		}
	}
	m.warnOverload(r)
	if r.Transient = m.transient(); r.Transient != "" {
		r.Warn("the drive's figures rest on a transient: %s", r.Transient)
	}
	x := &last.drive
	if w := x.Finished[block.Write]; w >= 1000 && x.HostPrograms*20 < w {
		r.Warn("the write cache absorbed nearly all of %d writes: only %d pages were programmed; to measure the "+
			"flash, use a longer run or a smaller cache", w, x.HostPrograms)
	}
	if x.WritesHeld > 0 {
		r.Warn("%d writes waited because a plane had no free page", x.WritesHeld)
	}
	if x.ZeroReads > 0 {
		r.Warn("%d reads of unwritten addresses were answered without reading flash", x.ZeroReads)
	}
	for _, n := range m.flows.Notes {
		r.Warn("%s", n)
	}
	for _, p := range m.flows.Replays {
		for _, n := range p.Notes {
			if strings.HasPrefix(n, "detected format ") {
				continue // a remark from reading the trace, not a warning about the run
			}
			r.Warn("%s: %s", p.Flow, n)
		}
	}
}

// warnOverload warns if open-loop requests pile up until the end.
func (m *Meter) warnOverload(r *result.Result) {
	open := false
	for _, f := range m.flows.List {
		open = open || f.Outstanding == 0
	}
	if !open || m.Outage || len(m.marks) < 8 {
		return
	}
	// The last slice with arrivals: after it the backlog only drains.
	last := len(m.marks) - 1
	for last > 0 && m.marks[last].issued == m.marks[last-1].issued {
		last--
	}
	backlog := func(i int) uint64 { return m.marks[i].issued - m.marks[i].ended }
	if n := backlog(last); n > 1000 && 2*n > 3*backlog(last/2) && 2*backlog(last/2) > 3*backlog(last/4) {
		r.Warn("overload: requests arrived faster than the drive served them, and %d were waiting when the last one "+
			"arrived; latencies depend on the length of the run", n)
	}
}

// limits returns the models' omissions that a reader should know.
func limits(s *scenario.Scenario) []string {
	d := s.DriveOf(0)
	out := []string{"The host's software and interrupts take no time."}
	if d.Reliability == nil {
		out = append(out, "Flash has no errors: no bit errors, read retries, retention loss or read disturb "+
			"(ssd.reliability).")
	}
	if d.Controller == nil {
		out = append(out, "The drive's controller takes no time (ssd.controller).")
	}
	if g := units.Bytes(d.Mapping.Grain); g == 0 || g >= d.Geometry.PageSize {
		out = append(out, "A map entry covers a whole flash page: a smaller write programs a whole page, and first "+
			"reads the rest of it.")
	}
	if d.Compat == scenario.CompatMQSim {
		out = append(out, "compat: mqsim reproduces deviations of MQSim that real drives do not have.")
	}
	return out
}

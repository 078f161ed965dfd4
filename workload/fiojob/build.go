package fiojob

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"farflash/units"
	"farflash/workload/synth"
)

// ignored are options that concern fio itself or what it reports.
var ignored = map[string]bool{
	"group_reporting": true, "description": true, "name": true, "filename": true, "directory": true, "filename_format": true, "thread": true, "fallocate": true,
	"invalidate": true, "create_on_open": true, "create_serialize": true, "create_fsync": true, "unlink": true, "overwrite": true, "refill_buffers": true,
	"scramble_buffers": true, "zero_buffers": true, "buffer_compress_percentage": true, "exitall": true, "eta": true, "minimal": true,
	"lat_percentiles": true, "clat_percentiles": true, "slat_percentiles": true, "percentile_list": true, "disable_lat": true, "disable_clat": true,
	"disable_slat": true, "disable_bw_measurement": true, "gtod_reduce": true, "clocksource": true, "write_bw_log": true, "write_lat_log": true, "write_iops_log": true,
	"log_avg_msec": true, "bwavgtime": true, "iopsavgtime": true, "unified_rw_reporting": true, "cpus_allowed": true, "cpus_allowed_policy": true, "numa_cpu_nodes": true,
	"numa_mem_policy": true, "nice": true, "prio": true, "hipri": true, "fixedbufs": true, "registerfiles": true, "sqthread_poll": true, "userspace_reap": true,
	"mem": true, "iomem": true, "iomem_align": true, "continue_on_error": true, "ignore_error": true, "significant_figures": true, "random_generator": true,
	"unit_base": true, "norandommap": true, "randrepeat": true, "allrandrepeat": true, "softrandommap": true, "iodepth_batch": true, "iodepth_batch_submit": true,
	"iodepth_batch_complete": true, "iodepth_batch_complete_min": true, "iodepth_batch_complete_max": true, "iodepth_low": true, "direct": true, "buffered": true,
}

// asynchronous are the engines that keep more than one request under way.
var asynchronous = map[string]bool{
	"libaio": true, "io_uring": true, "io_uring_cmd": true, "posixaio": true, "windowsaio": true, "solarisaio": true, "sg": true, "guasi": true, "null": true,
	"rbd": true, "nbd": true, "libblkio": true, "xnvme": true, "http": true,
}

// synchronous are those that keep one.
var synchronous = map[string]bool{
	"sync": true, "psync": true, "vsync": true, "pvsync": true, "pvsync2": true, "mmap": true,
}

// builder turns a section's settings into a job.
type builder struct {
	file   string
	errs   []error
	values map[string]setting // the last setting of each option
	kbBase int64
}

// synonyms maps other spellings of an option to the one that is looked up.
var synonyms = map[string]string{"readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "io_limit": "io_size"}

// understood are the options that shape a job.
var understood = []string{"rw", "bs", "ba", "size", "io_size", "offset", "offset_increment", "iodepth", "numjobs", "rwmixread", "rwmixwrite",
	"random_distribution", "rate_iops", "rate_process", "runtime", "time_based", "ramp_time", "number_ios", "randseed", "ioengine", "kb_base"}

func (b *builder) fail(s setting, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("%s:%d: %s", b.file, s.line, fmt.Sprintf(format, args...)))
}

// build makes a job of a section, and reports all its mistakes.
func build(s section, file string) (Job, []error) {
	b := builder{file: file, values: make(map[string]setting), kbBase: 1024}
	known := make(map[string]bool)
	for _, name := range understood {
		known[name] = true
	}
	for _, set := range s.settings {
		name := set.name
		if other, ok := synonyms[name]; ok {
			name = other
		}
		switch {
		case known[name]:
			b.values[name] = set
		case !ignored[name]:
			b.fail(set, "option %s is not supported; those that are: %s", set.name, strings.Join(understood, ", "))
		default:
			b.values[name] = set
		}
	}
	job := Job{Name: s.name, Line: s.line, Copies: 1}
	b.job(&job)
	sort.SliceStable(b.errs, func(i, j int) bool { return b.errs[i].Error() < b.errs[j].Error() })
	return job, b.errs
}

func (b *builder) job(job *Job) {
	b.kbBase = b.integer("kb_base", 1024, 1000, 1024)
	if b.kbBase != 1000 && b.kbBase != 1024 {
		b.fail(b.values["kb_base"], "kb_base must be 1000 or 1024")
	}
	job.Copies = int(b.integer("numjobs", 1, 1, 65536))
	job.Stride = b.size("offset_increment")
	job.Ramp = b.duration("ramp_time")
	job.count = b.integer("number_ios", 0, 1, 1<<62)
	job.amount = b.size("io_size")
	cfg := &job.config
	cfg.Seed = uint64(b.integer("randseed", 1, 0, 1<<62))
	b.time(job)
	b.flows(job)
	b.pace(job)
	if _, ok := b.values["norandommap"]; !ok && b.random() {
		job.Notes = append(job.Notes, "addresses are drawn independently; without norandommap fio would visit every block once")
	}
	if direct, ok := b.values["direct"]; !ok || direct.value == "0" {
		job.Notes = append(job.Notes, "the page cache is not modelled: requests go to the drive as with direct=1")
	}
}

// random reports whether the job draws addresses.
func (b *builder) random() bool { return strings.HasPrefix(b.values["rw"].value, "rand") }

// flows sets sizes, addresses and the mix.
func (b *builder) flows(job *Job) {
	rw, ok := b.values["rw"]
	if !ok {
		rw.value = "read"
	}
	reads, writes := false, false
	switch rw.value {
	case "read", "randread":
		reads = true
	case "write", "randwrite":
		writes = true
	case "rw", "readwrite", "randrw":
		reads, writes = true, true
	default:
		b.fail(rw, "rw=%s is not supported; use read, write, rw, randread, randwrite or randrw", rw.value)
		return
	}
	read, write := b.blockSizes()
	addresses := b.addresses(job)
	flow := func(bytes int64) *synth.Flow {
		f := &synth.Flow{Size: synth.Size{Mean: units.Bytes(bytes), Min: units.Bytes(bytes), Max: units.Bytes(bytes)}, Addresses: addresses}
		if f.Addresses.Align == 0 {
			f.Addresses.Align = units.Bytes(bytes)
		}
		return f
	}
	if reads {
		job.config.Reads = flow(read)
	}
	if writes {
		job.config.Writes = flow(write)
	}
	var mix float64
	if s, ok := b.values["rwmixread"]; ok {
		mix = float64(b.integer("rwmixread", 50, 0, 100))
		if w, both := b.values["rwmixwrite"]; both && w.line > s.line {
			mix = 100 - float64(b.integer("rwmixwrite", 50, 0, 100))
		}
	} else {
		mix = 100 - float64(b.integer("rwmixwrite", 50, 0, 100))
	}
	if reads && writes {
		job.config.ReadFraction = units.Fraction(mix / 100)
	}
}

// blockSizes reads bs, one size or one for reads and one for writes.
func (b *builder) blockSizes() (read, write int64) {
	s, ok := b.values["bs"]
	if !ok {
		return 4096, 4096
	}
	parts := strings.Split(s.value, ",")
	if len(parts) > 3 || len(parts) == 3 && parts[2] != parts[0] {
		b.fail(s, "bs=%s: give one size, or one for reads and one for writes", s.value)
		return 4096, 4096
	}
	sizes := []int64{4096, 4096}
	for i := range sizes {
		text := parts[min(i, len(parts)-1)]
		if text == "" {
			continue
		}
		v, err := size(text, b.kbBase)
		switch {
		case err != nil:
			b.fail(s, "bs: %v", err)
		case v <= 0 || v%512 != 0 || v > 1<<30:
			b.fail(s, "bs=%s is %d B; it must be a multiple of 512 up to 1 GiB", s.value, v)
		default:
			sizes[i] = v
		}
	}
	return sizes[0], sizes[1]
}

// addresses reads size, offset, alignment and distribution. A space of 0 stands for what the volume will turn out to have.
func (b *builder) addresses(job *Job) synth.Addresses {
	a := synth.Addresses{Start: b.size("offset"), Align: b.size("ba")}
	if s, ok := b.values["size"]; ok && strings.HasSuffix(s.value, "%") {
		part, err := units.ParseFraction(s.value)
		if err != nil || part <= 0 || part > 1 {
			b.fail(s, "size=%s; a percentage must be above 0%% and at most 100%%", s.value)
		}
		job.part = part
	} else {
		a.Space = b.size("size")
	}
	if s := b.values["offset"]; a.Start%units.Sector != 0 {
		b.fail(s, "offset=%s is no multiple of 512", s.value)
	}
	if s := b.values["ba"]; a.Align%units.Sector != 0 {
		b.fail(s, "ba=%s is no multiple of 512", s.value)
	}
	s, ok := b.values["random_distribution"]
	if !b.random() {
		a.Pattern = synth.Sequential
		return a
	}
	if !ok {
		return a
	}
	kind, parameter, _ := strings.Cut(s.value, ":")
	number := func(fallback float64) float64 {
		if parameter == "" {
			return fallback
		}
		v, err := strconv.ParseFloat(parameter, 64)
		if err != nil {
			b.fail(s, "random_distribution=%s: %q is no number", s.value, parameter)
			return fallback
		}
		return v
	}
	switch kind {
	case "random":
	case "zipf":
		a.Pattern, a.Theta = synth.Zipf, number(1.1)
		if !(a.Theta > 0 && a.Theta <= 10) {
			b.fail(s, "random_distribution=%s: theta must be above 0 and at most 10", s.value)
		}
	case "pareto":
		a.Pattern, a.H = synth.Pareto, number(0.2)
		if !(a.H > 0 && a.H < 1) {
			b.fail(s, "random_distribution=%s: h must be above 0 and below 1", s.value)
		}
	default:
		b.fail(s, "random_distribution=%s is not supported; use random, zipf:theta or pareto:h", s.value)
	}
	return a
}

// pace reads what makes the job an open or a closed loop.
func (b *builder) pace(job *Job) {
	cfg := &job.config
	depth := int(b.integer("iodepth", 1, 1, 65535))
	if engine, ok := b.values["ioengine"]; !ok || synchronous[engine.value] {
		if depth > 1 {
			name := "the default engine"
			if ok {
				name = "engine " + engine.value
			}
			job.Notes = append(job.Notes, fmt.Sprintf("%s keeps one request under way, so iodepth=%d has no effect, as in fio", name, depth))
			depth = 1
		}
	} else if !asynchronous[engine.value] {
		b.fail(engine, "ioengine=%s is not supported; use libaio, io_uring or another engine of block requests", engine.value)
	}
	process, hasProcess := b.values["rate_process"]
	kind := synth.Constant
	switch {
	case !hasProcess || process.value == "linear":
	case process.value == "poisson":
		kind = synth.Exponential
	default:
		b.fail(process, "rate_process=%s is not supported; use linear or poisson", process.value)
	}
	rate, ok := b.values["rate_iops"]
	if !ok {
		cfg.QueueDepth = depth
		return
	}
	job.Notes = append(job.Notes, "rate_iops makes an open loop: arrivals keep the rate even where fio would wait for iodepth")
	b.rates(job, rate, kind)
}

// rates reads rate_iops, one rate for all or one for reads and one for writes.
func (b *builder) rates(job *Job, s setting, kind synth.Kind) {
	cfg := &job.config
	interarrival := func(text string) synth.Interarrival {
		v, err := size(text, 1000)
		if err != nil || v <= 0 || v > 1e12 {
			b.fail(s, "rate_iops=%s: %q is no number of requests a second", s.value, text)
			v = 1
		}
		return synth.Interarrival{Mean: units.Duration((int64(units.Second) + v/2) / v), Shape: synth.Shape{Kind: kind}}
	}
	parts := strings.Split(s.value, ",")
	if len(parts) > 2 || len(parts) == 2 && (parts[0] == "" || parts[1] == "") {
		b.fail(s, "rate_iops=%s: give one rate, or one for reads and one for writes", s.value)
		return
	}
	// In fio one number limits reads and writes each.
	flows := []*synth.Flow{cfg.Reads, cfg.Writes}
	for i, flow := range flows {
		if flow != nil {
			flow.Interarrival = interarrival(parts[min(i, len(parts)-1)])
		}
	}
	if cfg.Reads != nil && cfg.Writes != nil {
		// Reads and writes have a rate each, which decides the mix.
		cfg.ReadFraction = 0
		_, read := b.values["rwmixread"]
		_, write := b.values["rwmixwrite"]
		if read || write {
			job.Notes = append(job.Notes, "the rates of reads and writes decide their mix; rwmixread and rwmixwrite have no effect")
		}
	}
}

// time reads runtime and time_based.
func (b *builder) time(job *Job) {
	job.config.Duration = b.duration("runtime")
	s, ok := b.values["time_based"]
	job.forTime = ok && s.value != "0"
	if job.forTime && job.config.Duration == 0 {
		b.fail(s, "time_based needs a runtime")
	}
	if !job.forTime && job.config.Duration > 0 {
		job.Notes = append(job.Notes, "ends at its runtime or when its size is moved, whichever is first")
	}
}

// integer reads a whole number within bounds; without the option it is the fallback.
func (b *builder) integer(name string, fallback, low, high int64) int64 {
	s, ok := b.values[name]
	if !ok {
		return fallback
	}
	v, err := size(s.value, 1024)
	if err != nil || v < low || v > high {
		b.fail(s, "%s=%s; it must be a whole number from %d to %d", name, s.value, low, high)
		return fallback
	}
	return v
}

// size reads a size; without the option it is 0.
func (b *builder) size(name string) units.Bytes {
	s, ok := b.values[name]
	if !ok {
		return 0
	}
	v, err := size(s.value, b.kbBase)
	if err != nil {
		b.fail(s, "%s: %v", name, err)
	}
	return units.Bytes(v)
}

// duration reads a time; without the option it is 0.
func (b *builder) duration(name string) units.Duration {
	s, ok := b.values[name]
	if !ok {
		return 0
	}
	v, err := duration(s.value)
	if err != nil {
		b.fail(s, "%s: %v", name, err)
	}
	return v
}

package fiojob

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/workload/synth"
)

// ignored are options that concern fio itself or its reports.
var ignored = map[string]bool{
	"group_reporting": true, "description": true, "name": true, "directory": true, "filename_format": true,
	"thread": true, "fallocate": true,
	"invalidate": true, "create_on_open": true, "create_serialize": true, "create_fsync": true, "unlink": true,
	"overwrite": true, "refill_buffers": true,
	"scramble_buffers": true, "zero_buffers": true, "buffer_compress_percentage": true, "exitall": true, "eta": true,
	"minimal":         true,
	"lat_percentiles": true, "clat_percentiles": true, "slat_percentiles": true, "percentile_list": true,
	"disable_lat": true, "disable_clat": true,
	"disable_slat": true, "disable_bw_measurement": true, "gtod_reduce": true, "clocksource": true,
	"write_bw_log": true, "write_lat_log": true, "write_iops_log": true,
	"log_avg_msec": true, "bwavgtime": true, "iopsavgtime": true, "unified_rw_reporting": true, "cpus_allowed": true,
	"cpus_allowed_policy": true, "numa_cpu_nodes": true,
	"numa_mem_policy": true, "nice": true, "prio": true, "hipri": true, "fixedbufs": true, "registerfiles": true,
	"sqthread_poll": true, "userspace_reap": true,
	"mem": true, "iomem": true, "iomem_align": true, "continue_on_error": true, "ignore_error": true,
	"significant_figures": true, "random_generator": true,
	"unit_base": true, "norandommap": true, "randrepeat": true, "allrandrepeat": true, "softrandommap": true,
	"iodepth_batch": true, "iodepth_batch_submit": true,
	"iodepth_batch_complete": true, "iodepth_batch_complete_min": true, "iodepth_batch_complete_max": true,
	"iodepth_low": true, "direct": true, "buffered": true,
}

// asynchronous are the engines that can keep several requests outstanding.
var asynchronous = map[string]bool{
	"libaio": true, "io_uring": true, "io_uring_cmd": true, "posixaio": true, "windowsaio": true, "solarisaio": true,
	"sg": true, "guasi": true, "null": true,
	"rbd": true, "nbd": true, "libblkio": true, "xnvme": true, "http": true,
}

// synchronous are the engines that keep one request outstanding.
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

// synonyms maps alternative spellings of an option to the canonical one.
var synonyms = map[string]string{"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange",
	"blockalign": "ba", "io_limit": "io_size", "wait_for_previous": "stonewall"}

// understood are the options that shape a job.
var understood = []string{"rw", "bs", "bsrange", "bssplit", "ba", "filename", "size", "io_size", "offset",
	"offset_increment", "iodepth", "numjobs", "rwmixread", "rwmixwrite",
	"random_distribution", "rate", "rate_iops", "rate_process", "thinktime", "thinktime_blocks", "stonewall", "fsync",
	"fdatasync", "loops", "runtime", "time_based", "ramp_time", "number_ios", "randseed", "ioengine", "kb_base"}

func (b *builder) fail(s setting, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("%s:%d: %s", b.file, s.line, fmt.Sprintf(format, args...)))
}

// nearest returns the option that a misspelt one probably meant. Unsupported options of fio itself are not misspelt.
func nearest(name string) string {
	if unsupported[name] || len(name) < 3 {
		return ""
	}
	var all []string
	for _, list := range []map[string]bool{ignored, unsupported} {
		for option := range list {
			all = append(all, option)
		}
	}
	for option := range synonyms {
		all = append(all, option)
	}
	sort.Strings(all)
	return spelling.Nearest(name, append(slices.Clone(understood), all...))
}

// unsupported are options of fio that shape a job in ways that are not modelled.
var unsupported = map[string]bool{
	"verify": true, "do_verify": true, "verify_pattern": true, "bs_unaligned": true, "blocksize_unaligned": true,
	"nrfiles": true, "openfiles": true, "file_service_type": true, "filesize": true,
	"zonemode": true, "zonesize": true, "zonerange": true, "zoneskip": true, "zonecapacity": true, "read_iolog": true,
	"write_iolog": true, "rate_min": true, "rate_iops_min": true,
	"rate_cycle": true, "rate_ignore_thinktime": true, "thinktime_spin": true, "thinktime_iotime": true,
	"thinktime_blocks_type": true, "latency_target": true, "latency_window": true,
	"latency_percentile": true, "max_latency": true, "startdelay": true, "flow": true, "flow_id": true,
	"flow_sleep": true, "new_group": true, "wait_for": true, "percentage_random": true,
	"rw_sequencer": true, "sync": true, "sync_file_range": true, "fsync_on_close": true, "end_fsync": true,
	"write_barrier": true, "replay_no_stall": true, "trim_percentage": true,
	"dedupe_percentage": true, "io_submit_mode": true, "steadystate": true, "fill_device": true, "create_only": true,
	"readonly": true, "offset_align": true, "cmdprio_percentage": true,
}

// build makes a job from a section, and reports all its mistakes.
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
			if near := nearest(set.name); near != "" {
				b.fail(set, "unknown option %s; did you mean %s?", set.name, near)
			} else {
				b.fail(set, "option %s is not supported; use one of: %s", set.name, strings.Join(understood, ", "))
			}
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
	job.loops = b.integer("loops", 1, 1, 1<<20)
	b.order(job)
	cfg := &job.config
	cfg.Seed = uint64(b.integer("randseed", 1, 0, 1<<62))
	b.time(job)
	b.flows(job)
	b.pace(job)
	if _, ok := b.values["norandommap"]; !ok && b.random() {
		job.Notes = append(job.Notes,
			"addresses are drawn independently; without norandommap fio would visit every block once")
	}
	if direct, ok := b.values["direct"]; !ok || direct.value == "0" {
		job.Notes = append(job.Notes, "the page cache is not modelled: requests go to the drive as with direct=1")
	}
}

// random reports whether the job draws random addresses.
func (b *builder) random() bool { return strings.HasPrefix(b.values["rw"].value, "rand") }

// flows sets sizes, addresses and the read fraction.
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
		near := ""
		if best := spelling.Nearest(rw.value,
			[]string{"read", "write", "rw", "readwrite", "randread", "randwrite", "randrw"}); best != "" {
			near = "; did you mean " + best + "?"
		}
		b.fail(rw, "rw=%s is not supported; use read, write, rw, randread, randwrite or randrw%s", rw.value, near)
		return
	}
	read, write := b.blockSizes()
	addresses := b.addresses(job)
	flow := func(x blockSize) *synth.Flow {
		f := &synth.Flow{Size: synth.Size{Mean: units.Bytes(x.least), Min: units.Bytes(x.least),
			Max: units.Bytes(x.least)}, Addresses: addresses}
		if x.mix != "" {
			f.Size = synth.Size{Mix: x.mix}
		}
		if f.Addresses.Align == 0 {
			f.Addresses.Align = units.Bytes(x.least)
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

// addresses reads size, offset, alignment and distribution. A space of 0 stands for the volume's capacity, which is not
// known yet.
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
		b.fail(s, "offset=%s is not a multiple of 512", s.value)
	}
	if s := b.values["ba"]; a.Align%units.Sector != 0 {
		b.fail(s, "ba=%s is not a multiple of 512", s.value)
	}
	files := b.files(job)
	s, ok := b.values["random_distribution"]
	if !b.random() {
		a.Pattern = synth.Sequential
		if files > 1 {
			a.Streams = files
		}
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
			b.fail(s, "random_distribution=%s: %q is not a number", s.value, parameter)
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

// pace decides between an open and a closed loop.
func (b *builder) pace(job *Job) {
	cfg := &job.config
	depth := int(b.integer("iodepth", 1, 1, 65535))
	if engine, ok := b.values["ioengine"]; !ok || synchronous[engine.value] {
		if depth > 1 {
			name := "the default engine"
			if ok {
				name = "engine " + engine.value
			}
			job.Notes = append(job.Notes,
				fmt.Sprintf("%s keeps one request outstanding, so iodepth=%d has no effect, as in fio", name, depth))
			depth = 1
		}
	} else if !asynchronous[engine.value] {
		b.fail(engine, "ioengine=%s is not supported; use libaio, io_uring or another engine of block requests",
			engine.value)
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
	if bandwidth, both := b.values["rate"]; both {
		if ok {
			b.fail(bandwidth, "rate and rate_iops exclude each other; leave out one of them")
			return
		}
		rate, ok = bandwidth, true
	}
	if !ok {
		cfg.QueueDepth = depth
		return
	}
	job.Notes = append(job.Notes,
		rate.name+" makes an open loop: arrivals keep the rate even where fio would wait for iodepth")
	b.rates(job, rate, kind)
}

// rates reads rate_iops or rate: one value for both, or one for reads and one for writes. A byte rate is converted to
// requests of the mean size.
func (b *builder) rates(job *Job, s setting, kind synth.Kind) {
	cfg := &job.config
	interarrival := func(text string, of *synth.Flow) synth.Interarrival {
		if s.name == "rate" {
			v, err := size(text, b.kbBase)
			gap := float64(units.Second) * of.Size.Average() / float64(max(v, 1))
			if err != nil || v <= 0 || !(gap >= 1 && gap < float64(units.Forever)) {
				b.fail(s, "rate=%s: %q is not a number of bytes per second", s.value, text)
				gap = 1
			}
			return synth.Interarrival{Mean: units.Duration(gap + 0.5), Shape: synth.Shape{Kind: kind}}
		}
		v, err := size(text, 1000)
		if err != nil || v <= 0 || v > 1e12 {
			b.fail(s, "rate_iops=%s: %q is not a number of requests per second", s.value, text)
			v = 1
		}
		return synth.Interarrival{Mean: units.Duration((int64(units.Second) + v/2) / v), Shape: synth.Shape{Kind: kind}}
	}
	parts := strings.Split(s.value, ",")
	if len(parts) > 2 || len(parts) == 2 && (parts[0] == "" || parts[1] == "") {
		b.fail(s, "%s=%s: give one rate, or one for reads and one for writes", s.name, s.value)
		return
	}
	// As in fio, a single number limits reads and writes each.
	flows := []*synth.Flow{cfg.Reads, cfg.Writes}
	for i, flow := range flows {
		if flow != nil {
			flow.Interarrival = interarrival(parts[min(i, len(parts)-1)], flow)
		}
	}
	if cfg.Reads != nil && cfg.Writes != nil {
		// The separate rates of reads and writes determine the mix.
		cfg.ReadFraction = 0
		_, read := b.values["rwmixread"]
		_, write := b.values["rwmixwrite"]
		if read || write {
			job.Notes = append(job.Notes,
				"the rates of reads and writes decide their mix; rwmixread and rwmixwrite have no effect")
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

// integer reads an integer within bounds; fallback without the option.
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

// size reads a size; 0 without the option.
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

// duration reads a duration; 0 without the option.
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

// Package fiojob reads a documented subset of fio's job files as synthetic workloads.
//
// [Parse] returns a [Job] for each job section. A job is a closed loop of iodepth requests or, with rate_iops, an open
// loop. The supported options are listed by [Options]; those that concern only fio's internals or its reports are
// accepted and ignored; everything else is refused by name, file and line, because ignoring it would measure a
// different workload. Numbers follow fio's rules: 4k is 4096 and 4ki is 4000, unless kb_base=1000 reverses that.
//
// Where a job behaves differently here than in fio, one of its notes says so: addresses are drawn independently,
// whereas fio visits every block once unless norandommap is given, and the page cache is not modelled. The option
// semantics are those of fio's HOWTO (version 3.33). The package leaves out verification, bursts, and other
// dependencies between jobs.
package fiojob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"farflash/numeric/units"
	"farflash/workload/synth"
)

// Job is one job section.
type Job struct {
	Name   string
	Line   int            // line of its heading
	Copies int            // numjobs: number of identical concurrent jobs, each with its own seed
	Stride units.Bytes    // offset_increment: distance between the starts of successive copies
	Ramp   units.Duration // ramp_time: warm-up that is not measured
	Notes  []string       // differences from fio
	Order
	config  synth.Config
	part    units.Fraction // fraction of the volume, if size is a percentage; 0: absolute, or the rest of the volume
	amount  units.Bytes    // bytes to transfer; 0: the size
	forTime bool           // run for the duration, not until the size is transferred
	count   int64          // number_ios; 0: by amount
	loops   int64          // repetitions of that
}

// Order is the timing of a job's requests relative to other jobs and to its own completions.
type Order struct {
	Wave       int            // stonewall and wait_for_previous: starts when all jobs of the previous wave have ended
	Think      units.Duration // thinktime: length of a pause
	ThinkEvery int            // thinktime_blocks: completed requests between pauses
	FlushEvery int64          // fsync, fdatasync: writes between flushes
}

// Options lists the options that shape a job.
func Options() []string {
	return []string{"rw (readwrite)", "bs (blocksize)", "bsrange (blocksize_range)", "bssplit", "ba (blockalign)",
		"filename (a:b are two files)", "size", "io_size (io_limit)", "offset", "offset_increment", "iodepth",
		"numjobs",
		"rwmixread", "rwmixwrite", "random_distribution (random, zipf:theta, pareto:h)", "rate", "rate_iops",
		"rate_process (linear, poisson)", "thinktime", "thinktime_blocks", "stonewall (wait_for_previous)", "fsync",
		"fdatasync",
		"loops", "runtime", "time_based", "ramp_time", "number_ios", "randseed", "ioengine", "kb_base"}
}

// Config returns the workload of copy i (from 0) of the job, on a volume of the given capacity.
func (j *Job) Config(copy int, capacity units.Bytes) (synth.Config, error) {
	cfg := j.config
	cfg.Name = fmt.Sprintf("fio/%s[%d]", j.Name, copy)
	start := units.Bytes(0)
	space := units.Bytes(0)
	for _, flow := range []**synth.Flow{&cfg.Reads, &cfg.Writes} {
		if *flow == nil {
			continue
		}
		own := **flow
		a := &own.Addresses
		a.Start += units.Bytes(copy) * j.Stride
		if a.Space == 0 {
			a.Space = capacity - a.Start
			if j.part > 0 {
				a.Space = min(a.Space, units.Bytes(float64(capacity)*float64(j.part)))
			}
			a.Space -= a.Space % own.Addresses.Align
		}
		start, space = a.Start, a.Space
		*flow = &own
	}
	if start < 0 || space <= 0 || start > capacity || space > capacity-start {
		return cfg, fmt.Errorf("job %s, copy %d: %v from %v on do not fit into a volume of %v", j.Name, copy, space,
			start, capacity)
	}
	if !j.forTime {
		cfg.Requests = j.count
		if cfg.Requests == 0 {
			amount := space
			if j.amount > 0 {
				amount = j.amount
			}
			cfg.Requests = max(1, int64(float64(amount)/j.meanSize()+0.5))
		}
		cfg.Requests *= max(j.loops, 1)
	}
	return cfg, nil
}

// meanSize returns the mean request size in bytes.
func (j *Job) meanSize() float64 {
	c := &j.config
	switch {
	case c.Writes == nil:
		return c.Reads.Size.Average()
	case c.Reads == nil:
		return c.Writes.Size.Average()
	}
	read := float64(c.ReadFraction)
	return float64(read*c.Reads.Size.Average()) + float64((1-read)*c.Writes.Size.Average())
}

// setting is an option as written in the file.
type setting struct {
	name, value string
	line        int
}

// section is a job's heading with all settings that apply to it, in order.
type section struct {
	name     string
	line     int
	settings []setting
}

// Parse reads a job file; name identifies it in errors. All mistakes are reported, joined.
func Parse(r io.Reader, name string) ([]Job, error) {
	sections, err := split(r, name)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	var problems []error
	seen := make(map[string]bool)
	wave := 0
	for _, s := range sections {
		job, errs := build(s, name)
		if job.Wave > 0 && len(jobs) > 0 {
			wave++ // a stonewall waits for all jobs before it
		}
		job.Wave = wave
		for _, e := range errs {
			// Report a mistake in [global] once, however many jobs inherit it.
			if !seen[e.Error()] {
				seen[e.Error()] = true
				problems = append(problems, e)
			}
		}
		jobs = append(jobs, job)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: no job; a job is a section such as [randread]", name)
	}
	return jobs, nil
}

// maxJobs limits the jobs of a file, each of which becomes a flow of requests.
const maxJobs = 4096

// split reads the sections. Each [global] section adds to the initial settings of the sections after it.
func split(r io.Reader, name string) ([]section, error) {
	var sections []section
	var global []setting
	scanner := bufio.NewScanner(r)
	line := 0
	inGlobal := false
	for scanner.Scan() {
		line++
		text := strings.TrimSpace(scanner.Text())
		if i := strings.IndexAny(text, ";#"); i == 0 || i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
			text = strings.TrimSpace(text[:i])
		}
		if text == "" {
			continue
		}
		if text[0] == '[' {
			end := strings.IndexByte(text, ']')
			if end < 0 || strings.TrimSpace(text[end+1:]) != "" || end == 1 {
				return nil, fmt.Errorf("%s:%d: %q is not a section; write [name]", name, line, text)
			}
			heading := text[1:end]
			if inGlobal = heading == "global"; !inGlobal {
				if len(sections) == maxJobs {
					return nil, fmt.Errorf("%s:%d: more than %d jobs", name, line, maxJobs)
				}
				sections = append(sections, section{heading, line, append([]setting(nil), global...)})
			}
			continue
		}
		key, value, _ := strings.Cut(text, "=")
		s := setting{strings.TrimSpace(key), strings.TrimSpace(value), line}
		switch {
		case strings.HasPrefix(s.name, "include "):
			return nil, fmt.Errorf("%s:%d: include is not supported; merge both files", name, line)
		case strings.Contains(s.value, "${"):
			return nil, fmt.Errorf("%s:%d: environment variables are not supported; write the value of %s", name,
				line, s.value)
		case inGlobal:
			global = append(global, s)
		case len(sections) == 0:
			return nil, fmt.Errorf(
				"%s:%d: option %s is before the first section; write [global] or [name] above it", name, line,
				s.name)
		default:
			last := &sections[len(sections)-1]
			last.settings = append(last.settings, s)
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s:%d: the line is longer than %d bytes", name, line+1, bufio.MaxScanTokenSize)
	} else if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line+1, err)
	}
	return sections, nil
}

// size parses a size by fio's rules: a number with an optional prefix k, m, g, t or p, optionally followed by i and b.
func size(text string, kbBase int64) (int64, error) {
	lower := strings.ToLower(text)
	i := 0
	for i < len(lower) && (lower[i] >= '0' && lower[i] <= '9') {
		i++
	}
	suffix := lower[i:]
	var v int64
	for _, c := range lower[:i] {
		if v > (math.MaxInt64-9)/10 {
			return 0, fmt.Errorf("%q is too large", text)
		}
		v = v*10 + int64(c-'0')
	}
	if i == 0 {
		return 0, fmt.Errorf("%q is not a size; write a number such as 4k", text)
	}
	if suffix == "" || suffix == "b" {
		return v, nil
	}
	power := strings.IndexByte("kmgtp", suffix[0]) + 1
	rest := suffix[1:]
	binary := strings.HasPrefix(rest, "i")
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "i"), "b")
	if power == 0 || rest != "" {
		return 0, fmt.Errorf("%q is not a size; the suffixes are k, m, g, t and p", text)
	}
	// With a base of 1024, fio swaps the meanings of SI and IEC prefixes, for compatibility with old job files.
	factor := int64(1000)
	if binary != (kbBase == 1024) {
		factor = 1024
	}
	for range power {
		if v > math.MaxInt64/factor {
			return 0, fmt.Errorf("%q is too large", text)
		}
		v *= factor
	}
	return v, nil
}

// duration parses a time by fio's rules: seconds, or with a suffix d, h, m, s, ms or us.
func duration(text string) (units.Duration, error) {
	lower := strings.ToLower(text)
	i := 0
	for i < len(lower) && lower[i] >= '0' && lower[i] <= '9' {
		i++
	}
	number, suffix := lower[:i], lower[i:]
	name, known := map[string]string{"": "s", "s": "s", "sec": "s", "m": "min", "min": "min", "h": "h", "d": "d",
		"ms": "ms", "msec": "ms", "us": "us", "usec": "us"}[suffix]
	if number == "" || !known {
		return 0, fmt.Errorf("%q is not a time; write seconds, or a suffix d, h, m, s, ms or us", text)
	}
	return units.ParseDuration(number + name)
}

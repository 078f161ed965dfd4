package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/workload/fiojob"
	"farflash/workload/synth"
)

// Limits for a file of fio's results.
const (
	mostBytes = 64 << 20
	mostJobs  = 256
)

// mostRequests limits the requests simulated for a wave at once.
const mostRequests = 2e7

// percentiles are fio's percentiles used in the fit, in addition to rates and means, with their weights relative to a
// weight of 1 of those: the farther out, the more a figure is determined by chance, and by occasional behaviour of a
// real drive that the model does not have.
var percentiles = []struct {
	Key    string // in fio's JSON
	Name   string // of the metric
	Weight float64
}{{"50.000000", "p50", 1}, {"90.000000", "p90", 0.5}, {"99.000000", "p99", 0.1}}

// Figure is a measured figure.
type Figure struct {
	Job      string
	Op       block.Op
	Name     string // iops, mean, p50, p90 or p99
	Unit     string // 1/s or us
	Measured float64

	weight float64
	metric string // the corresponding metric of the simulation
	wave   int
}

// Measured is the content of a file of results: waves of jobs that ran concurrently, and their figures.
type Measured struct {
	File    string
	Version string
	Waves   [][]fiojob.Job
	Figures []Figure
	Notes   []string // omitted parts, with the reason
}

// document is the part of fio's JSON that is used.
type document struct {
	Version string            `json:"fio version"`
	Global  map[string]string `json:"global options"`
	Jobs    []struct {
		Name    string            `json:"jobname"`
		Error   int               `json:"error"`
		Options map[string]string `json:"job options"`
		Read    side              `json:"read"`
		Write   side              `json:"write"`
		Trim    side              `json:"trim"`
	} `json:"jobs"`
}

type side struct {
	IOPS    float64 `json:"iops"`
	Total   float64 `json:"total_ios"`
	Latency struct {
		Mean       float64            `json:"mean"` // ns
		Percentile map[string]float64 `json:"percentile"`
	} `json:"clat_ns"`
}

// places are options for a job's location, duration and reports. The simulation covers the whole drive, for as long as
// the precision requires.
var places = []string{"filename", "directory", "size", "io_size", "io_limit", "offset", "offset_increment", "runtime",
	"time_based", "ramp_time", "loops", "number_ios", "name", "randseed",
	"stonewall", "wait_for_previous", "new_group"}

// Read reads the output of fio 3 with --output-format=json or json+. Errors refer to it by file. Lines before the
// document, such as fio's warnings, are skipped.
func Read(r io.Reader, file string) (*Measured, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(text) > mostBytes {
		return nil, fmt.Errorf("%s: more than %d MiB; not a fio result", file, mostBytes>>20)
	}
	begin := bytes.IndexByte(text, '{')
	if begin < 0 {
		return nil, fmt.Errorf(
			"%s: not JSON; write it with fio job.fio --output-format=json --output=result.json", file)
	}
	var d document
	if err := json.Unmarshal(text[begin:], &d); err != nil {
		line := 1 + bytes.Count(text[:begin+int(offset(err))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: %w; write the file with fio --output-format=json", file, line, err)
	}
	switch {
	case d.Version == "" || len(d.Jobs) == 0:
		return nil, fmt.Errorf(
			"%s: not a fio result: no \"fio version\" or no jobs; write it with fio --output-format=json",
			file)
	case strings.HasPrefix(d.Version, "fio-2"):
		return nil, fmt.Errorf("%s: %s reports latencies in microseconds; use fio 3", file, d.Version)
	case len(d.Jobs) > mostJobs:
		return nil, fmt.Errorf("%s: %d jobs; a fit takes at most %d", file, len(d.Jobs), mostJobs)
	}
	m := &Measured{File: file, Version: d.Version}
	return m, m.take(&d)
}

// offset is the position of a JSON error.
func offset(err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return max(0, syntax.Offset-1)
	case errors.As(err, &kind):
		return max(0, kind.Offset-1)
	}
	return 0
}

// take converts the document to jobs and figures.
func (m *Measured) take(d *document) error {
	copies := map[string]int{} // entries of a job without group reporting
	names := map[string]bool{}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		at := fmt.Sprintf("%s: job %q", m.File, j.Name)
		switch {
		case j.Error != 0:
			return fmt.Errorf("%s: it ended with error %d, so its figures are invalid; leave it out or run "+
				"it again", at, j.Error)
		case j.Trim.Total > 0:
			return fmt.Errorf("%s: it trims, and trims have no timing to fit; leave it out", at)
		case j.Read.Total <= 0 && j.Write.Total <= 0:
			return fmt.Errorf("%s: it neither read nor wrote", at)
		}
		options := map[string]string{}
		for _, from := range []map[string]string{d.Global, j.Options} {
			for k, v := range from {
				options[k] = v
			}
		}
		wall := false
		for _, k := range []string{"stonewall", "wait_for_previous", "new_group"} {
			_, there := options[k]
			wall = wall || there && k != "new_group"
		}
		job, err := parse(options, at)
		if err != nil {
			return err
		}
		if job.Copies > 1 {
			if copies[j.Name]++; copies[j.Name] > 1 {
				return fmt.Errorf("%s: its numjobs=%d copies are reported separately; run fio with "+
					"group_reporting", at, job.Copies)
			}
		}
		if names[j.Name] {
			return fmt.Errorf("%s: two jobs have this name; give each its own", at)
		}
		names[j.Name] = true
		job.Name = j.Name
		if wall || len(m.Waves) == 0 {
			m.Waves = append(m.Waves, nil)
		}
		w := len(m.Waves) - 1
		job.Wave = 0
		m.Waves[w] = append(m.Waves[w], job)
		m.figures(j.Name, block.Read, &j.Read, w)
		m.figures(j.Name, block.Write, &j.Write, w)
	}
	for _, f := range m.Figures {
		if !(f.Measured > 0) || math.IsInf(f.Measured, 0) {
			return fmt.Errorf("%s: job %q: %s of %vs is %v", m.File, f.Job, f.Name, f.Op, f.Measured)
		}
	}
	// Metrics of concurrent jobs are those of the workload's items.
	for i := range m.Figures {
		f := &m.Figures[i]
		scope := ""
		if of := m.Waves[f.wave]; len(of) > 1 {
			scope = fmt.Sprintf("workload[%d].",
				slices.IndexFunc(of, func(j fiojob.Job) bool { return j.Name == f.Job }))
		}
		f.metric = scope + f.Op.String() + "."
		if f.Name != "iops" {
			f.metric += "latency."
		}
		f.metric += f.Name
	}
	return nil
}

// parse converts options to a job.
func parse(options map[string]string, at string) (fiojob.Job, error) {
	for _, k := range places {
		delete(options, k)
	}
	var names []string
	for k := range options {
		names = append(names, k)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString("[job]\n")
	for _, k := range names {
		if strings.ContainsAny(k+options[k], "\n\r") {
			return fiojob.Job{}, fmt.Errorf("%s: option %q contains a line break", at, k)
		}
		fmt.Fprintf(&b, "%s=%s\n", k, options[k])
	}
	jobs, err := fiojob.Parse(strings.NewReader(b.String()), "options")
	if err != nil {
		return fiojob.Job{}, fmt.Errorf("%s: %w", at, err)
	}
	if len(jobs) != 1 {
		return fiojob.Job{}, fmt.Errorf("%s: its options define %d jobs", at, len(jobs))
	}
	return jobs[0], nil
}

// figures records the figures of one direction of a job.
func (m *Measured) figures(job string, op block.Op, s *side, wave int) {
	if s.Total <= 0 {
		return
	}
	add := func(name, unit string, v, weight float64) {
		m.Figures = append(m.Figures,
			Figure{Job: job, Op: op, Name: name, Unit: unit, Measured: v, weight: weight, wave: wave})
	}
	add("iops", "1/s", s.IOPS, 1)
	add("mean", "us", s.Latency.Mean/1000, 1)
	for _, p := range percentiles {
		if v, ok := s.Latency.Percentile[p.Key]; ok && v > 0 {
			add(p.Name, "us", v/1000, p.Weight)
		}
	}
}

// scenarios returns the waves as scenarios of a drive, each long enough for the slowest of its directions to have the
// given number of requests, and for writes to fill the drive's cache three times.
func (m *Measured) scenarios(drive *scenario.Drive, requests int) ([]string, error) {
	s := &scenario.Scenario{SSD: drive}
	var out []string
	for w, jobs := range m.Waves {
		flows, err := scenario.FioFlows(jobs, m.File, "", s.Addressable(0))
		if err != nil {
			return nil, err
		}
		c := convert.FromFlows(flows, drive)
		for i := range c.Scenario.Workload {
			l := &c.Scenario.Workload[i]
			l.After, l.Until, l.Synthetic.Requests, l.Synthetic.Duration = "", 0, 0, 0
			for _, x := range []*synth.Flow{l.Synthetic.Reads, l.Synthetic.Writes} {
				if x != nil {
					x.Addresses.Start, x.Addresses.Space = 0, 0 // the whole drive
				}
			}
		}
		seconds := 0.0
		for _, f := range m.Figures {
			if f.wave == w && f.Name == "iops" {
				seconds = max(seconds, float64(requests)/f.Measured)
			}
		}
		for i, j := range jobs {
			if x := c.Scenario.Workload[i].Synthetic.Writes; x != nil {
				for _, f := range m.Figures {
					if f.Job == j.Name && f.Op == block.Write && f.Name == "iops" {
						seconds = max(seconds, 3*float64(drive.Cache.Capacity)/(f.Measured*x.Size.Average()))
					}
				}
			}
		}
		c.Scenario.Name = fmt.Sprintf("%s-%d", "calibration", w+1)
		c.Scenario.Measure.Until.Time = units.Duration(math.Ceil(seconds*1e6)) * units.Microsecond
		c.Scenario.Measure.WarmUp = scenario.WarmUp{Share: 0.2}
		all := 0.0
		for _, f := range m.Figures {
			if f.wave == w && f.Name == "iops" {
				all += float64(f.Measured * seconds)
			}
		}
		if seconds > 1e6 || all > mostRequests {
			return nil, fmt.Errorf(
				"%s: job %q: its %d requests, or three times the drive's cache of %v, take %.3g s, in which the "+
					"jobs that run with it issue %.3g requests, more than %.0g; "+
					"leave out the slowest job, or use fewer requests", m.File, jobs[0].Name, requests,
				drive.Cache.Capacity, seconds, all, mostRequests)
		}
		c.Notes = nil
		out = append(out, c.Text())
	}
	return out, nil
}

package scenario

import (
	"fmt"
	"os"
	"strings"

	"farflash/numeric/units"
	"farflash/workload/fiojob"
	"farflash/workload/synth"
)

// Fio is a fio job file. Each copy of each job is a flow.
type Fio struct {
	File string // File is the job file. A relative path starts at the scenario's folder.
	Job  string // Job names the only job section that is used. By default all are.
}

// FioFlow is one copy of a job.
type FioFlow struct {
	Name   string
	Config synth.Config // with the job file's own seed
	Ramp   units.Duration
	Notes  []string // how the job was interpreted
	fiojob.Order
	Job    string      // Job names the only job section that is used. Without it all are used.
	Copies int         // of the job in total
	Stride units.Bytes // from one copy to the next
}

// maxCopies bounds the request flows of a job file.
const maxCopies = 1 << 16

// ReadFio reads a job file for a namespace of the given capacity.
func ReadFio(file, only string, capacity units.Bytes) ([]FioFlow, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	jobs, err := fiojob.Parse(f, file)
	if err != nil {
		return nil, err
	}
	return FioFlows(jobs, file, only, capacity)
}

// FioFlows returns the jobs' copies on a namespace of capacity; file is for errors.
func FioFlows(jobs []fiojob.Job, file, only string, capacity units.Bytes) ([]FioFlow, error) {
	var out []FioFlow
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
		if only != "" && j.Name != only {
			continue
		}
		if len(out)+j.Copies > maxCopies {
			return nil, fmt.Errorf("%s:%d: the jobs have more than %d copies in all; use a smaller numjobs", file,
				j.Line, maxCopies)
		}
		if only != "" {
			j.Wave = 0
		}
		for i := range j.Copies {
			c, err := j.Config(i, capacity)
			if err == nil {
				_, err = synth.New(c)
			}
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, j.Line, err)
			}
			name := j.Name
			if j.Copies > 1 {
				name = fmt.Sprintf("%s.%d", j.Name, i)
			}
			x := FioFlow{Name: name, Config: c, Ramp: j.Ramp, Order: j.Order, Job: j.Name, Copies: j.Copies,
				Stride: j.Stride}
			if i == 0 {
				x.Notes = j.Notes
			}
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		if only == "" {
			return nil, fmt.Errorf("%s: no job", file)
		}
		return nil, fmt.Errorf("%s: no job %q; there are %s", file, only, strings.Join(names, ", "))
	}
	return out, nil
}

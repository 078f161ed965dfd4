package fiojob

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"farflash/block"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/synth"
)

func parse(t *testing.T, text string) []Job {
	t.Helper()
	jobs, err := Parse(strings.NewReader(text), "job.fio")
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

const mixed = `
; a mixed job
[global]
ioengine=libaio
direct=1
bs=4k
size=1g
group_reporting

[oltp]
rw=randrw
rwmixread=70
bs=8k,16k
iodepth=32
random_distribution=zipf:1.2
norandommap
numjobs=4
offset_increment=1g

[log]   # a sequential writer
rw=write
bs=64ki
kb_base=1000
size=10%
io_size=20m
`

func TestParse(t *testing.T) {
	jobs := parse(t, mixed)
	if len(jobs) != 2 || jobs[0].Name != "oltp" || jobs[1].Name != "log" || jobs[0].Line != 10 {
		t.Fatalf("%+v", jobs)
	}
	oltp := jobs[0]
	if oltp.Copies != 4 || oltp.Stride != units.GiB || len(oltp.Notes) != 0 {
		t.Errorf("%+v", oltp)
	}
	cfg, err := oltp.Config(2, 100*units.GiB)
	if err != nil {
		t.Fatal(err)
	}
	want := synth.Addresses{Pattern: synth.Zipf, Theta: 1.2, Start: 2 * units.GiB, Space: units.GiB,
		Align: 8 * units.KiB}
	if cfg.Reads.Addresses != want {
		t.Errorf("reads go to %+v, want %+v", cfg.Reads.Addresses, want)
	}
	want.Align = 16 * units.KiB
	if cfg.Writes.Addresses != want || cfg.Reads.Size.Mean != 8*units.KiB || cfg.Writes.Size.Mean != 16*units.KiB {
		t.Errorf("%+v, %+v", cfg.Reads, cfg.Writes)
	}
	// 1 GiB in requests of 0.7 * 8 KiB + 0.3 * 16 KiB.
	if cfg.QueueDepth != 32 || cfg.ReadFraction != 0.7 || cfg.Requests != 100825 {
		t.Errorf("depth %d, read fraction %v, %d requests", cfg.QueueDepth, cfg.ReadFraction, cfg.Requests)
	}
	cfg, err = jobs[1].Config(0, 100*units.GiB)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Reads != nil || cfg.Writes.Addresses.Pattern != synth.Sequential ||
		cfg.Writes.Addresses.Space != 10*units.GiB ||
		cfg.Writes.Size.Mean != 64*units.KiB || cfg.Requests != 305 || cfg.QueueDepth != 1 {
		t.Errorf("%+v, %+v, %d requests", cfg.Writes, cfg.Writes.Addresses, cfg.Requests)
	}
	for _, j := range jobs {
		for i := range j.Copies {
			cfg, err := j.Config(i, 100*units.GiB)
			if err != nil {
				t.Fatal(err)
			}
			g, err := synth.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var r workload.Record
			n := int64(0)
			for g.Next(&r) == nil {
				n++
			}
			if n != cfg.Requests {
				t.Errorf("%s: %d of %d requests", j.Name, n, cfg.Requests)
			}
		}
	}
}

func TestOpenLoopAndTime(t *testing.T) {
	jobs := parse(t, "[a]\nrw=randwrite\nrate_iops=2k\nrate_process=poisson\nruntime=2m\ntime_based\nrandom_distribution=pareto:0.3\nrandseed=7\nramp_time=500ms\n")
	cfg, err := jobs[0].Config(0, units.GiB)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.QueueDepth != 0 || cfg.Writes.Interarrival.Mean != 500*units.Microsecond ||
		cfg.Writes.Interarrival.Kind != synth.Exponential ||
		cfg.Duration != 2*units.Minute || cfg.Requests != 0 || cfg.Seed != 7 ||
		jobs[0].Ramp != 500*units.Millisecond || cfg.Writes.Addresses.H != 0.3 {
		t.Errorf("%+v, %+v", cfg, cfg.Writes)
	}
	g, err := synth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var r workload.Record
	for err == nil {
		err = g.Next(&r)
	}
	if err != io.EOF || r.Time > 2*units.Minute || r.Op != block.Write {
		t.Errorf("%v at %v", err, r.Time)
	}
	notes := strings.Join(jobs[0].Notes, "\n")
	for _, want := range []string{"open loop", "drawn independently", "page cache"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q have no %q", notes, want)
		}
	}
	jobs = parse(t, "[a]\nrw=randrw\nrate_iops=100,50\nnumber_ios=10\niodepth=8\nsize=1m\nrwmixread=90\n")
	cfg, err = jobs[0].Config(0, units.GiB)
	if err != nil || cfg.Requests != 10 || cfg.Writes.Interarrival.Mean != 20*units.Millisecond ||
		cfg.Reads.Interarrival.Mean != 10*units.Millisecond {
		t.Errorf("%+v, %v", cfg, err)
	}
	if notes := strings.Join(jobs[0].Notes, "\n"); !strings.Contains(notes, "iodepth=8 has no effect") ||
		!strings.Contains(notes, "decide their mix") {
		t.Errorf("notes %q", notes)
	}
}

func TestOrder(t *testing.T) {
	jobs := parse(t, "[global]\nioengine=libaio\nsize=64m\n[a]\nrw=write\nfilename=x:y\nfsync=8\n[b]\nrw=randread\nbssplit=4k/60:16k,8k\nthinktime=30\nthinktime_blocks=5\n"+
		"[c]\nstonewall\nrw=randwrite\nbsrange=4k-16k\nrate=10m\nloops=3\n[d]\nwait_for_previous\nthinktime=2ms\n")
	for i, wave := range []int{0, 0, 1, 2} {
		if jobs[i].Wave != wave {
			t.Errorf("job %s is of wave %d instead of %d", jobs[i].Name, jobs[i].Wave, wave)
		}
	}
	config := func(i int) synth.Config {
		cfg, err := jobs[i].Config(0, units.GiB)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	if a := config(0).Writes.Addresses; a.Streams != 2 || a.Pattern != synth.Sequential || jobs[0].FlushEvery != 8 ||
		!strings.Contains(strings.Join(jobs[0].Notes, ""), "its 2 files") {
		t.Errorf("%+v, %+v", a, jobs[0])
	}
	if b := config(1); b.Reads.Size.Mix != "4KiB/60:16KiB" || jobs[1].Think != 30*units.Microsecond ||
		jobs[1].ThinkEvery != 5 || b.Requests != 7447 {
		t.Errorf("%+v, %+v", b.Reads, jobs[1]) // 64 MiB in requests of 0.6 * 4 KiB + 0.4 * 16 KiB
	}
	// 10 MiB/s in requests of 10 KiB on average; three times 64 MiB.
	if c := config(2); c.Writes.Size.Mix != "4KiB-16KiB" || c.Writes.Interarrival.Mean != units.Second/1024 ||
		c.Requests != 3*6554 {
		t.Errorf("%+v, %d requests", c.Writes, c.Requests)
	}
	if jobs[3].Think != 2*units.Millisecond || jobs[3].ThinkEvery != 1 {
		t.Errorf("%+v", jobs[3])
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string][2]int64{ // results with kb_base 1024 and 1000
		"512": {512, 512}, "4k": {4096, 4000}, "4K": {4096, 4000}, "4kb": {4096, 4000}, "4ki": {4000, 4096},
		"4KiB": {4000, 4096},
		"2m":   {2 << 20, 2e6}, "1g": {1 << 30, 1e9}, "1t": {1 << 40, 1e12}, "1p": {1 << 50, 1e15}, "7b": {7, 7},
	} {
		for i, base := range []int64{1024, 1000} {
			if got, err := size(text, base); err != nil || got != want[i] {
				t.Errorf("%s with kb_base=%d is %d, %v", text, base, got, err)
			}
		}
	}
	for text, want := range map[string]units.Duration{"5": 5 * units.Second, "5s": 5 * units.Second,
		"2m": 2 * units.Minute, "1h": units.Hour, "1d": units.Day, "5ms": 5 * units.Millisecond,
		"7us": 7 * units.Microsecond} {
		if got, err := duration(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "job.fio: no job",
		"rw=read\n":                        "job.fio:1: option rw is before the first section",
		"[a\n":                             `job.fio:1: "[a" is not a section`,
		"[a]\nrw=trim\n":                   "job.fio:2: rw=trim is not supported; use read, write",
		"[a]\nrw=read:8\n":                 "job.fio:2: rw=read:8 is not supported",
		"[a]\niodepht=10\n":                "job.fio:2: unknown option iodepht; did you mean iodepth?",
		"[a]\nbssplt=4k\n":                 "unknown option bssplt; did you mean bssplit?",
		"[a]\nzonesize=10\n":               "job.fio:2: option zonesize is not supported; use one of: rw, bs",
		"[a]\nthinktime=x\n":               `thinktime: "x`,
		"[a]\nthinktime=5\nrate=1m\n":      "thinktime has no effect with rate",
		"[a]\nrate=1m\nrate_iops=5\n":      "rate and rate_iops exclude each other",
		"[a]\nbssplit=4k/60:8k/30\n":       "are 90 % in all",
		"[a]\nbsrange=64k-4k\n":            "write the smaller one first",
		"[a]\nbsrange=64k\n":               "is not a range",
		"[a]\nfsync=1\nfdatasync=1\n":      "fsync and fdatasync are the same here",
		"[a]\nverify=crc32c\n":             "option verify is not supported",
		"[a]\nbs=4q\n":                     `job.fio:2: bs: "4q" is not a size`,
		"[a]\nbs=100\n":                    "job.fio:2: bs=100 is 100 B; it must be a multiple of 512",
		"[a]\nbs=4k,8k,16k\n":              "give one size, or one for reads and one for writes",
		"[a]\nsize=0%\n":                   "a percentage must be above 0%",
		"[a]\nsize=99999999999999999999\n": "is too large",
		"[a]\noffset=100\n":                "offset=100 is not a multiple of 512",
		"[a]\niodepth=0\n":                 "iodepth=0; it must be a whole number from 1 to 65535",
		"[a]\nioengine=cpuio\n":            "ioengine=cpuio is not supported",
		"[a]\nrw=randread\nrandom_distribution=normal:10\n": "random_distribution=normal:10 is not supported",
		"[a]\nrw=randread\nrandom_distribution=zipf:x\n":    `"x" is not a number`,
		"[a]\ntime_based\n":             "time_based needs a runtime",
		"[a]\nruntime=5y\n":             `runtime: "5y" is not a time`,
		"[a]\nrate_iops=0\n":            "is not a number of requests per second",
		"[a]\nrate_process=x\n":         "rate_process=x is not supported",
		"[a]\nsize=${SIZE}\n":           "environment variables are not supported",
		"include other.fio\n":           "include is not supported",
		"[global]\nbogus=1\n[a]\n[b]\n": "job.fio:2: option bogus is not supported",
	} {
		_, err := Parse(strings.NewReader(text), "job.fio")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	_, err := Parse(strings.NewReader("[global]\nbogus=1\n[a]\nx=1\n[b]\n"), "job.fio")
	if n := strings.Count(err.Error(), "not supported"); n != 2 {
		t.Errorf("%d mistakes instead of 2: %v", n, err)
	}
	job := parse(t, "[a]\nsize=2g\n")[0]
	if _, err := job.Config(0, units.GiB); err == nil ||
		!strings.Contains(err.Error(), "do not fit into a volume of 1GiB") {
		t.Errorf("too large: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(mixed)
	f.Add("[a]\nrw=randwrite\nrate_iops=2k,3\nrate_process=poisson\nruntime=2m\ntime_based\n")
	f.Add("[a]\nsize=10%\noffset=1m\nbs=,8k\nrandom_distribution=pareto\n")
	f.Add("[a]\nfilename=x:y\nbssplit=4k/60:16k,8k\nthinktime=30\nthinktime_blocks=5\n[b]\nstonewall\nbsrange=4k-16k\nrate=10m\nloops=3\nfsync=2\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		jobs, err := Parse(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		for i := range jobs {
			cfg, err := jobs[i].Config(0, units.TiB)
			if err != nil {
				continue
			}
			g, err := synth.New(cfg)
			if err != nil {
				continue
			}
			var r workload.Record
			for range 10 {
				if g.Next(&r) != nil {
					break
				}
				if r.Offset < 0 || r.End() > int64(units.TiB) || r.Size <= 0 {
					t.Fatalf("%+v of %+v", r, cfg)
				}
			}
		}
	})
}

func Example() {
	jobs, err := Parse(strings.NewReader("[reader]\nrw=randread\nbs=4k\niodepth=8\nioengine=io_uring\nsize=1g\n"),
		"job.fio")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := jobs[0].Config(0, 100*units.GiB)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(jobs[0].Name, cfg.Reads.Size.Mean, cfg.QueueDepth, cfg.Requests)
	// Output: reader 4KiB 8 262144
}

package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial/trialtest"
)

// TestFromFio verifies that a converted job file is short, represents copies as one block, and gives the same number of
// requests and bytes in each wave as the job file itself.
func TestFromFio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rich.fio")
	jobs := "[global]\nioengine=io_uring\ndirect=1\nnorandommap\nsize=64m\nnumber_ios=300\n[fill]\nrw=write\nbs=128k\nfilename=a:b\niodepth=4\n" +
		"[split]\nstonewall\nrw=randread\nbssplit=4k/60:16k\niodepth=8\nnumjobs=4\noffset_increment=64m\nthinktime=100\nthinktime_blocks=32\n" +
		"[log]\nstonewall\nrw=randwrite\nbsrange=4k-64k\nfsync=8\nrate=200m\nloops=2\n"
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := FromFio(file, "mqsim-default")
	if err != nil {
		t.Fatal(err)
	}
	text := c.Text()
	if n := strings.Count(text, "\n"); n > 65 || strings.Contains(text, "skewness") ||
		strings.Count(text, "name: split") != 1 || !strings.Contains(text, "count: 4") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	direct := trialtest.Run(t, "name: direct\nworkload:\n  - fio: "+file+"\nssd: mqsim-default\n", 1)
	converted := trialtest.Run(t, text, 1)
	for _, name := range []string{"read.count", "write.count", "flush.count"} {
		a, b := value(direct, name), value(converted, name)
		if a != b || a == 0 {
			t.Errorf("%s: %v in the job file, %v converted", name, a, b)
		}
	}
	if got := value(converted, "flush.count"); got != 600/8 {
		t.Errorf("%v flushes behind 600 writes", got)
	}
}

// TestFromFioWhole verifies that a job over the whole device fits the drive of each preset, to the byte, and that a job
// without a possible scenario is rejected.
func TestFromFioWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "whole.fio")
	write := func(more string) {
		if err := os.WriteFile(file, []byte("[a]\ndirect=1\nrw=randread\nbs=4k\nruntime=1ms\ntime_based\n"+more),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, more := range []string{"", "size=100%\n"} {
		write(more)
		for _, drive := range []string{"tlc-enterprise", "tlc-mainstream", "qlc-client", "slc-enterprise",
			"mqsim-default", "src-ssd-a"} {
			c, err := FromFio(file, drive)
			if err != nil {
				t.Fatal(err)
			}
			s, err := trialtest.Parse(c.Text())
			if err != nil {
				t.Errorf("%s, %q: %v", drive, more, err)
				continue
			}
			if a := s.Workload[0].Synthetic.Reads.Addresses; a.Space != s.Addressable(0)-s.Addressable(0)%a.Align ||
				a.Space == 0 {
				t.Errorf("%s, %q: %v of %v", drive, more, a.Space, s.Addressable(0))
			}
			if drive == "tlc-enterprise" || drive == "mqsim-default" {
				trialtest.Run(t, c.Text(), 1)
			}
		}
	}
	write("size=10\n")
	if _, err := FromFio(file, "tlc-enterprise"); err == nil || !strings.Contains(err.Error(), file+":1: ") ||
		!strings.Contains(err.Error(), "10B") {
		t.Errorf("ten bytes: %v", err)
	}
}

func value(o *experiment.Outcome, name string) float64 {
	m, _ := o.Result.Metric(name)
	return m.Value
}

package timeline_test

import (
	"bytes"
	"fmt"
	"testing"

	"farflash/block"
	"farflash/experiment/timeline"
	"farflash/experiment/timeline/timelinetest"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/sim"
)

// newDrive returns a drive of two channels with two dies each, which nothing uses.
func newDrive(t *testing.T, change func(*ssd.Config)) (*ssd.Drive, *sim.Engine) {
	t.Helper()
	cfg := ssd.DefaultConfig()
	cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel, cfg.Geometry.DiesPerChip = 2, 2, 1
	cfg.Geometry.BlocksPerPlane, cfg.Geometry.PagesPerBlock = 128, 64
	if change != nil {
		change(&cfg)
	}
	eng := sim.New()
	d, err := ssd.New(cfg, eng, idle{}, 1, "drive")
	if err != nil {
		t.Fatal(err)
	}
	return d, eng
}

// TestFlashEvents shows work of a drive that is made up.
func TestFlashEvents(t *testing.T) {
	d, eng := newDrive(t, nil)
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	line.ShowDrive(nil, d, cosim.NewHost(eng))
	d.OnSuspend(ssd.Suspension{At: 1, Number: 0}) // before any work
	work := func(number int32, what ssd.Activity, begin, end sim.Time, change func(*ssd.Work)) {
		w := ssd.Work{Begin: begin, End: end, Number: number, Pages: 1, Activity: what}
		if change != nil {
			change(&w)
		}
		d.OnWork(w)
	}
	d.OnSuspend(ssd.Suspension{At: 1, Number: 3})
	work(0, ssd.ReadCommand, 1*us, 2*us, func(w *ssd.Work) { w.ForRequest = true })
	work(0, ssd.Read, 2*us, 9*us, func(w *ssd.Work) { w.ForRequest, w.Pages = true, 2 })
	work(0, ssd.ReadData, 9*us, 10*us, func(w *ssd.Work) { w.Bytes = 4096 })
	work(1, ssd.ReadData, 9*us, 10*us, func(w *ssd.Work) { w.Cause = ssd.ForUpdate })
	work(0, ssd.Read, 11*us, 12*us, func(w *ssd.Work) { w.Cause = ssd.ForMapping })
	work(3, ssd.Program, 10*us, 30*us, func(w *ssd.Work) { w.Cause = ssd.ForCollection })
	d.OnSuspend(ssd.Suspension{At: 15 * us, Number: 3})
	work(3, ssd.Read, 15*us, 17*us, nil)
	work(3, ssd.Program, 17*us, 30*us, func(w *ssd.Work) { w.Cause, w.Resumed = ssd.ForCollection, true })
	d.OnSuspend(ssd.Suspension{At: 18 * us, Number: 1}) // that die is idle
	work(2, ssd.Erase, 20*us, 25*us, func(w *ssd.Work) { w.Cause = ssd.ForCache })
	if remarks, err := line.Close(); err != nil || len(remarks) != 0 {
		t.Errorf("%v, %v", remarks, err)
	}
	same(t, b.Bytes(), map[string][]string{
		"drive / channel 0": {"read command 1-2 for=host pages=1 request=0 joined [1]",
			"read data 9-10 bytes=4096 for=host pages=1"},
		"drive / channel 0 / die 0": {"read 2-9 for=host pages=2 request=0 joined [1]",
			"map read 11-12 for=map pages=1"},
		"drive / channel 1":         {"read data 9-10 for=update pages=1"},
		"drive / channel 1 / die 0": {"erase 20-25 for=cache pages=1"},
		"drive / channel 1 / die 1": {"GC program 10-15 for=GC pages=1 suspended=yes", "read 15-17 for=host pages=1",
			"GC program 17-30 for=GC pages=1 resumed=yes"},
	})
	if d.OnWork != nil || d.OnSuspend != nil {
		t.Error("the timeline still observes")
	}
}

// TestChips verifies that a drive whose chips execute one command at a time has a track for each of them.
func TestChips(t *testing.T) {
	d, eng := newDrive(t, func(c *ssd.Config) { c.Geometry.DiesPerChip, c.Quirks.WholeChip = 2, true })
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	line.ShowDrive(nil, d, cosim.NewHost(eng))
	d.OnWork(ssd.Work{End: us, Number: 3, Pages: 1, Activity: ssd.Erase})
	if _, err := line.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, b.Bytes(), map[string][]string{"drive / channel 1 / chip 1": {"erase 0-1 for=host pages=1"}})
}

// TestLocalStages shows requests to a local drive with their stages: before the drive, while it works for others, and
// while it works for them.
func TestLocalStages(t *testing.T) {
	for _, x := range []struct {
		sample cosim.Sample
		want   string
	}{
		{cosim.Sample{Arrival: 10 * us, Submitted: 12 * us, Finished: 20 * us, Waited: 5 * us, ID: 3, Offset: 4096,
			Size: 512},
			"read 10-20 bytes=512 offset=4096 request=3%s joined [4] | initiator 10-12 | drive_wait 12-17 | flash 17-20"},
		{cosim.Sample{Arrival: 10 * us, Submitted: 10 * us, Finished: 20 * us, Op: block.Write},
			"write 10-20 bytes=0 offset=0 request=0%s joined [1] | flash 10-20"},
		{cosim.Sample{Arrival: 10 * us, Submitted: 12 * us, Finished: 20 * us, Waited: 30 * us}, // others overlap
			"read 10-20 bytes=0 offset=0 request=0%s joined [1] | initiator 10-12 | drive_wait 12-20"},
		{cosim.Sample{Arrival: 10 * us, Submitted: 12 * us, Finished: 20 * us, Waited: -1},
			"read 10-20 bytes=0 offset=0 request=0%s joined [1] | initiator 10-12 | flash 12-20"},
	} {
		for flows, more := range map[int]string{1: "", 2: " workload=b"} {
			d, eng := newDrive(t, nil)
			var b bytes.Buffer
			line := timeline.New(&b, 0, eng)
			x.sample.Flow = flows - 1
			line.ShowDrive([]cosim.Flow{{Name: "a"}, {Name: "b"}}[:flows], d, cosim.NewHost(eng))
			line.Local(&x.sample)
			line.Local(&x.sample)
			if _, err := line.Close(); err != nil {
				t.Fatal(err)
			}
			line.Local(&x.sample) // too late
			want := fmt.Sprintf(x.want, more)
			same(t, b.Bytes(), map[string][]string{"host / requests / 1": {want}, "host / requests / 2": {want}})
		}
	}
	var none *timeline.Timeline
	none.Local(&cosim.Sample{})
	none.ShowDrive(nil, nil, nil)
	none.ShowVolume(nil, nil, nil, nil)
	none.ShowSystem(nil)
	none.ShowNetwork(nil, nil, nil)
	none.Remote(nil, nil)
}

// TestTimelineOfManyRequests verifies that a timeline ends with its 20,000th request.
func TestTimelineOfManyRequests(t *testing.T) {
	d, eng := newDrive(t, nil)
	var b bytes.Buffer
	line := timeline.New(&b, 0, eng)
	line.ShowDrive(nil, d, cosim.NewHost(eng))
	for i := range sim.Time(20_001) {
		if i < 20_000 && d.OnWork == nil {
			t.Fatalf("the timeline ends after %d requests", i)
		}
		line.Local(&cosim.Sample{Arrival: i * us, Submitted: i * us, Finished: (i + 1) * us})
	}
	remarks, err := line.Close()
	const want = "timeline.pftrace ends at 0s of simulated time, where it has 20000 requests; later events are not in it"
	if err != nil || len(remarks) != 1 || remarks[0] != want || d.OnWork != nil {
		t.Errorf("%v, %v", remarks, err)
	}
	p := timelinetest.Read(t, b.Bytes())
	if n := len(p.Spans["host / requests / 1"]); n != 20_000 {
		t.Errorf("%d requests", n)
	}
}

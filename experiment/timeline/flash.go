package timeline

import (
	"fmt"

	"farflash/model/ssd"
	"farflash/result/perfetto"
)

// flashTracks are a drive's channels and dies in a timeline.
type flashTracks struct {
	t              *Timeline
	parent         perfetto.Track
	drive          *ssd.Drive
	id             owner
	channels, dies []perfetto.Track // created on first activity
	held           []heldWork       // by die
}

// heldWork is the present work of a die. It may still be suspended, so it is written when the next one starts.
type heldWork struct {
	ssd.Work
	request   uint64
	known     bool // it serves a request
	held      bool
	suspended bool
}

// owner maps a command's tag to its request; rebuild commands have none.
type owner func(tag uint64) (request uint64, known bool)

// showFlash draws the activity of a drive's channels and dies.
func (t *Timeline) showFlash(parent perfetto.Track, d *ssd.Drive, id owner) {
	x := &flashTracks{t: t, parent: parent, drive: d, id: id}
	watch(t, &d.OnWork, x.work)
	watch(t, &d.OnSuspend, x.suspend)
	t.flush = append(t.flush, func() {
		for i := range x.held {
			x.write(&x.held[i])
		}
	})
}

// make creates the tracks of all channels and dies.
func (x *flashTracks) make() {
	channels, dies := x.drive.Channels(), x.drive.Lanes()
	each, what := dies/channels, "die"
	if c := x.drive.Config(); c.Quirks.WholeChip {
		what = "chip"
	}
	x.held = make([]heldWork, dies)
	for c := range channels {
		own := x.t.w.Track(x.parent, fmt.Sprintf("channel %d", c))
		x.channels = append(x.channels, own)
		for k := range each {
			x.dies = append(x.dies, x.t.w.Track(own, fmt.Sprintf("%s %d", what, k)))
		}
	}
}

func (x *flashTracks) work(w ssd.Work) {
	if x.channels == nil {
		x.make()
	}
	h := heldWork{Work: w, held: true}
	if w.ForRequest {
		h.request, h.known = x.id(w.Tag)
	}
	if w.Activity.OnBus() {
		x.write(&h)
		return
	}
	x.write(&x.held[w.Number])
	if !x.t.ended { // otherwise it would never be written
		x.held[w.Number] = h
	}
}

func (x *flashTracks) suspend(s ssd.Suspension) {
	if x.channels == nil || !x.held[s.Number].held {
		return
	}
	h := &x.held[s.Number]
	h.End, h.suspended = s.At, true
}

// write writes the buffered work, if any.
func (x *flashTracks) write(h *heldWork) {
	if !h.held {
		return
	}
	h.held = false
	t := x.t
	name := h.Activity.String()
	if h.Cause == ssd.ForCollection || h.Cause == ssd.ForMapping {
		name = h.Cause.String() + " " + name
	}
	t.notes = append(t.notes[:0], perfetto.Text("for", h.Cause.String()), perfetto.Int("pages", int64(h.Pages)))
	if h.Bytes > 0 {
		t.notes = append(t.notes, perfetto.Int("bytes", h.Bytes))
	}
	flow := uint64(0)
	if h.known {
		t.notes = append(t.notes, perfetto.Int("request", int64(h.request)))
		flow = flowID(h.request)
	}
	if h.Resumed {
		t.notes = append(t.notes, perfetto.Text("resumed", "yes"))
	}
	if h.suspended {
		t.notes = append(t.notes, perfetto.Text("suspended", "yes"))
	}
	track := x.channels
	if !h.Activity.OnBus() {
		track = x.dies
	}
	t.slice(track[h.Number], perfetto.Slice{Name: name, Begin: h.Begin, End: h.End, Annotations: t.notes, Flow: flow})
}

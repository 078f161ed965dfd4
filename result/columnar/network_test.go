package columnar

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"farflash/numeric/units"
)

func flow(i int) Flow {
	f := Flow{ID: int64(i), Src: int32(i % 7), Dst: int32(i % 5), SrcPort: uint16(10000 + i%50000),
		Size: int64(i) * 1000, Start: units.Duration(i) * units.Nanosecond,
		FCT: units.Duration(i%9) * units.Microsecond, Ideal: units.Microsecond}
	if i%4 == 0 {
		f.FCT = Absent
	}
	return f
}

func pause(i int) Pause {
	return Pause{Time: units.Duration(i), Node: int32(i % 11), Switch: i%2 == 0, Port: int32(i%3) + 1, Class: 3,
		Resume: i%5 < 2}
}

func TestFlowsAndPauses(t *testing.T) {
	for _, n := range []int{0, 1, chunk, 3*chunk + 17} {
		var flows, pauses bytes.Buffer
		f, p := NewFlowWriter(&flows), NewPauseWriter(&pauses)
		for i := range n {
			if err := errors.Join(f.Add(flow(i)), p.Add(pause(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Close(), p.Close()); err != nil {
			t.Fatal(err)
		}
		i := 0
		err := ReadFlows(bytes.NewReader(flows.Bytes()), int64(flows.Len()), func(x Flow) error {
			if x != flow(i) {
				t.Fatalf("flow %d is %+v, want %+v", i, x, flow(i))
			}
			i++
			return nil
		})
		if err != nil || i != n {
			t.Fatalf("%d of %d flows came back: %v", i, n, err)
		}
		i = 0
		err = ReadPauses(bytes.NewReader(pauses.Bytes()), int64(pauses.Len()), func(x Pause) error {
			if x != pause(i) {
				t.Fatalf("pause %d is %+v, want %+v", i, x, pause(i))
			}
			i++
			return nil
		})
		if err != nil || i != n {
			t.Fatalf("%d of %d pauses came back: %v", i, n, err)
		}
	}
}

func TestNetworkErrors(t *testing.T) {
	text := file(t, 3) // of requests
	r := bytes.NewReader(text)
	if err := ReadFlows(r, int64(len(text)), func(Flow) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "flows: no column group") {
		t.Errorf("requests read as flows: %v", err)
	}
	if err := ReadPauses(r, int64(len(text)), func(Pause) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "pauses: no column time_ps") {
		t.Errorf("requests read as pauses: %v", err)
	}
	if err := ReadFlows(strings.NewReader("PAR1"), 4, nil); err == nil {
		t.Error("four bytes are no file")
	}
	var b bytes.Buffer
	w := NewFlowWriter(&b)
	if err := errors.Join(w.Add(flow(1)), w.Close()); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if err := ReadFlows(bytes.NewReader(b.Bytes()), int64(b.Len()), func(Flow) error { return stop }); !errors.Is(err,
		stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	for cut := range b.Len() {
		if err := ReadFlows(bytes.NewReader(b.Bytes()[:cut]), int64(cut), func(Flow) error { return nil }); err == nil {
			t.Errorf("the first %d bytes of %d are no file", cut, b.Len())
		}
	}
}

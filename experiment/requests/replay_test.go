package requests_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/requests"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/workload"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// threeVolumes are writes of 4 KiB to volumes with overlapping addresses: disks 7, 2 and 9 of a host, up to 5 MiB, 512
// KiB and 1 MiB.
var threeVolumes = []struct{ disk, offset int64 }{{7, 0}, {7, 5*mib - 4*kib}, {2, 0}, {7, 8 * kib}, {9, 0},
	{2, 508 * kib}, {9, 1020 * kib}}

// replayed returns the addresses at which a scenario replays the trace, and the notes.
func replayed(t *testing.T, trace, item string, capacity int64) (at []int64, notes string, err error) {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i, x := range threeVolumes {
		fmt.Fprintf(&b, "%d,host,%d,Write,%d,4096,100\n", 128166372000000000+int64(i)*10000, x.disk, x.offset)
	}
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "ssd: tlc-enterprise\nworkload: [{trace: {file: t.csv" + trace + "}" + item + "}]\n"
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Dir: dir, Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := requests.Open(s, 1, []int64{capacity}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer flows.Close()
	var r workload.Record
	for err == nil {
		if err = flows.List[0].Source.Next(&r); err == nil {
			at = append(at, r.Offset)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return at, strings.Join(flows.Replays[0].Notes, "\n"), err
}

// TestVolumes verifies that the volumes of a trace are placed one after another, in order of appearance, unless the
// scenario says otherwise.
func TestVolumes(t *testing.T) {
	const room = 100 * mib
	stacked := []int64{0, 5*mib - 4*kib, 5 * mib, 8 * kib, 6 * mib, 5*mib + 508*kib, 6*mib + 1020*kib}
	var own, second []int64
	for _, x := range threeVolumes {
		own = append(own, x.offset)
		if x.disk == 2 {
			second = append(second, x.offset)
		}
	}
	for _, c := range []struct {
		name, trace, item string
		want              []int64
		note              bool
	}{
		{"by default", "", "", stacked, true},
		{"twice over", ", loop: 2", "", append(slices.Clone(stacked), stacked...), true},
		{"overlaid", ", volumes: overlay", "", own, false},
		{"one of them", ", volume: 'host,2'", "", second, false},
		{"a part before the second appears", ", part: 30%", "", own[:2], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, notes, err := replayed(t, c.trace, c.item, room)
			if err != nil || !slices.Equal(at, c.want) {
				t.Errorf("at %v, %v; want %v", at, err, c.want)
			}
			if strings.Contains(notes, "its 3 volumes lie one after the other and take 7.34MB") != c.note {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// TestVolumesWithoutRoom verifies that volumes that do not fit are not overlaid unless the scenario says so.
func TestVolumesWithoutRoom(t *testing.T) {
	at, _, err := replayed(t, "", "", 7*mib-1)
	if want := "its 3 volumes take 7MiB one after the other, but the space is 7.340031MB; replay one of them " +
		"(volume), use volumes: overlay or addresses: fold, or use a larger drive"; err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("after %v: %v", at, err)
	}
	if _, _, err := replayed(t, "", "", 7*mib); err != nil {
		t.Error(err)
	}
	if at, _, err := replayed(t, "", ", addresses: fold", 7*mib-1); err != nil || len(at) != len(threeVolumes) {
		t.Errorf("folded: %v, %v", at, err) // the host folds them
	}
}

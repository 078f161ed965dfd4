package perfetto_test

import (
	"bytes"
	"fmt"

	"farflash/numeric/units"
	"farflash/result/perfetto"
)

// Two overlapping requests use two lanes; a third reuses the first.
func Example() {
	var file bytes.Buffer
	w := perfetto.NewWriter(&file)
	requests := w.Lanes(perfetto.Top, "initiator 3")
	for i, r := range [][2]units.Duration{{0, 90}, {30, 140}, {100, 180}} {
		begin, end := r[0]*units.Microsecond, r[1]*units.Microsecond
		lane, err := requests.Slice(perfetto.Slice{
			Name: "read", Begin: begin, End: end,
			Annotations: []perfetto.Annotation{perfetto.Int("request", int64(i))},
			Parts: []perfetto.Slice{{Name: "flash", Begin: begin + 10*units.Microsecond,
				End: end - 20*units.Microsecond}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("request", i, "is on track", lane)
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(requests.Len(), "lanes,", int64(file.Len()) == w.Written())
	// Output:
	// request 0 is on track 2
	// request 1 is on track 3
	// request 2 is on track 2
	// 2 lanes, true
}

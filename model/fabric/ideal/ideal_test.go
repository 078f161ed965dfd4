package ideal_test

import (
	"fmt"

	"farflash/model/fabric/ideal"
	"farflash/numeric/units"
)

// Three packets through a switch: the first link takes 1 us a packet and the second 2 us, with one or two such links in
// parallel.
func Example() {
	for _, choices := range []int{1, 2} {
		var w ideal.Ways
		for back := range 2 {
			w.Link(back, 1)
			w.Link(back, choices)
			w.Link(back, 1)
		}
		m := ideal.Message{Packets: 3, Every: 1}
		for i, t := range []units.Duration{units.Microsecond, 2 * units.Microsecond, units.Microsecond} {
			m.Forth(t, t, 0, w.Abreast(i))
		}
		fmt.Println(int(w.Abreast(1)), m.Takes())
	}
	// Output:
	// 1 8us
	// 2 6us
}

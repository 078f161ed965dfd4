package units_test

import (
	"fmt"

	"farflash/numeric/units"
)

func Example() {
	link, _ := units.ParseBitRate("40Gbps")
	size, _ := units.ParseBytes("16KiB")
	fmt.Println(link.TimeFor(size))

	_, err := units.ParseBitRate("40")
	fmt.Println(err)
	// Output:
	// 3.2768us
	// "40" has no unit; try 40Gbps (units: bps, Kbps, Mbps, Gbps, Tbps)
}

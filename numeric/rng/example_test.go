package rng_test

import (
	"fmt"

	"farflash/numeric/rng"
)

// Streams are named, so a new component does not change the numbers of the others.
func ExampleNewStream() {
	a := rng.NewStream(42, "ssd[0]/arrivals")
	b := rng.NewStream(42, "ssd[1]/arrivals")
	again := rng.NewStream(42, "ssd[0]/arrivals")
	first := a.Uint64()
	fmt.Println(first == again.Uint64(), first == b.Uint64())
	// Output: true false
}

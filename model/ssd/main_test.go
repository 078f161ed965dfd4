package ssd_test

import (
	"flag"
	"os"
	"testing"

	"farflash/internal/patience"
)

// TestMain lowers the number of cases of each property below rapid's 100, because a case is a drive's whole life and
// five properties draw theirs separately. -rapid.checks and RAPID_CHECKS override it, and nightly runs use the full
// number.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" && !patience.LongNamed("model/ssd") {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

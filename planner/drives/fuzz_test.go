package drives

import (
	"strings"
	"testing"

	"farflash/internal/patience"
)

// FuzzReadMix reads tables of write amplification from arbitrary bytes: an accepted table yields at least 1 for every
// share.
func FuzzReadMix(f *testing.F) {
	f.Add("sequential,waf\n0%,4.1\n50%,2\n100%,1\n")
	f.Add("0,NaN\n1,1\n")
	f.Add("0,1e308\n1,-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		table, err := readMix(strings.NewReader(text), "waf.csv")
		if err != nil {
			return
		}
		for _, s := range []float64{0, 0.3, 0.999, 1} {
			if v := table.At(s); !(v >= 1) {
				t.Errorf("%q: the write amplification at %v is %v", text, s, v)
			}
		}
	})
}

package trace

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
)

// TestNumbers verifies the greatest number of each kind of field, and the first that is refused.
func TestNumbers(t *testing.T) {
	for _, x := range []struct {
		text string
		want uint64
		ok   bool
	}{
		{"0", 0, true}, {"00000000000000000007", 7, true}, {"000000000000000000007", 0, false},
		{"18446744073709551609", 18446744073709551609, true}, {"18446744073709551620", 0, false},
		{"99999999999999999999", 0, false}, {"", 0, false}, {"1/", 0, false}, {"1:", 0, false}, {"-1", 0, false},
	} {
		if got, ok := parseUint([]byte(x.text)); ok != x.ok || got != x.want {
			t.Errorf("%s reads as %d, %v", x.text, got, ok)
		}
	}
	for text, want := range map[string]int64{"9223372036854775807": math.MaxInt64, "9223372036854775808": -1, "x": -1} {
		if got, ok := parseInt63([]byte(text)); ok != (want >= 0) || got != max(want, 0) {
			t.Errorf("%s reads as %d, %v", text, got, ok)
		}
	}
	for text, want := range map[string]int64{"0": 0, "9": 9, "a": 10, "f": 15, "A": 10, "F": 15, "1f": 31, "0x10": 16,
		"0XFF": 255, "7fffffffffffffff": math.MaxInt64, "00000000000000001": -1, "": -1, "0x": -1, "g": -1, "G": -1,
		"`": -1, "@": -1, "/": -1, ":": -1, "1x2": -1} {
		if got, ok := parseHex([]byte(text)); ok != (want >= 0) || got != uint64(max(want, 0)) {
			t.Errorf("%q reads as %#x, %v", text, got, ok)
		}
	}
	for text, want := range map[string]int64{"0": 0, "4294967295": math.MaxUint32, "4294967296": -1, "x": -1} {
		if got, ok := parseVolume([]byte(text)); ok != (want >= 0) || ok && int64(got) != want {
			t.Errorf("volume %q reads as %d, %v", text, got, ok)
		}
	}
	if got, ok := sectors(math.MaxInt64 / 512); !ok || got != math.MaxInt64-511 {
		t.Errorf("the greatest address is %d, %v", got, ok)
	}
	if _, ok := sectors(math.MaxInt64/512 + 1); ok {
		t.Error("a sector beyond 8 EiB is accepted")
	}
}

// TestDecimals compares times with exact fractions, for each unit.
func TestDecimals(t *testing.T) {
	for _, text := range []string{"0", "1", "1456095145.133076", "12.000000000001", ".5", "5.", "0.1", "999.999999999999",
		"3.1415926535897932384626", "9223372036854775799", "0000000000000000000000001"} {
		for exponent := range 13 {
			got, ok := parseDecimal([]byte(text), exponent)
			exact, _ := new(big.Rat).SetString("0" + strings.TrimSuffix(text, "."))
			scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(12-exponent)), nil)
			exact.Mul(exact, new(big.Rat).SetInt(scale)) // in picoseconds
			want := new(big.Int).Quo(exact.Num(), exact.Denom())
			have := new(big.Int).Mul(big.NewInt(got.sec), big.NewInt(psPerSecond))
			have.Add(have, big.NewInt(got.ps))
			if !ok || have.Cmp(want) != 0 || got.ps < 0 || got.ps >= psPerSecond {
				t.Errorf("%s of 10^-%d s is %+v, %v; want %v ps", text, exponent, got, ok, want)
			}
		}
	}
	for _, text := range []string{"", ".", "1.2.3", "1e3", "-1", "+1", "1,5", "1./", "1.:", "9223372036854775800",
		"99999999999999999999", "nan"} {
		if got, ok := parseDecimal([]byte(text), 0); ok {
			t.Errorf("%q reads as %+v", text, got)
		}
	}
}

// TestInstants verifies the order of times and their greatest difference: 2^63 ps are 9,223,372.04 s.
func TestInstants(t *testing.T) {
	list := []instant{{-5, 0}, {-5, 3}, {0, 2}, {0, 3}, {1, 0}, {1, 3}}
	for i, a := range list {
		for j, b := range list {
			if a.before(b) != (i < j) {
				t.Errorf("%v before %v is %v", a, b, a.before(b))
			}
			if d, ok := a.since(b); !ok || int64(d) != (a.sec-b.sec)*1e12+a.ps-b.ps {
				t.Errorf("from %v to %v is %v, %v", b, a, d, ok)
			}
		}
	}
	for sec, want := range map[int64]bool{9223371: true, 9223372: false, -9223371: true, -9223372: false} {
		if _, ok := (instant{sec: sec}).since(instant{}); ok != want {
			t.Errorf("a difference of %d s: %v", sec, ok)
		}
	}
	if got := ticks(12345678901, 1e7); got != (instant{1234, 567890100000}) {
		t.Errorf("12345678901 ticks of 100 ns are %v", got)
	}
}

// TestSplit cuts every line of up to six of four characters, and compares with the standard library.
func TestSplit(t *testing.T) {
	const most = 6
	var f [4][]byte
	same := func(line string, n int, want []string) bool {
		for i := range min(n, len(f), len(want)) {
			if string(f[i]) != want[i] {
				return false
			}
		}
		return n == len(want)
	}
	var grow func(line string)
	grow = func(line string) {
		blank := func(c rune) bool { return c == ' ' || c == '\t' }
		if n := splitSpace([]byte(line), f[:]); !same(line, n, strings.FieldsFunc(line, blank)) {
			t.Fatalf("%q is split into %d: %q", line, n, f)
		}
		want := strings.Split(line, ",")
		for i := range want {
			want[i] = strings.Trim(want[i], " \t")
		}
		if n := splitComma([]byte(line), f[:]); !same(line, n, want) {
			t.Fatalf("%q is split at commas into %d: %q", line, n, f)
		}
		if len(line) < most {
			for _, c := range []string{" ", "\t", ",", "a"} {
				grow(line + c)
			}
		}
	}
	grow("")
}

// TestWords verifies the words for operations.
func TestWords(t *testing.T) {
	for text, want := range map[string]block.Op{"r": block.Read, "R": block.Read, "read": block.Read,
		"Read": block.Read, "READ": block.Read, "w": block.Write, "W": block.Write, "Write": block.Write,
		"WRITE": block.Write, "": 99, "x": 99, "reed": 99, "rea": 99, "reads": 99, "wread": 99, "Writ": 99} { // 99: none, which is 0
		if got, ok := readOrWrite([]byte(text)); ok != (want != 99) || got != want%99 {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}
	for text, want := range map[string]block.Op{"R": block.Read, "WS": block.Write, "RA": block.Read, "RM": block.Read,
		"FWFS": block.Write, "F": block.Flush, "FN": block.Flush, "D": block.Trim, "DS": block.Trim, "N": 99, "": 99} {
		if got, ok := rwbs([]byte(text)); ok != (want != 99) || ok && got != want {
			t.Errorf("RWBS %q is %v, %v", text, got, ok)
		}
	}
	for text, want := range map[string]bool{"A": true, "Z": true, "AZUT": true, "": true, "Qa": false, "@": false,
		"A[": false} {
		if isUpper([]byte(text)) != want {
			t.Errorf("%q is in upper case: %v", text, !want)
		}
	}
	long := fieldError("size", bytes.Repeat([]byte{'7'}, 41), "less")
	if want := `size is "` + strings.Repeat("7", 40) + `..."; it must be less`; long.Error() != want {
		t.Errorf("%v", long)
	}
	if whole := fieldError("size", bytes.Repeat([]byte{'7'}, 40), "less"); strings.Contains(whole.Error(), "...") {
		t.Errorf("%v", whole)
	}
}

// TestLimitsOfRequests verifies each limit of a request from both sides. Lines of fio's log are of bytes, those of
// Alibaba of sectors.
func TestLimitsOfRequests(t *testing.T) {
	const least = "fio version 3 iolog\n0 f "
	for _, x := range []struct {
		text, want string
	}{
		{least + "write 72057594037927935 1\n", ""},
		{least + "write 72057594037927936 1\n", "a write of 1 bytes at byte 72057594037927936 extends past 64 PiB"},
		{least + "write 72057594037927935 2\n", "a write of 2 bytes at byte 72057594037927935 extends past 64 PiB"},
		{least + "trim 0 72057594037927936\n", ""},
		{least + "trim 0 72057594037927937\n", "a trim of 72057594037927937 bytes at byte 0 extends past 64 PiB"},
		{least + "read 0 4294967296\n", ""},
		{least + "read 0 4294967297\n", "a read of 4294967297 bytes; the maximum is 4 GiB"},
		{least + "read 7 1\n", ""},
		{least + "trim 7 0\n", "a trim of 0 bytes; sizes must be positive"},
		{least + "sync\n", ""},
		{"0,R,512,512,0\n", ""},
		{"0,R,511,512,0\n", "offset 511 is not a multiple of 512"},
		{"0,R,512,1,0\n", "size 1 is not a multiple of 512"},
	} {
		format := FioLog
		if !strings.HasPrefix(x.text, "fio") {
			format = Alibaba
		}
		_, _, err := read(x.text, Options{Format: format})
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+x.want)) {
			t.Errorf("%q: %v, want %q", x.text, err, x.want)
		}
	}
	// A Duration ends after 2^63 ps, which are 9,223,372.04 s.
	for at, ok := range map[string]bool{"9223371": true, "9223372": false} {
		got, _, err := read("0,8,512,R,0\n0,8,512,R,"+at+"\n", Options{Format: SPC})
		if (err == nil) != ok || ok && got[1].Time != 9223371*units.Second {
			t.Errorf("a trace of %s s: %v, %v", at, got, err)
		}
	}
}

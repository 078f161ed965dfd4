package patience

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Long reports whether a test, or the case of it that t is, runs at its full length: FARFLASH_LONG=1 selects all, and
// FARFLASH_LONG=K/N the Kth of N parts of them, by their names, so that a full run can be spread over N nights. It
// fails the test if the variable has another value.
func Long(t testing.TB) bool {
	t.Helper()
	yes, err := long(os.Getenv("FARFLASH_LONG"), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

// LongNamed is Long for a case that is no test of its own, by a name that is unique among those. It panics if the
// variable is invalid.
func LongNamed(name string) bool {
	yes, err := long(os.Getenv("FARFLASH_LONG"), name)
	if err != nil {
		panic(err)
	}
	return yes
}

// SkipUnlessLong skips a test that only runs at its full length.
func SkipUnlessLong(t testing.TB) {
	t.Helper()
	if !Long(t) {
		t.Skip("FARFLASH_LONG does not select it")
	}
}

func long(setting, name string) (bool, error) {
	switch setting {
	case "":
		return false, nil
	case "1":
		return true, nil
	}
	part, of, _ := strings.Cut(setting, "/")
	k, err := strconv.ParseUint(part, 10, 16)
	n, wrong := strconv.ParseUint(of, 10, 16)
	if err != nil || wrong != nil || k < 1 || k > n {
		return false, fmt.Errorf("FARFLASH_LONG=%s: use 1 for all long tests, or K/N for the Kth of N parts", setting)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return uint64(h.Sum32())%n == k-1, nil
}

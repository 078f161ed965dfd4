package trial_test

import (
	"fmt"
	"testing"

	"farflash/trial"
)

// TestParallelPanic holds that a panic of one of several goroutines is one of whoever asked for them, and that the others end.
func TestParallelPanic(t *testing.T) {
	defer func() {
		if x := recover(); fmt.Sprint(x) != "three" {
			t.Errorf("%v", x)
		}
	}()
	trial.Parallel(t.Context(), 8, 2, func(i int) error {
		if i == 3 {
			panic("three")
		}
		return nil
	})
	t.Error("there is no panic")
}

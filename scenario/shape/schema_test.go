package shape

import "testing"

// TestSnake verifies the conversion of field names to keys.
func TestSnake(t *testing.T) {
	for in, want := range map[string]string{
		"ChipsPerChannel": "chips_per_channel", "CMTCapacity": "cmt_capacity", "TRCD": "trcd", "SSD": "ssd",
		"FUA": "fua", "DataOutSetup": "data_out_setup", "Idle": "idle",
	} {
		if got := snake(in); got != want {
			t.Errorf("snake(%s) = %s, want %s", in, got, want)
		}
	}
}

package spelling_test

import (
	"fmt"
	"testing"

	"farflash/internal/spelling"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 1},
		{"abcd", "acbd", 1}, {"ca", "abc", 3}, {"flaw", "lawn", 2},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := spelling.Distance(c.b, c.a); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	verbs := []string{"run", "report", "reproduce", "check", "Explain"}
	for word, want := range map[string]string{
		"rnu": "run", "reprot": "report", "rep": "report", "reproduction": "reproduce", "chekc": "check",
		"explan": "Explain", "EXPLAIN": "Explain",
		"": "", "weather": "", "xyz": "",
	} {
		if got := spelling.Nearest(word, verbs); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := spelling.Nearest("run", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func Example() {
	fmt.Println(spelling.Nearest("over_provisionning", []string{"geometry", "over_provisioning", "compat"}))
	// Output: over_provisioning
}

package term

import (
	"os"
	"strings"
	"testing"
	"time"

	"farflash/internal/patience"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "µs": 2, "日本": 4, "e\u0301": 1, "\x1b[31mred\x1b[0m": 3, "a\x1b[1mb\x1b[0mc": 3, "✅": 2,
		"ｱ": 1, "Ａ": 2, "한글": 4,
		"\x1b[3": 0, "\t": 0, "█▏·": 3,
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable(Left("name"), Right("p99"), Left("note")).Indent("  ")
	table.Row("reads", "402 us", "ok")
	table.Row("日本", "1.23 ms")
	var b strings.Builder
	if err := table.Write(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	want := "  name       p99  note\n  reads   402 us  ok\n  日本   1.23 ms\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	// Colour must not change the layout.
	var c strings.Builder
	if err := table.Write(&c, Style{on: true}); err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(c.String())
	if plain != want {
		t.Errorf("with colour:\n%s", plain)
	}
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{0, "us", "0 us"}, {0.5, "us", "500 ns"}, {88.898, "us", "88.9 us"}, {402.06, "us", "402 us"},
		{999.9, "us", "1.00 ms"}, {1234.5, "us", "1.23 ms"}, {12e6, "us", "12.0 s"},
		{0.2, "s", "200 ms"}, {150, "s", "2.50 min"},
		{4096, "B", "4.10 KB"}, {512, "B", "512 B"}, {3.84e12, "B", "3.84 TB"},
		{1.234e9, "B/s", "1.23 GB/s"}, {40e9, "bit/s", "40.0 Gbit/s"},
		{36700, "1/s", "36.7k"}, {12, "1/s", "12.0"}, {0.25, "1/s", "0.250"}, {1.2e6, "1/s", "1.20M"},
		{0.973, "fraction", "97.3 %"}, {0, "fraction", "0 %"}, {0.00042, "fraction", "0.042 %"},
		{1.5, "ratio", "1.500"}, {10000, "count", "10,000"}, {999, "count", "999"}, {-1234567, "count", "-1,234,567"},
		{2.5, "count", "2.50"},
		{0.0123, "J", "12.3 mJ"}, {7.5, "W", "7.50 W"},
	} {
		if got := Quantity(c.v, c.unit); got != c.want {
			t.Errorf("Quantity(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestBar(t *testing.T) {
	for share, want := range map[float64]string{0: "····", 0.5: "██··", 1: "████", 2: "████", -1: "····",
		0.28125: "█▏··", 0.99: "████"} {
		if got := Bar(share, 4); got != want {
			t.Errorf("Bar(%v) = %q, want %q", share, got, want)
		}
	}
	if got := Sparks([]float64{0, 0.5, 1, 7}); got != "▁▅██" {
		t.Errorf("Sparks = %q", got)
	}
}

func TestColour(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if s := Colour(w, func(string) string { return "" }); s.on {
		t.Error("colour on a pipe")
	}
	if got := (Style{}).Bad("x"); got != "x" {
		t.Errorf("%q", got)
	}
	if Columns(w, 77) != 77 {
		t.Error("a pipe has a width")
	}
}

// clockwork is a clock that tests advance.
type clockwork struct{ now time.Time }

func (c *clockwork) Now() time.Time { return c.now }

func TestProgressPlain(t *testing.T) {
	var b strings.Builder
	c := &clockwork{time.Unix(1000, 0)}
	p := NewProgress(&b, ProgressConfig{Label: "run", Unit: "requests", Now: c.Now})
	for i := range int64(40) {
		c.now = c.now.Add(time.Second)
		p.Update((i+1)*1000, 100000, "")
	}
	p.Stop()
	want := "run  10 %  10,000 of 100,000 requests  1.00k/s  1:30 left\n"
	if !strings.HasPrefix(b.String(), want) || strings.Count(b.String(), "\n") != 4 ||
		strings.Contains(b.String(), "\x1b") {
		t.Errorf("got\n%s", b.String())
	}
}

func TestProgressTerminal(t *testing.T) {
	var b strings.Builder
	c := &clockwork{time.Unix(1000, 0)}
	p := NewProgress(&b, ProgressConfig{Label: "run", Now: c.Now, Terminal: true, Columns: 66})
	p.Update(1, 100, "too early")
	c.now = c.now.Add(time.Second)
	p.Update(50, 100, "a note that is too long for the line that it is to stand on")
	p.Stop()
	p.Update(51, 100, "")
	text := b.String()
	if !strings.HasPrefix(text, "\rrun ██████████··········  50 %  50 of 100  50.0/s  0:01 left") ||
		!strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("got %q", text)
	}
	first, _, _ := strings.Cut(text[1:], "\x1b")
	if Width(first) > 65 {
		t.Errorf("the line is %d wide", Width(first))
	}
}

func TestProgressQuiet(t *testing.T) {
	var b strings.Builder
	c := &clockwork{time.Unix(0, 0)}
	p := NewProgress(&b, ProgressConfig{Quiet: true, Now: c.Now})
	c.now = c.now.Add(time.Hour)
	p.Update(1, 2, "")
	p.Stop()
	if b.Len() != 0 {
		t.Errorf("got %q", b.String())
	}
}

func TestProgressUnknownTotal(t *testing.T) {
	var b strings.Builder
	c := &clockwork{time.Unix(0, 0)}
	p := NewProgress(&b, ProgressConfig{Label: "read", Now: c.Now})
	c.now = c.now.Add(20 * time.Second)
	p.Update(400, 0, "file.csv")
	if b.String() != "read  400  20.0/s  file.csv\n" {
		t.Errorf("got %q", b.String())
	}
}

func TestClock(t *testing.T) {
	for s, want := range map[float64]string{7: "0:07", 750: "12:30", 3723: "1:02:03", 1e9: "more than 100 h"} {
		if got := clock(s); got != want {
			t.Errorf("clock(%v) = %s, want %s", s, got, want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("\x1b[1mrun\x1b[0m 日本 50 %", 8)
	f.Fuzz(func(t *testing.T, s string, width int) {
		defer patience.Limit()()
		if width < 0 || width > 1000 {
			return
		}
		if got := clip(s, width); Width(got) > width {
			t.Fatalf("clip(%q, %d) = %q is %d wide", s, width, got, Width(got))
		}
	})
}

// TestProgressLong: long work is announced once and early, and preparation does not count towards its pace.
func TestProgressLong(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		share    float64 // per second
		want     string  // the line that announces it; "" if none
	}{
		{"plain", false, 1.0 / 7200,
			"run: this will take about 2.0 hours more, at the pace of the first 5 s; it can be ended\n"},
		{"terminal", true, 1.0 / 7200,
			"\rrun: this will take about 2.0 hours more, at the pace of the first 5 s; it can be ended\x1b[K\n"},
		{"minutes", false, 1.0 / 420,
			"run: this will take about 7 minutes more, at the pace of the first 5 s; it can be ended\n"},
		{"days", false, 1e-6,
			"run: this will take about 11.6 days more, at the pace of the first 5 s; it can be ended\n"},
		{"years", false, 1e-9,
			"run: this will take about 32 years more, at the pace of the first 5 s; it can be ended\n"},
		{"short", false, 1.0 / 300, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			w := &clockwork{time.Unix(1000, 0)}
			p := NewProgress(&b,
				ProgressConfig{Label: "run", Now: w.Now, Terminal: c.terminal, Hint: "it can be ended"})
			for range 60 { // preparation
				w.now = w.now.Add(time.Second)
				p.Reach(0, 0, 0, "prepares")
			}
			for i := range 30 {
				w.now = w.now.Add(time.Second)
				p.Reach(float64(i+1)*c.share, int64(i), 0, "")
			}
			p.Stop()
			if text := b.String(); strings.Count(text, "will take") != min(1, len(c.want)) ||
				!strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q in it once", text, c.want)
			}
		})
	}
	var b strings.Builder
	w := &clockwork{time.Unix(1000, 0)}
	p := NewProgress(&b, ProgressConfig{Label: "reproduce", Unit: "runs", Now: w.Now})
	w.now = w.now.Add(10 * time.Minute)
	p.Update(1, 5, "")
	if want := "reproduce: this will take about 40 minutes more, at the pace of the first 600 s\nreproduce  20 %  1 " +
		"of 5 runs  0.00167/s  40:00 left\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestClip verifies where texts are cut: escape sequences have no width and stay whole, a colour that is on is switched
// off, and wide characters are not halved.
func TestClip(t *testing.T) {
	for _, x := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"abc", 0, ""},
		{"\x1b[31mab\x1b[0mcd", 3, "\x1b[31mab\x1b[0mc\x1b[0m"},
		{"\x1b[31mabcd\x1b[0m", 3, "\x1b[31mabc\x1b[0m"},
		{"\x1b[1;31mabcd", 2, "\x1b[1;31mab\x1b[0m"}, // digits and separators are not its end
		{"\x1b[2Kabcd", 2, "\x1b[2Kab\x1b[0m"},       // a capital letter is
		{"\x1b[31zabcd", 2, "\x1b[31zab\x1b[0m"}, {"\x1b[31aabcd", 2, "\x1b[31aab\x1b[0m"},
		{"\x1b[31Zabcd", 2, "\x1b[31Zab\x1b[0m"}, {"\x1b[31Aabcd", 2, "\x1b[31Aab\x1b[0m"},
		{"a\u4e2db", 2, "a"}, {"a\u4e2db", 3, "a\u4e2d"},
	} {
		if got := clip(x.text, x.width); got != x.want {
			t.Errorf("%q in %d: %q, want %q", x.text, x.width, got, x.want)
		}
	}
}

// TestPad verifies that a text which is as wide as its column, or wider, stays as it is.
func TestPad(t *testing.T) {
	for _, x := range []struct {
		text        string
		width       int
		left, right string
	}{{"ab", 4, "ab  ", "  ab"}, {"ab", 3, "ab ", " ab"}, {"ab", 2, "ab", "ab"}, {"ab", 1, "ab", "ab"},
		{"\u4e2d", 3, "\u4e2d ", " \u4e2d"}} {
		if l, r := pad(x.text, x.width, false), pad(x.text, x.width, true); l != x.left || r != x.right {
			t.Errorf("%q in %d: %q and %q", x.text, x.width, l, r)
		}
	}
}

package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// ProgressConfig says how progress is shown.
type ProgressConfig struct {
	Label    string           // what is being done, such as "run"
	Unit     string           // of the counts, such as "requests"
	Quiet    bool             // show nothing
	Terminal bool             // redraw one line; otherwise print a line now and then
	Columns  int              // width of the terminal; 0 is 80
	Now      func() time.Time // the clock; nil is time.Now
	Style    Style
}

// How often progress is shown, on a terminal and elsewhere.
const (
	redrawEvery = 100 * time.Millisecond
	printEvery  = 10 * time.Second
)

// Progress shows how far long work has come: one line with share, rate and time left. On a terminal the line is redrawn;
// elsewhere a plain line is printed every ten seconds. Nothing is shown for work that ends before the first of these. Its
// methods may be called by several goroutines at once. Errors of the writer are ignored: progress is not worth failing for.
type Progress struct {
	c       ProgressConfig
	w       io.Writer
	mu      sync.Mutex
	start   time.Time
	last    time.Time // shown
	shown   bool
	stopped bool
}

// NewProgress begins to measure. Stop must be called at the end.
func NewProgress(w io.Writer, c ProgressConfig) *Progress {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Columns <= 0 {
		c.Columns = 80
	}
	now := c.Now()
	return &Progress{c: c, w: w, start: now, last: now}
}

// Update says that done of total are done; a total of 0 is unknown. note is appended, and may be empty.
func (p *Progress) Update(done, total int64, note string) {
	if p.c.Quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.c.Now()
	every := printEvery
	if p.c.Terminal {
		every = redrawEvery
	}
	if p.stopped || now.Sub(p.last) < every {
		return
	}
	p.last = now
	line := p.line(done, total, now.Sub(p.start), note)
	if p.c.Terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", clip(line, p.c.Columns-1))
	} else {
		fmt.Fprintln(p.w, line)
	}
	p.shown = true
}

func (p *Progress) line(done, total int64, spent time.Duration, note string) string {
	var b strings.Builder
	b.WriteString(p.c.Style.Bold(Shown(p.c.Label)))
	rate := float64(done) / spent.Seconds()
	if total > 0 {
		share := min(float64(done)/float64(total), 1)
		if p.c.Terminal {
			fmt.Fprintf(&b, " %s", Bar(share, 20))
		}
		fmt.Fprintf(&b, " %3.0f %%", 100*share)
	}
	fmt.Fprintf(&b, "  %s", Count(float64(done)))
	if total > 0 {
		fmt.Fprintf(&b, " of %s", Count(float64(total)))
	}
	if p.c.Unit != "" {
		fmt.Fprintf(&b, " %s", p.c.Unit)
	}
	fmt.Fprintf(&b, "  %s/s", Rate(rate))
	if total > done && rate > 0 {
		fmt.Fprintf(&b, "  %s left", clock(float64(total-done)/rate))
	}
	if note != "" {
		fmt.Fprintf(&b, "  %s", Shown(note))
	}
	return b.String()
}

// Stop removes the line from a terminal. Updates after it show nothing.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown && p.c.Terminal && !p.stopped {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.stopped = true
}

// clock writes seconds as a clock shows them: 0:07, 12:30, 1:02:03.
func clock(seconds float64) string {
	if seconds > 100*3600 {
		return "more than 100 h"
	}
	s := int(seconds + 0.5)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// clip cuts s to the given width. Escape sequences are kept whole, and one that would be left open is closed.
func clip(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	var b strings.Builder
	n, escape, coloured := 0, false, false
	for i, r := range s {
		switch {
		case escape:
			escape = !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		case r == '\x1b' && strings.HasPrefix(s[i:], "\x1b["):
			escape, coloured = true, true
		default:
			if n += runeWidth(r); n > width {
				if coloured {
					b.WriteString("\x1b[0m")
				}
				return b.String()
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

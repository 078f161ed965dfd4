package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// ProgressConfig configures the display of progress.
type ProgressConfig struct {
	Label    string           // the name of the work, such as "run"
	Unit     string           // of the counts, such as "requests"
	Quiet    bool             // show no progress
	Terminal bool             // redraw one line; otherwise print a line every ten seconds
	Columns  int              // width of the terminal; 0 is 80
	Now      func() time.Time // the clock; nil is time.Now
	Style    Style
	// Hint describes how the user can shorten or end long work, for the line that announces it.
	Hint string
}

// Intervals between updates, on a terminal and elsewhere.
const (
	redrawEvery = 100 * time.Millisecond
	printEvery  = 10 * time.Second
)

// Work with more than longWork left is announced as long, once, after at least firstMoments.
const (
	longWork     = 5 * time.Minute
	firstMoments = 5 * time.Second
)

// Progress shows the progress of long work in one line with share, rate and time left. On a terminal the line is
// redrawn; elsewhere a plain line is printed every ten seconds. Work that ends before the first update shows no line.
// If more than five minutes are left at the pace of the first five seconds, a separate line announces that, once.
// Progress is safe for concurrent use. Errors of the writer are ignored: progress is not worth failing for.
type Progress struct {
	c       ProgressConfig
	w       io.Writer
	mu      sync.Mutex
	start   time.Time
	last    time.Time // time of the last update
	shown   bool
	stopped bool
	warned  bool      // of long work
	begun   time.Time // when the measurement of the pace started, and the share at that time
	from    float64
}

// NewProgress starts measuring. The caller must call Stop at the end.
func NewProgress(w io.Writer, c ProgressConfig) *Progress {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Columns <= 0 {
		c.Columns = 80
	}
	now := c.Now()
	return &Progress{c: c, w: w, start: now, last: now, begun: now}
}

// Update reports that done of total are done; a total of 0 is unknown. The note is appended, and may be empty.
func (p *Progress) Update(done, total int64, note string) {
	share := 0.0
	if total > 0 {
		share = min(float64(done)/float64(total), 1)
	}
	p.update(done, total, share, note)
}

// Reach reports that a share of the work is done, from 0 to 1, which may be known even where done and total are not.
// The time before the first share above 0 does not count towards the pace.
func (p *Progress) Reach(share float64, done, total int64, note string) {
	if p.mu.Lock(); p.from == 0 && share < 1 {
		p.begun, p.from = p.c.Now(), share
	}
	p.mu.Unlock()
	p.update(done, total, share, note)
}

func (p *Progress) update(done, total int64, share float64, note string) {
	if p.c.Quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.c.Now()
	left := 0.0 // seconds
	if share > p.from {
		left = now.Sub(p.begun).Seconds() / (share - p.from) * (1 - share)
	}
	if p.stopped {
		return
	}
	if !p.warned && now.Sub(p.begun) >= firstMoments && left > longWork.Seconds() {
		p.warned = true
		p.warn(left, now.Sub(p.begun))
	}
	every := printEvery
	if p.c.Terminal {
		every = redrawEvery
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	line := p.line(done, total, share, left, now.Sub(p.start), note)
	if p.c.Terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", clip(line, p.c.Columns-1))
	} else {
		fmt.Fprintln(p.w, line)
	}
	p.shown = true
}

// warn announces that the work takes long.
func (p *Progress) warn(left float64, pace time.Duration) {
	line := fmt.Sprintf("%s: this will take about %s more, at the pace of the first %.0f s", Shown(p.c.Label),
		about(left), pace.Seconds())
	if p.c.Hint != "" {
		line += "; " + p.c.Hint
	}
	if p.c.Terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K\n", line)
	} else {
		fmt.Fprintln(p.w, line)
	}
}

// about formats seconds, rounded, in a readable unit.
func about(seconds float64) string {
	switch {
	case seconds < 100*60:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.1f hours", seconds/3600)
	case seconds < 1000*24*3600:
		return fmt.Sprintf("%.1f days", seconds/86400)
	}
	return fmt.Sprintf("%.0f years", seconds/(365.25*86400))
}

func (p *Progress) line(done, total int64, share, left float64, spent time.Duration, note string) string {
	var b strings.Builder
	b.WriteString(p.c.Style.Bold(Shown(p.c.Label)))
	rate := float64(done) / spent.Seconds()
	if total > 0 || share > 0 {
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
	if left > 0 {
		fmt.Fprintf(&b, "  %s left", clock(left))
	}
	if note != "" {
		fmt.Fprintf(&b, "  %s", Shown(note))
	}
	return b.String()
}

// Stop removes the line from a terminal. Later updates have no effect.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown && p.c.Terminal && !p.stopped {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.stopped = true
}

// clock formats seconds as a clock shows them: 0:07, 12:30, 1:02:03.
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

// clip truncates s to the given width. Escape sequences are kept whole, and one that would be left open is closed.
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

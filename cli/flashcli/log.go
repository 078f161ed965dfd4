package flashcli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"farflash/cli/verb"
)

// logger returns the daemon's log in a format of --log. text is for people, and has a message's error after it and
// other attributes in parentheses.
func logger(format string, to io.Writer) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(&lines{to: to, mu: new(sync.Mutex)}), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, nil)), nil
	}
	return nil, verb.Usagef("--log %q: give text or json", format)
}

// lines is a slog.Handler that writes one line for each record.
type lines struct {
	to    io.Writer
	mu    *sync.Mutex
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (*lines) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (x *lines) Handle(_ context.Context, r slog.Record) error {
	var b, more strings.Builder
	fmt.Fprintf(&b, "farflash: %s", r.Time.Format("2006-01-02 15:04:05.000 "))
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString("error: ")
	case r.Level >= slog.LevelWarn:
		b.WriteString("warning: ")
	}
	b.WriteString(oneLine(r.Message))
	each := func(a slog.Attr) bool {
		text := fmt.Sprint(a.Value.Resolve().Any())
		if a.Key == "error" {
			b.WriteString(": " + oneLine(text))
			return true
		}
		if strings.ContainsAny(text, " ,()") || text == "" {
			text = strconv.Quote(text)
		}
		separator := ", "
		if more.Len() == 0 {
			separator = ""
		}
		more.WriteString(separator + a.Key + " " + oneLine(text))
		return true
	}
	for _, a := range x.attrs {
		each(a)
	}
	r.Attrs(each)
	if more.Len() > 0 {
		b.WriteString(" (" + more.String() + ")")
	}
	b.WriteString("\n")
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := io.WriteString(x.to, b.String())
	return err
}

// oneLine escapes what would end a line or move the cursor.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// WithAttrs implements slog.Handler.
func (x *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lines{to: x.to, mu: x.mu, attrs: append(x.attrs[:len(x.attrs):len(x.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. The daemon has no groups.
func (x *lines) WithGroup(string) slog.Handler { return x }

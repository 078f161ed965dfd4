package flashcli

import (
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

// TestLog verifies both formats of the log: each record is one line, whatever a client put in it.
func TestLog(t *testing.T) {
	say := func(log *slog.Logger) {
		log.Info("stopping")
		log.With("protocol", "nbd", "peer", "127.0.0.1:9").Warn("connection ended", "export", "a b,(c)\nd", "error",
			errors.New("x\x1b[2J\ny"), "count", 3)
		log.Error("no more")
		log.Debug("not this")
	}
	var text strings.Builder
	log, err := logger("text", &text)
	if err != nil {
		t.Fatal(err)
	}
	say(log)
	const stamp = `farflash: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} `
	want := "^" + stamp + "stopping\n" + stamp + regexp.QuoteMeta(`warning: connection ended: x\x1b[2J\ny (protocol nbd, `+
		`peer 127.0.0.1:9, export "a b,(c)\nd", count 3)`) + "\n" + stamp + "error: no more\n$"
	if !regexp.MustCompile(want).MatchString(text.String()) {
		t.Errorf("%q is not %q", text.String(), want)
	}
	text.Reset()
	if log, err = logger("json", &text); err != nil {
		t.Fatal(err)
	}
	say(log)
	lines := strings.Split(text.String(), "\n")
	var record map[string]any
	if len(lines) != 4 || json.Unmarshal([]byte(lines[1]), &record) != nil || record["level"] != "WARN" ||
		record["peer"] != "127.0.0.1:9" || record["export"] != "a b,(c)\nd" || record["time"] == nil {
		t.Errorf("%q", lines)
	}
	if _, err := logger("xml", &text); err == nil {
		t.Error("a format that is not there")
	}
}

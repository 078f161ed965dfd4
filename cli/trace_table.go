package cli

import (
	"strings"

	"farflash/cli/verb"
	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/workload/trace"
)

// tableKey is a key of --columns or --unit and its setter.
type tableKey struct {
	name string
	set  func(string) error
}

// parseTable parses --columns and --unit, whose keys are those of a scenario's trace.
func parseTable(columns, unit string) (trace.CSV, error) {
	var c trace.CSV
	text := func(name string, to *string) tableKey {
		return tableKey{name, func(v string) error { *to = v; return nil }}
	}
	bytes := func(name string, to *units.Bytes) tableKey {
		return tableKey{name, func(v string) (err error) { *to, err = units.ParseBytes(v); return err }}
	}
	k := &c.Columns
	if err := tablePairs("--columns", columns,
		[]tableKey{text("time", &k.Time), text("op", &k.Op), text("offset", &k.Offset), text("size", &k.Size),
			text("volume", &k.Volume), text("response", &k.Response), text("reads", &k.Reads),
			text("writes", &k.Writes)}); err != nil {
		return c, err
	}
	u := &c.Unit
	err := tablePairs("--unit", unit,
		[]tableKey{{"time", func(v string) (err error) { u.Time, err = units.ParseDuration(v); return err }},
			bytes("offset", &u.Offset), bytes("size", &u.Size)})
	return c, err
}

// tablePairs parses key=value,key=value.
func tablePairs(flag, text string, keys []tableKey) error {
	if text == "" {
		return nil
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok {
			return verb.Usagef("%s: %q is not a key=value; the keys are %s", flag, pair, spelling.OrList(names))
		}
		known := false
		for _, k := range keys {
			if k.name != name {
				continue
			}
			known = true
			if err := k.set(strings.TrimSpace(value)); err != nil {
				return verb.Usagef("%s: %s: %w", flag, name, err)
			}
		}
		if !known {
			near := ""
			if n := spelling.Nearest(name, names); n != "" {
				near = "; did you mean " + n + "?"
			}
			return verb.Usagef("%s: unknown key %q (the keys are %s)%s", flag, name, spelling.OrList(names), near)
		}
	}
	return nil
}

package scenario

import (
	"encoding"
	"reflect"
	"strings"
	"unicode"

	"farflash/fabric/cc"
)

// The schema of a scenario is the shape of Go structs: a key is its field's name
// in snake_case. This file has the exceptions and what reflection needs to walk
// the structs; decode.go reads, encode.go writes and explain.go describes them.

// keyOf has the keys that are neither named by a yaml tag nor the field's name in
// snake_case. "-" keeps a field out of scenarios.
var keyOf = map[string]string{
	"ssd.Config.Quirks":         "-", // only compat sets them
	"fabric.Config.Pools":       "-", // likewise
	"ssd.Energy.Idle":           "idle_watts",
	"nand.Timing.Read":          "read_latency",
	"nand.Timing.Program":       "program_latency",
	"nand.Timing.Erase":         "erase_latency",
	"nand.Timing.TransferRate":  "channel_rate",
	"nand.Timing.Width":         "channel_width",
	"scenario.Load.MQSim":       "mqsim",
	"scenario.Scenario.NVMf":    "nvmf",
	"scenario.TargetGroup.SSDs": "ssds",
	"nvmf.Config.TXQ":           "txq",
	"synth.Config.QueueDepth":   "-", // the flow's closed says it
	"synth.Config.Volume":       "-",
	"synth.Config.Seed":         "-", // the trial's
	"synth.Config.Name":         "-",
}

// shorthand names, for structs that may be written as a single value, the key that
// the value is for.
var shorthand = map[reflect.Type]string{
	reflect.TypeFor[Drive]():     "preset",
	reflect.TypeFor[Trace]():     "file",
	reflect.TypeFor[Fio]():       "file",
	reflect.TypeFor[cc.Config](): "algorithm",
	reflect.TypeFor[FlowLoad]():  "file",
}

// field is one key of a struct.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	owner string // "nand.Geometry.Channels": where the comment stands
}

// fieldsOf lists a struct's keys in order. Embedded structs are part of it.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if f.Anonymous {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out = append(out, inner)
			}
			continue
		}
		owner := t.String() + "." + f.Name
		key, ok := keyOf[owner]
		if !ok {
			key, _, _ = strings.Cut(f.Tag.Get("yaml"), ",")
		}
		if key == "" {
			key = snake(f.Name)
		}
		if key != "-" {
			out = append(out, field{key, []int{i}, f.Type, owner})
		}
	}
	return out
}

// snake turns CamelCase into snake_case; a run of capitals is one word.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

// readsText reports a type that reads itself from a single value.
func readsText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }

// isText reports a type that is always a single value: quantities with units,
// enumerations. A struct that only reads itself from text may also be a mapping:
// "size: 4KiB" is short for "size: {mean: 4KiB}".
func isText(t reflect.Type) bool {
	return readsText(t) && (t.Kind() != reflect.Struct || t.Implements(textMarshaler))
}

// findKey returns the path below t at which a key of that name stands, "" if there
// is none. The shallowest wins.
func findKey(t reflect.Type, key string) string {
	type place struct {
		t    reflect.Type
		path string
	}
	level := []place{{t, ""}}
	for range 5 {
		var next []place
		for _, p := range level {
			for _, f := range fieldsOf(p.t) {
				path := joinPath(p.path, f.key)
				if f.key == key && p.path != "" {
					return path
				}
				inner := f.typ
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if inner.Kind() == reflect.Struct && !isText(inner) {
					next = append(next, place{inner, path})
				}
			}
		}
		level = next
	}
	return ""
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

package flashcli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"farflash/flash/cfs"
	"farflash/flash/cfs/live"
	"farflash/flash/server"
	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// config is what the file of --config has besides flags.
type config struct {
	devices []string
	exports []export
	limits  limits
	places  map[string][]shape.Position // of the values that set a flag
}

// export is a file that the daemon makes or extends when it starts.
type export struct {
	name string
	size units.Bytes
	at   shape.Position
}

// The keys of a config that are not flags.
const (
	keyDevices = "devices"
	keyExports = "exports"
	keyLimit   = "limit" // a flag, but a mapping as well
)

// readConfig reads a config. Each key is a flag of the verb with underscores, or devices or exports. Flags of the
// command line go before the file; they are set if apply is true.
func readConfig(cmd *cobra.Command, path string, apply bool) (c config, err error) {
	text, err := shape.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("--config: %w", err)
	}
	top, err := shape.Parse(path, text)
	if err != nil {
		return c, err
	}
	if top.Kind != shape.Mapping {
		return c, &shape.Error{At: top.At, Msg: "the file has no keys; write for example nbd: 127.0.0.1:10809"}
	}
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	var all shape.Errors
	for i, k := range top.Keys {
		if err := c.key(cmd.Flags(), k, top.Items[i], given, apply); err != nil {
			all = append(all, err)
		}
	}
	if len(all) > 0 {
		return c, all
	}
	return c, nil
}

// key takes one key of a config.
func (c *config) key(flags *pflag.FlagSet, k, value *shape.Node, given map[string]bool, apply bool) *shape.Error {
	switch k.Text {
	case keyDevices:
		return scalars(value, func(n *shape.Node) error {
			c.devices = append(c.devices, n.Text)
			return nil
		})
	case keyExports:
		return pairs(value, func(name, n *shape.Node) error {
			var size sizeFlag
			if err := size.Set(n.Text); err != nil {
				return err
			}
			c.exports = append(c.exports, export{name.Text, size.bytes, name.At})
			return nil
		})
	}
	if k.Text == keyLimit {
		if given[keyLimit] {
			return nil
		}
		if value.Kind == shape.Mapping {
			return pairs(value, func(name, n *shape.Node) error { return c.limit(name.Text+"="+n.Text, n.At) })
		}
		return scalars(value, func(n *shape.Node) error { return c.limit(n.Text, n.At) })
	}
	name := strings.ReplaceAll(k.Text, "_", "-")
	f := flags.Lookup(name)
	if f == nil || strings.Contains(k.Text, "-") || name == "config" || name == "help" {
		known := []string{keyDevices, keyExports}
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Name != "config" && f.Name != "help" {
				known = append(known, strings.ReplaceAll(f.Name, "-", "_"))
			}
		})
		msg := fmt.Sprintf("unknown key %q; the keys are devices, exports and the flags of farflash flash serve, with "+
			"underscores", k.Text)
		if best := spelling.Nearest(strings.ReplaceAll(k.Text, "-", "_"), known); best != "" {
			msg = fmt.Sprintf("unknown key %q; did you mean %s?", k.Text, best)
		}
		return &shape.Error{At: k.At, Msg: msg}
	}
	if given[name] || !apply {
		return nil
	}
	set := func(text string, at shape.Position) error {
		if err := f.Value.Set(text); err != nil {
			return notOf(f.Value.Type(), text, err)
		}
		f.Changed = true
		if c.places == nil {
			c.places = map[string][]shape.Position{}
		}
		c.places[name] = append(c.places[name], at)
		return nil
	}
	if value.Kind == shape.Sequence && f.Value.Type() != "stringArray" {
		return &shape.Error{At: value.At, Msg: fmt.Sprintf("%s has one value, not a list", k.Text)}
	}
	return scalars(value, func(n *shape.Node) error {
		if err := set(n.Text, n.At); err != nil {
			return fmt.Errorf("%s: %w", k.Text, err)
		}
		return nil
	})
}

// limit takes one limit of a config.
func (c *config) limit(text string, at shape.Position) error {
	l, err := parseLimit(text)
	l.at = at
	c.limits = append(c.limits, l)
	return err
}

// notOf is the error for a value that is not one of a flag's type.
func notOf(kind, text string, err error) error {
	switch kind {
	case "int":
		return fmt.Errorf("%q is not a whole number", text)
	case "bool":
		return fmt.Errorf("%q is neither true nor false", text)
	case "duration":
		return fmt.Errorf("%q is not a time; give one such as 10s", text)
	}
	return err
}

// placed completes the error of a setting with the place where it was given.
func (c *config) placed(err error) error {
	f := new(server.Fault)
	if !errors.As(err, &f) || f.Setting == "" {
		return err
	}
	if at := c.places[f.Setting]; f.Index < len(at) {
		return &shape.Error{At: at[f.Index], Msg: fmt.Sprintf("%s: %v", strings.ReplaceAll(f.Setting, "-", "_"), err)}
	}
	return fmt.Errorf("--%s: %w", f.Setting, err)
}

// scalars calls f for a value, or for each in a list.
func scalars(value *shape.Node, f func(n *shape.Node) error) *shape.Error {
	items := []*shape.Node{value}
	if value.Kind == shape.Sequence {
		items = value.Items
	}
	for _, n := range items {
		if n.Kind != shape.Scalar {
			return &shape.Error{At: n.At, Msg: fmt.Sprintf("%v stands here; write a single value", n.Kind)}
		}
		if err := f(n); err != nil {
			return &shape.Error{At: n.At, Msg: err.Error()}
		}
	}
	return nil
}

// pairs calls f for each key of a mapping.
func pairs(value *shape.Node, f func(name, n *shape.Node) error) *shape.Error {
	if value.Kind != shape.Mapping {
		return &shape.Error{At: value.At,
			Msg: fmt.Sprintf("%v stands here; write NAME: VALUE for each export", value.Kind)}
	}
	for i, k := range value.Keys {
		if value.Items[i].Kind != shape.Scalar {
			return &shape.Error{At: value.Items[i].At, Msg: fmt.Sprintf("%v stands here; write a single value",
				value.Items[i].Kind)}
		}
		if err := f(k, value.Items[i]); err != nil {
			return &shape.Error{At: value.Items[i].At, Msg: fmt.Sprintf("%s: %v", k.Text, err)}
		}
	}
	return nil
}

// make creates the exports that are missing, and extends those that are smaller than in the config. None becomes
// smaller or is removed: that is left to farflash flash fs.
func (c *config) make(tree *cfs.FS, log *slog.Logger) error {
	files := live.Local(tree)
	for _, x := range c.exports {
		at := func(err error) error { return &shape.Error{At: x.at, Msg: fmt.Sprintf("%s: %v", x.name, err)} }
		was, err := files.Stat(x.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			for i := range x.name {
				if i == 0 || x.name[i] != '/' {
					continue
				}
				err := files.Change(live.Request{Op: live.Mkdir, Path: x.name[:i], Perm: 0o755})
				if err != nil && !errors.Is(err, fs.ErrExist) {
					return at(err)
				}
			}
			log.Info("new export", "export", x.name, "size", x.size.String())
		case err != nil:
			return at(err)
		case was.Kind == cfs.Directory:
			return at(errors.New("it is a directory"))
		case was.Size == int64(x.size):
			continue
		case was.Size > int64(x.size):
			return at(fmt.Errorf("it has %v, more than %v; to cut it: farflash flash fs truncate",
				units.Bytes(was.Size),
				x.size))
		default:
			log.Info("larger export", "export", x.name, "size", x.size.String(), "was", units.Bytes(was.Size).String())
		}
		err = files.Change(live.Request{Op: live.Resize, Path: x.name, Size: int64(x.size), Create: true, Perm: 0o600})
		if err != nil {
			return at(err)
		}
	}
	return nil
}
